"""Starter of a notebook's kernel: always this environment's Python with `diskbook.measure.runs.kernel`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from diskbook.measure.runs import kernel_ahead

_PROGRAM = [sys.executable, "-m", "diskbook.measure.runs.kernel"]


class OwnKernelManager(AsyncKernelManager):
    """Starts our kernel, whatever a user has installed under the name that a notebook asks for."""

    def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
        """Return the command."""
        return [*_PROGRAM, "-f", self.connection_file, *(extra_arguments or [])]

    async def _async_launch_kernel(self, kernel_cmd: list[str], **kw: Any) -> None:
        """Go on with the kernel that was begun ahead, where there is one."""
        local = self.provisioner
        launch = kernel_cmd[len(_PROGRAM) :], kw.get("env") or os.environ, str(kw.get("cwd") or Path.cwd())
        if isinstance(local, LocalProvisioner) and (kernel := kernel_ahead.taken(*launch)):
            local.process = kernel
            local.pid = local.pgid = kernel.pid  # it leads its session
            self._reconcile_connection_info(local.connection_info)
        else:
            await super()._async_launch_kernel(kernel_cmd, **kw)

    _launch_kernel = _async_launch_kernel
