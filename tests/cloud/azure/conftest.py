"""A place for runs on a real emulator, and a strict look at all that is sent there and answered."""

from support.measuring import place, shared, tiny
from support.strict import strict_bodies, watch

__all__ = ["place", "shared", "strict_bodies", "tiny", "watch"]
