"""What is read as a manifest: a folder of runs may hold anybody's, and one odd one stops no command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from checks import many_runs
from diskbook import cli
from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook.results import manifest
from support.manifests import MINIMAL, odd


def test_a_manifest_is_read_as_it_stands(tmp_path: Path) -> None:
    content = {**MINIMAL, "more": [1, {"a": None}]}
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    assert manifest.read(tmp_path / "manifest.json") == content


def test_an_odd_manifest_is_refused_in_one_sentence(tmp_path: Path) -> None:
    for name, what in odd(tmp_path).items():
        path = tmp_path / name / "manifest.json"
        with pytest.raises(DiskbookError) as refused:
            manifest.read(path)
        text = str(refused.value)
        assert str(path.parent) in text and "\n" not in text and len(text) < 400, what


def test_every_sample_is_read() -> None:
    for path in paths.RUNS.glob("sample-*/manifest.json"):
        assert manifest.read(path)["run"] == path.parent.name


@pytest.fixture
def mixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of two good runs, one with a ledger that is not text, and all odd ones."""
    folder = many_runs.many(tmp_path, 2)
    (next(folder.glob("*-001")) / "ledger.jsonl").write_bytes(b"\xff\xfe\n")
    odd(folder)
    monkeypatch.setenv("DISKBOOK_RUNS", str(folder))
    return folder


COMMANDS: dict[str, Callable[[Path], tuple[str, ...]]] = {
    "list": lambda folder: ("list",),
    "site": lambda folder: ("site", "--runs", str(folder), "--out", str(folder.parent / "site")),
    "catalog": lambda folder: ("catalog", str(folder)),
    "compare": lambda folder: ("compare", "--scenario", "disk-options"),
}


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_goes_on_without_the_odd_ones_and_names_each(command: str, mixed: Path) -> None:
    done = CliRunner().invoke(cli.cli, COMMANDS[command](mixed), catch_exceptions=False)
    assert done.exit_code in (0, 3), done.output
    for path in mixed.glob("odd-*"):
        assert any(f"{path.name}:" in line or f"run {path.name}" in line for line in done.output.splitlines())


def test_what_is_kept_of_a_manifest_tells_runs_apart_and_names_no_resource() -> None:
    sample = manifest.read(paths.RUNS / "sample-zone-disks" / "manifest.json")
    kept = manifest.kept_of(sample, ["2026-11-24T01:00:00Z", "2026-11-24T00:00:00Z"])
    assert {kept[key] for key in ("run", "preset")} == {"sample-zone-disks", "sample"}
    assert kept["trials_utc"] == ["2026-11-24T00:00:00Z", "2026-11-24T01:00:00Z"]
    assert {disk["limits"]["iops"] for disk in kept["replicates"][0]["disks"].values()} == {5000}
    assert "resource_groups" not in kept and "/subscriptions/" not in json.dumps(kept)


def test_a_run_that_nobody_shared_has_no_origin() -> None:
    assert manifest.origin({}) == manifest.origin({"shared": {}}) == ""
    assert manifest.origin({"shared": {"origin": "a colleague"}}) == "a colleague"
