"""Make a bundle of a run: replace what is private, prove that the tables stay, and look for what is left."""

import gzip
import hashlib
import json
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from diskbook import __version__
from diskbook.design.vocabulary import Provenance
from diskbook.facts import client, files
from diskbook.facts.errors import DiskbookError, UsageError, visible
from diskbook.facts.quantities import many
from diskbook.facts.table_writers import csv_text
from diskbook.results import plan as plans, tables
from diskbook.results.run import SIGNATURE, Run
from diskbook.sharing import bundle, scrub
from diskbook.sharing.leaks import Leaks
from diskbook.sharing.pseudonyms import GIVEN
from diskbook.sharing.scrub import RunScrubber, UnscrubbedError
from diskbook.stats import protocol

SHARED = (Provenance.AZURE, Provenance.EMULATED, Provenance.INVENTORY)
PSEUDONYMOUS = ("run", "machine_id", "disk_id", "raw_path", "raw_sha256", "error", "lun")
"""Columns of trials in which pseudonyms or hashes of scrubbed files stand."""
_TIMES = (
    "time_utc",
    "started_utc",
    "ended_utc",
    "created_utc",
    "expires_utc",
    "deleted_utc",
    "deallocated_utc",
)
UNREADABLE = (DiskbookError, KeyError, TypeError, ValueError, AttributeError, IndexError, StopIteration)
"""What a run raises whose manifest, plan and ledger do not fit together."""
_DROPPED = (SIGNATURE, "revision", "places", "azure", "record")
"""Keys of a manifest that say only where a run went on, and by whom."""
_NUMBERED = ("sha256", "scenario_sha256", "path", "trial", "time", *_TIMES)
_TOLD = re.compile(r"^(?!/subscriptions/).*[A-Za-z]", re.DOTALL)
_STRING = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:)?')
_NUMBER = re.compile(r"(?<=\")-?\d+(\.\d+)?(?=\")|^-?\d+(\.\d+)?$")
_LONGEST = 100  # characters of a text that the page shows


@dataclass(frozen=True)
class Prepared:
    """A bundle before it is written, and the page that says what is in it."""

    run: Run
    content: bytes
    page: str

    @property
    def name(self) -> str:
        """Name of the file: scenario, day and hash, none of which is private."""
        manifest = self.run.manifest
        digest = hashlib.sha256(self.content).hexdigest()[:8]
        return f"{manifest['scenario']['name']}-{manifest['created_utc'][:10]}-{digest}{bundle.SUFFIX}"

    def write(self, folder: Path) -> Path:
        """Write the bundle into a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        files.write_atomic(folder / self.name, self.content)
        return folder / self.name


def prepare(run: Run, licence: str = bundle.LICENCE, by: str = "") -> Prepared:
    """Make the bundle of a run in memory; nothing is written.

    - `run`: the run; its trials must have ended.
    - `licence`: licence of the data, as SPDX names it.
    - `by`: whom to cite; nobody by default.

    Raises UsageError when the run is an import, or has no trials. Raises DiskbookError when something private
    would be left, with file and line, or the tables would change.
    """
    # Long: an index of what the file holds.
    manifest = run.manifest
    if manifest["provenance"] not in SHARED:
        raise UsageError(
            f"run {run.name} is {manifest['provenance']}: share what its authors published instead"
        )
    if "shared" in manifest:
        raise UsageError(f"run {run.name} came from a bundle: share that file")
    if not run.has_trials():
        raise UsageError(f"run {run.name} has no trials yet, so there is nothing to share")
    scrubber = scrub.scrubber_of(run)
    content, before = _scrubbed(run, scrubber)
    content[bundle.README] = _readme(licence, by)
    content[bundle.TRIALS] = _proved(run, content)
    _check_clean(run, scrubber, content)
    counts = Counter(match[0].lower() for part in content.values() for match in GIVEN.finditer(part.decode()))
    kinds = Counter(scrubber.names.kinds.get(pseudonym, "value") for pseudonym in counts)
    hashes = {
        name: {"sha256": hashlib.sha256(part).hexdigest(), "before_hmac": before.get(name, "")}
        for name, part in content.items()
    }
    index = {
        "protocol": protocol.VERSION,
        "diskbook": __version__,
        "licence": licence,
        "by": by,
        "provenance": manifest["provenance"],
        "scenario": manifest["scenario"]["name"],
        "preset": str(manifest.get("preset") or ""),
        "files": hashes,
        "replaced": dict(sorted(kinds.items())),
    }
    return Prepared(run, bundle.write(index, content), _page(run, scrubber, content, counts, licence, by))


def _scrubbed(run: Run, scrubber: RunScrubber) -> tuple[dict[str, bytes], dict[str, str]]:
    """Every file of the bundle that comes from the run, and keyed hashes of what they were."""
    content: dict[str, bytes] = {}
    before: dict[str, str] = {}
    entries: dict[str, dict[str, str]] = {}
    for path, sha256 in _raw_files(run):
        name = path.removesuffix(".gz")
        original = files.read_packed(run.folder / path)
        if hashlib.sha256(original).hexdigest() != sha256:
            raise DiskbookError(f"{run.folder / path} was changed after the trial: restore it")
        content[name] = scrub.raw(scrubber, name, original)
        entries[path] = {"path": path, "sha256": hashlib.sha256(content[name]).hexdigest()}
        before[name] = client.sign("share", original.hex())
    manifest = _manifest(scrubber, run.manifest)
    content["manifest.json"] = json.dumps(manifest, indent=1).encode()
    content["plan.json"] = _plan(run, manifest)
    digest = hashlib.sha256(content["plan.json"]).hexdigest()
    lines = [json.dumps(_event(scrubber, event, entries, digest)) for event in run.ledger()]
    content["ledger.jsonl"] = "\n".join([*lines, ""]).encode()
    for name in ("manifest.json", "plan.json", "ledger.jsonl"):
        own = run.folder / name
        before[name] = client.sign("share", own.read_bytes().hex()) if own.exists() else ""
    return content, before


def _raw_files(run: Run) -> Iterator[tuple[str, str]]:
    """Raw files that the ledger names, with their hashes; others belong to no trial and stay here."""
    for event in run.ledger():
        entries = event.get("files") or {}
        for entry in entries.values() if isinstance(entries, dict) else entries:
            yield entry["path"], entry["sha256"]


def _manifest(scrubber: RunScrubber, manifest: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in manifest.items() if key not in _DROPPED}
    scenario = {key: value for key, value in kept["scenario"].items() if key not in ("network", "azure")}
    groups = [{**group, "prefix": ""} for group in kept["resource_groups"]]
    clean: dict[str, Any] = scrubber.json({**kept, "scenario": scenario, "resource_groups": groups})
    return {**clean, "azure": None}


def _plan(run: Run, manifest: Mapping[str, Any]) -> bytes:
    """The plan, for the scenario as it is shared; a plan of another scenario stays one."""
    path = run.folder / plans.FILE
    if not path.exists():
        return b""
    plan = json.loads(path.read_bytes())
    digest = hashlib.sha256(json.dumps(manifest["scenario"], sort_keys=True).encode()).hexdigest()
    if plans.is_scenario_changed(run):
        digest = hashlib.sha256(b"another scenario").hexdigest()
    return json.dumps({**plan, "run": manifest["run"], "scenario_sha256": digest}).encode()


def _event(
    scrubber: RunScrubber, event: Mapping[str, Any], entries: Mapping[str, dict[str, str]], plan: str
) -> dict[str, Any]:
    """An event without what is private, with the hashes of the scrubbed files."""
    listed = event.get("files")
    clean: dict[str, Any] = scrubber.json({key: value for key, value in event.items() if key != "files"})
    if isinstance(listed, dict):
        clean["files"] = {kind: entries[entry["path"]] for kind, entry in listed.items()}
    elif listed:
        clean["files"] = [entries[entry["path"]] for entry in listed]
    return {**clean, "sha256": plan} if event["event"] == "plan" else clean


def _proved(run: Run, content: Mapping[str, bytes]) -> bytes:
    """The table of trials of the scrubbed run, which must be that of the run but for pseudonyms."""
    with tempfile.TemporaryDirectory(prefix="diskbook-share-") as folder:
        scrubbed = unpacked(content, Path(folder) / "run")
        own = tables.build(run)
        try:
            made = tables.build(scrubbed)
        except UNREADABLE as error:
            raise DiskbookError(
                f"replacing what is private would leave no tables ({error!r:.80}), so the run is not shared; "
                "rename what looks like a user, a host or a subscription in the scenario"
            ) from None
    for name in ("trials", "evidence", "bins", "series", "guest"):
        if column := differs(getattr(made, name), getattr(own, name)):
            raise DiskbookError(
                f"replacing what is private would change {column} in the table {name}, so the run is not "
                "shared; rename what looks like a user, a host or a subscription in the scenario"
            )
    return csv_text(made.trials).encode()


def unpacked(content: Mapping[str, bytes], folder: Path) -> Run:
    """Write the run of a bundle into a new folder."""
    (folder / "raw").mkdir(parents=True)
    for name, part in content.items():
        if name.startswith("raw/"):
            (folder / f"{name}.gz").write_bytes(gzip.compress(part, mtime=0))
        elif name in ("manifest.json", "plan.json", "ledger.jsonl") and part:
            (folder / name).write_bytes(part)
    return Run(folder)


def differs(made: pd.DataFrame, own: pd.DataFrame) -> str | None:
    """Name the first column in which two tables differ, pseudonyms aside; None where there is none."""
    if len(made) != len(own):
        return "the number of rows"
    shared = [name for name in own.columns if name not in PSEUDONYMOUS]
    left, right = (csv_text(table.reindex(columns=shared)) for table in (made, own))
    if left == right:
        return None
    return next((name for name in shared if csv_text(made[[name]]) != csv_text(own[[name]])), "a column")


def _check_clean(run: Run, scrubber: RunScrubber, content: Mapping[str, bytes]) -> None:
    """Read every text of the bundle for what must not be there; a log is known to have only numbers."""
    leaks = Leaks(scrubber.names.originals, scrubber.vocabulary)
    for name, part in content.items():
        if leak := leaks.find(name):
            raise DiskbookError(f"the name of the file {visible(name)}: {leak}; nothing was written")
        if name.endswith(".log"):
            continue
        values: list[tuple[int, str]] = []
        for number, line in enumerate(part.decode().splitlines(), 1):
            for text, is_key in _texts(name, line):
                if leak := leaks.find(text):
                    where = _line(run, name, text, number)
                    raise UnscrubbedError(name, where, f"{leak}; nothing was written")
                values += [] if is_key else [(number, text)]
        if begun := leaks.find_split(values):
            raise UnscrubbedError(
                name, begun, "a text that was replaced is here, split over lines; nothing was written"
            )


def _texts(name: str, line: str) -> list[tuple[str, bool]]:
    """Texts of a line that may hold something, and which are keys: of JSON its strings, of XML no numbers."""
    if name.endswith(".xml"):
        parts = (_NUMBER.sub("", part).strip() for part in re.split("[<>]", line))
        return [(part, False) for part in parts if part]
    if not name.endswith((".json", ".jsonl")):
        return [(line, False)]
    return [(json.loads(match[1]), bool(match[2])) for match in _STRING.finditer(line)]


def _line(run: Run, name: str, text: str, number: int) -> int:
    """Line of a text in the run's own file, where it stands there in the same spelling."""
    path = run.folder / (f"{name}.gz" if name.startswith("raw/") else name)
    if not path.exists():
        return number
    own = files.read_packed(path, packed=path.suffix == ".gz").decode("utf-8", "replace")
    place = own.find(json.dumps(text)[1:-1])
    return number if place < 0 else 1 + own.count("\n", 0, place)


def _readme(licence: str, by: str) -> bytes:
    return (
        "Results of a disk benchmark, shared with diskbook. 'diskbook import FILE' checks and reads them.\n"
        f"Licence: {licence}. Cite: {by or 'the bundle by its SHA-256'}.\n"
    ).encode()


def _page(
    run: Run,
    scrubber: RunScrubber,
    content: Mapping[str, bytes],
    counts: Mapping[str, int],
    licence: str,
    by: str,
) -> str:
    """Say what was replaced, what is left and what stays here."""
    originals: dict[str, list[str]] = defaultdict(list)
    for original, pseudonym in scrubber.names.originals.items():
        if times := counts.get(pseudonym.lower()):
            row = f"{visible(original)[:_LONGEST]} -> {pseudonym}, {many(times, 'time')}"
            originals[scrubber.names.kinds[pseudonym.lower()]].append(row)
    secrets = len(originals.pop("secret", ()))
    left: dict[str, dict[str, None]] = defaultdict(dict)
    for name in ("manifest.json", "ledger.jsonl", *(name for name in content if name.startswith("raw/"))):
        if not name.endswith(".log"):
            for key, value in _strings(name, content[name]):
                left[key][GIVEN.sub("x-...", value)] = None
    raw = [name for name in content if name.startswith("raw/")]
    lines = [f"run {run.name}, {run.manifest['provenance']}: what a bundle of it would hold", "", "replaced:"]
    for kind, rows in sorted(originals.items()):
        lines += [f"  {kind} ({len(rows)})", *(f"    {row}" for row in sorted(rows))]
    lines += [f"  secret ({secrets}), which are not shown"] * bool(secrets)
    lines += ["", "left, every text by the key it stands at (times, hashes and names of trials aside):"]
    lines += [f"  {key}: {' | '.join(values)}" for key, values in sorted(left.items())]
    lines += [
        "",
        f"and {many(len(raw), 'raw result')} with all their numbers",
        "stays here: notebooks, report, figures and every other file; whoever imports it makes them again",
        f"licence: {licence}; to cite: {by or 'nobody is named (--by NAME)'}",
    ]
    if not run.is_signed:
        lines.append(
            "This run was not begun by you on this computer. The user and host of whoever began it are not "
            "known here: look for them above."
        )
    return "\n".join(lines)


def _strings(name: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Texts of a file with their keys, without those that only number or name what was measured."""
    if name.endswith(".txt"):
        yield from (("message", line) for line in content.decode().splitlines() if line.strip())
        return
    if name.endswith(".xml"):
        yield from re.findall(r"<(\w+)>([^<>]*[A-Za-z][^<>]*)<", content.decode())
        return
    documents = content.decode().splitlines() if name.endswith(".jsonl") else [content.decode()]
    for document in documents:
        yield from _leaves(json.loads(document), "")


def _leaves(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    elif isinstance(value, str) and key not in _NUMBERED and _TOLD.search(value):
        yield key, value
