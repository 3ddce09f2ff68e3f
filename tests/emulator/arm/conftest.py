"""A strict look at all that these tests send to the control plane, and at its answers."""

from support.strict import strict_bodies, watch

__all__ = ["strict_bodies", "watch"]
