"""Where a run was, in words: what stands beside its numbers where runs of many places are shown together."""

from __future__ import annotations


def words(cloud: str, region: str, profile: str | None) -> str:
    """Name a place: the region, on Azure; elsewhere there is none, and its name is only what was asked for.

    Parameters
    ----------
    cloud, region
        As the run was asked for.
    profile
        What the emulator plays.
    """
    if cloud == "emulator":
        return f"profile {profile or 'default'}, as in {region}"
    return "hosts of your own" if cloud == "inventory" else region
