"""A new machine seen from inside: set up or not, its system and tool, and how far the others are away."""

from __future__ import annotations

import json
import shlex
import statistics
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from diskbook.azure import windows
from diskbook.azure.keys import run_key
from diskbook.errors import DiskbookError
from diskbook.hosts import Connection, Host
from diskbook.scenario import Machine

SETUP_S = 900  # cloud-init installs packages
PROBES = 9

# Times the handshake of TCP with port 22, which the machines' network lets in among themselves.
_PROBE = """\
import json, socket, sys, time
found = []
for place in sys.argv[2:]:
    address, port = place.rsplit(":", 1)
    times = []
    for _ in range(int(sys.argv[1])):
        began = time.perf_counter()
        try:
            socket.create_connection((address, int(port)), 5).close()
        except OSError:
            continue
        times.append(time.perf_counter() - began)
    found.append(times)
print(json.dumps(found))
"""


def software(folder: Path, machine: Machine, host: Mapping[str, Any]) -> dict[str, str]:
    """Wait until a machine is set up, and ask for its kernel and its tool.

    Raises
    ------
    DiskbookError
        When it cannot be reached, or has no tool.
    """
    with _connect(folder, host) as connection:
        if machine.os == "windows":
            lines = connection.check(windows.powershell(windows.FACTS), timeout_s=120)
            system, version = _two_lines(lines, connection.host.name)
            return {"kernel": system, "tool_version": f"diskspd {version}"}
        # cloud-init installs fio on Azure; the emulated machine has neither need nor cloud-init.
        connection.run("command -v cloud-init >/dev/null && cloud-init status --wait", timeout_s=SETUP_S)
        lines = connection.check("uname -sr && fio --version")
    kernel, tool = _two_lines(lines, str(host["name"]))
    return {"kernel": kernel, "tool_version": tool}


def _two_lines(output: bytes, name: str) -> tuple[str, str]:
    lines = output.decode(errors="replace").splitlines()
    if len(lines) < 2:
        raise DiskbookError(f"machine {name} does not say which system and tool it has; it said {lines}")
    return lines[0].strip(), lines[1].strip()


def round_trips(folder: Path, machines: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Time the way between machines of different zones, and back.

    Parameters
    ----------
    folder
        Of the run.
    machines
        Entries of the manifest by scenario name. `reached_at` is where other machines reach one.

    Returns
    -------
    list of dict
        `from`, `to`, their physical (else logical) zones, `median_ms`, `min_ms`, `n`. A pair that no probe
        got through, and a machine without Python, have n = 0 and no times. Windows machines are not asked.
    """
    asked = [name for name, row in machines.items() if row["os"] != "windows" and _elsewhere(machines, name)]
    if not asked:
        return []
    with ThreadPoolExecutor(len(asked)) as pool:
        return [pair for pairs in pool.map(partial(_from, folder, machines), asked) for pair in pairs]


def _elsewhere(machines: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """Machines in other zones."""
    return [other for other, row in machines.items() if row["logical_zone"] != machines[name]["logical_zone"]]


def _from(folder: Path, machines: Mapping[str, Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    row, others = machines[name], _elsewhere(machines, name)
    times = _probe(folder, row["host"], [machines[other]["reached_at"] for other in others])
    return [
        {
            "from": name,
            "to": other,
            "from_zone": _zone(row),
            "to_zone": _zone(machines[other]),
            **_summary(seen),
        }
        for other, seen in zip(others, times, strict=True)
    ]


def _zone(row: Mapping[str, Any]) -> str | None:
    return row.get("physical_zone") or row["logical_zone"]


def _probe(folder: Path, host: Mapping[str, Any], places: list[str]) -> list[list[float]]:
    command = ["python3", "-c", _PROBE, str(PROBES), *places]
    with _connect(folder, host) as connection:
        output = connection.run(shlex.join(command), timeout_s=60 + 5 * PROBES * len(places))
    try:
        times: list[list[float]] = json.loads(output.stdout)
    except ValueError:
        return [[] for _ in places]
    return times


def _summary(times_s: list[float]) -> dict[str, Any]:
    if not times_s:
        return {"median_ms": None, "min_ms": None, "n": 0}
    return {
        "median_ms": round(statistics.median(times_s) * 1000, 4),
        "min_ms": round(min(times_s) * 1000, 4),
        "n": len(times_s),
    }


def _connect(folder: Path, host: Mapping[str, Any]) -> Connection:
    return Connection(Host(**host, private_key=run_key(folder)))
