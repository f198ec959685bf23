# SPDX-License-Identifier: Apache-2.0
"""What the check of the documentation's pages finds, with a real browser."""

import pytest

from tests.documents import browser, rendered

needs_browser = pytest.mark.skipif(
    not browser.is_installed(), reason=f"no {browser.PROGRAM} on PATH"
)
PAGE = """<!doctype html><meta charset="utf-8">
<style>aside.contents::before {{ content: "ERROR: no such thing" }}</style>
<body style="margin: 0"><div class="content"><article>{body}</article></div>"""
WIDE = '<div style="width: 900px">wide</div>'
PRESENTS = {
    "sound": ("<p>a text</p><table><tbody><tr><td>a<td>b</table>", []),
    "code may scroll": (f'<pre style="overflow: auto">{WIDE}</pre>', []),
    "box of the theme": ('<aside class="contents"></aside>', ["box of the theme"] * 2),
    "error of Sphinx": ('<p class="system-message">no', ["error of Sphinx: no"] * 2),
    "wide page": (WIDE, ["500 px: the page is 900 px wide"]),
    "wide table": (
        f'<div style="overflow-x: auto" class="table-wrapper">{WIDE}</div>',
        ['500 px: 400 px of "wide" are cut (div table-wrapper)'],
    ),
    "split row": (
        "<table><tbody><tr><td>a<td>b<tr><td>rest<td></table>",
        ["a row with one cell only: rest"] * 2,
    ),
    "narrow column": (
        '<table><tbody><tr><td style="width: 1px; overflow-wrap: anywhere">'
        "<code>abcdef</code><td>b</table>",
        ["a name on 6 lines: abcdef"] * 2,
    ),
    "no picture": ('<img src="nowhere.svg" alt="a">', ["no picture: nowhere.svg"] * 2),
}


@pytest.fixture(scope="module")
def page():
    with browser.started() as page:
        yield page


@needs_browser
@pytest.mark.parametrize(("body", "wanted"), PRESENTS.values(), ids=PRESENTS)
def test_what_a_warning_of_sphinx_does_not_tell_is_found(page, tmp_path, body, wanted):
    path = tmp_path / "page.html"
    path.write_text(PAGE.format(body=body))
    found = list(rendered.findings(page, path))
    assert len(found) == len(wanted)
    for one, text in zip(found, wanted, strict=True):
        assert one.startswith("page.html, ")
        assert text in one


@needs_browser
def test_screenshots_are_kept_by_width_and_colours(page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(PAGE.format(body=WIDE))
    page.open(path)
    rendered.keep(page, path, tmp_path)
    names = {"page-1280-light.png", "page-500-dark.png"}
    assert {found.name for found in tmp_path.glob("*.png")} == names


@needs_browser
def test_every_page_of_a_directory_is_looked_at(tmp_path):
    for name, body in ("a", WIDE), ("b", PRESENTS["sound"][0]):
        (tmp_path / f"{name}.html").write_text(PAGE.format(body=body))
    found = rendered.look(tmp_path, tmp_path / "shots")
    assert found == ["a.html, 500 px: the page is 900 px wide"]
    assert len(list((tmp_path / "shots").glob("*.png"))) == 4


@needs_browser
def test_a_page_that_is_not_there_is_an_error(page, tmp_path):
    with pytest.raises(browser.BrowserError, match=r"nowhere\.html"):
        page.open(tmp_path / "nowhere.html")


def test_a_browser_that_does_not_start_is_an_error(monkeypatch):
    monkeypatch.setattr(browser, "PROGRAM", "no-such-browser")
    assert not browser.is_installed()
    with (
        pytest.raises(browser.BrowserError, match="no-such-browser"),
        browser.started(),
    ):
        pass
