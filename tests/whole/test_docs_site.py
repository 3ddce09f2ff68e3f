"""The documentation site in a real Chromium. `make docs` builds it and runs this; else it is skipped.

All pages: no request leaves the machine, no link is dead, the console is quiet. All checks of the reports on
the pages of `LOOKED_AT`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import browser as browsers, page_checks
from support.browser import Browser

SITE = Path(os.environ.get("DISKBOOK_DOCS_SITE", "nowhere"))
LOOKED_AT = (
    "index.html",
    "glossary.html",
    "tutorials/read-a-run.html",
    "tutorials/first-azure-run.html",
    "how-to/azure.html",
    "explanation/coverage.html",
    "reference/api.html",
    "reference/command-line.html",
    "reference/run-folder.html",
    "samples/sample-zone-disks.html",
)
ON_ALL = ("anchors", "console", "requests")
ON_SOME = ("overflow", "axe")
pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(not SITE.is_dir(), reason="`make docs` builds and checks the site"),
]
PAGES = sorted(
    str(path.relative_to(SITE))
    for path in SITE.glob("**/*.html")
    if SITE.is_dir() and not {"reports", "_static"} & set(path.relative_to(SITE).parts)
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all pages; at its end it must have spoken to this machine only."""
    program = browsers.program()
    if program is None:
        pytest.skip(browsers.MISSING)
    opened = Browser(program, Path(os.environ["DISKBOOK_TESTS_FOLDER"]))
    yield opened
    opened.close()
    assert not opened.strangers


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_nothing_from_elsewhere_and_has_no_dead_link(browser: Browser, name: str) -> None:
    with browser.page() as page:
        faults = page_checks.against(page, SITE / name, SITE, only=ON_ALL)
    assert faults == {check: [] for check in ON_ALL}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_a_page_can_be_read_on_every_screen(browser: Browser, name: str) -> None:
    with browser.page() as page:
        faults = page_checks.against(page, SITE / name, SITE, only=ON_SOME, part="article")
    assert faults == {check: [] for check in ON_SOME}
