"""What a page may not do, asked in a real browser; each check lists what it met, in words."""

from __future__ import annotations

import importlib.metadata
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pypdfium2

from support.browser import Page

A4 = (210 / 25.4 * 72, 297 / 25.4 * 72)
PAPER_PX = 718
"""Width of A4 less the browser's own margins, in CSS pixels."""
INNER = ("data", "blob", "about")

# Each element by its tag, its id or class, and how it begins.
NAMED = """const named = e => `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''}${
    e.className && e.className.split ? '.' + e.className.split(' ').join('.') : ''} "${
    e.textContent.trim().replace(/\\s+/g, ' ').slice(0, 50)}"`;"""
# Wider than the screen, outside of whatever scrolls by itself; only the innermost.
WIDE = """(() => {
    const named = e => NAMED_OF(e);
    if (document.documentElement.scrollWidth <= width) return [];
    const scrolls = e => e && e !== document.body && e !== document.documentElement
        && (getComputedStyle(e).overflowX !== 'visible' || scrolls(e.parentElement));
    const wide = [...document.body.querySelectorAll('*')].filter(
        e => e.getBoundingClientRect().right > width + 0.5 && !scrolls(e.parentElement));
    const inner = wide.filter(e => !wide.some(other => other !== e && e.contains(other)));
    return [`page is ${document.documentElement.scrollWidth} px wide on a screen of ${width}`,
            ...inner.slice(0, 5).map(named)];
})()"""
WIDE_TABLES = """[...document.querySelectorAll('.page .table')].filter(
    e => e.scrollWidth > e.clientWidth + 1).map(e => `table scrolls: ${e.ariaLabel}`)"""
# Text that an element cuts off: a cell's own edge, or that of whatever it lies in.
CUT = """[...document.querySelectorAll('th, td, caption, pre')].filter(cell => {
    if (!cell.textContent.trim()) return false;
    const range = document.createRange(); range.selectNodeContents(cell);
    const text = range.getBoundingClientRect();
    for (let e = cell; e && e !== document.body; e = e.parentElement) {
        const style = getComputedStyle(e), box = e.getBoundingClientRect();
        const aside = text.right > box.right + 1 || text.left < box.left - 1;
        if (style.overflowX !== 'visible' && aside) return true;
        if (style.overflowY !== 'visible' && text.bottom > box.bottom + 1) return true;
    }
    return false;
}).map(cell => NAMED_OF(cell))"""
CELLS = """[...document.querySelectorAll('th, td, caption, pre')].filter(cell => {
    for (let e = cell; e; e = e.parentElement) if (getComputedStyle(e).display === 'none') return false;
    return !cell.querySelector('th, td');
}).map(cell => cell.textContent)"""
# Their place stays; drawing a hundred thousand lines of figures takes seconds.
NO_PICTURES = "document.querySelectorAll('img, picture, svg').forEach(e => { e.style.visibility = 'hidden' })"
LINKS = "[...document.querySelectorAll('a[href], area[href]')].map(a => a.href)"
IDS = "[...document.querySelectorAll('[id], a[name]')].map(e => e.id || e.name)"
# What a browser may ask for without a request that it tells of, or only after a click.
HINTS = """[...document.querySelectorAll('link[href], a[ping], form[action]')].map(
    e => e.getAttribute('ping') || e.action || e.href).filter(url => /^(https?|wss?|ftp):/.test(url))"""
AXE = """axe.run(context, {resultTypes: ['violations'], preload: false, ...options})
    .then(r => r.violations.map(v => [v.id, v.help, v.nodes.length, v.nodes[0].target.flat().join(' ')]))"""
CONTRAST = "color-contrast"
# Contrast takes axe milliseconds an element. Texts with the same tags, classes and styles above them, in rows
# that are both odd or both even, have the same colours: of those it is shown the first.
UNLIKE = """(() => {
    const own = e => e.tagName + '.' + e.getAttribute('class') + (e.getAttribute('style') || '')
        + (e.tagName === 'TR' ? e.rowIndex % 2 : '');
    const above = e => e ? above(e.parentElement) + '>' + own(e) : '';
    const kinds = new Map();
    for (const e of document.querySelectorAll('PART, PART *'))
        // Of a single letter axe says nothing.
        if (e.checkVisibility() && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim().length > 1))
            kinds.has(above(e)) || kinds.set(above(e), e);
    return {include: [...kinds.values()]};
})()"""


def _script(text: str) -> str:
    named = NAMED.split("=>", 1)[1].strip().rstrip(";").replace("${e.", "${e.")
    return text.replace("NAMED_OF(cell)", f"(e => {named})(cell)").replace("NAMED_OF(e)", named)


def axe_core() -> str:
    """axe-core itself, from the package that carries it, which need not be imported."""
    files = importlib.metadata.files("axe-playwright-python") or []
    return next(Path(str(file.locate())) for file in files if file.name == "axe.min.js").read_text("utf-8")


def requests(page: Page, root: Path) -> list[str]:
    """Whatever the page asked for, or would, that is not a file below `root` nor within the page."""
    outside = [url for url in [*page.requests, *page.ask(HINTS)] if not _inside(url, root)]
    return [f"asks for {url}" for url in dict.fromkeys(outside)]


def _inside(url: str, root: Path) -> bool:
    parts = urlsplit(url)
    below = Path(unquote(parts.path)).is_relative_to(root.resolve())
    return parts.scheme in INNER or (parts.scheme == "file" and not parts.netloc and below)


def console(page: Page) -> list[str]:
    """What the console holds of errors and warnings."""
    return [f"console: {text}" for text in page.complaints]


def overflow(page: Page, width: int) -> list[str]:
    """What makes the page wider than the screen; on a phone also our tables that scroll."""
    page.look(width)
    wide: list[str] = page.ask(_script(WIDE), width=width)
    tables: list[str] = page.ask(WIDE_TABLES) if width < 600 else []
    return [f"at {width} px: {text}" for text in wide + tables]


def axe(page: Page, width: int = 1280, part: str = "body") -> list[str]:
    """What axe-core has against the page, or a part of it: all rules, and its colours, light and dark."""
    page.look(width)
    page.run(axe_core())
    whole = "document" if part == "body" else json.dumps({"include": [part]})
    words = _axe(page, f"{width} px", whole, {"rules": {CONTRAST: {"enabled": False}}})
    for dark in (False, True):
        page.look(width, dark=dark)
        unlike = UNLIKE.replace("PART", part)
        words += _axe(page, "dark" if dark else "light", unlike, {"runOnly": [CONTRAST]})
    page.look(width)
    return words


def _axe(page: Page, where: str, context: str, options: dict[str, Any]) -> list[str]:
    violations: list[list[Any]] = page.ask(AXE.replace("context", context), options=options)
    return [f"axe ({where}): {rule}, {n} times: {words}, at {at}" for rule, words, n, at in violations]


def anchors(page: Page, path: Path) -> list[str]:
    """Links to places that are not in the page, and to files that are not there."""
    here, ids = path.resolve(), set(page.ask(IDS))
    dead = []
    for url in dict.fromkeys(page.ask(LINKS)):
        parts = urlsplit(url)
        if parts.scheme != "file":
            continue
        target, place = Path(unquote(parts.path)), unquote(parts.fragment)
        if not target.exists():
            dead.append(f"no such file: {url}")
        elif place and place not in (ids if target == here else _ids(target)):
            dead.append(f"no such place: {target.name}#{place}")
    return dead


def _ids(path: Path) -> set[str]:
    return (
        set(re.findall(r"""\bid=["']([^"']*)["']""", path.read_text("utf-8")))
        if path.suffix == ".html"
        else set()
    )


def clipped(page: Page) -> list[str]:
    """Cells of which a part is not on the A4 pages, as the paper or a box ends there, or they are folded."""
    page.look(PAPER_PX, media="print")
    cut: list[str] = page.ask(_script(CUT))
    cells: list[str] = page.ask(CELLS)
    page.ask(NO_PICTURES)
    page.look(1280)
    words = [f"cut off by a box: {name}" for name in cut]
    paper, sizes = on_paper(page.pdf())
    words += [f"a sheet of {w:.0f} by {h:.0f} points is not A4" for w, h in sizes if not _is_a4(w, h)]
    return words + [f"not on the paper: {text}" for text in _missing(cells, paper)]


def _is_a4(width: float, height: float) -> bool:
    return all(abs(is_ - should) < 2 for is_, should in zip((width, height), A4, strict=True))


def on_paper(pdf: bytes) -> tuple[str, set[tuple[float, float]]]:
    """Text that lies on the sheets of a PDF, without spaces, and the sheets' sizes."""
    document = pypdfium2.PdfDocument(pdf)
    try:
        sheets = [(sheet.get_textpage(), sheet.get_size()) for sheet in document]
        text = [words.get_text_bounded(0, 0, *size) for words, size in sheets]
        return _plain("".join(text)), {size for _, size in sheets}
    finally:
        document.close()


def _plain(text: str) -> str:
    """Characters as such: ligatures resolved, no spaces, no hyphens, which ends of lines may add or take."""
    return re.sub(r"[-\s\x02\u00ad\u2010\u200b\ufffe]+", "", unicodedata.normalize("NFKC", text))


def _missing(cells: list[str], paper: str) -> list[str]:
    """Cells that the paper lacks: neither in one piece, nor (parted by a sheet's end) word by word."""
    missing = []
    for text, number in Counter(cells).items():
        words = text.split()
        if paper.count(_plain(text)) < number and any(paper.count(_plain(word)) < number for word in words):
            missing.append(" ".join(words)[:80])
    return missing


@dataclass(frozen=True)
class Subject:
    """A page that is shown, the folder that it may load from, and what of it is ours to answer for."""

    page: Page
    path: Path
    root: Path
    part: str


CHECKS: dict[str, Callable[[Subject], list[str]]] = {
    "anchors": lambda it: anchors(it.page, it.path),
    "overflow": lambda it: overflow(it.page, 390) + overflow(it.page, 1280),
    "axe": lambda it: axe(it.page, part=it.part),
    "clipped": lambda it: clipped(it.page),
    "console": lambda it: console(it.page),
    "requests": lambda it: requests(it.page, it.root),
}
"""The last two know what the page did meanwhile."""


def against(
    page: Page,
    path: Path,
    root: Path | None = None,
    only: Collection[str] = tuple(CHECKS),
    part: str = "body",
) -> dict[str, list[str]]:
    """What the checks have against a page, which may load what lies in `root`, or only itself."""
    page.go(path)
    subject = Subject(page, path, root or path, part)
    return {name: check(subject) for name, check in CHECKS.items() if name in only}
