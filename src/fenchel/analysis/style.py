"""The style of a report: one sheet, light and dark, no font or script from elsewhere."""

STYLE = """
:root{--paper:#fdfcf9;--ink:#1d2530;--faint:#69717d;--rule:#dcdad3;--mark:#0b5fa5;--good:#1a7f37;
--s0:#0b5fa5;--s1:#c2410c;--s2:#1a7f37;--s3:#7c3aed;--s4:#a16207;--s5:#0f766e;color-scheme:light dark}
@media (prefers-color-scheme:dark){:root{--paper:#14181f;--ink:#e4e7ec;--faint:#98a1ae;--rule:#313947;
--mark:#6cb6ff;--good:#56d364;--s0:#6cb6ff;--s1:#ff9a5c;--s2:#56d364;--s3:#c4a1ff;--s4:#e3b341;--s5:#5eead4}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:2rem 1.2rem 4rem;background:var(--paper);color:var(--ink);
font:16px/1.55 system-ui,sans-serif}
h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}
h2{font-size:1.2rem;margin:2.6rem 0 .6rem;padding-top:.8rem;border-top:1px solid var(--rule)}
h3{font-size:1rem;margin:1.8rem 0 .3rem}
p{margin:.4rem 0;max-width:44rem}
svg text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.faint,figcaption,caption{color:var(--faint);font-size:.9rem}
.scroll{overflow-x:auto}
figure{margin:.8rem 0}
.side{display:flex;flex-wrap:wrap;gap:1.2rem 2.4rem;align-items:flex-start}
.side>*{max-width:100%}
table{border-collapse:collapse;margin:.6rem 0}
caption{text-align:left;padding:.3rem 0}
th,td{padding:.25rem .9rem .25rem 0;text-align:left;border-bottom:1px solid var(--rule);
vertical-align:top}
thead th{font-weight:600;border-bottom-color:var(--faint)}
tbody th{font-weight:400}
.number{text-align:right;font-variant-numeric:tabular-nums}
.yes{color:var(--good)}
summary{cursor:pointer;color:var(--mark)}
svg{max-width:none;height:auto}
svg text{font-size:12px;fill:var(--ink)}
svg .tick{fill:var(--faint);font-size:11px}
svg .grid{stroke:var(--rule);stroke-width:1;fill:none}
svg .w{fill:var(--mark)}
svg polyline{fill:none;stroke-width:2}
svg .edge{fill:none;stroke:var(--mark);stroke-linecap:round}
svg .key{font-weight:600}
""" + "".join(
    f"svg polyline.s{k}{{stroke:var(--s{k})}}svg text.s{k},svg .dot.s{k}{{fill:var(--s{k})}}\n"
    for k in range(6)
)
