"""A cluster of this machine, beside others that this user or somebody else has."""

from __future__ import annotations

import contextlib
import socket
import urllib.request
import warnings

import psutil
import pytest

from diskbook.batch import dask_cluster

pytest.importorskip("distributed", reason="the extra 'cluster' is not installed ('make azurite' does)")
pytestmark = pytest.mark.emulator

DASHBOARD = ("127.0.0.1", 8787)
"""Where the scheduler of any Dask cluster serves its pages, unless told otherwise."""


def test_two_clusters_start_without_a_warning_where_another_has_the_port_of_the_dashboard() -> None:
    with contextlib.ExitStack() as stack, socket.socket() as another:
        with contextlib.suppress(OSError):  # taken already
            another.bind(DASHBOARD)
            another.listen()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clusters = [dask_cluster.here(1, 1) for _ in range(2)]
        for cluster in clusters:
            stack.callback(cluster.close)
        assert [cluster.client.submit(abs, -1).result(30) for cluster in clusters] == [1, 1]


def test_nobody_without_its_certificate_learns_anything_of_a_cluster() -> None:
    cluster = dask_cluster.here(1, 1)
    try:
        me = psutil.Process()
        family = [me, *me.children(recursive=True)]
        listening = [
            row.laddr
            for process in family
            for row in process.net_connections("tcp")
            if row.status == "LISTEN"
        ]
        assert len(listening) >= 4  # scheduler and worker, each with its pages
        for address in listening:
            assert address.ip == "127.0.0.1" and address.port != DASHBOARD[1]
            for page in ("json/identity.json", "info/main/workers.html", "health", "metrics", "status"):
                with pytest.raises(OSError):
                    urllib.request.urlopen(f"http://{address.ip}:{address.port}/{page}", timeout=5)
    finally:
        cluster.close()
