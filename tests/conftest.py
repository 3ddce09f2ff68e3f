"""Fixtures of several packages."""

from support.arm_plane import plane

__all__ = ["plane"]
