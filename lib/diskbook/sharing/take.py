"""Import a bundle: check it, compute its tables again from its raw results, and make a run of it."""

import csv
import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diskbook.cloud.kinds import CLOUDS
from diskbook.design.vocabulary import Provenance
from diskbook.facts import archives
from diskbook.facts.errors import DiskbookError, UsageError, is_visible, visible
from diskbook.facts.table_writers import csv_text
from diskbook.report.analysis import write
from diskbook.report.analysis.run import analyse
from diskbook.results import run as runs, tables
from diskbook.results.run import Run
from diskbook.sharing import bundle, share
from diskbook.sharing.bundle import Index
from diskbook.stats import protocol

_PART = ".diskbook-import-"


@dataclass(frozen=True)
class Taken:
    """A run that was made of a bundle."""

    run: Run
    index: Index
    n_trials: int

    @property
    def words(self) -> str:
        """What was imported, from whom, and what it answers."""
        manifest = self.run.manifest
        return (
            f"run {self.run.name}: {self.n_trials} rows of trials, {self.index.provenance}, "
            f"{manifest['shared']['origin']}, licence {self.index.licence}\n"
            "its tables were computed again from its raw results, and agree\n"
            f"{(self.run.folder / runs.HEADLINE_FILE).read_text('utf-8').strip()}\n"
            f"'diskbook report {self.run.name}' writes its report; pool and compare take it by this name"
        )


def take(path: Path, name: str | None = None, root: Path | None = None) -> Taken:
    """Make a run of a bundle; no code of the bundle is run, since it can hold none.

    - `path`: the bundle.
    - `name`: name of the run; by default of its scenario and its hash.
    - `root`: folder of runs; by default this user's.

    Raises UsageError when there is a run of that name. Raises DiskbookError when the bundle is damaged,
    hostile, or its raw results do not give its tables.
    """
    sha256, index, files = bundle.read(path)
    shown = visible(path.name)
    root = root or runs.runs_root()
    chosen = name or f"shared-{index.scenario}-{sha256[:8]}"
    if not is_visible(chosen) or not archives.is_inside(chosen) or "/" in chosen:
        raise UsageError(f"a run cannot be called {visible(chosen)}; choose another --name")
    folder = root / chosen
    if folder.exists():
        raise UsageError(f"run {chosen} exists already; choose another --name")
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root, prefix=_PART) as part:
        run = share.unpacked(files, Path(part) / chosen)
        try:
            n_trials = _checked(run, index, files[bundle.TRIALS], _origin(index, sha256))
        except DiskbookError as error:
            why = str(error).replace(str(run.folder), shown)
            raise DiskbookError(f"{shown} was not imported: {why}") from None
        except share.UNREADABLE as error:
            raise DiskbookError(
                f"{shown} was not imported: its manifest, plan and ledger do not fit together ({error!r:.80})"
            ) from None
        run.folder.rename(folder)
    return Taken(Run(folder), index, n_trials)


def _origin(index: Index, sha256: str) -> dict[str, Any]:
    who = f"shared by {index.by}" if index.by else "shared by somebody who is not named"
    return {
        "origin": f"{who} (bundle {sha256[:12]})",
        "sha256": sha256,
        "by": index.by,
        "licence": index.licence,
        "protocol": index.protocol,
    }


def _checked(run: Run, index: Index, listed: bytes, origin: dict[str, Any]) -> int:
    """Check a run against its index and table, and complete it; return its number of trials."""
    manifest = run.manifest
    _check_provenance(run, manifest, index)
    if manifest["scenario"]["name"] != index.scenario:
        raise DiskbookError(f"its index names the scenario {index.scenario}, and its manifest another")
    run.scenario  # noqa: B018  raises for a scenario that is none
    built = tables.build(run)
    text = listed.decode("utf-8", "replace")
    header = next(csv.reader(io.StringIO(text)), [])
    unknown = [column for column in header if column not in built.trials.columns]
    if unknown or csv_text(built.trials[header]) != text:
        raise DiskbookError(
            f"its raw results do not give its {bundle.TRIALS}, so one of both was changed; ask for it again"
        )
    run.write_manifest({**manifest, "run": run.name, "shared": origin})
    tables.write(tables.build(run), run.folder)
    write.answers(analyse(run))
    return len(built.trials)


def _check_provenance(run: Run, manifest: dict[str, Any], index: Index) -> None:
    """Refuse what calls itself Azure's and was measured on the emulator."""
    engines = {event.get("engine") for event in run.ledger() if event["event"] == "guest"}
    played = manifest.get("emulator") is not None or manifest["cloud"] == "emulator" or "nbd" in engines
    if manifest["provenance"] != index.provenance or manifest["cloud"] not in CLOUDS:
        raise DiskbookError("its index and its manifest name different origins of its numbers")
    if played != (index.provenance == Provenance.EMULATED):
        raise DiskbookError(f"it calls itself {index.provenance}, and its ledger says otherwise")
    if index.protocol > protocol.VERSION or json.dumps(manifest).count("\\u0000"):
        raise DiskbookError("it was made by a newer version of diskbook; use that one")
