"""Reports, notebooks and the site in a real Chromium: what a reader meets on screen, telephone and paper.

The checks themselves are tried first, on small pages that break one rule each.
"""

from __future__ import annotations

import functools
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pypdfium2
import pytest
from nbconvert import HTMLExporter

from checks import many_runs
from diskbook.facts import paths
from diskbook.publish import site as write_site
from diskbook.report.show.html import STYLE
from support import browser as browsers, few_runs, page_checks
from support.browser import Browser

pytestmark = pytest.mark.whole

SAMPLES = sorted(folder.name for folder in paths.RUNS.glob("sample-*"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests; at its end it must have spoken to this machine only, and be gone."""
    program = browsers.program()
    if program is None:
        pytest.skip(browsers.MISSING)
    opened = Browser(program, Path(os.environ["DISKBOOK_TESTS_FOLDER"]))
    yield opened
    opened.close()
    assert not opened.strangers
    assert not opened.folder.exists()
    assert not opened.processes()


def test_a_snap_is_no_browser_for_these_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ubuntu's chromium-browser is a script that calls a snap, which may not read our folders."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert browsers.program() is None
    for name, text in {"chromium-browser": "exec /snap/bin/chromium", "google-chrome": "exec chrome"}.items():
        (tmp_path / name).write_text(f'#!/bin/sh\n{text} "$@"\n')
        (tmp_path / name).chmod(0o755)
    assert browsers.program() == str(tmp_path / "google-chrome")


# --- figures on paper


@pytest.mark.parametrize("used_mm", [10, 60, 110, 220])
def test_a_figure_leaves_no_page_under_a_quarter_full(browser: Browser, tmp_path: Path, used_mm: int) -> None:
    """The tallest figure moves to the next page, with its heading, where a quarter of this one is used."""
    drawing = "<svg xmlns='http://www.w3.org/2000/svg' width='720' height='2400'/>"
    figure = f"<picture><img alt='x' src='data:image/svg+xml,{quote(drawing)}'></picture>"
    path = tmp_path / "paper.html"
    path.write_text(
        f"<!doctype html><html lang='en'><style>{STYLE}</style><body class='page diskbook'><main>"
        f"<div style='height:{used_mm}mm'>Begin</div><h2>Heading</h2>"
        f"<figure>{figure}<figcaption>Caption</figcaption></figure></main>"
    )
    with browser.page() as page:
        page.go(path)
        document = pypdfium2.PdfDocument(page.pdf())
    sheets = [sheet.get_textpage().get_text_bounded() for sheet in document]
    document.close()
    (on,) = [number for number, words in enumerate(sheets) if "Heading" in words]
    assert "Begin" in sheets[0] and "Caption" in sheets[on]
    assert on == (used_mm > 0.25 * (297 - 2 * 14))


# --- the checks themselves

GOOD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>A page</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>%s</style></head>
<body><main><h1 id="top">A page</h1>%s</main></body></html>"""
TABLE = (
    "<table><caption>Rates</caption><thead><tr><th>disk</th><th>verdict</th></tr></thead>"
    "<tbody><tr><td>lrs</td><td class='last'>no difference</td></tr></tbody></table>"
)
WIDE_TABLE = TABLE.replace("<table>", "<table style='width: 500px'>")
SCROLLING = "<div class='table' tabindex='0' style='overflow: auto'>"
SCROLLS = f"<div class='diskbook page'>{SCROLLING}{WIDE_TABLE}</div></div>"
LONG = "<td>" + "&nbsp;".join(["word"] * 60) + "</td>"
PLANTED = {
    "a picture from elsewhere": ("requests", "", "<img alt='x' src='http://127.0.0.1:{port}/x'>"),
    "a style from elsewhere": ("requests", "@import 'http://127.0.0.1:{port}/x';", ""),
    "a script that asks": (
        "requests",
        "",
        "<script>fetch('http://127.0.0.1:{port}/x').catch(e => 0)</script>",
    ),
    "a socket": ("requests", "", "<script>new WebSocket('ws://127.0.0.1:{port}/x')</script>"),
    "a hint to connect": ("requests", "", "<link rel='preconnect' href='http://127.0.0.1:{port}'>"),
    "a link that tells on": ("requests", "", "<a ping='http://127.0.0.1:{port}/' href='#top'>top</a>"),
    "a file beside it": ("requests", "", "<img alt='x' src='other.png'>"),
    "a request of another host": ("requests", "", "<img alt='x' src='https://example.org/x'>"),
    "an error in the console": ("console", "", "<script>console.error('broken')</script>"),
    "an exception": ("console", "", "<script>missing()</script>"),
    "a dead anchor": ("anchors", "", "<a href='#nowhere'>nowhere</a>"),
    "a dead link": ("anchors", "", "<a href='nowhere.html'>nowhere</a>"),
    "a dead place elsewhere": ("anchors", "", "<a href='other.html#nowhere'>nowhere</a>"),
    "a wide block": ("overflow", "", "<p style='width: 500px'>wide</p>"),
    "a very wide block": ("overflow", "", "<div style='margin-left: 1300px'>wide</div>"),
    "a table of ours that scrolls": ("overflow", "", SCROLLS),
    "a picture without words": ("axe", "", "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"),
    "grey on white": ("axe", "", "<p style='color: #aaa'>faint</p>"),
    "grey on black, when dark": (
        "axe",
        "@media (prefers-color-scheme: dark) { body { background: #000; color: #444 } }",
        "<p>faint</p>",
    ),
    "a row of other colours": (
        "axe",
        "tr:nth-child(even) td { color: #bbb }",
        TABLE.replace("</tbody>", "<tr><td>row</td><td>more</td></tr>" * 3 + "</tbody>"),
    ),
    "a cell beyond the paper": ("clipped", "", TABLE.replace("<td>lrs</td>", LONG)),
    "a cell that a box cuts": (
        "clipped",
        ".b { width: 6em; overflow: auto }",
        f"<div class='b'>{TABLE}</div>",
    ),
    "a cell that cuts itself": (
        "clipped",
        ".last { display: block; width: 4em; overflow: hidden; white-space: nowrap }",
        TABLE,
    ),
    "a cell that is folded": ("clipped", "", f"<details><summary>more</summary>{TABLE}</details>"),
    "a cell that paper lacks": ("clipped", "@media print { .last { visibility: hidden } }", TABLE),
    "another paper": ("clipped", "@page { size: letter }", TABLE),
}


def closed_port() -> int:
    """A port of this machine where nobody listens, so that a page need not wait."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages")
    (made / "other.html").write_text("<p id='here'>")
    (made / "other.png").write_bytes(b"")
    return made


def test_a_good_page_passes_all_checks(browser: Browser, folder: Path) -> None:
    """With what is allowed: links to a place, here and elsewhere, a table that scrolls, a link to the web."""
    wide = f"<div style='overflow-x: auto' tabindex='0'>{TABLE}</div>"
    opened = "<details><summary>more</summary><p>text</p></details>"
    links = (
        "<a href='#top'>top</a> <a href='other.html#here'>here</a> <a href='https://example.org/'>there</a>"
    )
    path = folder / "good.html"
    path.write_text(GOOD % ("", f"<p>{links}</p>{wide}{opened}"))
    with browser.page() as page:
        assert page_checks.against(page, path) == {check: [] for check in page_checks.CHECKS}


@pytest.mark.parametrize("name", PLANTED)
def test_a_bad_page_fails_its_check(browser: Browser, folder: Path, name: str) -> None:
    check, style, body = PLANTED[name]
    path = folder / f"{name.replace(' ', '-')}.html"
    style, body = (text.replace("{port}", f"{closed_port()}") for text in (style, body))
    path.write_text(GOOD % (style, body))
    with browser.page() as page:
        assert page_checks.against(page, path, only=[check])[check]


# --- reports


@functools.cache
def against(browser: Browser, path: Path, root: Path | None = None, **given: Any) -> dict[str, list[str]]:
    """All checks of a page, of which each test reads one."""
    with browser.page() as page:
        return page_checks.against(page, path, root, **given)


@pytest.mark.parametrize("check", page_checks.CHECKS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_report_of_a_sample(browser: Browser, sample: str, check: str) -> None:
    assert not against(browser, paths.RUNS / sample / "report.html")[check]


SCREENS = {1280: 800, 390: 844}
MOST_WORDS = 900
FIRST = """(() => {
    const card = document.querySelector('.card'), bars = card.querySelector('.bars');
    const answer = card.querySelector('.card-answer');
    return {bottom: card.getBoundingClientRect().bottom, text: answer.textContent,
            bars: !!bars && bars.getBoundingClientRect().height > 20,
            order: [...card.children].map(e => e.className)};
})()"""
# Words in sight, without code, tables and labels in pictures.
WORDS = """(() => {
    const main = document.querySelector('main'), words = [];
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const e = walker.currentNode.parentElement;
        if (e.closest('table, pre, code, svg, style, [role=img]') || !e.checkVisibility()) continue;
        words.push(...walker.currentNode.data.split(/\\s+/).filter(word => /[A-Za-z0-9]/.test(word)));
    }
    return words.length;
})()"""


@pytest.mark.parametrize("width", SCREENS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_the_first_screen_answers(browser: Browser, sample: str, width: int) -> None:
    with browser.page() as page:
        page.go(paths.RUNS / sample / "report.html")
        page.look(width)
        first = page.ask(FIRST)
    assert first["bars"] and first["bottom"] <= SCREENS[width]
    assert first["text"].startswith("On the emulator, ") and "95 % CI" in first["text"]
    assert first["order"] == ["question", "card-answer", "bars", "facts", "facts"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_report_is_short_until_it_is_unfolded_and_paper_leaves_reviewers_out(
    browser: Browser, sample: str
) -> None:
    with browser.page() as page:
        page.go(paths.RUNS / sample / "report.html")
        page.look(1280)
        folded = page.ask(WORDS)
        page.ask("(() => { document.querySelector('.reviewers').open = true })()")
        unfolded = page.ask(WORDS)
        page.look(page_checks.PAPER_PX, media="print")
        assert not page.ask("document.querySelector('.reviewers').checkVisibility()")
    assert 200 < folded <= MOST_WORDS < unfolded


# --- the site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the samples and eight made-up runs, of which one has a name that is markup."""
    runs = many_runs.many(tmp_path_factory.mktemp("site") / "runs", 7)
    many_runs.write(runs / few_runs.HOSTILE, few_runs.manifest_of("sample-zone-disks"))
    for sample in SAMPLES:
        shutil.copytree(paths.RUNS / sample, runs / sample, ignore=shutil.ignore_patterns("raw", "notebooks"))
    return write_site.build(runs, runs.parent / "site").index.parent


OF_EACH_KIND = (
    "index.html",
    "published.html",
    "shared.html",
    "scenarios/zone-disks.html",
    "scenarios/disk-options.html",
    "runs/sample-zone-disks.html",
    "runs/nested-resiliency-001.html",
)


@pytest.mark.parametrize("check", page_checks.CHECKS)
@pytest.mark.parametrize("name", OF_EACH_KIND)
def test_page_of_the_site(browser: Browser, site: Path, name: str, check: str) -> None:
    assert not against(browser, site / name, site)[check]


def test_no_page_of_the_site_asks_or_complains(browser: Browser, site: Path) -> None:
    names = sorted(path for path in site.rglob("*.html") if path.parent.name != "reports")
    checks = ("anchors", "console", "requests")
    with browser.page() as page:
        words = {path.name: page_checks.against(page, path, site, only=checks) for path in names}
    assert len(words) == 21
    assert {name: found for name, found in words.items() if any(found.values())} == {}


def test_the_index_filters_without_a_server(browser: Browser, site: Path) -> None:
    shown = "[...document.querySelectorAll('#all tr')].filter(row => row.checkVisibility()).length"
    enter = """(() => { const field = document.querySelector(`[name=${name}]`); field.value = value;
        field.dispatchEvent(new Event('input', {bubbles: true}));
        return document.querySelector('output').value;
    })()"""
    with browser.page() as page:
        page.go(site / "index.html")
        assert page.ask(shown) == 13
        assert page.ask(enter, name="scenario", value="zone-disks") == "3 of 13 shown"
        assert page.ask(enter, name="words", value="SAMPLE write") == "1 of 13 shown"
        assert page.ask(shown) == 1
        assert page.ask(enter, name="provenance", value="nowhere") == "1 of 13 shown"  # no such choice
        assert page.ask(enter, name="words", value="no such run") == "0 of 13 shown"


# --- notebooks, exported as pages

NOTEBOOKS = (
    "sample-disk-options/notebooks/2-benchmark.ipynb",
    "sample-zone-disks/notebooks/3-analyse-zone-disks.ipynb",
)
OURS = ".jp-RenderedHTMLCommon"
"""Texts and tables; the frame around them (prompts in pale colours) is nbconvert's."""
OF_NOTEBOOKS = tuple(check for check in page_checks.CHECKS if check != "clipped")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Executed notebooks of samples as nbconvert writes them, beside the notebooks that they link to."""
    # It loads require.js and MathJax from elsewhere, if it is not told otherwise.
    exporter = HTMLExporter(mathjax_url="", require_js_url="", jquery_url="")
    folder = tmp_path_factory.mktemp("exported")
    for notebook in paths.NOTEBOOKS.glob("*.ipynb"):
        shutil.copy(notebook, folder)
    pages = {}
    for name in NOTEBOOKS:
        pages[name] = (folder / Path(name).name).with_suffix(".html")
        pages[name].write_text(exporter.from_filename(str(paths.RUNS / name))[0], "utf-8")
    return pages


@pytest.mark.parametrize("check", OF_NOTEBOOKS)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_exported_notebook(browser: Browser, exported: dict[str, Path], name: str, check: str) -> None:
    words = against(browser, exported[name], only=OF_NOTEBOOKS, part=OURS)
    assert not words[check]
