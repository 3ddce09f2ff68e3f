"""Bundles of strangers: computed again from raw, or refused in one sentence; good ones are runs like any."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from diskbook.cli import cli
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.publish import site
from diskbook.report.analysis import report as reports, write as analysis_write
from diskbook.report.analysis.run import analyse
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.sharing import bundle, pooled, share, shared, take
from support.notebooks import run_cells
from support.run_copies import copies
from support.shared import short_run

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """All files of a short run's bundle."""
    prepared = share.prepare(short_run(tmp_path_factory.mktemp("shared") / "mine"))
    with zipfile.ZipFile(io.BytesIO(prepared.content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _listed(files: Files, **changes: Any) -> Files:
    """The files with an index that fits them, as a stranger with bad intent would make it."""
    index = {**json.loads(files[bundle.INDEX]), **changes}
    inner = {name: content for name, content in files.items() if name != bundle.INDEX}
    index["files"] = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "before_hmac": ""}
        for name, content in inner.items()
    }
    return {**inner, bundle.INDEX: json.dumps(index).encode()}


def _zip(files: Files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _link(files: Files) -> bytes:
    stream = io.BytesIO(_zip(files))
    with zipfile.ZipFile(stream, "a") as archive:
        entry = zipfile.ZipInfo("raw/link.json")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, "/etc/passwd")
    return stream.getvalue()


def _twice(files: Files) -> bytes:
    stream = io.BytesIO(_zip(files))
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("plan.json", b"{}")
    return stream.getvalue()


def _manifest(files: Files, **changes: Any) -> Files:
    return {**files, "manifest.json": json.dumps({**json.loads(files["manifest.json"]), **changes}).encode()}


HOSTILE: dict[str, tuple[Callable[[Files], bytes], str]] = {
    "absolute path": (lambda f: _zip({**f, "/etc/cron.d/x": b"x"}), "names a path, /etc/cron.d/x"),
    "path upwards": (lambda f: _zip({**f, "raw/../../x.json": b"x"}), r"names a path, raw/\.\./"),
    "hidden file": (lambda f: _zip({**f, ".git/hooks/x": b"x"}), "names a path"),
    "link": (_link, "raw/link.json is a link"),
    "bomb": (lambda f: _zip({**f, "raw/b.json": bytes(65 * 2**20)}), "unpacks to more than 64 MiB"),
    "code": (
        lambda f: _zip(_listed({**f, "zone_disks.py": b"import os"})),
        "holds 'zone_disks.py'; a bundle",
    ),
    "notebook": (
        lambda f: _zip(_listed({**f, "notebooks/3.ipynb": b"{}"})),
        "has no notebook, report or code",
    ),
    "twice": (_twice, "plan.json is in it twice"),
    "hash": (lambda f: _zip({**f, "plan.json": b"{}"}), "plan.json does not have the hash"),
    "table": (
        lambda f: _zip(
            _listed({**f, bundle.TRIALS: f[bundle.TRIALS].replace(b"Premium", b"Premiun", 1) + b"x\n"})
        ),
        "its raw results do not give its trials.csv",
    ),
    "schema": (lambda f: _zip(_listed(f, schema=7)), "reads bundles of schema 1, and schema does not fit"),
    "no index": (lambda f: _zip({n: c for n, c in f.items() if n != bundle.INDEX}), "has no bundle.json"),
    "missing": (lambda f: _zip({n: c for n, c in f.items() if n != "ledger.jsonl"}), "lacks ledger.jsonl"),
    "cut": (lambda f: _zip(f)[:-40], "the archive is damaged"),
    "raw outside": (
        lambda f: _zip(_listed({**f, "ledger.jsonl": f["ledger.jsonl"].replace(b"raw/r1", b"../r1", 2)})),
        "names .* as a raw file",
    ),
    "Azure's": (
        lambda f: _zip(_listed(_manifest(f, provenance="azure"), provenance="azure")),
        "it calls itself azure, and its ledger says otherwise",
    ),
    "no manifest": (lambda f: _zip(_listed({**f, "manifest.json": b"[]"})), "is not a manifest"),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_bundle_is_refused_in_one_sentence_and_leaves_nothing(
    kind: str, files: Files, tmp_path: Path
) -> None:
    make, why = HOSTILE[kind]
    path = tmp_path / "b.diskbook.zip"
    path.write_bytes(make(files))
    with pytest.raises(DiskbookError, match=why) as told:
        take.take(path, root=tmp_path / "runs")
    assert "\n" not in str(told.value)
    assert not list(tmp_path.glob("runs/**/*")) and [path] == [
        p for p in tmp_path.iterdir() if p.name != "runs"
    ]


@pytest.mark.long
def test_a_run_on_a_cluster_is_shared_with_its_counters(tmp_path: Path) -> None:
    """DiskSpd's XML, what it said besides, and counters by volume and node; adapters have pseudonyms."""
    prepared = share.prepare(short_run(tmp_path / "mine", 1, of="s2d-azure"))
    with zipfile.ZipFile(io.BytesIO(prepared.content)) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".counters.json"))
        counters = archive.read(name).decode()
        assert {part.rpartition(".")[2] for part in archive.namelist()} >= {"xml", "txt"}
    assert r"\\\\r1-n1\\cluster csvfs(mirror3)\\read bytes/sec" in counters
    assert "hyper-v" not in counters and r"network interface(x-" in counters


@pytest.mark.long
def test_archives_of_a_fleet_are_not_shared(tmp_path: Path) -> None:
    run = short_run(tmp_path / "mine", 1, of="nested-resiliency")
    with pytest.raises(
        DiskbookError, match=r"raw/\S+zip, line 1: files of the kind \.zip \(VMFleet's are\) are not"
    ):
        share.prepare(run)


@pytest.mark.long
def test_a_raw_result_that_was_changed_with_all_hashes_is_refused(files: Files, tmp_path: Path) -> None:
    name = next(name for name in files if name.endswith("a1.json"))
    changed = re.sub(
        rb'"mean": (\d+)', lambda match: b'"mean": ' + str(int(match[1]) * 2).encode(), files[name]
    )
    old, new = (hashlib.sha256(part).hexdigest().encode() for part in (files[name], changed))
    ledger = files["ledger.jsonl"].replace(old, new)
    path = tmp_path / "b.diskbook.zip"
    path.write_bytes(_zip(_listed({**files, name: changed, "ledger.jsonl": ledger})))
    with pytest.raises(DiskbookError, match="its raw results do not give its trials"):
        take.take(path, root=tmp_path / "runs")


@contextlib.contextmanager
def _elsewhere(home: Path) -> Iterator[None]:
    """Be another user, with another home."""
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "DISKBOOK_RUNS"):
            patch.setenv(variable, str(home / variable))
        patch.setenv("USER", "somebody-else")
        yield


@dataclass(frozen=True)
class Imported:
    """The writes of a sample, as one user shared and another imported them, and what the command said."""

    mine: Run
    home: Path
    bundle: Path
    run: Path
    words: str


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    folder = tmp_path_factory.mktemp("imported")
    mine = short_run(folder / "mine", 14, load="randwrite-qd1")
    tables.write(tables.build(mine), mine.folder)
    analysis_write.answers(analyse(mine))
    path = share.prepare(mine, by="A. Author, 2026").write(folder / "sent")
    with _elsewhere(folder / "other"):
        done = CliRunner().invoke(cli, ["import", str(path)], catch_exceptions=False)
    (run,) = (folder / "other" / "DISKBOOK_RUNS").iterdir()
    return Imported(mine, folder / "other", path, run, " ".join(done.output.split()))


@pytest.mark.long
def test_a_run_goes_elsewhere_gives_the_same_answers_and_is_pooled_with_two_others(
    imported: Imported, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run is shared by one user, and imported, compared and pooled by another, in another home."""
    told, run = imported.words, imported.run
    answer = " ".join((imported.mine.folder / "headline.txt").read_text().split())
    assert "shared by A. Author, 2026 (bundle" in told and answer in told and "% CI" in answer
    for name in ("comparisons.csv", "protocol.csv", "headline.txt"):
        assert (run / name).read_text() == (imported.mine.folder / name).read_text()
    with _elsewhere(imported.home):
        assert not Run(run).is_signed
        with pytest.raises(UsageError, match="exists already; choose another --name"):
            take.take(imported.bundle)
        with pytest.raises(UsageError, match="a run that is there twice counts once"):
            list(pooled.headlines([str(run), str(imported.mine.folder)]))
        two = copies(tmp_path / "copies", 3)[1:]  # the first is the sample itself
        lines = list(pooled.headlines([str(run), *map(str, two)]))
        assert (
            ", 3 runs: " in lines[0] and lines[-1] == f"{run.name}: {Run(run).manifest['shared']['origin']}"
        )
        cli(["compare", str(two[0]), str(run)], standalone_mode=False)
    assert "shared by A. Author, 2026" in " ".join(capsys.readouterr().out.split())


@pytest.mark.long
def test_the_report_of_a_shared_run_is_the_same_but_for_pseudonyms(
    imported: Imported, tmp_path: Path
) -> None:
    """Of one name in two homes; the subscription and the resource group have pseudonyms in one of them."""
    mine = tmp_path / "here" / imported.run.name
    shutil.copytree(imported.mine.folder, mine)
    pages, drawings = [], []
    for run in (Run(mine), Run(imported.run)):
        a = analyse(run)
        page = reports.write(run, run_cells("zone-disks", a)).read_text()
        pages.append(re.sub(r"/subscriptions/[^/]+/resourceGroups/[^/]+", "GROUP", page))
        pictures = analysis_write.figures_of(a)
        drawings.append([(x.slug, x.title, x.alt, x.description, x.data.to_csv()) for x in pictures])
    assert len(pages[0]) > 50_000 and len(drawings[0]) == 3 and drawings[0] == drawings[1]
    origin = f", {Run(imported.run).manifest['shared']['origin']}</p>"
    assert origin in pages[1] and pages[0] == pages[1].replace(origin, "</p>")


@pytest.mark.long
def test_the_site_shows_shared_runs_with_origin_and_those_left_aside_with_the_reason(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An emulated bundle is left aside by itself; the same run as one of own hosts shows what a row says."""
    folder, quarantine = tmp_path / "shared", tmp_path / "shared" / shared.QUARANTINE
    quarantine.mkdir(parents=True)
    monkeypatch.setattr(shared, "FOLDER", folder)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    (folder / "emulated.zip").write_bytes(_zip(files))
    (folder / "cut.zip").write_bytes(_zip(files)[:-40])
    (quarantine / "drift.zip").write_bytes(b"")
    (quarantine / "drift.txt").write_text("the gate stationarity failed\n")
    assert shared.known()[0] == []
    assert [why.partition(":")[2] or why for _, why in shared.known()[1]] == [
        " the archive is damaged (File is not a zip file)",
        "it is emulated, and says nothing about Azure",
        "the gate stationarity failed",
    ]
    monkeypatch.setattr(
        shared, "known", lambda: ([shared._imported(folder / "emulated.zip")], [("a", "why")])
    )
    run = shared._imported(folder / "emulated.zip")
    pages = dict(site._pages([site.read(Run(paths.RUNS / "sample-zone-disks"))], [], ""))
    for page in (pages["shared.html"], pages["scenarios/zone-disks.html"]):
        assert "shared by somebody who is not named (bundle" in page and "open (emulated)" in page
    assert "a: why" in pages["shared.html"]
    assert shared._failed(run).startswith("no finished trial of")
    assert shared._failed(Run(paths.RUNS / "sample-zone-disks")) == ""
