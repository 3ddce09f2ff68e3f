"""The emulated control plane: Azure Resource Manager's calls on loopback, for unmodified Azure clients."""

from diskbook.emulator.arm.app import create_app
from diskbook.emulator.arm.settings import Settings

__all__ = ["Settings", "create_app"]
