"""What emulated machines call `sg_persist`: a stand-in for that of sg3_utils, on the emulator's own disks.

It takes the options that the workbook uses and prints the same lines, so far as they are read; it ends with
24 at a reservation conflict, as the real one does. The device is the NBD URI of one of the machine's disks.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from diskbook_emulator.reservations import WRITE_EXCLUSIVE_REGISTRANTS, Conflict, Reservations

CONFLICT = 24
NOT_SUPPORTED = 9
_TYPE = "Write Exclusive, registrants only"
_CHANGES = ("register", "register-ignore", "reserve", "release", "clear", "preempt")


def main() -> None:
    """Read the command line: the machine's file of disks, then the options of sg_persist."""
    given = _parser().parse_args(sys.argv[2:])
    row = _row(Path(sys.argv[1]), given.device)
    if not given.no_inquiry:
        print("  diskbook  emulated disk     1\n  Peripheral device type: disk")
    disk = Reservations(Path(row["reservations"]))
    if given.out:
        _change(disk, int(row["nexus"]), given)
    elif given.read_reservation:
        _show_reservation(disk)
    else:
        _show_keys(disk)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("sg_persist", description="emulated by diskbook", allow_abbrev=False)
    parser.add_argument("--version", action="version", version="version: emulated by diskbook")
    parser.add_argument("--no-inquiry", "-n", action="store_true")
    parser.add_argument("--in", "-i", dest="into", action="store_true")
    parser.add_argument("--out", "-o", action="store_true")
    parser.add_argument("--read-keys", "-k", action="store_true")
    parser.add_argument("--read-reservation", "-r", action="store_true")
    for name in _CHANGES:
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--param-rk", type=_hex, default=0)
    parser.add_argument("--param-sark", type=_hex, default=0)
    parser.add_argument("--prout-type", type=_hex, default=0)
    parser.add_argument("device")
    return parser


def _hex(text: str) -> int:
    return int(text, 16)


def _row(disks: Path, device: str) -> dict[str, Any]:
    rows = json.loads(disks.read_text("utf-8")).values()
    matching = [row for row in rows if device in (row["uri"], row["prefill_uri"])]
    if not matching:
        print(f"sg_persist: error opening file: {device}: No such file or directory", file=sys.stderr)
        raise SystemExit(15)
    return matching[0]


def _change(disk: Reservations, nexus: int, given: argparse.Namespace) -> None:
    chosen = [name for name in _CHANGES if getattr(given, name.replace("-", "_"))]
    if len(chosen) != 1:
        raise SystemExit("sg_persist (emulated): give one of " + ", ".join(_CHANGES))
    (action,) = chosen
    if action in ("reserve", "release", "preempt") and given.prout_type != WRITE_EXCLUSIVE_REGISTRANTS:
        print("sg_persist (emulated): only type 5 is emulated", file=sys.stderr)
        raise SystemExit(NOT_SUPPORTED)
    try:
        _do(disk, nexus, action, given)
    except Conflict:
        print("PR out: Reservation conflict (emulated)", file=sys.stderr)
        raise SystemExit(CONFLICT) from None


def _do(disk: Reservations, nexus: int, action: str, given: argparse.Namespace) -> None:
    key, other, kind = given.param_rk, given.param_sark, given.prout_type
    if action in ("register", "register-ignore"):
        disk.register(nexus, key, other, ignore=action == "register-ignore")
    elif action == "reserve":
        disk.reserve(nexus, key, kind)
    elif action == "release":
        disk.release(nexus, key)
    elif action == "preempt":
        disk.preempt(nexus, key, other, kind)
    else:
        disk.clear(nexus, key)


def _show_keys(disk: Reservations) -> None:
    generation, keys = disk.keys()
    if not keys:
        print(f"  PR generation=0x{generation:x}, there are NO registered reservation keys")
        return
    many = "key follows" if len(keys) == 1 else "keys follow"
    print(f"  PR generation=0x{generation:x}, {len(keys)} registered reservation {many}:")
    for key in keys.values():
        print(f"    0x{key:x}")


def _show_reservation(disk: Reservations) -> None:
    generation, key, _ = disk.reservation()
    if key is None:
        print(f"  PR generation=0x{generation:x}, there is NO reservation held")
        return
    print(f"  PR generation=0x{generation:x}, Reservation follows:")
    print(f"    Key=0x{key:x}\n    scope: LU_SCOPE,  type: {_TYPE}")


if __name__ == "__main__":
    main()
