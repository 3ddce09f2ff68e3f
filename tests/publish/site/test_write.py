"""The site on disk: its files, its links, what it replaces; how it looks is in tests/whole/test_pages.py."""

from __future__ import annotations

import html.parser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from click.testing import CliRunner

from checks import many_runs
from diskbook.facts.errors import UsageError
from diskbook.publish import site as write
from diskbook.publish.commands import site
from support import few_runs

pytestmark = pytest.mark.long


class Links(html.parser.HTMLParser):
    """Addresses that a page links to or loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src")]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = many_runs.many(tmp_path_factory.mktemp("site") / "runs", 10)
    manifest = few_runs.manifest_of("sample-zone-disks")
    many_runs.write(folder / few_runs.HOSTILE, manifest, day=30)
    (folder / "damaged").mkdir()
    (folder / "damaged" / "manifest.json").write_text("{")
    (folder / "zone-disks-004" / "report.html").write_text("<h1>The report</h1>")
    (folder / "shared-zrs-003" / "report.html").symlink_to("/etc/passwd")
    return folder


@pytest.fixture(scope="module")
def built(runs: Path) -> write.Outcome:
    return write.build(runs, runs.parent / "public")


def test_every_run_and_scenario_has_a_page(built: write.Outcome) -> None:
    root = built.index.parent
    assert (built.runs, len(list(root.glob("runs/*.html")))) == (11, 11)
    assert sorted(path.stem for path in root.glob("scenarios/*.html")) == [
        "disk-options",
        "nested-resiliency",
        "s2d-azure",
        "shared-zrs",
        "zone-disks",
    ]
    assert built.words.splitlines()[0].startswith("left out: damaged: ")
    assert built.words.splitlines()[1] == f"site of 11 runs: {built.index}"


def test_no_link_is_dead_and_none_leads_out(built: write.Outcome) -> None:
    root = built.index.parent
    pages = list(root.rglob("*.html"))
    for page in pages:
        for address in Links(page.read_text("utf-8")).addresses:
            target = (page.parent / unquote(urldefrag(address).url)).resolve()
            assert target.is_file() and target.is_relative_to(root), f"{page}: {address}"
    assert len(pages) == 20


def test_a_report_comes_along_but_no_link_is_followed(built: write.Outcome) -> None:
    reports = built.index.parent / "reports"
    assert [path.name for path in reports.glob("*.html")] == ["zone-disks-004.html"]
    assert (reports / "zone-disks-004.html").read_text() == "<h1>The report</h1>"


def test_a_hostile_name_is_text(built: write.Outcome) -> None:
    text = built.index.read_text("utf-8")
    assert "<b>run" not in text and "\u202e" not in text
    assert "&lt;b&gt;run &amp; &#39;x&#39; &lt;U+202E&gt;" in text


def test_what_is_no_site_is_not_replaced(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "letters")
    for name in ("letters", "letters/dear.txt", "link"):
        with pytest.raises(UsageError, match="is there and no site of diskbook"):
            write.build(runs, tmp_path / name)
    assert (tmp_path / "letters" / "dear.txt").read_text() == "x"


def test_an_earlier_site_is_replaced_whole(tmp_path: Path) -> None:
    runs = many_runs.many(tmp_path / "runs", 2)
    first = write.build(runs, tmp_path / "site")
    (runs / "disk-options-000").rename(tmp_path / "elsewhere")
    assert write.build(runs, tmp_path / "site").runs == 1
    assert not (first.index.parent / "runs" / "disk-options-000.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "runs", "site"]


def test_the_command_says_where_the_site_begins(tmp_path: Path) -> None:
    runs = many_runs.many(tmp_path / "runs", 1)
    done = CliRunner().invoke(site, ["--runs", str(runs), "--out", str(tmp_path / "out")])
    assert (done.exit_code, done.output) == (0, f"site of 1 run: {tmp_path / 'out' / 'index.html'}\n")


def test_a_folder_without_runs_makes_a_site_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    index = write.build(tmp_path / "runs", tmp_path / "site").index
    assert "There is no run yet" in index.read_text("utf-8")
