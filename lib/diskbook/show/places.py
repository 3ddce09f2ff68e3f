"""Where a run was, in words: what stands beside its numbers where runs of many places are shown together."""

from __future__ import annotations


def words(region: str, profile: str | None, emulated: bool) -> str:
    """Name a place: "westeurope"; on the emulator, where no region is, "profile null, as in westeurope"."""
    return f"profile {profile or 'default'}, as in {region}" if emulated else region
