"""Replace what is private in the files of a run, and keep what its tables are computed from.

It is the scrubber of `diskbook record`. It learns here which words are the workbook's own: names that the
scenario gives, events of the ledger, and the options of tools.
"""

import html
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from diskbook.facts import client
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run
from diskbook.sharing import recording
from diskbook.sharing.pseudonyms import Pseudonyms, is_pseudonym
from diskbook.sharing.scrub_values import Scrubber

TRIAL = re.compile(r"r\d{1,4}-b\d{1,4}-p\d{1,4}-[a-z0-9-]{3,120}-a\d{1,3}")
_WORDS = (
    *("fioversion", "joboptions", ">=64", ">=2000", ">=50.0", "nbd", "libaio", "io_uring", "psync"),
    *("pvsync2", "sync", "windowsaio", "randread", "randwrite", "randrw", "read", "write", "rw"),
    *("readwrite", "trial", "refill_buffers", "fdatasync", "dsync", "direct", "none", "unlink"),
    *("tausworthe64", "mq-deadline", "kyber", "bfq", "ssh", "write-through", "written", "refused"),
    *("noticed", "attach", "detach", "azure", "emulated", "inventory", "mirror", "parity", "simple"),
    *("rateofcountspersecond64", "_total", "xml"),
)
"""Words of fio, of block devices and of the workbook. A key of several words is written without spaces."""
_AMOUNT = re.compile(
    r",?\d{1,15}(\.\d{1,9})?(ns|us|ms|s|m|h|k|kb|mb|gb|kib|mib|gib|iops|%)?,?|fio-\d[\w.-]{1,20}"
    r"|([A-Z][a-z]{2} ){2}[ \d]\d \d\d:\d\d:\d\d \d{4}|\d{1,3}(,\d{3})+(\.\d+)?|[a-z]{1,9}\d?-az\d"
    r"|\d{1,2}:\d\d",
    re.IGNORECASE,
)
_OWN_PROSE = frozenset(
    {"target", "seen", "content", "notes", "note", "error", "expected", "observed", "step", "no_overwrite"}
)
"""Keys of sentences that the workbook writes; Azure's messages may be quoted in them."""
_MODELS = frozenset({"cpu_model", "driver", "scheduler", "write_cache", "power_plan", "unit", "sources"})
"""Keys of what hardware says of itself."""
_PLACES = frozenset({"uri", "filename", "directory", "hostname"})
"""Options of fio that say where it measured."""
_SAME = frozenset({"sha256", "scenario_sha256", "exec_prerun"})
"""Keys whose values are hashes of files or a fixed command; they are written again or replaced whole."""
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,60}")
_REQUEST = re.compile(r"(GET|PUT|POST|PATCH|DELETE|HEAD) [A-Za-z/]{3,80}")
_LOG_LINE = re.compile(rb"[\d\s,.:-]*(0x[0-9a-f]{1,8}[\d\s,.-]*)?")
_TAG = re.compile(r"<\?xml[ \w.=\"'-]{0,60}\?>|</?[A-Za-z]{1,60}( [A-Za-z]{1,60}=\"-?[\d.]{1,20}\")*/?>")
_COUNTER = re.compile(
    r"\\\\(?P<host>[^\\]+)(?P<kind>\\(cluster csvfs|network interface|refs|smb client shares)\()"
    r"(?P<instance>.*)(?P<counter>\)\\((read|write)s?( bytes)?|bytes (sent|received)"
    r"|allocation of data clusters on slow tier|fast tier data fill ratio)(/sec)?)",
    re.IGNORECASE | re.DOTALL,
)
"""Path of a performance counter: who counted, and for which volume or network."""
_FLAG = re.compile(
    r"true|false|-?\d{1,20}(\.\d{1,12})?([eE][+-]?\d{1,3})?|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d UTC", re.I
)


class UnscrubbedError(DiskbookError):
    """A file holds what cannot be replaced, at a line."""

    def __init__(self, file: str, line: int, why: str) -> None:
        super().__init__(f"{file}, line {line}: {why}")


class Named(Pseudonyms):
    """Pseudonyms that also know what they were given for, for the person who shares."""

    def __init__(self, key: bytes) -> None:
        super().__init__(key)
        self.originals: dict[str, str] = {}

    def give(self, original: str, place: str) -> str:
        made = super().give(original, place)
        if made != original:
            self.originals[original] = made
        return made


class RunScrubber(Scrubber):
    """Scrubs a run's manifest, ledger, plan and raw results, with the same pseudonyms in all of them."""

    names: Named

    def __init__(self, names: Named, vocabulary: set[str], words: frozenset[str]) -> None:
        super().__init__(names, vocabulary, words)
        self.vocabulary = vocabulary
        self._keys: dict[str, str] = {}

    def _key(self, name: str) -> str:
        if name not in self._keys:
            self._keys[name] = name if _REQUEST.fullmatch(name) else super()._key(name)
        return self._keys[name]

    def _is_azures(self, word: str) -> bool:
        return super()._is_azures(word) or bool(_AMOUNT.fullmatch(word))

    def _leaf(self, value: str, key: str, parent: str, depth: int) -> str:
        if key in _SAME:
            return value if key != "exec_prerun" else ""
        if key == "trial" and TRIAL.fullmatch(value) and not self._is_known(value):
            return value
        if key == "path" and (counter := _COUNTER.fullmatch(value)):
            host, instance = (self._leaf(counter[name], "host", "", depth) for name in ("host", "instance"))
            return rf"\\{host}{counter['kind']}{instance}{counter['counter']}"
        if key in _OWN_PROSE:
            return self.prose(value)
        if key in _PLACES:
            return self.names.give(value, "path")
        return self._public(value, key) if key in _MODELS else super()._leaf(value, key, parent, depth)


def scrubber_of(run: Run) -> RunScrubber:
    """Make the scrubber of a run, taught by its manifest and ledger what is private and what is its own."""
    names = Named(bytes.fromhex(client.sign("record", run.name)))
    for original, kind in recording.originals(run.manifest):
        names.keep_out(original, kind)
    own = {word for word in _own_words(run) if not _holds_known(names, word)}
    scrubber = RunScrubber(
        names, recording.vocabulary(run.manifest) | own | set(_WORDS), recording.azures_words()
    )
    for learned in (run.manifest, *run.ledger()):
        scrubber.json({key: value for key, value in learned.items() if key != "files"})
    for original in [text for text in names.originals if text.casefold() not in own]:
        names.keep_out(original, names.kinds.get(names.originals[original].lower(), "value"))
    return scrubber


def _holds_known(names: Named, word: str) -> bool:
    parts = {word, *re.split(r"[^a-z0-9]+", word)}
    return names.without_known(word) != word or any(map(names.is_known, parts))


def _own_words(run: Run) -> Iterator[str]:
    """Names that the scenario gives, those that a run makes of them, and the words of the ledger."""
    names = {text for text in _texts(run.manifest["scenario"]) if _NAME.fullmatch(text)}
    yield from names
    clusters = [cluster["name"] for cluster in run.manifest["scenario"].get("cluster") or ()]
    for number, row in enumerate(run.manifest["replicates"], 1):
        pools = {f"{name}-{place}" for name in names for place in (*row["machines"], *clusters)}
        of_pools = {disk for disk in row["disks"] if disk.rpartition("-")[0] in pools}  # "p30-n1-2"
        yield from (*pools, *of_pools, *(f"dbk-{name}" for name in names))
        named = names | of_pools
        yield from (f"r{number}-{name}{end}" for name in named for end in ("", "-nic", "-ip", "-os"))
    for event in run.ledger():
        yield from (event["event"], *event)
        if event["event"] == "operation":
            yield str(event.get("name")).replace(" ", "")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from () if key in ("network", "azure") else _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str) and not is_pseudonym(value):
        yield value


def raw(scrubber: RunScrubber, name: str, content: bytes) -> bytes:
    """Scrub a raw result by its kind; logs of numbers stay as they are, byte by byte.

    Raises UnscrubbedError when there is something in it that no rule can replace, with file and line.
    """
    kind = name.rpartition(".")[2]
    if kind == "log":
        return _log(name, content)
    if kind not in ("json", "jsonl", "xml", "txt"):
        why = (
            f"files of the kind .{kind} (VMFleet's are) are not looked through, so no run with one is shared"
        )
        raise UnscrubbedError(name, 1, why)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + content.count(b"\n", 0, error.start)
        raise UnscrubbedError(
            name, line, "it is not text in UTF-8, so nobody can tell what it holds"
        ) from None
    if kind == "json":
        return _json(scrubber, name, text)
    if kind == "jsonl":
        lines = (_json(scrubber, name, line) for line in text.splitlines() if line.strip())
        return b"".join(line.replace(b"\n", b"") + b"\n" for line in lines)
    if kind == "xml":
        return _xml(scrubber, name, text)
    return "".join(scrubber.prose(line) for line in text.splitlines(keepends=True)).encode()


def _log(name: str, content: bytes) -> bytes:
    for number, line in enumerate(content.splitlines(), 1):
        if not _LOG_LINE.fullmatch(line):
            raise UnscrubbedError(name, number, "a log of fio has only numbers, and this line has more")
    return content


def _json(scrubber: RunScrubber, name: str, text: str) -> bytes:
    """Scrub the first document; what fio printed around it is left out."""
    start = min((place for place in (text.find("{"), text.find("[")) if place >= 0), default=0)
    try:
        document, _ = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        line = 1 + text.count("\n", 0, getattr(error, "pos", 0))
        raise UnscrubbedError(name, line, "it is damaged JSON") from None
    return json.dumps(scrubber.json(document), indent=1).encode() + b"\n"


def _xml(scrubber: RunScrubber, name: str, text: str) -> bytes:
    """Scrub the texts between plain tags; DiskSpd's XML has nothing else."""
    made, line, tag = [], 1, ""
    for source in re.split(r"(<[^>]*>)", text):
        part, bare = source, html.unescape(source).strip()
        if part.startswith("<"):
            if not _TAG.fullmatch(part):
                raise UnscrubbedError(name, line, f"DiskSpd writes no tag like this: {part[:40]!r}")
            tag = part.strip("</>")
        elif bare and not _FLAG.fullmatch(bare):
            part = html.escape(scrubber.json(bare, tag))
        made.append(part)
        line += source.count("\n")
    return "".join(made).encode()
