"""One call of a stand-in, handed to the process that keeps them warm (`stand_ins`).

    python -I -S stand_in_call.py FOLDER MODULE ARGUMENT ...

It imports nothing of ours, so it begins in a moment. Where nobody takes the call it becomes the module.
"""

import contextlib
import os
import socket
import sys
from pathlib import Path

SOCKET = "stand-ins"
"""Name of the socket in its folder; addresses of sockets are short, so both sides go there."""
STREAMS = (0, 1, 2)


def main() -> int:
    """Have a call answered; returns its exit status."""
    folder, module, *words = sys.argv[1:]
    here = str(Path.cwd())
    variables = [f"{name}={value}" for name, value in os.environ.items()]
    message = "\0".join([module, here, str(len(words)), *words, *variables])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        with contextlib.suppress(OSError):
            os.chdir(folder)
            link.connect(SOCKET)
            socket.send_fds(link, [message.encode(errors="surrogateescape")], STREAMS)
            return int(link.recv(16) or b"1")  # none: it was killed
    os.chdir(here)
    os.execv(sys.executable, [sys.executable, "-I", "-m", module, *words])


if __name__ == "__main__":
    sys.exit(main())
