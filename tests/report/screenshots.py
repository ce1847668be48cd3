"""Screenshots of a page: wide, on a phone, and in the dark scheme.

python -m tests.report.screenshots PAGE OUT [--selector .view] [--head encoder-1-4] [--sentence 2]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tests.report.browser import browser

SIZES: dict[str, dict[str, Any]] = {
    "wide": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "light"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "color_scheme": "light",
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
    "dark": {"viewport": {"width": 1200, "height": 900}, "color_scheme": "dark"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("page", type=Path, help="HTML file")
    parser.add_argument("out", type=Path, help="folder of wide.png, phone.png and dark.png")
    parser.add_argument("--selector", help="only this element, such as .view")
    parser.add_argument("--head", help="head to open first, such as encoder-1-4")
    parser.add_argument("--sentence", type=int, help="sentence to show, counted from 1")
    parser.add_argument("--token", type=int, help="token to light, counted from 1")
    arguments = parser.parse_args()
    if not arguments.page.is_file():
        parser.error(f"PAGE must be a file, got {arguments.page}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with browser() as started:
        for name, options in SIZES.items():
            page = started.new_page(**options)
            page.goto(arguments.page.resolve().as_uri())
            if arguments.head:
                page.locator(f".cell[data-head='{arguments.head}']").first.click()
            if arguments.sentence:
                page.locator(".sentence select").select_option(index=arguments.sentence - 1)
            page.mouse.move(0, 0)
            if arguments.token:
                page.locator(".token[data-query]").nth(arguments.token - 1).click()
            path = arguments.out / f"{name}.png"
            if arguments.selector:
                page.locator(arguments.selector).first.screenshot(path=path)
            else:
                page.screenshot(path=path, full_page=True)
            page.close()
            print(path)


if __name__ == "__main__":
    main()
