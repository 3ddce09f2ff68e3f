"""The emulated control plane: Azure Resource Manager's calls on loopback, for unmodified Azure clients."""

from diskbook_emulator.arm.app import create_app
from diskbook_emulator.arm.settings import Settings

__all__ = ["Settings", "create_app"]
