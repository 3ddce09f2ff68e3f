"""Make and read all models of the Azure SDK in 16 threads at once, in processes that have just imported it.

`python sdk_models.py PROCESSES [PACKAGE ...]` prints the errors and the number of processes that had any.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from typing import Any

from diskbook.cloud.azure.clients import Clients, Cloud, StaticToken

PACKAGES = ("compute", "network", "resource.resources", "storage")
THREADS = 16


def main(processes: int, packages: list[str]) -> None:
    """Fork the processes one after another; each begins with the models as they are imported."""
    models = [pair for package in packages for pair in _models(f"azure.mgmt.{package}")]
    failed = 0
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            wrong = _wrong(packages, models)
            print(*wrong, sep="\n", end="\n" if wrong else "", flush=True)
            os._exit(bool(wrong))
        failed += os.waitpid(child, 0)[1] != 0
    print(f"{len(models)} models, {failed} of {processes} processes failed")


def _models(package: str) -> list[tuple[Any, type[Any]]]:
    """All models of a package, each with the module that reads it."""
    importlib.import_module(package)
    base = importlib.import_module(f"{package}._utils.model_base")
    return [(base, model) for model in dict.fromkeys(_subclasses(base.Model))]


def _subclasses(cls: Any) -> list[type[Any]]:
    return [below for subclass in cls.__subclasses__() for below in (subclass, *_subclasses(subclass))]


def _wrong(packages: list[str], models: list[tuple[Any, type[Any]]]) -> list[str]:
    """Errors of all threads; each takes the clients, then makes and reads all models."""
    clients = Clients(Cloud("emulator", "subscription", StaticToken("token"), "https://127.0.0.1:1"))
    together = threading.Barrier(THREADS)
    wrong: list[str] = []

    def work() -> None:
        together.wait()
        for package in packages:
            getattr(clients, package.partition(".")[0])
        for base, model in models:
            try:
                model()
                base._deserialize(model, {})
            except Exception as error:
                wrong.append(f"{model.__name__}: {error.__cause__ or error!r}")

    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:] or list(PACKAGES))
