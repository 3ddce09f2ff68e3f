"""Names of the properties that Azure knows in what the emulator takes, from the models of Azure's SDK.

`python -m checks.arm_properties` writes `data/reference/arm-properties.csv`. Run it after a new
release of the SDK. It imports all models, which takes some seconds: reason enough for a table.
"""

import csv
import importlib
import io
import typing
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

from diskbook.cloud.azure import clients
from diskbook.facts.paths import REFERENCE

TABLE = REFERENCE / "arm-properties.csv"
COLUMNS = ("model", "properties", "source")
ROOTS = {
    "azure.mgmt.compute": (
        "Disk",
        "VirtualMachine",
        "VirtualMachineExtension",
        "AttachDetachDataDisksRequest",
    ),
    "azure.mgmt.network": (
        "VirtualNetwork",
        "Subnet",
        "PublicIPAddress",
        "NetworkSecurityGroup",
        "SecurityRule",
        "NetworkInterface",
    ),
}


def table() -> str:
    """Return the whole table: a row per model, each property with the model of its value, if it has one."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for package, roots in ROOTS.items():
        clients.fill_models(package)
        release = package.replace(".", "-")
        source = f"{release} {version(release)} (MIT licence)"
        writer.writerows((name, shape, source) for name, shape in sorted(_shapes(package, roots)))
    return text.getvalue()


def _shapes(package: str, roots: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Follow the models from the roots, but not into other resources: of these the id counts."""
    namespace = importlib.import_module(f"{package}.models")
    prefix = package.rpartition(".")[2]
    to_do, done = [getattr(namespace, root) for root in roots], set()
    while to_do:
        model = to_do.pop()
        if model in done:
            continue
        done.add(model)
        names = dict(_properties(model, namespace))
        to_do += [inner for inner in names.values() if inner]
        yield (
            f"{prefix}.{model.__name__}",
            "|".join(f"{name}={prefix}.{inner.__name__}" if inner else name for name, inner in names.items()),
        )


def _properties(model: Any, namespace: Any) -> Iterator[tuple[str, Any]]:
    module = importlib.import_module(model.__module__)
    for cls in (model, *model.__subclasses__()):
        hints = typing.get_type_hints(cls, vars(module), {"_models": namespace})
        for attribute, field in sorted(cls._attr_to_rest_field.items()):
            read_only = field._visibility == ["read"]  # Azure ignores what is sent there
            kinds = () if read_only else _kinds(hints[attribute])
            yield field._rest_name, next((kind for kind in kinds if not _is_resource(kind)), None)


def _kinds(hint: Any) -> Iterator[Any]:
    """Yield the models in a type, also those in a list; what is in a dictionary has names of the user's."""
    if hasattr(hint, "_attr_to_rest_field"):
        yield hint
    elif typing.get_origin(hint) is not dict:
        for part in typing.get_args(hint):
            yield from _kinds(part)


def _is_resource(model: Any) -> bool:
    return "location" in {field._rest_name for field in model._attr_to_rest_field.values()}


def main() -> None:
    TABLE.write_text(table(), "utf-8")


if __name__ == "__main__":
    main()
