"""The one file that is shared: what it holds, and reading it from a stranger.

A zip in a fixed order with fixed dates. `bundle.json` lists every other file with its hash. There are the
manifest, plan and ledger of a run, its raw results, and its table of trials; there is no notebook, no report
and no code.
"""

import hashlib
import re
import zipfile
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from diskbook.facts import archives, files
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.units import MIB
from diskbook.stats import protocol

SCHEMA = 1
INDEX, README, TRIALS = "bundle.json", "README.txt", "trials.csv"
LICENCE = "CC-BY-4.0"
SUFFIX = ".diskbook.zip"
_PARTS = ("manifest.json", "plan.json", "ledger.jsonl", TRIALS, README)
_RAW = re.compile(r"raw/[A-Za-z0-9_.-]{1,180}\.(json|jsonl|log|txt|xml)")
_MOST_BYTES, _MOST_FILES, _MOST_OF_FILE = 512 * MIB, 20_000, 64 * MIB
_Line = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class File(BaseModel):
    """A file of a bundle: its hash, and a keyed hash of what it was before anything was replaced."""

    model_config = ConfigDict(strict=True, extra="forbid")
    sha256: _Sha256
    before_hmac: _Sha256 | Literal[""]


class Index(BaseModel):
    """What `bundle.json` says."""

    model_config = ConfigDict(strict=True, extra="forbid")
    schema_: Literal[1] = Field(alias="schema")
    protocol: Annotated[int, Field(ge=1, le=protocol.VERSION)]
    diskbook: _Line
    licence: _Line
    by: _Line
    provenance: Literal["azure", "emulated", "inventory"]
    scenario: _Line
    preset: _Line
    files: dict[str, File]
    replaced: dict[str, int]


def write(index: dict[str, Any], content: dict[str, bytes]) -> bytes:
    """Pack a bundle; the same run gives the same bytes."""
    checked = Index.model_validate({**index, "schema": SCHEMA})
    listed = checked.model_dump_json(by_alias=True, indent=1).encode()
    return archives.pack({**content, INDEX: listed}, zipfile.ZIP_DEFLATED)


def is_bundle(path: Path) -> bool:
    """Whether a file is meant to be a bundle: by its name, or by the index in it."""
    if not path.is_file():
        return False
    if path.name.endswith(SUFFIX):
        return True
    with path.open("rb") as stream:
        if stream.read(4) != archives.MAGIC:
            return False
    content = files.read_packed(path, packed=False, most=_MOST_BYTES)
    return INDEX in archives.names(content, _MOST_BYTES, _MOST_FILES)


def read(path: Path) -> tuple[str, Index, dict[str, bytes]]:
    """Read a bundle and check each of its files; none of it is run, and nothing written.

    Returns SHA-256 of the bundle, its index and its files.

    Raises DiskbookError for what is not a bundle, in one sentence.
    """
    shown = visible(path.name)
    content = files.read_packed(path, shown, _MOST_BYTES, packed=False)
    unpacked = archives.unpack(
        content,
        shown,
        most_bytes=_MOST_BYTES,
        most_files=_MOST_FILES,
        most_of_file=_MOST_OF_FILE,
        check_name=archives.is_inside,
    )
    index = _index(unpacked.pop(INDEX, b""), shown)
    for name in unpacked:
        if name not in _PARTS and not _RAW.fullmatch(name):
            raise DiskbookError(f"{shown} holds {visible(name)!r}; a bundle has no notebook, report or code")
    if missing := sorted({*index.files, *_PARTS} - unpacked.keys()):
        raise DiskbookError(f"{shown} lacks {visible(missing[0])}, so it is not whole; ask for it again")
    for name, inner in unpacked.items():
        listed = index.files.get(name)
        if listed is None or hashlib.sha256(inner).hexdigest() != listed.sha256:
            raise DiskbookError(
                f"{shown}: {name} does not have the hash that {INDEX} lists; ask for it again"
            )
    return hashlib.sha256(content).hexdigest(), index, unpacked


def _index(content: bytes, shown: str) -> Index:
    if not content:
        raise DiskbookError(f"{shown} has no {INDEX}, so it is not a bundle; 'diskbook share RUN' makes one")
    try:
        return Index.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or INDEX
        raise DiskbookError(
            f"{shown}: this version reads bundles of schema {SCHEMA}, and {visible(place)} does not fit: "
            f"{visible(first['msg'])}"
        ) from None
