"""The log of a run in a store: numbered records, each made once, from which the run's files follow.

Record N+1 names the hash of record N and the token of who works on the run. A record is made only where
there is none of its number; so writers come one after another, and who has been replaced learns it before it
writes.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from diskbook.facts.archives import check_tree, is_inside
from diskbook.facts.errors import DiskbookError, visible
from diskbook.facts.units import MIB

FOLDER, LEDGER = "log", "ledger.jsonl"
_DIGITS = 8
MOST = 64 * MIB
"""Bytes of a record: a hundred thousand files are about 15 MB."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


Kind = Literal["claim", "state", "complete", "release"]


class Entry(BaseModel):
    """A file of a run: hash and size of its bytes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    sha256: Sha256
    size: Annotated[int, Field(ge=0)]

    @classmethod
    def of(cls, content: bytes) -> "Entry":
        """Entry of a file's content."""
        return cls(sha256=hashlib.sha256(content).hexdigest(), size=len(content))

    def fits(self, content: bytes) -> bool:
        """Whether a content is the one that was stored."""
        return Entry.of(content) == self


class Record(BaseModel):
    """One record of the log.

    `claim`: its token works on the run from here on. `state`: files that are new or changed, and what the
    ledger has grown by. `complete`: all files; the run is whole, and free. `release`: it is free.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Literal[1] = Field(default=1, alias="schema")
    number: Annotated[int, Field(ge=1)]
    previous: Sha256 | Literal[""]
    token: Annotated[int, Field(ge=1)]
    owner: str
    time_utc: str
    kind: Kind
    files: dict[str, Entry] = {}
    ledger_start: Annotated[int, Field(ge=0)] = 0
    ledger: str = ""

    def content(self) -> bytes:
        return self.model_dump_json(by_alias=True).encode()


def name_of(number: int) -> str:
    """Name of a record, below the run's address."""
    return f"{FOLDER}/{number:0{_DIGITS}}.json"


def place_of(path: str, entry: Entry) -> str:
    """Name of a file's content, below the run's address: another content is another name."""
    return f"files/{entry.sha256[:16]}/{path}"


def read(content: bytes, where: str) -> Record:
    """Read a record, which anybody may have written who can write to the store.

    Raises DiskbookError when it is damaged, or names a file outside of the run's folder.
    """
    try:
        record = Record.model_validate_json(content)
    except ValidationError as error:
        why = error.errors()[0]["msg"]
        raise DiskbookError(f"{where} is damaged ({visible(why)}); restore it") from None
    for path in record.files:
        if not is_inside(path):
            raise DiskbookError(f"{where} names a file that no run has ({visible(path)!r}); restore it")
    check_tree(record.files, where)
    return record


@dataclass
class State:
    """What a log says up to a record."""

    number: int = 0
    digest: str = ""
    token: int = 0
    holder: str = ""
    """Who works on the run; empty when it is free."""
    since_utc: str = ""
    files: dict[str, Entry] = field(default_factory=dict)
    tail: str = ""
    """What the ledger has grown by since it was stored as a file."""
    named: set[tuple[str, Entry]] = field(default_factory=set)
    """All files that any record names, also those that others have replaced since."""
    complete: Record | None = None
    """The newest record that has the run whole."""

    def add(self, record: Record, content: bytes, where: str) -> None:
        """Take the next record in.

        Raises DiskbookError when it is not the next of this log.
        """
        if record.number != self.number + 1 or record.previous != self.digest:
            raise DiskbookError(
                f"{where} does not follow the record before it: one was lost or changed; restore the log"
            )
        self.named.update(record.files.items())
        self.number, self.digest = record.number, hashlib.sha256(content).hexdigest()
        if record.kind == "claim":
            self.token, self.holder, self.since_utc = record.token, record.owner, record.time_utc
        elif not self.holder or record.token != self.token:
            raise DiskbookError(f"{where} was written by one who did not own the run; restore the log")
        elif record.kind == "state":
            if record.ledger_start != self.ledger_size():
                raise DiskbookError(f"{where} does not go on where the ledger ended; restore the log")
            self.files.update(record.files)
            self.tail += record.ledger
        else:
            self._end(record)

    def _end(self, record: Record) -> None:
        self.holder = ""
        if record.kind == "complete":
            self.files, self.tail, self.complete = dict(record.files), "", record

    def ledger_size(self) -> int:
        stored = self.files.get(LEDGER)
        return (stored.size if stored else 0) + len(self.tail.encode())


def sizes(files: Iterable[Entry]) -> int:
    """Bytes of all files together."""
    return sum(entry.size for entry in files)
