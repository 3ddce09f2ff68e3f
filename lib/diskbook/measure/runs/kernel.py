"""A notebook's kernel, as a program: IPython's, without its TCP port for what forked processes print."""

from ipykernel import kernelapp
from ipykernel.iostream import IOPubThread

from diskbook.facts import alt_text


class _WithoutPort(IOPubThread):
    """What a kernel prints and shows; what its forked processes print goes to their standard output."""

    def _setup_pipe_in(self) -> None:
        self._pipe_flag = False  # as IPython itself does where no port is free


if __name__ == "__main__":
    vars(kernelapp)["IOPubThread"] = _WithoutPort
    program = kernelapp.IPKernelApp.instance()
    program.initialize()
    alt_text.describe_figures(program.shell)
    program.start()
