"""What the parts of a path mean: arm, replicate, session, load; as the user says, or guessed from names."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from diskbook.facts.errors import UsageError, unknown

FIELDS = ("arm", "replicate", "block", "session", "load", "_")
_JOINED = ("arm", "session")  # of several parts
EXAMPLE = "{arm}/{replicate}/{load}*"
_PIECE = re.compile(r"\{([^{}]*)\}(\*?)|(\*\*|\*)")
_DATE = r"(?:19|20)\d\d(?P<sep>[-_.]?)(?:0[1-9]|1[0-2])(?P=sep)(?:0[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[-_ T.]*(?:[01]\d|2[0-3])[-_:.h]?[0-5]\d(?:[-_:.m]?[0-5]\d)?(?:\.\d+)?Z?)?"
_WORDS = "run|rep|repeat|replicate|iter|iteration|round|pass|trial|attempt|session|sess|try|day|block"
_TOKENS = (
    re.compile(rf"(?:^|[-_ ./])(?P<token>{_DATE}{_CLOCK})(?=$|[-_ ./])"),
    re.compile(rf"(?:^|[-_ .])(?P<token>(?:{_WORDS})[-_ #]?\d{{1,4}})(?=$|[-_ .])", re.IGNORECASE),
    re.compile(r"^(?P<token>[rR]\d{1,3})$"),  # a whole name: r5.large is none
)
_NUMBER = re.compile(r"^#?\d{1,3}$")
_END_NUMBER = re.compile(r"[-_.]\d{1,3}$")
_ENDINGS = re.compile(r"(?:\.(?:json|txt|xml|out|log|gz|csv|tsv|fio|dat))+$", re.IGNORECASE)
_OF_LOAD = re.compile(
    r"^(?:(?:bs|block|blocksize)?[-_=]?\d+[kmg]i?b?|(?:rand|random|seq|sequential)?[-_]?"
    r"(?:read|write|rw|readwrite|randrw|mixed|r|w)s?[-_]?\d{0,3}|(?:qd|iodepth|depth|q|o|t|threads|jobs|numjobs)"
    r"[-_=]?\d+)(?:[-_](?=\w)|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Meaning:
    """What the path of a result says of it; empty where it says nothing.

    `arm` are the folders that name the arm; `session` is what a guess or the user takes for a session of
    measuring, `replicate` and `block` only what the user named so; `load` only what the user did.
    """

    arm: tuple[str, ...] = ()
    replicate: str = ""
    session: str = ""
    load: str = ""


@dataclass(frozen=True)
class Layout:
    """A pattern of paths such as "{arm}/{replicate}/{load}*", as it was written and as it is matched."""

    text: str
    pattern: re.Pattern[str]
    groups: Mapping[str, tuple[str, bool]]

    @property
    def depth(self) -> int:
        """Number of folders and files that it names."""
        return self.text.count("/") + 1

    def read(self, parts: Sequence[str], below: int) -> Meaning | None:
        """Read the parts of a file's whole path; None where it does not fit.

        The pattern is compared with those below the folder that the user named, or with as many as it has.
        """
        path = "/".join(parts[-max(below, self.depth if "**" not in self.text else below) :])
        match = self.pattern.fullmatch(path)
        if match is None:
            return None
        values: dict[str, tuple[str, ...]] = dict.fromkeys(FIELDS, ())
        for group, (name, opened) in self.groups.items():
            values[name] += (without_tokens(match[group]) if opened else match[group],)
        replicate, load = ("".join(values[name]) for name in ("replicate", "load"))
        return Meaning(values["arm"], replicate, "/".join(values["session"] + values["block"]), load)


def parse(text: str) -> Layout:
    """Read a pattern.

    Raises UsageError for a field that there is not, one of load, replicate and block that stands twice, or
    two without anything between them.
    """
    groups: dict[str, tuple[str, bool]] = {}
    pattern, place = "", 0
    for piece in _PIECE.finditer(text):
        pattern += re.escape(text[place : piece.start()])
        if piece[1] is not None and place == piece.start() and place and text[place - 1] in "}*":
            raise UsageError(f"--layout {text}: nothing tells {piece[0]} from what stands before it")
        pattern += _regex(piece, groups, text)
        place = piece.end()
    if not groups or set("{}") & set(_PIECE.sub("", text)):
        raise UsageError(f"--layout {text}: name fields in braces, e.g. {EXAMPLE}")
    return Layout(text, re.compile(pattern + re.escape(text[place:])), groups)


def _regex(piece: re.Match[str], groups: dict[str, tuple[str, bool]], text: str) -> str:
    """What a field or a star of a pattern matches: nothing of theirs goes over a folder, but "**" does."""
    name, star = piece[1], piece[3]
    if star:
        return ".*" if star == "**" else "[^/]*"
    if name not in FIELDS:
        raise unknown("field of --layout", name, FIELDS)
    if name == "_":
        return "[^/]+"
    if name not in _JOINED and any(name == other for other, _ in groups.values()):
        raise UsageError(f"--layout {text}: {{{name}}} stands in it twice")
    group = f"f{len(groups)}"
    groups[group] = (name, bool(piece[2]))
    return f"(?P<{group}>[^/]+{'' if piece[2] else '?'})"


def split_token(text: str) -> tuple[str, str]:
    """Part a name into what is left and the date or number of a run in it: "lrs-run2" is "lrs", "run2"."""
    for token in _TOKENS:
        if match := token.search(text):
            rest = "-".join(
                part for part in (text[: match.start()], text[match.end() :].lstrip("-_ .")) if part
            )
            return rest, match["token"]
    return text, ""


def without_tokens(name: str) -> str:
    """Take endings, dates and numbers of runs from a file's name."""
    stem = without_ending(name)
    rest, token = split_token(stem)
    return (rest if token else _END_NUMBER.sub("", stem)) or stem


def without_ending(name: str) -> str:
    """Take the endings of results from a file's name."""
    return _ENDINGS.sub("", name)


def token_of_file(name: str) -> str:
    """Date or number of a run in a file's name; empty where there is none."""
    return split_token(without_ending(name))[1]


def is_load(name: str) -> bool:
    """Whether a name begins as that of a load: "randread-4k", "qd32"."""
    return _OF_LOAD.match(name) is not None


def second_of(words: str) -> float | None:
    """Seconds since 1970 of the first date in words, in UTC; None where there is none, or no such day."""
    match = _TOKENS[0].search(words)
    numbers = re.sub(r"\D", "", match["token"])[:14] if match else ""
    try:
        return datetime.strptime(f"{numbers:0<14}", "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


_Split = Callable[[str], tuple[str, str]]


@dataclass(frozen=True)
class Path:
    """Folders of a result below the path that the user named, its file, and what was measured."""

    folders: tuple[str, ...]
    name: str
    load: str


def guess(paths: Sequence[Path]) -> tuple[list[Meaning], tuple[str, ...]]:
    """Guess what the folders mean, level by level, of files that lie equally deep.

    A level is of sessions where all its names are dates, or numbers of runs, and loads come again in several
    of them; of loads where no load comes again and its names look like loads, or the arms of another level
    come again in all of them; else it is part of the arm.
    Returns a meaning for each path, and the patterns guessed, with fields alone.
    """
    by_depth: dict[int, list[int]] = {}
    for place, path in enumerate(paths):
        by_depth.setdefault(len(path.folders), []).append(place)
    meanings: dict[int, Meaning] = {}
    patterns = []
    for depth, places in sorted(by_depth.items()):
        levels = _levels([paths[place] for place in places], depth)
        for place in places:
            meanings[place] = _meaning(paths[place], levels)
        patterns.append("/".join([*(_SHOWN[kind] for kind, _ in levels), "{load}*"]))
    return [meanings[place] for place in range(len(paths))], tuple(patterns)


def _levels(paths: Sequence[Path], depth: int) -> list[tuple[str, _Split]]:
    """Kind of each level of folders; one that could be of arms is of loads where others name the arms."""
    levels = [_level(paths, level) for level in range(depth)]
    for level in range(depth):
        others = [other for other in range(depth) if other != level and levels[other][0] == "arm"]
        arms: dict[str, set[tuple[str, ...]]] = {}
        for path in paths:
            names = tuple(path.folders[other] for other in others)
            arms.setdefault(path.folders[level], set()).add(names)
        come_again = len(set().union(*arms.values())) > 1 and len(set.intersection(*arms.values())) > 0
        if levels[level][0] == "arm" and _is_apart(_loads(paths, level)) and come_again:
            levels[level] = ("load", lambda name: ("", ""))
    return levels


def _loads(paths: Iterable[Path], level: int) -> dict[str, set[str]]:
    """Loads of each folder of a level."""
    loads: dict[str, set[str]] = {}
    for path in paths:
        loads.setdefault(path.folders[level], set()).add(path.load)
    return loads


def _is_apart(loads: Mapping[str, set[str]]) -> bool:
    """Whether there are several folders, and no load is in two of them."""
    return len(loads) > 1 and sum(map(len, loads.values())) == len(set().union(*loads.values()))


_SHOWN = {"arm": "{arm}", "session": "{session}", "load": "{_}", "both": "{arm}-{session}"}


def _level(paths: Iterable[Path], level: int) -> tuple[str, _Split]:
    """Kind of a level of folders, and how its names are parted into arm and session."""
    loads = _loads(paths, level)
    apart = _is_apart(loads)
    if apart and all(_OF_LOAD.match(name) or _NUMBER.match(name) for name in loads):
        return "load", lambda name: ("", "")
    split = [split_token(name) for name in loads]
    if all(token and not rest for rest, token in split) or (
        len(loads) > 1 and all(_NUMBER.match(name) for name in loads)
    ):
        return "session", lambda name: ("", name)
    if all(token for _, token in split):
        alike = len({rest for rest, _ in split}) == 1
        return ("session", lambda name: ("", split_token(name)[1])) if alike else ("both", split_token)
    if all(_OF_LOAD.match(name) for name in loads) and (apart or len(loads) == 1):
        return "load", lambda name: ("", "")
    return "arm", lambda name: (name, "")


def _meaning(path: Path, levels: Sequence[tuple[str, _Split]]) -> Meaning:
    parts = [split(folder) for folder, (_, split) in zip(path.folders, levels, strict=True)]
    tokens = [token for _, token in parts if token]
    names = filter(None, (*tokens, token_of_file(path.name)))
    return Meaning(tuple(rest for rest, _ in parts if rest), session="/".join(names))


def natural(name: str) -> list[tuple[int, int, str]]:
    """Key that sorts "run2" before "run10"."""
    parts = re.split(r"([0-9]{1,18})", name)
    return [(1, int(part), "") if number % 2 else (0, 0, part) for number, part in enumerate(parts)]


def middles(paths: Sequence[str]) -> dict[str, str]:
    """What is between the parts that all of these paths begin and end with, of each."""
    parts = {path: [part for part in re.split(r"[/\\]+", path) if part] for path in paths}
    places = range(min(map(len, parts.values()), default=0))
    start = next((n for n in places if len({part[n] for part in parts.values()}) > 1), len(places))
    end = next((n for n in places if len({part[-1 - n] for part in parts.values()}) > 1), len(places))
    return {path: "/".join(part[start : len(part) - end]) or path for path, part in parts.items()}
