"""Record the exchanges of a run with Azure's control plane; each is scrubbed before it is written.

The record holds no secret, id, address or name (`scrub`). Pseudonyms belong to this client and this run: all
processes of the run use the same ones, and nobody else can look up the originals.
"""

import gzip
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from azure.core.exceptions import AzureError

from diskbook.cloud.azure.recording import pseudonyms
from diskbook.cloud.azure.recording.scrub import Scrubber
from diskbook.cloud.azure.retry import ScaledTransport
from diskbook.facts.units import now_utc

FILE = "arm.jsonl.gz"
KEY = "record"  # of the manifest: whether exchanges are recorded


class Recorder:
    """Writes exchanges into a run's folder; safe to share between threads and processes.

    - `append`: appends bytes to a file of the run (`Run.append_bytes`).
    """

    def __init__(self, append: Callable[[str, bytes], Any], scrubber: Scrubber) -> None:
        self._append = append
        self._scrubber = scrubber
        self._lock = threading.Lock()
        self._listed: set[str] = set()  # pseudonyms whose kind stands in the file

    def exchange(self, request: Any, send: Callable[[], Any]) -> Any:
        """Send a request, and record it with its answer, or with the error that came instead."""
        started, began_utc = time.monotonic(), now_utc()
        asked = {"method": request.method, "url": request.url, "headers": request.headers}
        row: dict[str, Any] = {"time_utc": began_utc, **asked, "body": _sent(request)}
        try:
            answer = send()
            row |= {"status": answer.status_code, "answer_headers": answer.headers, "answer": _read(answer)}
        except AzureError as error:
            row |= {"error": type(error).__name__, "message": str(error)}
            raise
        finally:
            self._write({**row, "seconds": round(time.monotonic() - started, 3)})
        return answer

    def _write(self, row: dict[str, Any]) -> None:
        with self._lock:
            names = self._scrubber.names
            clean = scrubbed(row, self._scrubber)
            new = {name: kind for name, kind in names.kinds.items() if name not in self._listed}
            line = json.dumps({**clean, "replaced": new}, separators=(",", ":")) + "\n"
            self._append(FILE, gzip.compress(line.encode(), mtime=0))
            self._listed |= new.keys()


def scrubbed(row: Mapping[str, Any], scrubber: Scrubber) -> dict[str, Any]:
    """Return a row of the record without what could name somebody; a row that is scrubbed stays as it is."""
    clean: dict[str, Any] = {}
    public = pseudonyms.is_catalogue(str(row.get("method")), str(row.get("url")))
    for key, value in row.items():
        if key == "url":
            clean[key] = scrubber.url(value)
        elif key in ("headers", "answer_headers"):
            clean[key] = scrubber.headers(value)
        elif key in ("body", "answer"):
            clean[key] = _body(value, scrubber, public and key == "answer")
        else:
            clean[key] = scrubber.prose(value) if key == "message" else value
    return clean


def _body(value: Any, scrubber: Scrubber, public: bool) -> Any:
    if isinstance(value, bytes):
        return scrubber.body(value, public)
    return scrubber.catalogue(value) if public else scrubber.json(value)


def _sent(request: Any) -> bytes:
    """Body of a request; what is sent as a stream is not read."""
    content = getattr(request, "content", None) or getattr(request, "body", None)
    return content.encode() if isinstance(content, str) else content if isinstance(content, bytes) else b""


def _read(answer: Any) -> bytes:
    """Body of an answer, which keeps what was read for whoever reads it next."""
    content: bytes = answer.read() if hasattr(answer, "read") else answer.body()
    return content


class RecordingTransport(ScaledTransport):
    """A transport that records what it sends, retries and polls included."""

    def __init__(self, recorder: Recorder, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._recorder = recorder

    def send(self, request: Any, **kwargs: Any) -> Any:
        """Send one request, and record it."""
        return self._recorder.exchange(
            request, lambda: super(RecordingTransport, self).send(request, **kwargs)
        )
