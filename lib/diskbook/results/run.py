"""The run folder: manifest, ledger and raw results of one execution of a scenario.

Everything a stage hands on is a file here. The manifest is replaced whole, the ledger only grows, a raw
file is written once.
"""

import contextlib
import errno
import fcntl
import functools
import gzip
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from diskbook.design import scenario_tables
from diskbook.design.model import Scenario
from diskbook.facts import client, files, neighbours, paths
from diskbook.facts.errors import DiskbookError, UsageError, unknown
from diskbook.facts.units import now_utc
from diskbook.results import manifest as manifests

SCHEMA = manifests.SCHEMA
HEADLINE_FILE = "headline.txt"
"""Answer of a run in one sentence, where its analysis has one besides its comparisons."""
SIGNATURE = client.SIGNATURE
REVISION = "revision"
"""Key of a run's manifest: how often this client has signed it."""
_replicates = threading.Lock()
_CUT = "...cut short"  # ends a ledger line that was not written whole


def runs_root() -> Path:
    """Folder that holds the runs: $DISKBOOK_RUNS, else data/runs of the clone."""
    return paths.runs_root()


def folder_of(name: str | Path) -> Path:
    """Folder of a run on this machine, given by name, or by a path (anything with a slash).

    Raises UsageError for an address: what is new begins here, and `diskbook push` brings it into a store.
    """
    if paths.is_address(name):
        raise UsageError(f"{name} is an address: name a run of this machine; 'diskbook push' brings it there")
    return Path(name) if os.sep in str(name) else runs_root() / name


@dataclass(frozen=True)
class Run:
    """One run folder. Cheap to make; nothing is read before it is asked for."""

    folder: Path

    @property
    def name(self) -> str:
        """Name of the run."""
        return self.folder.name

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest, read afresh.

        Raises DiskbookError when it is missing, damaged, or not one of ours.
        """
        return manifests.read(self.folder / "manifest.json")

    @property
    def scenario(self) -> Scenario:
        """The scenario as the manifest records it, with today's labels of its arms."""
        return scenario_tables.recorded(self.manifest["scenario"], f"{self.name}/manifest.json")

    @property
    def is_signed(self) -> bool:
        """Whether this client wrote the manifest as it stands, for a run of this name, and none later."""
        return not self._is_older and client.is_signed_manifest(self.manifest, self.name)

    @property
    def _is_older(self) -> bool:
        """Whether this client has signed a newer manifest for this folder than the one that lies in it."""
        newest = client.newest_revision(self.folder)  # read first: a manifest is written before it is noted
        return int(self.manifest.get(REVISION, 0)) < newest

    def check_signed(self) -> None:
        """Make sure that the manifest is this client's own word, before anything is done on it.

        Raises DiskbookError when it is not: a folder may name anybody's groups, machines, keys and endpoints.
        """
        if not self.is_signed:
            if missing := client.missing_secret():
                stand = [row["name"] for row in self.manifest["resource_groups"] if not row["deleted_utc"]]
                remedy = "".join(f"; 'diskbook sweep --delete --group {name}' deletes it" for name in stand)
                raise DiskbookError(
                    f"whether run {self.name} was begun by you is not known, because the secret of this "
                    f"client is missing: restore {missing}{remedy}"
                )
            if client.is_signed_manifest(self.manifest, self.name):
                raise DiskbookError(
                    f"{self.folder / 'manifest.json'} is older than the newest that was written for this run "
                    "here, so nothing is created, sent or deleted on its word: put that back; 'diskbook "
                    "sweep --delete --group NAME' deletes a resource group that is named"
                )
            raise DiskbookError(
                f"run {self.name} was not begun by you on this computer, or its manifest or name has been "
                "changed: nothing is created, sent or deleted on its word; tables, why, figures and report "
                "read it"
            )

    def write_manifest(self, manifest: dict[str, Any]) -> None:
        """Replace the manifest as a whole: a new one is signed, one that was not signed stays so."""
        content = {key: value for key, value in manifest.items() if key != SIGNATURE}
        if (self.folder / "manifest.json").exists() and not self.is_signed:
            self._write_manifest(content)
            return
        with client.following_revision(self.folder, content.get(REVISION, 0)) as revision:
            content[REVISION] = revision
            signature = client.sign(*client.manifest_words(content))
            self._write_manifest({**content, SIGNATURE: signature})

    def _write_manifest(self, content: dict[str, Any]) -> None:
        self.write("manifest.json", json.dumps(content, indent=1, sort_keys=False) + "\n")

    def note_fetched(self) -> None:
        """Take the manifest that was fetched from a store for the newest, if this client signed it."""
        if client.is_signed_manifest(self.manifest, self.name):
            client.note_revision(self.folder, self.manifest.get(REVISION, 0))

    def write(self, name: str, content: str | bytes) -> None:
        """Write a file of the run folder, whole or not at all.

        Raises DiskbookError when there is no room, or the folder cannot be written.
        """
        with self._writing():
            files.write_atomic(self.folder / name, content)

    def update_manifest(self, **changes: Any) -> None:
        """Set top-level keys of the manifest."""
        self.write_manifest({**self.manifest, **changes})

    def update_replicate(self, number: int, **changes: Any) -> None:
        """Set keys of one replicate's entry of the manifest; replicates are measured side by side."""
        with _replicates:
            rows = [
                {**row, **changes} if row["replicate"] == number else row
                for row in self.manifest["replicates"]
            ]
            self.update_manifest(replicates=rows)

    def ledger(self) -> list[dict[str, Any]]:
        """Return all events, oldest first. A last line cut short by a crash is left out."""
        path = self.folder / "ledger.jsonl"
        try:
            lines = (
                files.read_packed(path, packed=False).decode("utf-8").splitlines() if path.exists() else []
            )
        except UnicodeDecodeError as error:
            raise DiskbookError(f"{path} is damaged ({error}); restore the file") from None
        return [event for number, line in enumerate(lines, 1) if (event := _event(path, number, line, lines))]

    def append(self, event: str, **fields: Any) -> None:
        """Add one line to the ledger and make it durable.

        Raises DiskbookError when there is no room, or the folder cannot be written.
        """
        self.append_all([(event, fields)])

    def append_all(self, events: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Add lines to the ledger, and wait for the disk once; see `append`."""
        lines = "".join(
            json.dumps({"event": event, "time_utc": now_utc(), **fields}) + "\n" for event, fields in events
        )
        with self._writing(), files.appending(self.folder / "ledger.jsonl") as file:
            # Machines are measured side by side, and a long line takes several writes.
            fcntl.flock(file, fcntl.LOCK_EX)
            _finish_cut_line(file)
            file.write(lines.encode())
            file.flush()
            os.fsync(file.fileno())

    def append_bytes(self, name: str, content: bytes) -> None:
        """Add to a file of the run folder that only grows, whole or not at all.

        Raises DiskbookError when there is no room, or the folder cannot be written.
        """
        with self._writing(), files.appending(self.folder / name) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            end = file.seek(0, os.SEEK_END)
            try:
                file.write(content)
                file.flush()
            except OSError:
                os.ftruncate(file.fileno(), end)
                raise

    def write_raw(self, name: str, content: bytes) -> dict[str, str]:
        """Keep a tool's output, gzipped, once.

        Returns `path` relative to the run folder, `sha256` of the uncompressed bytes.

        Raises DiskbookError when a raw file of that name exists with other content, or this one cannot be
        written.
        """
        path = self.folder / "raw" / f"{name}.gz"
        digest = hashlib.sha256(content).hexdigest()
        if path.exists():
            if hashlib.sha256(files.read_packed(path)).hexdigest() != digest:
                raise DiskbookError(f"{path} exists with other content; raw results are never overwritten")
        else:
            with self._writing():
                path.parent.mkdir(exist_ok=True)
                files.write_atomic(path, gzip.compress(content, mtime=0))
        return {"path": str(path.relative_to(self.folder)), "sha256": digest}

    def raw_paths(self) -> list[Path]:
        """Return the raw files that there are."""
        return sorted((self.folder / "raw").glob("*.gz"))

    def trial_names(self) -> set[str]:
        """Names that trials have had, also those of which a run that was cut short left but a raw file."""
        recorded = {event["trial"] for event in self.ledger() if event["event"] == "trial"}
        raw = {re.split(r"[._]", path.name)[0] for path in self.raw_paths()}
        return recorded | raw

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Put it into one sentence when the run folder cannot be written."""
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what, remedy = ("the disk is full", "make room") if full else (str(error), "mend that")
            raise DiskbookError(
                f"cannot write to {self.folder}: {what}; finished trials are kept: {remedy}, then "
                f"'diskbook run --resume {self.name}'"
            ) from error

    def done(self, stage: str) -> bool:
        """Whether the stage has recorded its end. papermill's own status fields are no evidence of it."""
        return any(event["event"] == "stage" and event.get("stage") == stage for event in self.ledger())

    def has_trials(self) -> bool:
        """Whether a trial is on record, finished or failed: from then on the plan stays as it is."""
        return any(event["event"] == "trial" for event in self.ledger())

    @contextlib.contextmanager
    def locked(self, patience_s: float = 0.0) -> Iterator[None]:
        """Hold the run for one process, waiting that long for another one to let go of it.

        Raises DiskbookError when another process works on this run.
        """
        busy = DiskbookError(f"run {self.name} is being worked on by another process")
        with files.locked(self.folder / ".lock", busy, patience_s):
            yield


def create(name: str) -> Run:
    """Make a new run folder.

    Raises UsageError when a folder of that name exists; it is left as it is.
    """
    folder = folder_of(name)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise UsageError(f"{folder} exists already; it is not overwritten: choose another run name") from None
    return Run(folder)


def open_run(name: str | Path) -> Run:
    """Open an existing run by name, path or address, and make sure that it is one.

    Of an address it is a copy, as the run was when it was last whole, kept in the cache.

    Raises UsageError when there is none, with the nearest name. Raises DiskbookError when the folder is
    damaged or foreign, or has a link in it.
    """
    fetched = paths.is_address(name)
    folder = neighbours.stores.cached(str(name), check_fetched) if fetched else folder_of(name)
    if not folder.is_dir():
        known = [path.parent.name for path in runs_root().glob("*/manifest.json")]
        raise unknown("run", str(name), known)
    check_no_links(folder)
    run = Run(folder)
    run.manifest  # noqa: B018  raises when the folder is not one of ours
    return run


@functools.lru_cache(maxsize=1024)
def scenario_of(text: str, run: str) -> Scenario:
    """Return the scenario of a run by the JSON that its manifest has of it."""
    return scenario_tables.recorded(json.loads(text), f"{run}/manifest.json")


def check_fetched(folder: Path) -> None:
    """Raise DiskbookError where a fetched folder lacks a valid manifest of its name, or has a bad ledger."""
    run = Run(folder)
    if run.manifest["run"] != run.name:
        raise DiskbookError(f"{folder} holds the run {str(run.manifest['run'])!r}: restore its manifest")
    run.ledger()


def check_no_links(folder: Path) -> None:
    """Raise DiskbookError where a run folder has a link in it, by which others' files would be written."""
    for path in folder.rglob("*"):
        if path.is_symlink():
            raise DiskbookError(
                f"{folder} has a link in it ({str(path.relative_to(folder))!r}), so it is not opened; "
                "put the file itself in its place, or remove the link"
            )


def new_name(scenario: str) -> str:
    """Name for a new run: scenario, UTC time, and four random digits against collisions."""
    return f"{scenario}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.urandom(2).hex()}"


def _event(path: Path, number: int, line: str, lines: list[str]) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError, RecursionError):
        event = json.loads(line)
        if isinstance(event, dict) and isinstance(event.get("event"), str):
            return event
    if number == len(lines) or line.endswith(_CUT):
        return None
    raise DiskbookError(f"{path}, line {number} is damaged; restore the file")


def _finish_cut_line(file: Any) -> None:
    """Mark a line that a crash or a full disk cut short, so that the next event starts on its own."""
    if file.seek(0, os.SEEK_END) == 0:
        return
    file.seek(-1, os.SEEK_END)
    if file.read(1) == b"\n":
        return
    file.seek(0)
    line = file.read().decode("utf-8", "replace").splitlines()[-1]
    file.write(b"\n" if _is_json(line) else f"{_CUT}\n".encode())


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except json.JSONDecodeError:
        return False
    return True
