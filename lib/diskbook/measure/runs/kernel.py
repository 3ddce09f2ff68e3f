"""A notebook's kernel, as a program: IPython's, without its TCP port for what forked processes print."""

from __future__ import annotations

import sys

from ipykernel import kernelapp
from ipykernel.iostream import IOPubThread

from diskbook.measure.runs import kernel_ahead


class _WithoutPort(IOPubThread):
    """What a kernel prints and shows; what its forked processes print goes to their standard output."""

    def _setup_pipe_in(self) -> None:
        self._pipe_flag = False  # as IPython itself does where no port is free


def main() -> None:
    """Run the kernel that the command line describes, or who began it ahead."""
    if sys.argv[1:2] == [kernel_ahead.AHEAD]:
        arguments = kernel_ahead.go_on(sys.argv[2])
        if arguments is None:
            return
        sys.argv[1:] = arguments
    vars(kernelapp)["IOPubThread"] = _WithoutPort
    kernelapp.IPKernelApp.launch_instance()


if __name__ == "__main__":
    main()
