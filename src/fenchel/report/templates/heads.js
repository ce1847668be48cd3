// Draws the views of attention heads from the JSON in the elements of class "heads", which
// heads_rendering.py writes. Tokens become text nodes, never markup, and nothing is loaded.
"use strict";

(() => {
  const FONT = "12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"; // as in style.css
  const ROW = 24; // height of a token of the arcs
  const WIDEST_ARCS = 460;
  const LARGEST_CELL = 22, SMALLEST_CELL = 9; // sides of a square of the matrix
  const MANY = 12; // columns of a grid with smaller cells
  const FAINTEST = 0.12; // opacity of the smallest weights, so that they can be told from zeros
  const FROM = "token", TO = "attends to"; // titles of the columns of the arcs
  const LISTED = 6; // weights in the tooltip of a token
  const CHART = { width: 320, height: 190, left: 34, right: 274, top: 10, bottom: 154 };
  const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  // Elements

  const parsed = document.createElement("template");
  parsed.innerHTML = "<svg></svg>";
  const SVG = parsed.content.firstChild.namespaceURI;
  const html = (tag, attributes, ...children) =>
    build(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) =>
    build(document.createElementNS(SVG, tag), attributes, children);

  function build(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  }

  function picture(width, height, attributes, ...children) {
    return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, ...attributes }, ...children);
  }

  const label = (x, y, text, anchor, attributes) =>
    svg("text", { x, y, "text-anchor": anchor, ...attributes }, text);
  const tick = (x, y, text, anchor) => label(x, y, text, anchor, { class: "tick" });

  // Numbers and texts

  const clamp = (value, low, high) => Math.max(low, Math.min(value, high));
  const distinct = (values) => [...new Set(values)].sort((a, b) => a - b);
  const keyOf = (head) => `${head.kind}-${head.layer}-${head.head}`;
  const headOf = (model, key) => model.heads.find((head) => keyOf(head) === key);
  const placeOf = (head) => `layer ${head.layer}, head ${head.head}`;
  const weightText = (weight) =>
    weight === undefined ? "0" : weight === 0 ? "<0.0001" : weight.toFixed(4);

  function valueText(metric, value) {
    if (value === null) return "–";
    return metric.share ? `${(100 * value).toFixed(1)} %` : value.toFixed(2);
  }

  const pen = document.createElement("canvas").getContext("2d");
  pen.font = FONT;
  const textWidth = (text) => pen.measureText(text).width;
  const widest = (texts, limit) => Math.min(limit, Math.max(0, ...texts.map(textWidth)) + 2);

  function clipped(text, width) {
    if (textWidth(text) <= width) return text;
    const letters = [...text];
    while (letters.length > 1 && textWidth(`${letters.join("")}…`) > width) letters.pop();
    return `${letters.join("")}…`;
  }

  // A tooltip for all views

  const tip = html("div", { class: "tip", "aria-hidden": "true", hidden: "" });
  const hideTip = () => (tip.hidden = true);

  function showTip(contents, x, y) {
    tip.replaceChildren(...contents);
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    const left = clamp(x + 14, 4, document.documentElement.clientWidth - width - 4);
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${Math.max(4, top) + scrollY}px`;
  }

  // Attention of a head on a sentence. A `spot` is a part of it: a query, a key, or both for one weight.

  function decode(data, model, head, sentence) {
    const kind = data.kinds.find((each) => each.name === head.kind);
    const queries = sentence[kind.queries], keys = sentence[kind.keys];
    const links = [];
    let place = 0;
    for (const number of sentence.weights[model.heads.indexOf(head)] ?? []) {
      if (number < 0) {
        place -= number;
      } else {
        const query = Math.floor(place / keys.length);
        links.push({ query, key: place % keys.length, weight: number / data.units });
        place += 1;
      }
    }
    const masked = head.kind === "decoder" && links.every((link) => link.key <= link.query);
    return { queries, keys, links, masked };
  }

  const matches = (link, spot) =>
    (spot.query ?? link.query) === link.query && (spot.key ?? link.key) === link.key;

  function spotOf(node) {
    const { query, key } = node.dataset;
    return {
      ...(query === undefined ? {} : { query: Number(query) }),
      ...(key === undefined ? {} : { key: Number(key) }),
    };
  }

  // The contents of the tooltip of a spot.
  function describe({ queries, keys, links }, spot) {
    const bdi = (token) => html("bdi", {}, token);
    const on = links.filter((link) => matches(link, spot)).sort((a, b) => b.weight - a.weight);
    const { query, key } = spot;
    if (query !== undefined && key !== undefined) {
      const weight = html("b", {}, weightText(on[0]?.weight));
      return [html("p", {}, bdi(queries[query]), " → ", bdi(keys[key]), " ", weight)];
    }
    const title =
      key === undefined
        ? [bdi(queries[query]), ` attends to ${on.length} of ${keys.length} tokens`]
        : [`${on.length} of ${queries.length} tokens attend to `, bdi(keys[key])];
    const lines = on.slice(0, LISTED).map((link) => {
      const token = key === undefined ? keys[link.key] : queries[link.query];
      return html("li", {}, bdi(token), " ", html("b", {}, weightText(link.weight)));
    });
    if (on.length > LISTED) lines.push(html("li", {}, `and ${on.length - LISTED} more`));
    return [html("p", {}, ...title), html("ul", {}, ...lines)];
  }

  // Pictures

  function drawGrid(kind, model) {
    const heads = model.heads.filter((head) => head.kind === kind.name);
    const columns = distinct(heads.map((head) => head.head));
    const cell = (layer, column) => {
      const head = heads.find((each) => each.layer === layer && each.head === column);
      const attributes = { type: "button", class: "cell" };
      const button = head && html("button", { ...attributes, "data-head": keyOf(head) });
      return html("td", {}, ...(button ? [button] : []));
    };
    const rows = distinct(heads.map((head) => head.layer)).map((layer) => {
      const title = html("th", { scope: "row", title: `layer ${layer}` }, layer);
      return html("tr", {}, title, ...columns.map((column) => cell(layer, column)));
    });
    const titles = columns.map((k) => html("th", { scope: "col", title: `head ${k}` }, k));
    const table = html(
      "table",
      { class: columns.length > MANY ? "head-grid many" : "head-grid", style: `--columns: ${columns.length}` },
      html("caption", {}, kind.title),
      html("thead", {}, html("tr", {}, html("td", {}), ...titles)),
      html("tbody", {}, ...rows),
    );
    return html("div", { class: "box" }, table);
  }

  function drawArcs(attention, space) {
    const { queries, keys, links } = attention;
    const width = Math.min(space, WIDEST_ARCS), top = 24, limit = width * 0.34;
    const left = widest([...queries, FROM], limit), right = width - widest([...keys, TO], limit);
    const from = left + 8, to = right - 8, middle = (from + to) / 2;
    const y = (place) => top + ROW * (place + 0.5);
    const faintest = clamp((0.6 * queries.length) / links.length, 0.03, FAINTEST); // many make a haze
    const arcs = [...links]
      .sort((a, b) => a.weight - b.weight)
      .flatMap(({ query, key, weight }) => {
        const d = `M${from} ${y(query)}C${middle} ${y(query)} ${middle} ${y(key)} ${to} ${y(key)}`;
        const shared = { d, "data-query": query, "data-key": key };
        const size = { "stroke-width": 0.75 + 3.25 * weight, style: `--weight: ${weight}` };
        return [
          svg("path", { ...shared, class: "hit" }),
          svg("path", { ...shared, class: "arc", ...size }),
        ];
      });
    const token = (side, x, width, textX, anchor) => (text, place) => {
      const contents = describe(attention, { [side]: place });
      const name = contents.flatMap((node) => [...node.children].map((each) => each.textContent));
      const title = [contents[0].textContent, ...name.slice(1)].join("; ");
      return svg(
        "g",
        { class: "token", [`data-${side}`]: place, role: "button", "aria-label": title, tabindex: -1 },
        svg("rect", { x, y: y(place) - ROW / 2, width, height: ROW }),
        label(textX, y(place) + 4, clipped(text, limit), anchor),
      );
    };
    const name = "Arcs from tokens to the tokens that they attend to";
    return picture(
      width,
      top + ROW * Math.max(queries.length, keys.length),
      { class: "arcs", role: "group", "aria-label": name, style: `--faintest: ${faintest}` },
      tick(left, 12, FROM, "end"),
      tick(right, 12, TO, "start"),
      ...arcs,
      ...queries.map(token("query", 0, from, left, "end")),
      ...keys.map(token("key", to, width - to, right, "start")),
    );
  }

  function drawMatrix(attention, space) {
    const { queries, keys, links, masked } = attention;
    const left = widest(queries, space * 0.3) + 8, top = widest(keys, 120) + 8;
    const side = clamp(Math.floor((space - left - 1) / keys.length), SMALLEST_CELL, LARGEST_CELL);
    const right = left + side * keys.length, bottom = top + side * queries.length;
    const x = (key) => left + side * key, y = (query) => top + side * query;
    const style = `font-size: ${Math.min(12, side)}px`;
    const rows = queries.map((text, query) => {
      const attributes = { style, "data-query": query };
      return label(left - 6, y(query + 0.5) + 4, clipped(text, left - 8), "end", attributes);
    });
    const columns = keys.map((text, key) => {
      const transform = `translate(${x(key + 0.5) + 4} ${top - 6}) rotate(-90)`;
      return label(0, 0, clipped(text, top - 8), "start", { style, transform, "data-key": key });
    });
    const squares = links.map(({ query, key, weight }) => {
      const place = { x: x(key) + 0.5, y: y(query) + 0.5, width: side - 1, height: side - 1 };
      const spot = { "data-query": query, "data-key": key };
      const opacity = FAINTEST + (1 - FAINTEST) * weight;
      return svg("rect", { class: "weight", ...place, ...spot, opacity });
    });
    const lines = [
      ...Array.from({ length: queries.length + 1 }, (_, k) => `M${left} ${y(k)}H${right}`),
      ...Array.from({ length: keys.length + 1 }, (_, k) => `M${x(k)} ${top}V${bottom}`),
    ];
    const later = queries.slice(0, -1).map((_, k) => `M${x(k + 1)} ${y(k)}H${right}v${side}H${x(k + 1)}z`);
    const name = `${links.length} of ${queries.length * keys.length} weights are not zero`;
    const drawn = picture(
      right + 1,
      bottom + 1,
      { class: "matrix scrolls", role: "img", "aria-label": name },
      svg("path", { class: "ground", d: `M${left} ${top}H${right}V${bottom}H${left}z` }),
      svg("path", { class: "masked", d: masked ? later.join("") : "" }),
      svg("path", { class: "grid", d: lines.join("") }),
      ...squares,
      ...rows,
      ...columns,
    );
    drawn.spotAt = (event) => {
      const box = drawn.getBoundingClientRect();
      const key = Math.floor((event.clientX - box.left - left) / side);
      const query = Math.floor((event.clientY - box.top - top) / side);
      return keys[key] === undefined || queries[query] === undefined ? null : { query, key };
    };
    return drawn;
  }

  // α of the heads of a kind during training; null if it was not recorded.
  function drawCurves(metric, kind, model) {
    const { title, x, ticks, alpha } = model.trajectories;
    const { width, height, left, right, top, bottom } = CHART;
    const span = x.at(-1) - x[0] || 1, range = metric.high - metric.low;
    const placeX = (value) => left + ((value - x[0]) / span) * (right - left);
    const placeY = (value) => bottom - ((value - metric.low) / range) * (bottom - top);
    const curves = model.heads.flatMap((head, k) => {
      if (head.kind !== kind.name || !alpha[k]) return [];
      const places = alpha[k].map((each, i) => `${placeX(x[i]).toFixed(1)},${placeY(each).toFixed(1)}`);
      const points = places.join(" "), endX = placeX(x.at(-1)), endY = placeY(alpha[k].at(-1));
      return svg(
        "g",
        { class: "curve", "data-head": keyOf(head) },
        svg("polyline", { points, class: "hit" }),
        svg("polyline", { points, class: "line" }),
        svg("circle", { cx: endX, cy: endY, r: 3 }),
        label(endX + 7, endY + 4, alpha[k].at(-1).toFixed(2), "start"),
      );
    });
    if (curves.length === 0) return null;
    const lines = metric.ticks.map((value) => `M${left} ${placeY(value)}H${right}`);
    const drawn = picture(
      width,
      height,
      { class: "curves", role: "img", "aria-label": `α of ${curves.length} heads by ${title}` },
      svg("path", { class: "grid", d: lines.join("") }),
      ...metric.ticks.map((value) => tick(left - 6, placeY(value) + 4, value.toFixed(1), "end")),
      ...ticks.map((value) => tick(placeX(value), bottom + 16, value, "middle")),
      tick((left + right) / 2, height - 4, title, "middle"),
      ...curves,
    );
    drawn.nearest = (event) => {
      const box = drawn.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      const distances = x.map((value) => Math.abs(placeX(value) - at));
      return distances.indexOf(Math.min(...distances));
    };
    return html("figure", {}, html("figcaption", {}, kind.title), drawn);
  }

  // A view of one or two models. Both show the same head and sentence.

  class View {
    constructor(root, number) {
      this.root = root;
      this.data = JSON.parse(root.querySelector("script").textContent);
      this.metric = this.data.metrics[0];
      this.heads = new Map(this.data.models.flatMap(({ heads }) => heads.map((head) => [keyOf(head), head])));
      this.head = this.heads.values().next().value;
      this.sentence = 0;
      this.pinned = null; // a spot that was clicked, and its panel
      this.panels = this.data.models.map((model) => ({
        model,
        grids: this.gridsOf(model),
        pictures: html("div", { class: "head" }),
        curves: this.curvesOf(model),
        attention: null,
      }));
      this.node = this.build(number);
      root.dataset.models = this.panels.length;
      root.prepend(this.node);
      for (const table of root.querySelectorAll("details")) table.open = false;
      this.showMetric();
      this.showHead();
      this.width = root.clientWidth;
      new ResizeObserver(() => this.resize()).observe(root);
    }

    build(number) {
      const scale = [html("span", {}), html("i", {}), html("span", {})];
      this.heading = html("h3", { "aria-live": "polite" });
      const node = html(
        "div",
        { class: "view" },
        this.metricChoice(number),
        html("p", { class: "scale" }, ...scale),
        html("div", { class: "pair" }, ...this.panels.map((panel) => panel.grids)),
        this.heading,
        ...this.sentenceChoice(),
        html("div", { class: "pair" }, ...this.panels.map((panel) => panel.pictures)),
      );
      if (this.data.models.some((model) => model.trajectories)) {
        const curves = this.panels.filter(({ model }) => model.trajectories).map((panel) => panel.curves);
        node.append(html("h3", {}, "α during training"), html("div", { class: "pair" }, ...curves));
      }
      node.addEventListener("click", (event) => {
        const chosen = event.target.closest("[data-head]");
        if (chosen) this.open(chosen.dataset.head);
      });
      node.addEventListener("keydown", (event) => this.moveInGrid(event));
      return node;
    }

    title(model) {
      return this.data.models.length > 1 ? [html("h4", {}, model.name)] : [];
    }

    metricChoice(number) {
      const choices = this.data.metrics.map((metric, k) => {
        const input = html("input", { type: "radio", name: `metric-${number}` });
        input.checked = k === 0;
        input.addEventListener("change", () => {
          this.metric = metric;
          this.showMetric();
        });
        return html("label", {}, input, html("span", {}, metric.name));
      });
      const legend = html("legend", {}, "Colour the heads by");
      return html("fieldset", { class: "metrics" }, legend, ...choices);
    }

    sentenceChoice() {
      const sentences = this.data.models[0].sentences;
      if (sentences.length === 0) return [];
      const options = sentences.map(({ title }, k) => html("option", {}, `${k + 1}. ${title}`));
      const select = html("select", {}, ...options);
      select.addEventListener("change", () => {
        this.sentence = select.selectedIndex;
        this.pinned = null;
        this.showHead();
      });
      return [html("label", { class: "sentence" }, "Sentence", select)];
    }

    gridsOf(model) {
      const kinds = this.data.kinds.filter(({ name }) => model.heads.some((head) => head.kind === name));
      const grids = html("div", { class: "grids" }, ...kinds.map((kind) => drawGrid(kind, model)));
      const name = `Heads of ${model.name}`;
      const node = html("div", { role: "group", "aria-label": name }, ...this.title(model), grids);
      this.addHeadTips(node, model, (head) => {
        const items = this.data.metrics.map((metric) => {
          const value = html("b", {}, valueText(metric, head.values[metric.name]));
          return html("li", {}, metric.name, value);
        });
        return [html("ul", {}, ...items)];
      });
      return node;
    }

    curvesOf(model) {
      const kinds = model.trajectories ? this.data.kinds : [];
      const charts = kinds.map((kind) => drawCurves(this.data.metrics[0], kind, model)).filter(Boolean);
      const node = html("div", {}, ...this.title(model), html("div", { class: "charts" }, ...charts));
      this.addHeadTips(node, model, (head, event) => {
        const { title, x, alpha } = model.trajectories;
        const k = event.target.closest(".curves").nearest(event);
        const value = html("b", {}, alpha[model.heads.indexOf(head)][k].toFixed(2));
        return [html("p", {}, "α ", value, ` at ${title} ${x[k]}`)];
      });
      return node;
    }

    // Show a tooltip over the heads in a grid or a chart.
    addHeadTips(node, model, contents) {
      node.addEventListener("pointermove", (event) => {
        const target = event.target.closest("[data-head]");
        if (!target) return hideTip();
        const head = headOf(model, target.dataset.head);
        const title = html("p", {}, placeOf(head));
        return showTip([title, ...contents(head, event)], event.clientX, event.clientY);
      });
      node.addEventListener("pointerleave", hideTip);
    }

    showMetric() {
      const { metric } = this;
      this.node.dataset.metric = metric.share ? "share" : "alpha";
      const ends = metric.share ? ["0 %", "100 %"] : [`${metric.low} (dense)`, `${metric.high} (sparse)`];
      this.node.querySelectorAll(".scale span").forEach((node, k) => (node.textContent = ends[k]));
      for (const { model, grids } of this.panels) {
        for (const button of grids.querySelectorAll(".cell")) {
          const head = headOf(model, button.dataset.head);
          const value = head.values[metric.name];
          const shade = (value - metric.low) / (metric.high - metric.low);
          button.classList.toggle("missing", value === null);
          button.style.setProperty("--shade", clamp(shade, 0, 1).toFixed(4));
          button.setAttribute("aria-label", `${placeOf(head)}: ${metric.name} ${valueText(metric, value)}`);
          const digits = button.closest(".many") ? 1 : 2;
          const text = () => (metric.share ? Math.round(100 * value) : value.toFixed(digits));
          button.textContent = value === null ? "–" : text();
        }
      }
    }

    open(key) {
      const head = this.heads.get(key);
      if (head.kind !== this.head.kind) this.pinned = null;
      this.head = head;
      this.showHead();
    }

    showHead() {
      const key = keyOf(this.head);
      const kind = this.data.kinds.find((each) => each.name === this.head.kind);
      this.heading.textContent = `${kind.title}, ${placeOf(this.head)}`;
      for (const table of this.node.querySelectorAll(".head-grid")) {
        const buttons = [...table.querySelectorAll(".cell")];
        const chosen = buttons.find((button) => button.dataset.head === key);
        for (const button of buttons) {
          button.setAttribute("aria-pressed", button === chosen);
          button.tabIndex = button === (chosen ?? buttons[0]) ? 0 : -1;
        }
      }
      for (const curve of this.node.querySelectorAll(".curve")) {
        curve.classList.toggle("chosen", curve.dataset.head === key);
      }
      for (const curve of this.node.querySelectorAll(".chosen")) curve.parentNode.append(curve);
      this.panels.forEach((panel) => this.drawHead(panel));
      this.light(null);
    }

    drawHead(panel) {
      const { model, pictures } = panel;
      const head = headOf(model, keyOf(this.head));
      panel.attention = null;
      pictures.replaceChildren(...this.title(model));
      if (!head) return pictures.append(html("p", {}, "This model has no such head."));
      const facts = this.data.metrics.map((metric) => {
        const value = head.values[metric.name];
        const style = `--share: ${value}`;
        const bar = metric.share && value !== null ? [html("dd", { class: "bar", style, "aria-hidden": "true" })] : [];
        const text = html("dd", {}, valueText(metric, value));
        return html("div", {}, html("dt", {}, metric.name), text, ...bar);
      });
      pictures.append(html("dl", { class: "facts" }, ...facts));
      const sentence = model.sentences[this.sentence];
      if (!sentence) return undefined;
      const attention = decode(this.data, model, head, sentence);
      if (attention.links.length === 0) {
        return pictures.append(html("p", {}, "There are no weights of this head on this sentence."));
      }
      panel.attention = attention;
      return this.drawAttention(panel);
    }

    drawAttention(panel) {
      const { attention } = panel;
      const node = html("div", { class: "pictures" });
      panel.pictures.append(node);
      const width = Math.floor(node.getBoundingClientRect().width);
      const space = width > 720 ? (width - 32) / 2 : width;
      const arcs = drawArcs(attention, space), matrix = drawMatrix(attention, space);
      const notes = [matrix.getAttribute("aria-label")];
      if (attention.links.length < attention.queries.length * attention.keys.length) {
        notes.push("blank squares are exact zeros");
      }
      if (attention.masked) notes.push("grey squares are later tokens, which are masked");
      const caption = html("figcaption", {}, notes.join("; "));
      node.append(
        html("figure", {}, arcs),
        html("figure", {}, html("div", { class: "box" }, matrix), caption),
      );
      const spotAt = (event) => {
        const target = event.target.closest("[data-query], [data-key]");
        return target ? spotOf(target) : event.target.closest(".matrix") && matrix.spotAt(event);
      };
      node.addEventListener("pointermove", (event) => this.light(panel, spotAt(event), event));
      node.addEventListener("pointerleave", () => this.light(null));
      node.addEventListener("click", (event) => this.pin(panel, spotAt(event), event));
      arcs.querySelector(".token").setAttribute("tabindex", 0);
      // On the <svg> itself, such listeners would make Chromium add it to the tab order.
      node.addEventListener("keydown", (event) => this.moveInArcs(event, panel));
      node.addEventListener("focusin", ({ target }) => {
        if (target.matches(".token:focus-visible")) this.light(panel, spotOf(target), below(target));
      });
      node.addEventListener("focusout", () => this.light(null));
    }

    pin(panel, spot, place) {
      const same = JSON.stringify(spot) === JSON.stringify(this.pinned?.spot);
      this.pinned = spot && !same ? { panel, spot } : null;
      this.light(panel, this.pinned && spot, place);
    }

    // Light the weights of a spot, or else of the one that was clicked, in all panels with its tokens.
    light(panel, spot, place) {
      const source = spot ? { panel, spot } : this.pinned;
      const tokens = ({ attention }) => JSON.stringify([attention?.queries, attention?.keys]);
      for (const each of this.panels) {
        const lit = source && each.attention && tokens(each) === tokens(source.panel);
        const links = lit ? each.attention.links.filter((link) => matches(link, source.spot)) : [];
        const ends = lit ? [...links, source.spot] : [];
        const queries = new Set(ends.map((end) => end.query)), keys = new Set(ends.map((end) => end.key));
        each.pictures.classList.toggle("lit", Boolean(lit));
        for (const node of each.pictures.querySelectorAll("[data-query], [data-key]")) {
          const { query, key } = spotOf(node);
          const on =
            key === undefined
              ? queries.has(query)
              : query === undefined
                ? keys.has(key)
                : lit && matches({ query, key }, source.spot);
          node.classList.toggle("on", Boolean(on));
        }
      }
      if (spot) showTip(describe(panel.attention, spot), place.clientX, place.clientY);
      else hideTip();
    }

    moveInGrid(event) {
      const cell = event.target.closest(".head-grid td"), step = STEPS[event.key];
      if (!cell || !step) return;
      event.preventDefault();
      const row = cell.closest("table").rows[cell.parentNode.rowIndex + step[0]];
      const button = row?.cells[cell.cellIndex + step[1]]?.querySelector("button");
      if (!button) return;
      this.open(button.dataset.head);
      button.focus();
    }

    moveInArcs(event, panel) {
      const { target } = event, step = STEPS[event.key];
      if (!target.matches(".token")) return;
      if (event.key === "Enter" || event.key === " ") this.pin(panel, spotOf(target), below(target));
      else if (event.key === "Escape") this.pin(panel, null);
      else if (!step) return;
      event.preventDefault();
      if (!step) return;
      const arcs = target.closest(".arcs");
      const columns = ["query", "key"].map((side) => [...arcs.querySelectorAll(`.token[data-${side}]`)]);
      const side = columns.findIndex((column) => column.includes(target));
      const column = columns[clamp(side + step[1], 0, 1)];
      const next = column[clamp(columns[side].indexOf(target) + step[0], 0, column.length - 1)];
      target.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    }

    resize() {
      if (this.root.clientWidth === this.width) return;
      this.width = this.root.clientWidth;
      this.showHead();
    }
  }

  // Where the tooltip of a token goes that has the focus.
  function below(node) {
    const { left, bottom } = node.getBoundingClientRect();
    return { clientX: left, clientY: bottom - 12 };
  }

  document.body.append(tip);
  document.querySelectorAll(".heads").forEach((root, number) => new View(root, number));
})();
