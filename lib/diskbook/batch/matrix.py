"""The file of a batch: lists of scenarios and settings, every combination of which is a run."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from diskbook.batch import quota
from diskbook.batch.batch_run import Asked, Item, item_of
from diskbook.batch.quota import Quotas
from diskbook.design import scenario_file
from diskbook.facts import files
from diskbook.facts.errors import UsageError, unknown
from diskbook.facts.validation import Wording, mistakes, refusal

KEYS = ("scenario", "preset", "cloud", "emulator_profile")
"""Keys of a matrix by name; all others are those of `--set`, which have a point in them."""
MOST = 1_000
"""Runs of a batch; more of them are a slip of the pen."""
_WORDING = Wording(
    row="[[{kind}]] {number}",
    sentences={
        "list_type": "{place}: {key} = {value} is not a list; write for example {key} = [{value}]",
        "too_short": "{place}: {key} is an empty list; name at least one value, or leave the key out",
        "dict_type matrix": "write [matrix], a table of lists, once",
    },
)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    matrix: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default_factory=dict)
    include: list[dict[str, Any]] = Field(default_factory=list)
    exclude: list[dict[str, Any]] = Field(default_factory=list)
    max_cost_usd: Annotated[float, Field(gt=0, strict=False, allow_inf_nan=False)] | None = None
    jobs: Annotated[int, Field(ge=1)] | None = None
    engine: Literal["local", "dask"] = "local"
    scheduler: str | None = None
    store: str | None = None
    quota: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Matrix:
    """A batch as its file asks for it: its runs, each once, the limits of all, and where they run."""

    name: str
    items: tuple[Item, ...]
    max_cost_usd: float | None = None
    jobs: int | None = None
    engine: str = "local"
    scheduler: str | None = None
    store: str | None = None
    quota: Mapping[str, int] = field(default_factory=dict)


def read(path: Path) -> Matrix:
    """Read the file of a batch and check every run of it; nothing is begun.

    Raises UsageError with a line per mistake, which names file, key and remedy.
    """
    raw = files.read_toml(path, f"there is no file {path}; name a TOML file with a table [matrix]")
    _check_quotes(raw, path.name)
    try:
        file = _File.model_validate(raw)
    except ValidationError as error:
        texts = [mistake.text for mistake in mistakes(error, _File, raw, _WORDING)]
        raise refusal(path.name, texts, raw) from None
    if texts := [*_wrong_keys(file), *_wrong_exclusions(file)]:
        raise refusal(path.name, texts, raw)
    rows = list(_rows(file, path.name))
    if not rows:
        raise UsageError(f"{path.name}: it asks for no run; write [matrix] with scenario = [...]")
    varying = _varying(rows)
    # What is asked twice in other words is one run.
    items = {item.name: item for item in _items(rows, varying, path)}
    quota.check_names(file.quota, f"{path.name}: [quota]")
    matrix = Matrix(
        path.stem,
        tuple(items.values()),
        file.max_cost_usd,
        file.jobs,
        file.engine,
        file.scheduler,
        file.store,
        file.quota,
    )
    Quotas(file.quota).check(matrix.items)
    return matrix


def _rows(file: _File, where: str) -> Iterator[Mapping[str, Any]]:
    """Every combination that is not excluded, then what is included."""
    number = math.prod(len(values) for values in file.matrix.values()) if file.matrix else 0
    if number + len(file.include) > MOST:
        raise UsageError(f"{where}: that is {number + len(file.include):,} runs, of at most {MOST:,}")
    combinations = [
        dict(zip(file.matrix, values, strict=True)) for values in itertools.product(*file.matrix.values())
    ]
    idle = [
        f"[[exclude]] {n} leaves no run out: no combination has these values"
        for n, entry in enumerate(file.exclude, 1)
        if not any(_matches(row, entry) for row in combinations)
    ]
    if idle:
        raise refusal(where, idle, {})
    if file.matrix:
        yield from (row for row in combinations if not any(_matches(row, entry) for entry in file.exclude))
    yield from file.include


def _wrong_exclusions(file: _File) -> Iterator[str]:
    for number, entry in enumerate(file.exclude, 1):
        place = f"[[exclude]] {number}"
        if not entry:
            yield f"{place}: it has no key, so it would leave out every run"
        for key in entry.keys() - file.matrix.keys():
            yield str(unknown("key of [matrix]", key, file.matrix, place))


def _matches(row: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    return all(row[key] == value for key, value in entry.items())


def _wrong_keys(file: _File) -> Iterator[str]:
    """Say which keys are neither ours nor dotted."""
    places = {"[matrix]": file.matrix}
    places |= {f"[[include]] {number}": entry for number, entry in enumerate(file.include, 1)}
    for place, entry in places.items():
        for key in entry:
            if key not in KEYS and "." not in key:
                where = f'{place} (keys of --set have a point, such as "design.replicates")'
                yield str(unknown("key", key, KEYS, where))


def _check_quotes(raw: Mapping[str, Any], where: str) -> None:
    """Raise UsageError for a key with a point that TOML has taken for a table with a key in it."""
    for name in ("matrix", "include", "exclude"):
        tables = raw.get(name, [])
        for table in tables if isinstance(tables, list) else [tables]:
            for key, value in table.items() if isinstance(table, Mapping) else ():
                if isinstance(value, Mapping):
                    inner = next(iter(value), "...")
                    raise UsageError(
                        f'{where}: {name}: write a key with a point in quotes, "{key}.{inner}" = ...'
                    )


def _varying(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Keys that not all runs have alike, in the order of the file."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return [key for key in keys if len({repr(row.get(key)) for row in rows}) > 1]


def _items(rows: Iterable[Mapping[str, Any]], varying: Sequence[str], path: Path) -> list[Item]:
    """Check every run; a mistake that several have is shown for the first."""
    items: list[Item] = []
    wrong: dict[str, str] = {}
    for row in rows:
        label = " ".join(_words(key, row[key]) for key in varying if key in row)
        label = label or str(row.get("scenario", ""))
        try:
            items.append(item_of(_asked(row, path.parent), label))
        except UsageError as error:
            for line in str(error).splitlines():
                wrong.setdefault(line, f"run '{label}': {line}")
    if wrong:
        raise refusal(path.name, wrong.values(), {})
    return items


def _words(key: str, value: Any) -> str:
    return str(value) if key in KEYS else f"{key}={value}"


def _asked(row: Mapping[str, Any], folder: Path) -> Asked:
    names = {key: row[key] for key in KEYS if key in row}
    for key, value in names.items():
        if not isinstance(value, str):
            raise UsageError(f"{key} = {value!r} is not a name; write it in quotes, each run has one")
    if "scenario" not in names:
        raise UsageError("it names no scenario; write scenario = ... in [matrix], and in each [[include]]")
    if scenario_file.is_file(names["scenario"]):  # from where the matrix lies, wherever it is called from
        names["scenario"] = str((folder / names["scenario"]).resolve())
    return Asked(**names, settings={key: value for key, value in row.items() if key not in KEYS})
