"""`python -m diskbook_emulator`: an emulator in the foreground, until Ctrl-C."""

import argparse
import signal
import sys
from queue import SimpleQueue

from diskbook.facts.errors import DiskbookError
from diskbook_emulator import jump, lifecycle
from diskbook_emulator.lifecycle import DEFAULT_SEED, DEFAULT_TIME_SCALE, Connection


def _arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m diskbook_emulator", description="Emulate Azure until Ctrl-C.")
    parser.add_argument("name", nargs="?", default="default", help="name of the emulator (default)")
    parser.add_argument("--profile", default="default", help="what its disks do: a name or a TOML file")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="seed of its noise")
    parser.add_argument(
        "--time-scale", type=float, default=DEFAULT_TIME_SCALE, help="share of Azure's delays that it waits"
    )
    parser.add_argument("--port", type=int, help="port of its endpoint; by default a free one")
    return parser.parse_args(words)


def _instructions(emulator: Connection) -> str:
    """Say where the emulator is, and how to point the Azure SDK at it."""
    rows = {
        "endpoint": emulator.endpoint,
        "subscription": emulator.subscription_id,
        "certificate": emulator.ca_path,
        "user on VMs": emulator.admin_user,
        "for the SDK": f'from diskbook_emulator import lifecycle; lifecycle.connect("{emulator.name}")',
    }
    lines = [f"{name:<13} {value}" for name, value in rows.items()]
    return "\n".join(
        [*lines, *jump.words(emulator.folder), "README.md of the package shows a client. Ctrl-C stops it."]
    )


def main(words: list[str]) -> int:
    """Start an emulator, print how to use it, and stop it at a signal."""
    asked = _arguments(words)
    # Not a mask: what the emulator starts would inherit it, and outlive an emulator that was killed.
    ends: SimpleQueue[int] = SimpleQueue()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: ends.put(number)) for number in numbers}
    try:
        emulator = lifecycle.start(
            asked.name,
            profile=asked.profile,
            seed=asked.seed,
            time_scale=asked.time_scale,
            port=asked.port,
            owner=True,
        )
        try:
            print(_instructions(emulator), flush=True)
            ends.get()
        finally:
            lifecycle.stop(asked.name)
    except DiskbookError as error:
        print(f"diskbook_emulator: {error}", file=sys.stderr)
        return error.exit_code
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
