"""A disk as a machine sees it: how a tool addresses it, and what stands on it."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from diskbook.facts.units import MIB

MARK_BYTES = 4096  # one sector of any Azure disk
_EMPTY_MIB = hashlib.sha256(bytes(MIB)).hexdigest()


@dataclass(frozen=True)
class Device:
    """A disk as a tool addresses it: fio's engine and target.

    `prefill_target` is the same disk for filling it: on the emulator an export with caps and latencies
    lifted, on Azure the device itself. `lun` is where it was found. On Windows the engine is "windows" and
    the target a physical drive ("#1"), or the path of a file on a volume. `by_user` says that who signs in
    may write it.
    """

    engine: str
    target: str
    prefill_target: str
    size_bytes: int
    lun: int | None = None
    by_user: bool = False

    @property
    def for_prefill(self) -> "Device":
        """The same disk as it is filled."""
        return replace(self, target=self.prefill_target)

    @property
    def needs_root(self) -> bool:
        """Whether the target is a block device, which only root may write."""
        return self.engine != "nbd" and not self.by_user

    @property
    def sudo(self) -> str:
        """Prefix of shell commands that read or write the target."""
        return "sudo -n " if self.needs_root else ""


@dataclass(frozen=True)
class Facts:
    """What a machine says of a disk.

    `foreign` lists what a disk of ours does not have at first, `in_use` what it never has. `mark` is what
    stands where our mark would be. `unique_id` is only told by emulated machines.
    """

    foreign: tuple[str, ...]
    in_use: tuple[str, ...]
    mark: bytes
    serial: str | None = None
    wwn: str | None = None
    unique_id: str | None = None


def data_at_edges(digests: Mapping[str, str]) -> Iterator[str]:
    """Say which of the first and the last MiB of a disk, given by their SHA-256, are not empty."""
    for edge in ("first", "last"):
        if digests[edge] != _EMPTY_MIB:
            yield f"holds data in its {edge} MiB"
