"""What the compiled kernels make of a sum over threads."""

from __future__ import annotations

import re

SENT = re.compile(r"\s*shfl\.sync\.bfly\S*\s+(%\w+)")
PUT_TOGETHER = re.compile(r"\s*(?:cvt|shl|or|mov)\.\S+\s+(%\w+), (.*);")  # halves of a float64
FUSED = re.compile(r"\s*fma\.rn\.\S+\s+%\w+, %\w+, %\w+, (%\w+);")


def adds_products_to_what_was_sent(ptx: str) -> bool:
    """Whether threads add products of their own, unrounded, to what others sent them, rounded.

    Then they do not agree on the last bit of the sum, and a loop that it controls ends for some of them
    and not for the others.
    """
    sent: set[str] = set()
    for line in ptx.splitlines():
        if match := SENT.match(line):
            sent.add(match[1])
        elif match := PUT_TOGETHER.match(line):
            keep = sent.add if sent.intersection(re.findall(r"%\w+", match[2])) else sent.discard
            keep(match[1])
        elif (match := FUSED.match(line)) and match[1] in sent:
            return True
    return False
