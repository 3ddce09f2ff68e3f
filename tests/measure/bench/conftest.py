"""A place for runs on a real emulator."""

from support.measuring import place, shared, tiny

__all__ = ["place", "shared", "tiny"]
