"""A Dask cluster to run on: processes here, or that of a scheduler; Dask errors become sentences."""

import contextlib
import logging
import os
import signal
import ssl
import threading
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from diskbook.batch.engine import EngineLostError
from diskbook.facts.errors import DiskbookError, UsageError

CONNECT_S = 10.0
WORKERS_S = 60.0
"""How long the first worker may take to come."""
CORES, HOST = "cores", "host"
"""Resources that workers offer: cores to emulated runs, themselves to runs on hosts of the user's own."""


@dataclass(frozen=True)
class Tls:
    """Files for a scheduler at tls://, PEM; what is not named is Dask's own configuration."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None


@dataclass(frozen=True)
class Worker:
    """What a scheduler says of a worker."""

    address: str
    name: str
    threads: int
    resources: Mapping[str, float]


@dataclass
class Cluster:
    """A cluster that this process talks to.

    - `client`: dask's own.
    - `cores`: of this machine, where its processes are the cluster.
    """

    client: Any
    cores: int | None = None
    _own: Any = field(default=None, repr=False)

    @property
    def is_alive(self) -> bool:
        """Whether the scheduler answers, as far as is known."""
        return bool(self.client.status == "running")

    def workers(self) -> dict[str, Worker]:
        """The workers that there are now, by address."""
        with self.in_words():
            rows = self.client.scheduler_info()["workers"]
        return {
            address: Worker(address, str(row["name"]), row["nthreads"], row["resources"])
            for address, row in rows.items()
        }

    @contextlib.contextmanager
    def in_words(self) -> Iterator[None]:
        """Say in one sentence that the scheduler is gone."""
        try:
            yield
        except (OSError, RuntimeError, ValueError) as error:  # of closed clients, comms and streams
            if self.is_alive and not isinstance(error, OSError):
                raise
            raise self.gone() from error

    def gone(self) -> EngineLostError:
        """The error of a scheduler that went away."""
        return EngineLostError(
            "the Dask scheduler has gone, or cannot be reached any more; its workers end their runs in "
            "order: start the batch again when it is back"
        )

    def close(self) -> None:
        """Part from the cluster, and end one that is this process's own."""
        for part in (self.client, self._own):
            if part is not None:
                with contextlib.suppress(Exception):  # the scheduler may be gone, in any of its ways
                    part.close(timeout=CONNECT_S)


def here(workers: int, threads: int) -> Cluster:
    """Start a cluster of processes on this machine; none but this user's can talk to it.

    - `workers`: how many processes; two are enough for one to go on where the other ends.
    - `threads`: runs at once on each.
    """
    dask = _dask()
    cores = max(2, os.cpu_count() or 1)
    # Scheduler and workers execute what they are sent, and other users reach 127.0.0.1: hence TLS here, too.
    # Both would also serve pages about themselves to anybody, the scheduler at port 8787, which another batch
    # or the user's own cluster may have.
    no_pages: dict[str, Any] = {f"distributed.{part}.http.routes": [] for part in ("scheduler", "worker")}
    with _no_signals(), dask.dask.config.set(no_pages):
        own = dask.LocalCluster(
            n_workers=workers,
            threads_per_worker=threads,
            resources={CORES: cores, HOST: 1},
            security=True,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
            memory_limit=0,
        )
    return Cluster(_client(dask, own, None), cores, own)


@contextlib.contextmanager
def _no_signals() -> Iterator[None]:
    """Start processes that no Ctrl-C on the terminal ends: that is for the batch, which ends in order."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def at(scheduler: str, tls: Tls) -> Cluster:
    """Talk to a scheduler.

    Raises UsageError when its address, or what TLS needs, is wrong. Raises DiskbookError when it cannot be
    reached, or is not one.
    """
    address = urlsplit(scheduler)
    if address.scheme not in ("tcp", "tls") or not address.netloc:
        raise UsageError(
            f"{scheduler!r} is not an address of a scheduler; write tls://HOST:8786 or tcp://HOST:8786"
        )
    if address.scheme == "tcp" and tls != Tls():
        raise UsageError(f"{scheduler} is not asked by TLS; write tls://{address.netloc}")
    dask = _dask()
    return Cluster(_client(dask, scheduler, _security(dask, address.scheme, tls)))


def _security(dask: ModuleType, scheme: str, tls: Tls) -> Any:
    given = {"tls_ca_file": tls.ca, "tls_client_cert": tls.cert, "tls_client_key": tls.key}
    named = {key: value for key, value in given.items() if value is not None}
    security = dask.Security(require_encryption=scheme == "tls", **named)
    settings = security.get_connection_args("client")
    if scheme == "tls" and settings.get("ssl_context") is None:
        raise UsageError(
            "a scheduler at tls:// needs --tls-ca, --tls-cert and --tls-key, or the same in Dask's own "
            "configuration (distributed.comm.tls)"
        )
    return security


def _client(dask: ModuleType, where: Any, security: Any) -> Any:
    more = {} if security is None else {"security": security}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # versions of other packages: `dask_worker.unfit` asks what matters
        return dask.Client(where, timeout=CONNECT_S, set_as_default=False, name="diskbook-batch", **more)


@contextlib.contextmanager
def opening(scheduler: str | None) -> Iterator[None]:
    """Put into one sentence why a cluster cannot be had."""
    try:
        yield
    except DiskbookError:
        raise
    except ssl.SSLError as error:
        raise UsageError(f"the certificates for {scheduler} do not fit ({error.reason or error})") from error
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        what = (
            f"the scheduler at {scheduler} cannot be reached" if scheduler else "no cluster can be had here"
        )
        raise DiskbookError(
            f"{what} ({why}); see that it runs, and that address and certificates fit"
        ) from error


def _dask() -> ModuleType:
    """Dask's distributed, which only batches on a cluster need."""
    try:
        import distributed
    except ImportError:
        raise UsageError(
            "the engine dask needs the packages dask and distributed, which are not installed: "
            "pip install -e '.[cluster]'"
        ) from None
    for name in ("distributed", *logging.root.manager.loggerDict):
        if name.split(".")[0] == "distributed":  # what matters is told in sentences of our own
            logging.getLogger(name).setLevel(logging.CRITICAL)
    return distributed
