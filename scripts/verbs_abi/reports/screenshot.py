# SPDX-License-Identifier: BSD-2-Clause
"""Makes docs/matrix.png from a report page.

python3 -m verbs_abi.reports.screenshot [PAGE [PICTURE]], with scripts/ in PYTHONPATH.
"""

from __future__ import annotations

import argparse
import base64
import pathlib
import sys

from . import webdriver
from .schema import REPORTS_DIR

_REPOSITORY = REPORTS_DIR.parent


def take(page, picture, *, width=1400, selector=None, cell=None, dark=False, max_height=4000):
    """Writes the PNG of `page`: whole, or of the element that `selector` names, with `cell` opened.

    Raises FileNotFoundError without the page, webdriver.BrowserError when the browser fails.
    """
    page, picture = pathlib.Path(page).resolve(), pathlib.Path(picture)
    if not page.is_file():
        raise FileNotFoundError(f"{page}: no such page; ./verbs-abi run writes it")
    with webdriver.open_browser(width=width, height=1000, dark=dark) as browser:
        # The window's size counts its frame; the picture's width must be the page's.
        browser.devtools(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=1000,
            deviceScaleFactor=1,
            mobile=False,
        )
        browser.go(page.as_uri() + (f"#cell={cell}" if cell else ""))
        browser.script(
            "window.dispatchEvent(new Event('beforeprint'))"
        )  # draws every block of the matrix
        browser.script("window.scrollTo({top: 0, behavior: 'instant'})")
        box = browser.script(
            "const box = document.querySelector(arguments[0] || 'html')"
            ".getBoundingClientRect();"
            "return [box.x + scrollX, box.y + scrollY, box.width, box.height]",
            selector,
        )
        if selector:  # a little air around it
            box = [max(0, box[0] - 12), max(0, box[1] - 12), box[2] + 24, box[3] + 24]
        png = browser.devtools(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=True,
            clip={
                "x": box[0],
                "y": box[1],
                "width": box[2],
                "height": min(box[3], max_height),
                "scale": 1,
            },
        )["data"]
    picture.parent.mkdir(parents=True, exist_ok=True)
    picture.write_bytes(base64.b64decode(png))


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="screenshot", description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", default=_REPOSITORY / "out" / "index.html")
    parser.add_argument("picture", nargs="?", default=_REPOSITORY / "docs" / "matrix.png")
    parser.add_argument("--width", type=int, default=1400, help="CSS pixels (default 1400)")
    parser.add_argument("--max-height", type=int, default=4000, help="cut off below (default 4000)")
    parser.add_argument("--selector", help="only this element, for example '#matrix'")
    parser.add_argument("--cell", help="with this cell opened")
    parser.add_argument("--dark", action="store_true", help="as in dark mode")
    options = parser.parse_args(arguments)
    try:
        take(
            options.page,
            options.picture,
            width=options.width,
            selector=options.selector,
            cell=options.cell,
            dark=options.dark,
            max_height=options.max_height,
        )
    except (OSError, webdriver.BrowserError) as error:
        print(f"screenshot: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
