"""The view of heads in headless Chromium: it follows clicks, keys and the pointer, on every screen."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fenchel.report import HeadsView, Report, Section, render
from fenchel.report.heads_rendering import heads_data
from tests.report.browser import browser, chromium
from tests.report.example_heads import example_view

pytestmark = [
    pytest.mark.skipif(chromium() is None, reason="Chromium is not installed"),
    pytest.mark.skipif(
        importlib.util.find_spec("playwright") is None, reason="Playwright is not installed"
    ),
]
VIEW = example_view(models=2, layers=2, heads=4, sentences=2)
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of a page with one model and of one with two."""
    folder = tmp_path_factory.mktemp("pages")
    one = HeadsView(VIEW.models[:1])
    short = replace(VIEW.models[1], name="one layer", sentences=VIEW.models[0].sentences)
    short = replace(
        short,
        heads=[head for head in short.heads if head.layer == 1],
        sentences=[
            replace(each, weights={key: rows for key, rows in each.weights.items() if key[1] == 1})
            for each in short.sentences
        ],
    )
    views = {"one": one, "two": VIEW, "unequal": HeadsView([VIEW.models[0], short])}
    for name, view in views.items():
        text = render(Report("Heads", "A finding.", [Section("Heads", "Text.", [view])]))
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in views}


@pytest.fixture(scope="module")
def chrome() -> Iterator[Any]:
    with browser() as started:
        yield started


@pytest.fixture
def open_page(chrome: Any, files: dict[str, str]) -> Iterator[Any]:
    """Opens a page; fails if it logs anything or asks for anything but itself."""
    complaints: list[str] = []
    pages = []

    def opened(name: str, **options: Any) -> Any:
        page = chrome.new_page(**options)
        pages.append(page)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url))
        page.goto(files[name])
        complaints.remove(files[name])
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []


def cell(page: Any, head: str, panel: int = 0) -> Any:
    return page.locator(f".cell[data-head='{head}']").nth(panel)


def squares(page: Any, panel: int = 0) -> list[str]:
    """The places and opacities of the weights in a matrix."""
    drawn = page.locator(".head").nth(panel).locator(".weight")
    return drawn.evaluate_all("nodes => nodes.map(node => node.outerHTML)")


def tip(page: Any) -> str | None:
    shown = page.locator(".tip:visible")
    return shown.inner_text() if shown.count() else None


def test_a_click_opens_the_head_in_both_models(open_page):
    page = open_page("two")
    before = [squares(page, panel) for panel in (0, 1)]
    cell(page, "encoder-2-3", panel=1).click()
    assert page.locator(".view h3").first.inner_text() == "Encoder self-attention, layer 2, head 3"
    for panel in (0, 1):
        assert cell(page, "encoder-2-3", panel).get_attribute("aria-pressed") == "true"
        assert squares(page, panel) != before[panel]
        assert page.locator(".facts").nth(panel).inner_text() != ""
    assert page.locator(".cell[aria-pressed='true']").count() == 2


@pytest.mark.parametrize("head", ["encoder-1-2", "context-2-4", "decoder-1-1"])
def test_a_head_is_drawn_with_its_weights_and_nothing_else(open_page, head):
    page = open_page("one")
    cell(page, head).click()
    kind, layer, number = head.split("-")
    model = VIEW.models[0]
    rows = model.sentences[0].weights[kind, int(layer), int(number)]
    queries, keys = model.sentences[0].tokens(kind)
    found = page.locator(".weight").evaluate_all(
        "nodes => nodes.map(node => [+node.dataset.query, +node.dataset.key])"
    )
    assert sorted(map(tuple, found)) == sorted((q, k) for q, row in enumerate(rows) for k in row)
    assert page.locator(".arc").count() == len(found)
    assert page.locator(".token").count() == len(queries) + len(keys)
    exact = "exact zeros" in page.locator(".pictures figcaption").inner_text()
    assert exact == (len(found) < len(queries) * len(keys))


def test_a_hover_shows_the_weight_also_of_a_blank_square(open_page):
    page = open_page("one")
    cell(page, "decoder-2-1").click()
    rows = VIEW.models[0].sentences[0].weights["decoder", 2, 1]
    tokens = VIEW.models[0].sentences[0].target
    key, weight = max(rows[5].items(), key=lambda item: item[1])
    spot = f"[data-query='5'][data-key='{key}']"
    page.locator(f".weight{spot}").hover()
    assert tip(page) == f"{tokens[5]} → {tokens[key]} {weight:.4f}"
    assert page.locator(".weight.on").count() == page.locator(".arc.on").count() == 1
    zero = next(k for k in range(len(tokens)) if k not in rows[5])
    box = page.locator(".matrix .ground").bounding_box()
    side = box["width"] / len(tokens)
    page.mouse.move(box["x"] + side * (zero + 0.5), box["y"] + side * 5.5)
    assert tip(page) == f"{tokens[5]} → {tokens[zero]} 0"
    page.locator(".token[data-query='5']").hover()
    assert tip(page).startswith(f"{tokens[5]} attends to {len(rows[5])} of {len(tokens)} tokens")
    assert page.locator(".arc.on").count() == len(rows[5])
    assert page.locator(".token.on[data-query]").count() == 1
    assert page.locator(".token.on[data-key]").count() == len(rows[5])
    page.mouse.move(1, 1)
    assert tip(page) is None
    assert page.locator(".on").count() == 0


def test_a_hover_shows_the_weight_of_an_arc(open_page):
    page = open_page("one")
    arc = page.locator(".arcs .hit").last  # the largest weight, above the others
    arc.scroll_into_view_if_needed()
    page.mouse.move(*arc.evaluate(MIDDLE))
    query, key = (int(arc.get_attribute(name)) for name in ("data-query", "data-key"))
    sentence = VIEW.models[0].sentences[0]
    weight = sentence.weights["encoder", 1, 1][query][key]
    assert tip(page) == f"{sentence.source[query]} → {sentence.source[key]} {weight:.4f}"
    assert page.locator(".arc.on").count() == 1


def test_a_clicked_token_stays_lit_in_the_next_head_until_it_is_clicked_again(open_page):
    page = open_page("one")
    token = page.locator(".token[data-query='2']")
    token.click()
    cell(page, "encoder-2-2").click()
    count = len(VIEW.models[0].sentences[0].weights["encoder", 2, 2][2])
    assert page.locator(".arc.on").count() == count
    token.click()
    page.mouse.move(1, 1)
    assert page.locator(".arc.on").count() == 0


def test_a_token_is_lit_in_both_models(open_page):
    page = open_page("two")
    page.locator(".token[data-query='2']").first.hover()
    for panel in (0, 1):
        assert page.locator(".head").nth(panel).locator(".token.on[data-query='2']").count() == 1


def test_another_sentence_has_other_tokens(open_page):
    page = open_page("one")
    page.locator(".sentence select").select_option(index=1)
    shown = page.locator(".token[data-query]").all_text_contents()
    assert shown == list(VIEW.models[0].sentences[1].source)


def test_the_keyboard_leads_through_a_grid(open_page):
    page = open_page("one")
    cell(page, "encoder-1-1").focus()
    for key, head in [
        ("ArrowRight", "encoder-1-2"),
        ("ArrowDown", "encoder-2-2"),
        ("ArrowDown", "encoder-2-2"),
        ("ArrowLeft", "encoder-2-1"),
    ]:
        page.keyboard.press(key)
        pressed = page.locator(".cell[aria-pressed='true']")
        assert pressed.get_attribute("data-head") == head
        assert page.evaluate("document.activeElement.dataset.head") == head
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.head") == "context-1-1"
    before = squares(page)
    page.keyboard.press("Enter")
    assert squares(page) != before


def test_the_keyboard_leads_through_the_tokens(open_page):
    page = open_page("one")
    page.locator(".sentence select").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    tokens = VIEW.models[0].sentences[0].source
    assert tip(page).startswith(f"{tokens[1]} attends to")
    page.keyboard.press("ArrowRight")
    assert f"tokens attend to {tokens[1]}" in tip(page)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.locator(".token.on[data-key='1']").count() == 1
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.locator(".on").count() == 0
    name = page.locator(".token[data-query='1']").get_attribute("aria-label")
    assert name.startswith(f"{tokens[1]} attends to")


def test_the_grid_shows_alpha_density_or_a_role(open_page):
    page = open_page("two")
    data = heads_data(VIEW)
    for metric in data["metrics"]:
        page.get_by_label(metric["name"], exact=True).check()
        cells = page.locator(".cell").evaluate_all(
            "nodes => nodes.map(node => [node.textContent, node.ariaLabel])"
        )
        heads = [head for model in data["models"] for head in model["heads"]]
        for (text, name), head in zip(cells, heads, strict=True):
            value = head["values"][metric["name"]]
            place, shown = name.split(f": {metric['name']} ")
            assert place == f"layer {head['layer']}, head {head['head']}"
            if value is None:
                assert text == shown == "–"
            elif metric["share"]:
                assert int(text) == pytest.approx(100 * value, abs=0.51)
                assert float(shown.removesuffix(" %")) == pytest.approx(100 * value, abs=0.051)
            else:
                assert text == shown == f"{value:.2f}"


def test_the_more_of_it_a_head_has_the_darker_its_cell(open_page):
    page = open_page("one")
    page.get_by_label("density", exact=True).check()
    heads = sorted(VIEW.models[0].heads, key=lambda head: head.density)
    lightness = [
        cell(page, "{}-{}-{}".format(*head.key)).evaluate(
            "node => getComputedStyle(node).backgroundColor"
        )
        for head in heads
    ]
    values = [float(colour.removeprefix("oklab(").split()[0]) for colour in lightness]
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1] + 0.1


def test_the_curve_of_the_open_head_stands_out_and_a_click_on_another_opens_it(open_page):
    page = open_page("one")
    cell(page, "context-1-3").click()
    chosen = page.locator(".curve.chosen")
    assert chosen.get_attribute("data-head") == "context-1-3"
    assert chosen.locator("text").text_content() == cell(page, "context-1-3").inner_text()
    decoder = [head for head in VIEW.models[0].heads if head.kind == "decoder"]
    sparsest = max(decoder, key=lambda head: head.alpha or 0.0)
    name = "{}-{}-{}".format(*sparsest.key)
    line = page.locator(f".curve[data-head='{name}'] .hit")
    line.scroll_into_view_if_needed()
    page.mouse.move(*line.evaluate(END))
    assert (
        tip(page)
        == f"layer {sparsest.layer}, head {sparsest.head}\n\nα {sparsest.alpha:.2f} at epoch 12"
    )
    page.mouse.click(*line.evaluate(END))
    assert page.locator(".curve.chosen").get_attribute("data-head") == name
    assert cell(page, name).get_attribute("aria-pressed") == "true"


def test_a_head_that_the_other_model_does_not_have_is_said_to_be_missing(open_page):
    page = open_page("unequal")
    cell(page, "encoder-2-1").click()
    assert page.locator(".head").nth(0).locator(".weight").count() > 0
    assert "no such head" in page.locator(".head").nth(1).inner_text()


@pytest.mark.parametrize("name", ["one", "two"])
@pytest.mark.parametrize("width", [320, 390, 768, 1200])
def test_the_page_fits_its_width(open_page, name, width):
    page = open_page(name, viewport={"width": width, "height": 800})
    for head in ("encoder-1-1", "context-1-1"):
        cell(page, head).click()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.querySelector('.arcs').clientWidth < 390")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_phone_has_targets_large_enough_for_a_finger(open_page):
    page = open_page("two", **PHONE)
    for selector in (".cell", ".metrics label", ".sentence select", ".token rect"):
        for box in page.locator(selector).evaluate_all(
            "nodes => nodes.map(node => node.getBoundingClientRect())"
            ".map(({width, height}) => [width, height])"
        ):
            assert min(box) >= 24, selector
    cell(page, "context-2-2").tap()
    assert "layer 2, head 2" in page.locator(".view h3").first.inner_text()
    page.locator(".token[data-query='1']").first.tap()
    assert "attends to" in tip(page)


def test_the_dark_scheme_applies(open_page):
    colours = {}
    for scheme in ("light", "dark"):
        page = open_page("one", color_scheme=scheme)
        colours[scheme] = [
            page.locator(selector).first.evaluate(
                "(node, name) => getComputedStyle(node)[name]", arg=name
            )
            for selector, name in [
                ("body", "backgroundColor"),
                (".weight", "fill"),
                (".arc", "stroke"),
                (".cell", "backgroundColor"),
                (".tip", "backgroundColor"),
            ]
        ]
    assert all(a != b for a, b in zip(colours["light"], colours["dark"], strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_numbers_in_the_cells_are_legible_on_every_shade(open_page, scheme):
    page = open_page("one", color_scheme=scheme)
    contrasts = cell(page, "encoder-1-1").evaluate(CONTRASTS)
    assert min(contrasts) >= 4.2


def test_without_javascript_the_table_is_open(open_page, chrome):
    page = open_page("one", java_script_enabled=False)
    assert page.locator("details[open] tbody tr").count() == len(VIEW.models[0].heads)
    assert page.locator("noscript").is_visible()


# Points on the screen: the end of a curve, and the middle of an arc.
END = """line => {
  const end = line.points.getItem(line.points.numberOfItems - 1);
  const { x, y } = end.matrixTransform(line.getScreenCTM());
  return [x - 1, y];
}"""
MIDDLE = """path => {
  const middle = path.getPointAtLength(path.getTotalLength() / 2);
  const { x, y } = middle.matrixTransform(path.getScreenCTM());
  return [x, y];
}"""

# The contrast of the text of a cell with its colour, for 51 shades; a canvas converts colours to sRGB.
CONTRASTS = """node => {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const parts = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
    const linear = parts.map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const found = [];
  for (let shade = 0; shade <= 50; shade += 1) {
    node.style.setProperty("--shade", shade / 50);
    const style = getComputedStyle(node);
    const [a, b] = [luminance(style.backgroundColor), luminance(style.color)];
    found.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return found;
}"""
