# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation and looks at each page as a browser shows it.

Sphinx's warnings do not see what a theme or a narrow screen makes of a page: a red box,
a table that is cut, cells of a split row. Runs on the standard library.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.documents import browser

#: Pixels: a desktop, and a telephone held upright or half a screen.
WIDTHS = (1280, 500)
HEIGHT = 900
#: What the screenshots show: by each width and each colour once.
SHOTS = ((1280, "light"), (500, "dark"))
#: What is wrong with the page, as a list of texts.
SCRIPT = (Path(__file__).parent / "rendered.js").read_text()


def findings(page: browser.Page, path: Path) -> Iterator[str]:
    """What is wrong with a file, at every width."""
    page.open(path)
    for width in WIDTHS:
        page.resize(width, HEIGHT)
        for problem in page.evaluate(SCRIPT):
            yield f"{path.name}, {width} px: {problem}"


def keep(page: browser.Page, path: Path, target: Path) -> None:
    """Keep screenshots of the file that is open."""
    for width, scheme in SHOTS:
        page.prefer(scheme)
        page.resize(width, HEIGHT)
        page.screenshot(target / f"{path.stem}-{width}-{scheme}.png", width)


def look(built: Path, screenshots: Path | None) -> list[str]:
    """What is wrong with the pages of a directory.

    :param screenshots: the directory that gets pictures of them, unless it is ``None``.
    :raises browser.BrowserError: there is no browser, or it fails.
    """
    found: list[str] = []
    if screenshots:
        screenshots.mkdir(parents=True, exist_ok=True)
    with browser.started() as page:
        for path in sorted(built.glob("*.html")):
            found += findings(page, path)
            if screenshots:
                keep(page, path, screenshots)
    return found


def main() -> int:
    """Build and look; the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m tests.documents.rendered")
    parser.add_argument("target", type=Path, help="the directory that gets the pages")
    parser.add_argument("--screenshots", type=Path, help="the one that gets pictures")
    args = parser.parse_args()
    argv = ("sphinx-build", "-q", "-W", "-b", "html", "doc/source", str(args.target))
    if code := subprocess.run(argv, check=False).returncode:
        return code
    if not browser.is_installed():
        return 0
    began = time.monotonic()
    try:
        found = look(args.target, args.screenshots)
    except browser.BrowserError as error:
        print(error)
        return 1
    print(*found, f"looked at in {time.monotonic() - began:.1f} s", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
