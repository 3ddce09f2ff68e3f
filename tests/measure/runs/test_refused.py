"""What a refused run leaves: nothing where nothing was made, and all of it where anything was."""

from __future__ import annotations

from pathlib import Path

import pytest

from diskbook.facts.errors import DiskbookError, Stopped
from diskbook.measure.runs import pipeline
from diskbook.measure.runs.refused import ADVICE, BrokenStageError, is_unmade
from diskbook.results import session
from diskbook.results.run import Run
from support.own_hosts import begun

PLACE = {"machine": "here", "host": "here", "path": "/data/f", "kind": "file", "disk": "disk"}
PLACE |= {"made_utc": "2026-01-01T00:00:00+00:00", "removed_utc": None}
GROUP = {"name": "g", "deleted_utc": "2026-01-01T00:00:00+00:00"}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that has begun, on hosts of one's own."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    return begun("refused", folder=tmp_path)


def stays(run: Run, error: BaseException | None = None) -> bool:
    """Whether the folder of a run stays when the run ends with an error, by default with a refusal."""
    error = error or DiskbookError("host here: it is away")
    with pytest.raises(type(error)), pipeline.dropped_if_refused(run):
        raise error
    return run.folder.exists()


def test_a_run_that_made_nothing_leaves_nothing(run: Run) -> None:
    run.append("notice", text="host here: /dev/x: is empty")
    assert not stays(run)


def test_a_run_whose_places_were_removed_again_leaves_nothing(run: Run) -> None:
    run.append("marked", replicate=1, disk="disk", disk_id="x")
    run.append("stage", stage="teardown")
    run.update_manifest(places=[PLACE])
    assert stays(run)
    run.update_manifest(places=[{**PLACE, "removed_utc": "2026-01-01T00:00:00+00:00"}])
    assert not stays(run)


def test_a_run_that_made_or_measured_anything_stays(run: Run) -> None:
    run.append("stage", stage="provision")
    assert stays(run) and not is_unmade(run)


def test_a_run_with_a_resource_group_stays_even_if_that_is_deleted(run: Run) -> None:
    run.update_manifest(resource_groups=[GROUP])
    assert stays(run)


def test_a_run_that_was_stopped_or_broke_stays(run: Run) -> None:
    assert stays(run, Stopped(2)) and stays(run, BrokenStageError("1-provision ended with status 1"))


def test_a_run_that_another_process_works_on_or_another_user_wrote_stays(run: Run) -> None:
    with session.session(run):
        assert stays(run)
    with session.held(run):
        assert stays(run)
    manifest = run.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"quick"', '"full"'))
    assert stays(run)


@pytest.mark.emulator
def test_the_advice_is_to_run_again_and_the_name_is_free(run: Run, tmp_path: Path) -> None:
    run.update_manifest(inventory={**run.manifest["inventory"], "hosts": {"here": _away(run, tmp_path)}})
    with pytest.raises(DiskbookError) as refused, pipeline.dropped_if_refused(run):
        pipeline.execute(run, keep=True)
    assert f"it would lie in; make that first ({ADVICE})" in str(refused.value)
    assert "--resume" not in str(refused.value) and not run.folder.exists()
    assert begun("refused", folder=tmp_path).folder.exists()


def _away(run: Run, folder: Path) -> dict[str, object]:
    """The run's only host, with a folder that is not there."""
    host = dict(run.manifest["inventory"]["hosts"]["here"])
    return {**host, "places": {"disk": {"path": str(folder / "absent" / "deeper")}}}
