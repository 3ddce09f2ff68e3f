"""Starter of a notebook's kernel: always this environment's Python with `diskbook.runs.kernel`."""

from __future__ import annotations

import sys

from jupyter_client.manager import AsyncKernelManager


class OwnKernelManager(AsyncKernelManager):
    """Starts our kernel, whatever a user has installed under the name that a notebook asks for."""

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Return the command."""
        kernel = [sys.executable, "-m", "diskbook.runs.kernel", "-f", self.connection_file]
        return [*kernel, *(extra_arguments or [])]
