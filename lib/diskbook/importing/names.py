"""Names of imported results: as scripts name files, of fleets, of targets, and as a scenario allows."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import PureWindowsPath

from diskbook.facts.neighbours import vmfleet_results as vmfleet
from diskbook.importing.files import Source
from diskbook.importing.layout import middles
from diskbook.tools.record import Measurement

_LONGEST = 40
WAYS = ("auto", "folder", "file", "target")
# Folders of bench_fio below the device: block size, mode with its mix, run of a preconditioning.
_BENCH_FIO = re.compile(r"^(?:\d+[kmg]?|(?:rw|readwrite|randrw)\d{1,3}|run-\d+)$", re.IGNORECASE)
_BENCH_FIO_FILE = re.compile(r"^[a-z]+-\d+-\d+\.json$")
_NUMBERED = re.compile(r"-\d{1,4}$")
_VMFLEET_FILE = re.compile(r"^result-(?:(?:baseline|qos\d+)-)?(?P<machine>.+)\.xml$", re.IGNORECASE)


def own(source: Source) -> str:
    """What names a source where nothing else does."""
    return source.stem if source.named else source.root.resolve().name


def of_fleet(source: Source, measurement: Measurement, way: str) -> str:
    """Name what a fleet measured; a zip has its trial's name for a word, which tells no arms apart."""
    named = vmfleet.cell_and_machine(source.name)
    folder = (source.path.parent.name,) if source.named else source.place
    volumes = _kinds(item.volume for item in measurement.instances)
    if way == "file":
        return "/".join((*folder, f"result-{named[0]}" if named else source.stem))
    if way == "target":
        return volumes
    word = vmfleet.spec_of(named[0]) if named else ""
    return "/".join(filter(None, folder if way == "folder" else (*folder, volumes, word)))


def _kinds(volumes: Iterable[str]) -> str:
    """Volumes of a fleet in words: "two-way" for two-way-1 and two-way-2."""
    different = list(dict.fromkeys(filter(None, volumes)))
    kinds = different if len(different) < 2 else [_NUMBERED.sub("", volume) for volume in different]
    return "+".join(dict.fromkeys(kinds))


def by_script(source: Source, tool: str) -> str | None:
    """Name the arm as scripts that run a tool name its files: bench_fio, VMFleet; None for any other file."""
    if source.named:
        return None
    return _SCRIPTS.get(tool, lambda _: None)(source)


def _by_bench_fio(source: Source) -> str | None:
    if not _BENCH_FIO_FILE.match(source.name):
        return None
    parts = [part for part in source.place if not _BENCH_FIO.match(part)]
    return "/".join(parts) or _device_folder(source)


def _by_vmfleet(source: Source) -> str | None:
    named, other = vmfleet.cell_and_machine(source.name), _VMFLEET_FILE.match(source.name)
    machine = named[1] if named else other["machine"] if other else ""
    return "/".join(filter(None, (source.label, machine))) if machine else None


# How scripts that run a tool name its files: theirs, not the tool's.
_SCRIPTS: dict[str, Callable[[Source], str | None]] = {"fio": _by_bench_fio, "diskspd": _by_vmfleet}


def _device_folder(source: Source) -> str:
    """The device when the user named its folder or one below it: the nearest name that can be one."""
    parts = [part for part in source.root.resolve().parts if not _BENCH_FIO.match(part)]
    return parts[-1] if parts else "device"


def target_of_script(words: str, target: str, tool: str) -> str:
    """What of a target tells arms apart where bench_fio's folder names the device, or VMFleet's file a VM.

    A target of the folder's name counts in full, another stands behind the folder; of DiskSpd's files on a
    machine their folders count, since every load of a sweep has files of its own.
    """
    return _TARGETS_OF_SCRIPTS[tool](words, target)


def _of_bench_fio(words: str, target: str) -> str:
    return target if last_part(target) == words.rsplit("/", 1)[-1] else ""


def _of_vmfleet(_: str, target: str) -> str:
    return "+".join(dict.fromkeys(str(PureWindowsPath(path).parent) for path in target.split(" + ")))


_TARGETS_OF_SCRIPTS: dict[str, Callable[[str, str], str]] = {"fio": _of_bench_fio, "diskspd": _of_vmfleet}


def target_names(targets: Iterable[str]) -> dict[str, str]:
    """Name targets shortly, each by another name: the last part of a path, else what differs between paths.

    `/mnt/premium/fio.test` and `/mnt/standard/fio.test` are "premium" and "standard", `/dev/sdc` is "sdc".
    """
    by_last: dict[str, list[str]] = {}
    for target in dict.fromkeys(targets):
        by_last.setdefault(last_part(target), []).append(target)
    by_target = {target: last for last, alike in by_last.items() for target in alike}
    for alike in by_last.values():
        if len(alike) > 1:
            by_target |= middles(alike)
    counts = Counter(by_target.values())
    return {target: text if counts[text] == 1 else target for target, text in by_target.items()}


def last_part(target: str) -> str:
    """Last part of a path or URI; several targets joined."""
    paths = target.split(" + ")
    return "+".join(dict.fromkeys(PureWindowsPath(path.rstrip("/\\")).name or path for path in paths if path))


def slugs(words: Iterable[str], fallback: str) -> dict[str, str]:
    """Names that a scenario allows, all different, one for each of the words.

    A name that is too long lacks words of its middle, those that all have first. Where two are alike then,
    the later has a number.
    """
    texts = {text: re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or fallback for text in words}
    shared = set.intersection(*(set(slug.split("-")) for slug in texts.values())) if texts else set()
    by_name: dict[str, str] = {}
    for text, whole in texts.items():
        slug = _shortened(whole if whole[0].isalpha() else f"{fallback}-{whole}", shared)
        numbered = (f"{slug[: _LONGEST - 5].rstrip('-')}-{number}" for number in itertools.count(2))
        taken = set(by_name.values())
        by_name[text] = next(name for name in itertools.chain([slug], numbered) if name not in taken)
    return by_name


def _shortened(slug: str, shared: Collection[str]) -> str:
    """Leave words out until a name fits: those that all names share first, and of these the middle ones."""
    parts = slug.split("-")
    middle = (len(parts) - 1) / 2
    order = sorted(range(1, len(parts)), key=lambda place: (parts[place] not in shared, abs(place - middle)))
    for place in order:
        if len("-".join(filter(None, parts))) > _LONGEST:
            parts[place] = ""
    return "-".join(filter(None, parts))[:_LONGEST].rstrip("-")


def labels(words: Mapping[str, str], longest: int = _LONGEST) -> dict[str, str]:
    """Shorten words of arms or loads; where two are alike then, their names, which differ, stand for them."""
    texts = {name: short(text, longest) for name, text in words.items()}
    counts = Counter(text.casefold() for text in texts.values())
    return {name: text if counts[text.casefold()] == 1 else name for name, text in texts.items()}


def short(text: str, longest: int = _LONGEST) -> str:
    """Shorten words in the middle, so that both ends can be determined."""
    if len(text) <= longest:
        return text
    half = (longest - 3) // 2
    return f"{text[:half]}...{text[-half:]}"
