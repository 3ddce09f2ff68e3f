"""What a run's manifest must have, checked whenever one is read: a folder of runs may hold anybody's."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from diskbook.facts import files
from diskbook.facts.errors import DiskbookError, visible

SCHEMA = 1
RECORDED = "record"  # key: whether exchanges with Azure are recorded
_KEPT = (
    *("run", "created_utc", "provenance", "cloud", "site", "preset", "overrides", "emulator", "versions"),
    *("images", "zone_map", "shared"),
)
_KEPT_OF = {"machines": ("size", "physical_zone", "limits", "tool_version", "kernel"), "disks": ("limits",)}


def _is_time(text: str) -> str:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("a time without its zone")
    return text


_Time = Annotated[str, AfterValidator(_is_time)]
_Name = Annotated[str, StringConstraints(pattern=r"^[\w.()-]{0,90}$")]  # of a resource group
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_STRICT = ConfigDict(strict=True)
_Entries = dict[str, dict[str, Any]]


class _Group(BaseModel):
    model_config = _STRICT
    name: _Name
    deleted_utc: _Time | None
    expires_utc: _Time | None = None
    prefix: Annotated[str, StringConstraints(pattern=r"^(dbk[0-9a-f]{12}-)?$")] = ""
    deletion: str | None = None


class _Replicate(BaseModel):
    model_config = _STRICT
    replicate: int
    machines: _Entries = {}
    disks: _Entries = {}


class _Place(BaseModel):
    model_config = _STRICT
    machine: str
    host: str
    path: str
    removed_utc: _Time | None = None


class _Cost(BaseModel):
    model_config = _STRICT
    expected_usd: _Usd
    worst_usd: _Usd = 0.0


class _Scenario(BaseModel):
    model_config = _STRICT
    name: str


class _Emulator(BaseModel):
    model_config = _STRICT
    name: str = ""
    own: bool = False


class _Shared(BaseModel):
    model_config = _STRICT
    origin: Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{0,300}$")]


class _Manifest(BaseModel):
    """Keys that commands read of any run; the scenario is checked whole where it is used."""

    model_config = _STRICT
    run: str
    revision: Annotated[int, Field(ge=0)] = 0
    created_utc: _Time
    provenance: str
    cloud: str
    preset: str | None
    scenario: _Scenario
    resource_groups: list[_Group]
    replicates: list[_Replicate]
    emulator: _Emulator | None = None
    azure: dict[str, Any] | None = None
    shared: _Shared | None = None
    overrides: dict[str, Any] = {}
    versions: dict[str, str] = {}
    places: list[_Place] = []
    expires_h: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 12.0
    max_cost_usd: _Usd | None = None
    cost: list[_Cost] = []
    kept: bool = True


def read(path: Path) -> dict[str, Any]:
    """Read a manifest, as it stands, once it is known to have what it must.

    Raises DiskbookError when there is none, or it is damaged, of another schema or no manifest; or the folder
    holds what is not a file, such as a pipe, for which a reader would wait for ever.
    """
    _check_plain(path.parent)
    try:
        content = files.read_packed(path, packed=False)
        manifest = json.loads(content)
    except FileNotFoundError:
        raise DiskbookError(f"{path.parent} is not a run: it has no manifest.json") from None
    except (ValueError, RecursionError) as error:
        raise DiskbookError(f"{path} is damaged ({error}); restore it or start a new run") from None
    if not isinstance(manifest, dict) or "schema" not in manifest or "run" not in manifest:
        raise DiskbookError(f"{path} is not a manifest of this workbook; choose another folder")
    if manifest["schema"] != SCHEMA:
        raise DiskbookError(
            f"{path} has schema {str(manifest['schema'])[:40]}, this version reads {SCHEMA}; use that version"
        )
    try:
        _Manifest.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(step) for step in first["loc"])
        raise DiskbookError(
            f"{path} is damaged ({place}: {first['msg']}); restore it or start a new run"
        ) from None
    return manifest


def _check_plain(folder: Path) -> None:
    """Raise DiskbookError where a run folder holds a pipe or a device, or a link to one."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for path in folder.iterdir():
            if path.is_fifo() or path.is_char_device() or path.is_block_device():
                raise DiskbookError(f"{folder} holds {visible(path.name)!r}, which is not a file: remove it")


def origin(manifest: Mapping[str, Any]) -> str:
    """Say who shared a run and in which bundle; "" of a run that was measured here."""
    shared = manifest.get("shared") or {}
    return str(shared.get("origin", ""))


def kept_of(manifest: Mapping[str, Any], times: Sequence[str]) -> dict[str, Any]:
    """What of a manifest tells a run from another, without ids and addresses; and when its trials were."""
    replicates = [
        {
            part: {
                name: {key: item[key] for key in keys if key in item}
                for name, item in row.get(part, {}).items()
            }
            for part, keys in _KEPT_OF.items()
        }
        for row in manifest["replicates"]
    ]
    kept = {key: manifest[key] for key in _KEPT if key in manifest}
    return {**kept, "replicates": replicates, "trials_utc": [min(times), max(times)] if times else []}


def started(ledger: Iterable[Mapping[str, Any]]) -> list[str]:
    """When the trials of a run began, as its ledger has it."""
    return [str(row["started_utc"]) for row in ledger if row["event"] == "trial" and row.get("started_utc")]
