"""Stand-ins of emulated Windows machines, kept warm: a process that has imported them forks for each call.

A trial calls three or more. Importing one takes longer than all else around a trial; Windows' own programs
take none of it. A caller (`stand_in_call`) hands over words, environment, folder and streams, and waits for
the status. The fork works in the caller's folder, so it counts as the machine's; it ends with its caller.
"""

import gc
import importlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

from diskbook_emulator import processes
from diskbook_emulator.stand_in_call import SOCKET, STREAMS

MODULES = ("diskbook_emulator.windows_powershell", "diskbook_emulator.windows_diskspd")
MOST_BYTES = 1 << 18


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the process for the machines of an emulator; it ends with the emulator, however that ends."""
    environment = {"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-I", "-m", "diskbook_emulator.stand_ins"]
    return processes.spawn(command, cwd=folder, env=environment, output=folder / f"{SOCKET}.log")


def main() -> None:
    """Take calls in the folder it was started in, until it is ended."""
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()  # what forks share stays shared
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        Path(SOCKET).unlink(missing_ok=True)
        listener.bind(SOCKET)
        listener.listen(64)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for forks
        while True:
            call, _ = listener.accept()
            with call:
                if os.fork() == 0:
                    listener.close()
                    _answer(call)


def _answer(call: socket.socket) -> None:
    """Carry a call out in place of its caller, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, streams, _, _ = socket.recv_fds(call, MOST_BYTES, len(STREAMS))
    module, folder, number, *rest = message.decode(errors="surrogateescape").split("\0")
    for place, stream in zip(STREAMS, streams, strict=True):
        os.dup2(stream, place)
        os.close(stream)
    os.environ.clear()
    for variable in rest[int(number) :]:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    os.chdir(folder)
    tempfile.tempdir = None  # its own, by the environment
    done = threading.Event()
    threading.Thread(target=_end_with_caller, args=(call, done), daemon=True).start()
    status = _status(module, rest[: int(number)])
    done.set()
    call.send(str(status).encode())
    os._exit(0)


def _status(module: str, words: list[str]) -> int:
    """Run a stand-in as a program of its own would be."""
    status = 1
    try:
        if module in MODULES:
            status = int(sys.modules[module].main(words))
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # nobody listens any more
            status = 1
    return status


def _end_with_caller(call: socket.socket, done: threading.Event) -> None:
    """End this call, and what it has started, when its caller is gone; a job that it began goes on."""
    call.recv(1)
    if done.is_set():
        return
    own = processes.tree(os.getpid())
    processes.kill(own[1:])
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
