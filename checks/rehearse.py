"""Rehearse the first day on Azure (docs/tutorials/first-azure-run.md) on the emulator.

The commands are those of the page's blocks marked `sh rehearse`, as written. Replaced are the Azure CLI, by a
program that signs in to the emulator; the caller's address; and, if asked for, the preset.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from diskbook.facts import paths
from diskbook.facts.errors import DiskbookError
from diskbook_emulator import lifecycle

PAGE = paths.ROOT / "docs" / "tutorials" / "first-azure-run.md"
ADDRESS, EXAMPLE = "YOUR.IPV4.ADDRESS", "203.0.113.7"
_BLOCK = re.compile(r"^```sh rehearse\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"(^|\s+)#.*")
_OTHERS = ("AZURE_", "DISKBOOK_", "IDENTITY_", "MSI_", "MAKE")
"""Beginnings of variables that carry the user's own sign-in and settings, or those of a `make` around it."""
_AZ = Path(__file__).with_name("rehearse-az.sh")


def commands(text: str, preset: str = "standard") -> list[str]:
    """Return the commands of a page's marked blocks, in order, with address and preset put in."""
    text = "".join(_BLOCK.findall(text)).replace("\\\n", " ").replace(ADDRESS, EXAMPLE)
    text = text.replace("--preset standard", f"--preset {preset}")
    lines = [" ".join(_COMMENT.sub("", line).split()) for line in text.splitlines()]
    return [line for line in lines if line]


@contextlib.contextmanager
def emulated() -> Iterator[dict[str, str]]:
    """Start an emulator, and return the environment in which `--cloud azure` leads to it after `az login`."""
    with tempfile.TemporaryDirectory(prefix="diskbook-rehearsal-") as name:
        emulator = lifecycle.start(f"rehearsal-{os.getpid()}", owner=True)
        try:
            _write_az(Path(name), emulator)
            own = {key: value for key, value in os.environ.items() if not key.startswith(_OTHERS)}
            yield {
                **own,
                "PATH": f"{name}:{own['PATH']}",
                "AZURE_CONFIG_DIR": f"{name}/azure",
                "AZURE_TOKEN_CREDENTIALS": "AzureCliCredential",  # no identity that this computer has
                "AZURE_AUTHORITY_HOST": emulator.endpoint,
                "DISKBOOK_ARM_ENDPOINT": emulator.endpoint,
                "DISKBOOK_ARM_CA": str(emulator.ca_path),
                "DISKBOOK_RUNS": f"{name}/runs",
                "XDG_STATE_HOME": f"{name}/state",
            }
        finally:
            lifecycle.stop(emulator.name)


def _write_az(folder: Path, emulator: lifecycle.Connection) -> None:
    """Write the stand-in for the Azure CLI, and its answers in the CLI's own formats."""
    ours = {
        "id": emulator.subscription_id,
        "tenantId": emulator.tenant_id,
        "name": "rehearsal",
        "isDefault": True,
    }
    token = {"accessToken": emulator.token, "tokenType": "Bearer", "expires_on": int(time.time()) + 24 * 3600}
    for name, answer in (("subscriptions", {"subscriptions": [ours]}), ("token", token)):
        (folder / f"{name}.json").write_text(f"{json.dumps(answer)}\n", encoding="utf-8")
    (folder / "az").write_text(_AZ.read_text("utf-8"), encoding="utf-8")
    (folder / "az").chmod(0o700)


def rehearse(preset: str) -> list[tuple[str, int, float]]:
    """Run the page's commands until one fails; return each with its exit code and its seconds."""
    done = []
    with emulated() as environment:
        for command in commands(PAGE.read_text("utf-8"), preset):
            done.append((command, *_timed(command, environment)))
            if done[-1][1]:
                break
    return done


def _timed(command: str, environment: Mapping[str, str]) -> tuple[int, float]:
    """Run a command in the clone; return its exit code and how long it took, in s."""
    print(f"\n$ {command}", flush=True)
    begun = time.monotonic()
    code = subprocess.run(["bash", "-c", command], cwd=paths.ROOT, env=environment, check=False).returncode
    return code, time.monotonic() - begun


def main() -> int:
    """Rehearse, and list what was run; the exit code is 1 when a command failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="standard", help="in place of the page's standard")
    try:
        done = rehearse(parser.parse_args().preset)
    except DiskbookError as error:
        print(f"the rehearsal cannot begin: {error}", file=sys.stderr)
        return error.exit_code
    print("\nexit  seconds  command")
    for command, code, seconds in done:
        print(f"{code:4} {seconds:8.1f}  {command}")
    return int(any(code for _, code, _ in done))


if __name__ == "__main__":
    sys.exit(main())
