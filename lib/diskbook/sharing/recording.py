"""`diskbook run --record` and `diskbook record`: a run's exchanges with Azure, in one file to send.

The exchanges are scrubbed before they are written, and again when they are packed, with all
names that the whole run has shown. So a name that first appears late is replaced in earlier messages too.
Pseudonyms belong to this client and this run: all processes of the run use the same ones, and nobody else can
look up the originals.
The record knows from the start whose names are replaced, and which words may stay.
"""

import csv
import functools
import getpass
import gzip
import io
import json
import os
import re
import socket
import threading
import time
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import azure.core
from azure.core.exceptions import AzureError

from diskbook.facts import archives, arm, catalog, client, paths, redact
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.facts.units import now_utc
from diskbook.results.manifest import RECORDED
from diskbook.results.run import Run
from diskbook.sharing import pseudonyms
from diskbook.sharing.pseudonyms import GIVEN, Pseudonyms, kind_of
from diskbook.sharing.scrub_values import Scrubber

FILE = "arm.jsonl.gz"


class Recorder:
    """Writes exchanges by `Run.append_bytes`; safe to share between threads and processes."""

    def __init__(self, append: Callable[[str, bytes], Any], scrubber: Scrubber) -> None:
        self._append = append
        self._scrubber = scrubber
        self._lock = threading.Lock()
        self._listed: set[str] = set()  # pseudonyms whose kind stands in the file

    def exchange(self, request: Any, send: Callable[[], Any]) -> Any:
        """Send a request, and record it with its answer, or with the error that came instead."""
        started, began_utc = time.monotonic(), now_utc()
        asked = {"method": request.method, "url": request.url, "headers": request.headers}
        row: dict[str, Any] = {"time_utc": began_utc, **asked, "body": _sent(request)}
        try:
            answer = send()
            row |= {"status": answer.status_code, "answer_headers": answer.headers, "answer": _read(answer)}
        except AzureError as error:
            row |= {"error": type(error).__name__, "message": str(error)}
            raise
        finally:
            self._write({**row, "seconds": round(time.monotonic() - started, 3)})
        return answer

    def _write(self, row: dict[str, Any]) -> None:
        with self._lock:
            names = self._scrubber.names
            clean = scrubbed(row, self._scrubber)
            new = {name: kind for name, kind in names.kinds.items() if name not in self._listed}
            line = json.dumps({**clean, "replaced": new}, separators=(",", ":")) + "\n"
            self._append(FILE, gzip.compress(line.encode(), mtime=0))
            self._listed |= new.keys()


def scrubbed(row: Mapping[str, Any], scrubber: Scrubber) -> dict[str, Any]:
    """Return a row of the record without what could name somebody; a row that is scrubbed stays as it is."""
    clean: dict[str, Any] = {}
    public = pseudonyms.is_catalogue(str(row.get("method")), str(row.get("url")))
    for key, value in row.items():
        if key == "url":
            clean[key] = scrubber.url(value)
        elif key in ("headers", "answer_headers"):
            clean[key] = scrubber.headers(value)
        elif key in ("body", "answer"):
            clean[key] = _body(value, scrubber, public and key == "answer")
        else:
            clean[key] = scrubber.prose(value) if key == "message" else value
    return clean


def _body(value: Any, scrubber: Scrubber, public: bool) -> Any:
    if isinstance(value, bytes):
        return scrubber.body(value, public)
    return scrubber.catalogue(value) if public else scrubber.json(value)


def _sent(request: Any) -> bytes:
    """Body of a request; what is sent as a stream is not read."""
    content = getattr(request, "content", None) or getattr(request, "body", None)
    return content.encode() if isinstance(content, str) else content if isinstance(content, bytes) else b""


def _read(answer: Any) -> bytes:
    """Body of an answer, which keeps what was read for whoever reads it next."""
    content: bytes = answer.read() if hasattr(answer, "read") else answer.body()
    return content


_VALUE = re.compile(r'^    [A-Z]\w* = "(.+)"$|rest_field\(\s*name="(\w+)"', re.MULTILINE)
"""Values and names of fields in the files of Azure's SDK."""
_HUMP = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_USUAL = ("Microsoft.Network", "default", "AzureBastionSubnet")
"""Names of networks that say nothing about whose they are."""
_OTHER_WORDS = (
    *("diskbook", "vCPUs", "vCPU", "azure-mgmt-compute", "sha256", "x64", "Arm64"),
    *("Microsoft", "Compute", "Network", "Storage", "Resources"),  # parts of Azure's types
    *("disks", "net", "nsg", "ssh", "ip", "primary", "unknown"),  # names that every run gives
    *("default", "diskbook-run", "sign-in", "tear-down", "data/reference/prices.csv"),
    *("1Hour", "1/Hour", "1/Month", "1GB/Month"),  # units of prices
)


def scrubber_of(run: Run) -> Scrubber:
    """Make the scrubber of a run, which knows from the start who this is and what the manifest names."""
    names = Pseudonyms(bytes.fromhex(client.sign("record", run.name)))
    for original, kind in originals(run.manifest):
        names.keep_out(original, kind)
    return Scrubber(names, vocabulary(run.manifest), azures_words())


def recorder_of(run: Run) -> Recorder:
    """Return the recorder of a run."""
    return Recorder(run.append_bytes, scrubber_of(run))


def originals(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known by name to be this user's or this run's, with its kind."""
    yield getpass.getuser(), "user"
    yield Path.home().name, "user"
    yield socket.gethostname(), "host"
    yield str(manifest["run"]), "run"
    for variable in redact.VARIABLES:
        yield os.environ.get(variable, ""), variable
    for key, value in (manifest.get("azure") or {}).items():
        if key in ("subscription", "subscription_name", "tenant", "ssh_source"):
            yield str(value), key
    for group in manifest["resource_groups"]:
        yield str(group["name"]), "resource group"
    yield from _of_network(manifest["scenario"].get("network") or {})
    company = manifest["scenario"].get("azure") or {}
    yield str(company.get("resource_group") or ""), "resource group"
    for name, value in (company.get("tags") or {}).items():
        yield from ((name, "tag"), (str(value), "tag"))


def _of_network(network: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Names of a company's network, also those within the id of its subnet or Bastion."""
    for key in ("resource_group", "bastion_group"):
        yield str(network.get(key) or ""), "resource group"
    for key in ("subnet", "bastion"):
        parts = str(network.get(key) or "").split("/")
        # An id has a word of Azure's before each name, and an empty part in front.
        for name in parts[2::2] if parts[0] == "" else parts:
            if name not in _USUAL:
                yield name, "network"
    for name in re.split(r"[@:]", str(network.get("jump_host") or "")):
        yield name, "jump host"


def vocabulary(manifest: Mapping[str, Any]) -> set[str]:
    """Words that anybody can read in Azure's tables and in the workbook's own scenario."""
    words = {*catalog.vm_sizes(), *catalog.sku_names(), *catalog.regions(), *_OTHER_WORDS}
    words |= {word for image in arm.IMAGES.values() for word in image.values()}
    words |= {f"{region}-az{number}" for region in catalog.regions() for number in (1, 2, 3)}
    words |= {path.stem for folder in (paths.SCENARIOS, paths.PROFILES) for path in folder.glob("*.toml")}
    path = paths.SCENARIOS / f"{manifest['scenario']['name']}.toml"
    return words | set(_texts(tomllib.loads(path.read_text("utf-8")))) if path.is_file() else words


@functools.cache
def azures_words() -> frozenset[str]:
    """Words that the values of Azure's SDK are made of. Its files are read: to import them takes seconds."""
    root = Path(azure.core.__file__).parents[1] / "mgmt"
    texts = [path.read_text("utf-8") for path in sorted(root.glob("**/models/_*s.py"))]
    values = [" ".join(groups) for text in texts for groups in _VALUE.findall(text)]
    return frozenset(word.casefold() for value in values for word in _HUMP.findall(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


PACK = "record.zip"


@dataclass(frozen=True)
class Pack:
    """The file to send, and what is in it, in words."""

    path: Path
    words: str


def begin(run: Run) -> None:
    """Have the exchanges of a run recorded from now on; UsageError where there are none."""
    if run.manifest["cloud"] == "inventory":
        raise UsageError("--record keeps exchanges with Azure, and a run on hosts of your own has none")
    run.update_manifest(**{RECORDED: True})


def pack(run: Run) -> Pack:
    """Pack a run's record and its manifest, and list what was replaced.

    Raises UsageError when it was not recorded, DiskbookError when it was not begun here or the record is
    damaged.
    """
    if not (run.folder / FILE).exists():
        raise UsageError(f"run {run.name} has no {FILE}: begin a run with --record")
    run.check_signed()
    rows = _rows(run.folder / FILE)
    scrubber = scrubber_of(run)
    for row in rows:
        row.pop("names", None)  # of records made before all that was replaced was known
        scrubber.names.kinds |= {name: kind_of(kind) for name, kind in row.pop("replaced", {}).items()}
    manifest = json.dumps(scrubber.json(run.manifest), indent=1)
    lines = [json.dumps(scrubbed(row, scrubber)) for row in rows]
    listed = _listed(scrubber.names, "\n".join([manifest, *lines]))
    parts = {"arm.jsonl": "\n".join([*lines, ""]), "manifest.json": manifest, "replaced.csv": _csv(listed)}
    content = {name: text.encode() for name, text in parts.items()}
    run.write(PACK, archives.pack(content, zipfile.ZIP_DEFLATED))
    return Pack(run.folder / PACK, _words(run, len(rows), listed))


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DiskbookError(f"{path} is damaged ({error}); what is left of it cannot be packed") from None


def _listed(names: Pseudonyms, text: str) -> list[tuple[str, str, int]]:
    """Pseudonym, kind and count of all that stand in a text, the commonest first."""
    counts = Counter(match[0].lower() for match in GIVEN.finditer(text))
    return [(name, names.kinds.get(name, "value"), count) for name, count in counts.most_common()]


def _csv(listed: list[tuple[str, str, int]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([("pseudonym", "stands for", "times"), *listed])
    return text.getvalue()


def _words(run: Run, exchanges: int, listed: list[tuple[str, str, int]]) -> str:
    kinds = Counter(kind for _, kind, _ in listed)
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    return (
        f"{run.folder / PACK}: {exchanges} exchanges and the manifest\n"
        f"replaced by pseudonyms: {len(listed)} originals ({shown})\n"
        "replaced.csv in it lists every pseudonym and what kind of value it replaces, never the original; "
        "look through it before you send it"
    )
