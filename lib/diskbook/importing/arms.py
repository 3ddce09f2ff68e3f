"""Arms of an import: what one would pool is kept apart, and each has a short name of what differs.

An arm is a full target: folder, host, and path or device. The user may say otherwise, by `--arms-by` or
`--layout`; then machines and disks that one arm pools are replicates of it (`importing.repeats`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from diskbook.facts.errors import visible
from diskbook.importing import file_words, layout as layouts, loads, names, together
from diskbook.importing.files import Source
from diskbook.importing.layout import Layout, Meaning
from diskbook.importing.pairing import UNKNOWN, Entry
from diskbook.tools import registry


class Named(NamedTuple):
    """Names of arms with their words, and how paths were read, a sentence each."""

    words: dict[str, str]
    sentences: tuple[str, ...]


class _Key(NamedTuple):
    """What an arm is: words of its folder, target, host, tool with its version."""

    words: tuple[str, ...]
    target: str
    host: str
    tool: str


def name(entries: list[Entry], way: str, layout: Layout | None, refused: list[str]) -> Named:
    """Give every entry its arm and the meaning of its path, by `layout`, else by one of `names.WAYS`.

    Entries whose path does not fit the layout are taken out, with a sentence in `refused` for each.
    """
    are_rows = any(entry.columns for entry in entries)
    sentences = () if are_rows else _by_layout(entries, layout, refused) if layout else _guessed(entries, way)
    _merge_versions(entries)
    keys = _with_hosts(entries, [_key(entry, way, are_rows or layout is not None) for entry in entries])
    whole = [bool(entry.machines) or _script(entry) is not None for entry in entries]
    by_key = _words(keys, whole)
    slugs = names.slugs(sorted(set(by_key.values())), "arm")
    for entry, key in zip(entries, keys, strict=True):
        entry.arm = slugs[by_key[key]]
    return Named({slug: words for words, slug in slugs.items()}, sentences)


def _by_layout(entries: list[Entry], layout: Layout, refused: list[str]) -> tuple[str, ...]:
    """Read paths as the user says; a date or run in a file's name is a session where none is named."""
    kept, shown = [], visible(layout.text)
    for entry in entries:
        source = entry.source
        below = 1 if source.named else len(source.path.relative_to(source.root).parts)
        meaning = layout.read((*source.path.absolute().parts[1:-1], source.name), below)
        if meaning is None:
            refused.append(f"{source.shown}: its path does not fit --layout {shown}; it is left out")
            continue
        session = meaning.session or ("" if meaning.replicate else layouts.token_of_file(source.name))
        entry.meaning = replace(meaning, session=session)
        kept.append(entry)
    entries[:] = kept
    return (f"layout {shown}, as named",)


def _guessed(entries: list[Entry], way: str) -> tuple[str, ...]:
    """Guess the meaning of paths where arms are distinguished by what they are; else folders are arms."""
    plain = [entry for entry in entries if not entry.machines]
    places = [entry for entry in plain if not entry.source.named and _script(entry) is None]
    for entry in plain:
        entry.meaning = Meaning(entry.source.place, session=layouts.token_of_file(entry.source.name))
    if way != "auto" or not places:
        return ()
    paths = [layouts.Path(entry.source.place, entry.source.name, _load(entry)) for entry in places]
    meanings, patterns = layouts.guess(paths)
    for entry, meaning in zip(places, meanings, strict=True):
        entry.meaning = meaning
    words = _by_file_names(places)
    together.name_clients(places)
    words = [text if text in entry.meaning.arm else "" for entry, text in zip(places, words, strict=True)]
    named = ", ".join(visible(text) for text in sorted(set(words) - {""}))
    other = _readings(places, words, patterns) if named else ""
    if named and patterns == ("{load}*",):
        return (f"arms guessed from names of files: {named} ({_OTHERWISE}){other}",)
    if named or any(pattern != "{load}*" for pattern in patterns):
        by_name = f", and arms from names of files: {named}" if named else ""
        return (f"layout guessed from names: {' and '.join(patterns)}{by_name} ({_OTHERWISE}){other}",)
    return ()


def _readings(places: Sequence[Entry], words: Sequence[str], patterns: Sequence[str]) -> str:
    """Both ways to read words of names: as arms, which is done, and as repeats; with the layouts for each."""
    if len(patterns) > 1:
        return ""
    folders = patterns[0].removesuffix("{load}*")
    named = {entry.source.name: text for entry, text in zip(places, words, strict=True) if text}
    arms = file_words.layout_of(named) if all(words) else ""
    first = f"--layout '{folders}{arms}' picks this, " if arms else ""
    return f"; {first}--layout '{folders}{{session}}*' takes them for repeats of one arm"


_OTHERWISE = "--layout says otherwise, --dry-run shows"


def _by_file_names(entries: Sequence[Entry]) -> list[str]:
    """Add to arms of one target what names of files tell of them; return the words that do, of each."""
    of_arm = [(entry.meaning.arm, entry.measurement.target, entry.measurement.host) for entry in entries]
    places = [
        file_words.Place(arm, entry.source.name, _load(entry))
        for arm, entry in zip(of_arm, entries, strict=True)
    ]
    words = file_words.guess(places)
    for entry, text in zip(entries, words, strict=True):
        if text:
            entry.meaning = replace(entry.meaning, arm=(*entry.meaning.arm, text))
    return words


def _load(entry: Entry) -> str:
    return loads.name_of(entry.workload, entry.measurement.load)


def _script(entry: Entry) -> str | None:
    return names.by_script(entry.source, entry.tool)


def _merge_versions(entries: Iterable[Entry]) -> None:
    """Take for a version that is not told the one that others of its tool, folder and target have."""
    groups: dict[tuple[tuple[str, ...], str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.meaning.arm, entry.measurement.target, entry.tool), []).append(entry)
    for of_arm in groups.values():
        known = {entry.version for entry in of_arm} - {UNKNOWN}
        if len(known) != 1:
            continue
        (version,) = known
        title = registry.TOOLS[of_arm[0].tool].title
        flag = f"the version of {title} is not told; {version} is taken, as others of its arm have it"
        for entry in of_arm:
            if entry.version == UNKNOWN and not entry.logs:
                entry.version = entry.taken_version = version
                entry.measurement = replace(entry.measurement, flags=(*entry.measurement.flags, flag))


def _key(entry: Entry, way: str, is_layout: bool) -> _Key:
    """What an entry's arm is; what the user's way leaves out is empty."""
    measurement, source = entry.measurement, entry.source
    tool, full = f"{entry.tool} {entry.version}", (measurement.target, measurement.host)
    if is_layout and entry.meaning.arm:
        return _Key(entry.meaning.arm, "", "", tool)
    if measurement.instances:
        words = names.of_fleet(source, measurement, way) or names.own(source)
        return _Key((words,), "", measurement.host, tool)
    if is_layout:
        return _Key(() if measurement.target else (names.own(source),), *full, tool)
    if way == "auto":
        return _auto(entry, tool)
    if way == "target":
        return _Key(() if measurement.target else (names.own(source),), *full, tool)
    return _Key(_place(source, way), "", "", tool)


def _place(source: Source, way: str) -> tuple[str, ...]:
    """What names an arm by folder or file; a path that names a file stands for itself."""
    if source.named:
        return (source.label or names.own(source),)
    return ((*source.place, source.stem) if way == "file" else source.place) or (names.own(source),)


def _auto(entry: Entry, tool: str) -> _Key:
    """Folder, target and host; a script's folder of a device stands for a target of another name."""
    source, target, host = entry.source, entry.measurement.target, entry.measurement.host
    if (script := _script(entry)) is not None:
        return _Key((script,), names.target_of_script(script, target, entry.tool), host, tool)
    if source.named:
        return _Key((source.label or names.own(source),), target, host, tool)
    return _Key(entry.meaning.arm or (() if target else (names.own(source),)), target, host, tool)


def _with_hosts(entries: Sequence[Entry], keys: Sequence[_Key]) -> list[_Key]:
    """Take for the host of a text that tells none the only one that others of its arm have."""
    hosts: dict[_Key, set[str]] = {}
    for key in keys:
        hosts.setdefault(key._replace(host=""), set()).add(key.host)
    known = {place: sorted(names - {""}) for place, names in hosts.items()}
    return [
        key._replace(host=known[key][0])
        if entry.taken_version and not key.host and len(known[key]) == 1
        else key
        for entry, key in zip(entries, keys, strict=True)
    ]


def _words(keys: Sequence[_Key], whole: Sequence[bool]) -> dict[_Key, str]:
    """Name every arm by what differs between them; what is common is left out, but of `whole` ones.

    Folders first, then target, host and tool, each only where what stands before it does not tell arms apart.
    """
    plain = [key.words for key, is_whole in zip(keys, whole, strict=True) if not is_whole]
    shared = _common(plain) if len(set(keys)) > 1 else 0
    texts = {
        key: "/".join(key.words if is_whole else key.words[shared:])
        for key, is_whole in zip(keys, whole, strict=True)
    }
    targets = names.target_names(key.target for key in texts)
    texts = {key: text or targets[key.target] for key, text in texts.items()}
    texts = _told_apart(texts, lambda key: targets[key.target], "/")
    texts = _told_apart(texts, lambda key: key.host, " ")
    texts = _told_apart(texts, lambda key: key.tool, " ")
    texts = {key: text or "/".join(key.words) or "arm" for key, text in texts.items()}
    counts = Counter(texts.values())
    return {
        key: text if counts[text] == 1 else " ".join(filter(None, ("/".join(key.words), *key[1:])))
        for key, text in texts.items()
    }


def _told_apart(texts: dict[_Key, str], describe: Callable[[_Key], str], between: str) -> dict[_Key, str]:
    """Add to those names that several arms have, what tells these apart, where this does."""
    kinds: dict[str, set[str]] = {}
    for key, text in texts.items():
        kinds.setdefault(text, set()).add(describe(key))
    return {
        key: between.join(filter(None, (text, describe(key))))
        if len(kinds[text]) > 1 and text != describe(key)
        else text
        for key, text in texts.items()
    }


def _common(words: Sequence[tuple[str, ...]]) -> int:
    """Number of first words that all have in common."""
    shortest = min(map(len, words), default=0)
    return next((n for n in range(shortest) if len({item[n] for item in words}) > 1), shortest)
