"""A real Chromium without a window, driven by the DevTools protocol over a pipe.

Tried beside it: selenium (needs a driver that fits the browser, which not every system has, and twelve
packages) and playwright (165 MB with a node of its own); neither starts sooner. Over the pipe there is no
port that others could speak to, nothing to install, and a browser that loses its tests ends by itself.

Nothing leaves this machine: what is not on loopback goes to a proxy that is not there.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
MISSING = (
    "no page was checked in a browser: there is no chromium or chrome on PATH "
    "('apt-get install chromium' on Debian; elsewhere any that is not a snap)"
)
NOBODY = "http://127.0.0.1:9"
FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # it shows our own pages, and root has no sandbox
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--disable-features=DialMediaRouteProvider,OptimizationHints,Translate",
    f"--proxy-server={NOBODY}",
    "--force-color-profile=srgb",
)
LOUD = ("error", "warning", "assert")
READY = 20.0
"""Seconds for one answer of the browser; a page of 1 MB is laid out in one."""


def program() -> str | None:
    """Find the browser: a real program, since the snap of Ubuntu's stand-in may not read our folders."""
    for path in filter(None, map(shutil.which, NAMES)):
        resolved = Path(path).resolve()
        script = resolved.read_bytes()[:4096] if resolved.stat().st_size < 10**5 else b""
        if "snap" not in resolved.parts and b"/snap/" not in script:
            return path
    return None


class BrowserError(Exception):
    """The browser refused a command, or does not answer."""


class Browser:
    """One process, its profile in a folder of its own; both are gone after `close`."""

    def __init__(self, path: str, folder: Path) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="browser-", dir=folder))
        self.log = self.folder / "net.json"
        self._numbers = itertools.count(1)
        self._buffer = b""
        self.events: list[dict[str, Any]] = []
        self._page: Page | None = None
        self.strangers: set[str] = set()  # known once it is closed
        theirs_in, self._commands = _pipe()
        self._answers, theirs_out = _pipe()
        quiet = os.open(self.folder / "stderr", os.O_WRONLY | os.O_CREAT)
        # A process group of its own, so that what the browser starts ends with it.
        self.pid = os.posix_spawn(
            path,
            [path, *FLAGS, f"--user-data-dir={self.folder / 'profile'}", f"--log-net-log={self.log}"],
            {**os.environ, "TMPDIR": str(self.folder), "HOME": str(self.folder)},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs_in, 3),
                (os.POSIX_SPAWN_DUP2, theirs_out, 4),
                (os.POSIX_SPAWN_DUP2, quiet, 1),
                (os.POSIX_SPAWN_DUP2, quiet, 2),
            ],
            setpgroup=0,
        )
        for end in (theirs_in, theirs_out, quiet):
            os.close(end)

    def send(self, method: str, session: str = "", **given: Any) -> dict[str, Any]:
        """Have a command carried out; its result."""
        number = next(self._numbers)
        message = {
            "id": number,
            "method": method,
            "params": given,
            **({"sessionId": session} if session else {}),
        }
        with contextlib.suppress(BrokenPipeError):  # the end is met when the answer is read
            os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + READY
        while (answer := self._next(deadline)).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, session: str, method: str) -> None:
        """Wait for an event of a page."""
        deadline = time.monotonic() + READY
        while not any(e.get("sessionId") == session and e["method"] == method for e in self.events):
            self.events.append(self._next(deadline))

    def _next(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            part = os.read(self._answers, 1 << 20) if ready else b""
            if not part:
                said = (self.folder / "stderr").read_text(errors="replace")[-500:]
                raise BrowserError(f"the browser {'ended' if ready else 'does not answer'}: {said}")
            self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        parsed: dict[str, Any] = json.loads(message)
        return parsed

    @contextlib.contextmanager
    def page(self, width: int = 1280) -> Iterator[Page]:
        """The page, shown nothing yet, at a width; below 600 px it is a telephone's."""
        if self._page is None:
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            self._page = Page(
                self, self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            )
            for domain in ("Page", "Runtime", "Network", "Log"):
                self._page.send(f"{domain}.enable")
        self._page.look(width)
        try:
            yield self._page
        finally:
            self._page.go("about:blank")

    def close(self) -> None:
        """End the browser, and whatever it started; take its folder away."""
        with contextlib.suppress(BrowserError, OSError):
            self.send("Browser.close")
        for end in (self._commands, self._answers):
            os.close(end)
        deadline = time.monotonic() + READY
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.killpg(self.pid, signal.SIGKILL)
            time.sleep(0.02)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        while self.processes() and time.monotonic() < deadline:
            time.sleep(0.02)
        self.strangers = _strangers(self.log)
        shutil.rmtree(self.folder)

    def processes(self) -> list[str]:
        """Processes that run with this browser's folder, by their command lines."""
        lines = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
        return [" ".join(line) for line in lines if any(str(self.folder) in part for part in line)]


class Page:
    """What one page does: shows an address, answers expressions, tells its requests and complaints."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session

    def send(self, method: str, **given: Any) -> dict[str, Any]:
        """Have a command carried out on this page."""
        return self._browser.send(method, self._session, **given)

    def look(self, width: int, *, dark: bool = False, media: str = "") -> None:
        """Change the width, the colour scheme or the medium (which one that is named stays in a PDF, too)."""
        phone = width < 600
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844 if phone else 900,
            deviceScaleFactor=2 if phone else 1,
            mobile=phone,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def go(self, path: Path | str) -> None:
        """Show a file or an address, loaded and laid out."""
        url = path.resolve().as_uri() if isinstance(path, Path) else path
        self._browser.events.clear()
        if text := self.send("Page.navigate", url=url).get("errorText"):
            raise BrowserError(f"{url}: {text}")
        self._browser.wait(self._session, "Page.loadEventFired")
        self.ask("document.fonts.ready.then(() => new Promise(done => setTimeout(done, 20)))")

    def ask(self, expression: str, **given: Any) -> Any:
        """Value of an expression of JavaScript; `given` is what it knows by name."""
        names, values = ", ".join(given), ", ".join(json.dumps(value) for value in given.values())
        answer = self.send(
            "Runtime.evaluate",
            expression=f"(async ({names}) => ({expression}))({values})",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def run(self, script: str) -> None:
        """Run a script of a library in the page."""
        self.send("Runtime.evaluate", expression=script)

    def pdf(self) -> bytes:
        """The page on A4, or on the paper that its own style asks for."""
        given = {"paperWidth": 210 / 25.4, "paperHeight": 297 / 25.4, "preferCSSPageSize": True}
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True, **given)["data"])

    def picture(self, path: Path, height: int | None = None) -> None:
        """Take a picture, of the whole page or of its first pixels."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        clip = {
            "x": 0,
            "y": 0,
            "width": size["width"],
            "height": min(size["height"], height or 16000),
            "scale": 1,
        }
        taken = self.send("Page.captureScreenshot", clip={**clip, "scale": 1}, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _events(self, method: str) -> list[dict[str, Any]]:
        events = self._browser.events
        return [e["params"] for e in events if e.get("sessionId") == self._session and e["method"] == method]

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for, answered or not, in order."""
        asked = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return asked + [event["url"] for event in self._events("Network.webSocketCreated")]

    @property
    def complaints(self) -> list[str]:
        """Errors and warnings in the console, exceptions, and what the browser itself complains of."""
        calls = [
            e for e in self._events("Runtime.consoleAPICalled") if e["type"] in ("error", "warning", "assert")
        ]
        words = [" ".join(str(a.get("value", a.get("description"))) for a in e["args"]) for e in calls]
        thrown = [e["exceptionDetails"] for e in self._events("Runtime.exceptionThrown")]
        words += [e.get("exception", {}).get("description", e["text"]) for e in thrown]
        entries = [e["entry"] for e in self._events("Log.entryAdded")]
        return words + [
            f"{e['text']} ({e.get('url', '')})" for e in entries if e["level"] in ("error", "warning")
        ]


def _pipe() -> tuple[int, int]:
    """A pipe whose ends have numbers above those that a child gets them as."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


def _strangers(log: Path) -> set[str]:
    """Addresses beyond loopback that the browser itself spoke to, by the log of its network.

    It also asks the system for a route to one by UDP, which sends nothing; so UDP counts where it sent bytes.
    """
    if not log.exists():
        return set()
    read = json.loads(log.read_text())
    kind = read["constants"]["logEventTypes"]
    sockets = {e["source"]["id"] for e in read["events"] if e["type"] == kind["UDP_BYTES_SENT"]}
    spoken = [
        event["params"]["address"]
        for event in read["events"]
        if "address" in event.get("params", {})
        and (event["type"] == kind["TCP_CONNECT_ATTEMPT"] or event["source"]["id"] in sockets)
    ]
    return {address for address in spoken if not address.startswith(("127.", "[::1]"))}
