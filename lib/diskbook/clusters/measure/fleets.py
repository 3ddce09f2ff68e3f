"""Fleets: one load on many machines at once, spread over the volumes of an arm, and their files.

Before each block every file is written in full: of parity that was never written reads cost no I/O, and which
data lie in a mirror tier follows from what came before.
"""

import base64
import io
import time
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

from diskbook.clusters.design import rules
from diskbook.clusters.measure import node_steps, volumes
from diskbook.clusters.powershell import steps
from diskbook.design.model import FLEET, Arm, Volume, Workload
from diskbook.facts import archives
from diskbook.facts.errors import DiskbookError
from diskbook.hosts.device import Device
from diskbook.measure.bench.rig import Rig
from diskbook.tools import registry
from diskbook.tools.protocol import FILL_BLOCK_BYTES, Job
from diskbook.tools.record import Measurement

FILLS = 4
"""Attempts to fill all files, since DiskSpd writes for a time and not an amount."""
MOST_FILL_S = 3600.0


def device(rig: Rig, arm: Arm) -> Device:
    """Return a file of an arm's first volume, for the line of a fleet, which names none."""
    first = next(iter(rig.scenario.owners_of(arm)))
    entry = rig.replicate["volumes"][first]
    path = entry["path"].rstrip("\\") + r"\vm-001.dat"
    return Device("windows", path, path, int(entry["size_bytes"]))


def run(rig: Rig, arm: Arm, load: Workload, name: str, job: Job, *, limit_s: float) -> dict[str, bytes]:
    """Run a trial on all machines of a fleet, as many of them on each volume.

    Returns the archive of all machines' results, as `registry.TOOLS` names it.

    Raises StepFailed with the node's own sentence, or where the results are another trial's.
    """
    owners = rules.used(rig.scenario, arm, load)
    data = rules.data_sets(rig.scenario)[arm.volume]
    request = steps.Fleet(
        volumes=_volumes(rig, owners, aligned=arm.aligned),
        instances=rules.on_each(rig.scenario, arm, load),
        file_bytes=data.file_bytes,
        line=" ".join(job.argv),
        spec=name,
        wait_s=round(limit_s),
    )
    return _call(rig, arm.machine, request)


def warm_up(rig: Rig) -> bool:
    """Write every file of all fleets in full; tell whether there were any. Emulated caps are lifted then.

    Raises DiskbookError when not all is written after `FILLS` attempts.
    """
    sets = rules.data_sets(rig.scenario)
    for entry, data in sets.items():
        volume = rig.scenario.volume_named(entry)
        volumes.forget(rig, entry)
        started = time.monotonic()
        _fill(rig, volume, data)
        made = [rig.replicate["volumes"][name] for name in rig.scenario.members_of(volume)]
        rig.run.append(
            "prefill",
            replicate=rig.number,
            **volumes.ledger_place(rig, entry),
            bytes=len(made) * data.size_bytes,
            caps_lifted=all(item.get("fill_path", item["path"]) != item["path"] for item in made),
            real_s=round(time.monotonic() - started, 3),
        )
    return bool(sets)


def _fill(rig: Rig, volume: Volume, data: rules.DataSet) -> None:
    """Have each machine write its file until it says that all of it is written."""
    tool, what = registry.TOOLS[FLEET], f"warm-up of {volume.name}"
    arm = next(item for item in rig.scenario.arm if item.volume == volume.name)
    owners = {name: rig.replicate["volumes"][name]["owner"] for name in rig.scenario.members_of(volume)}
    written: Measurement | None = None
    for attempt in range(1, FILLS + 1):
        job = tool.prefill(data.file_bytes, device(rig, arm), written)
        if job is None:
            return
        request = steps.Fleet(
            volumes=_volumes(rig, owners, aligned=True, fill=True),
            instances=data.instances,
            file_bytes=data.file_bytes,
            line=" ".join(job.argv),
            spec=f"warmup{rig.number}-{volume.name}-{attempt}",
            create=True,
            wait_s=round(job.limit_s or MOST_FILL_S),
        )
        output = _call(rig, arm.machine, request)
        written = tool.read({kind: output[file] for file, (kind, _) in tool.raw.items()}, what)
    if written is not None and tool.prefill(data.file_bytes, device(rig, arm), written) is not None:
        least = min(item.directions["write"].ios for item in written.instances) * FILL_BLOCK_BYTES
        raise DiskbookError(
            f"{what}: {least:.0f} of {data.file_bytes} bytes of a file were written in {FILLS} attempts"
        )


def _volumes(
    rig: Rig, owners: Mapping[str, str], *, aligned: bool, fill: bool = False
) -> tuple[steps.FleetVolume, ...]:
    """Say on which node the machines of each volume run: on its owner, or, not aligned, on the next one."""
    rows = []
    for name, owner in owners.items():
        entry: dict[str, Any] = rig.replicate["volumes"][name]
        nodes = entry["nodes"]
        node = owner if aligned else nodes[(nodes.index(owner) + 1) % len(nodes)]
        path = entry.get("fill_path") or entry["path"] if fill else entry["path"]
        rows.append(steps.FleetVolume(name=entry["volume"], path=path, node=node_steps.name_of(rig, node)))
    return tuple(rows)


def _call(rig: Rig, machine: str, request: steps.Fleet) -> dict[str, bytes]:
    """Run the step and take its archive; one that was left running by a killed client answers for another."""
    tool = registry.TOOLS[FLEET]
    answer = node_steps.run(rig, machine, "fleet", request, wait_s=request.wait_s)
    files = _files(base64.b64decode(answer.state["archive"]), request)
    strange = [name for name in files if name.endswith(".xml") and f"-{request.spec}-" not in name]
    if strange:
        raise steps.StepFailed(f"the fleet of {request.spec} answered with results of another: {strange[0]}")
    # Stored again, unpacked: results of a trial are much alike, and raw files are packed as a whole.
    return {file: archives.pack(files) for file, (kind, _) in tool.raw.items() if kind == tool.main}


def _files(content: bytes, request: steps.Fleet) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as files:
            return {name: files.read(name) for name in files.namelist()}
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise steps.StepFailed(f"the fleet of {request.spec} answered with no archive: {error}") from None
