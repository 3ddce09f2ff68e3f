"""Versions of images: one a run, taken once, and never "latest"."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from diskbook.cloud.azure import offers
from diskbook.design import scenario_file
from diskbook.facts import arm
from diskbook.facts.errors import DiskbookError
from support.arm_plane import World


class _Run:
    def __init__(self, **manifest: Any) -> None:
        self.manifest = manifest

    def update_manifest(self, **changes: Any) -> None:
        self.manifest |= changes


def _clients(*names: str) -> tuple[Any, list[tuple[str, ...]]]:
    asked: list[tuple[str, ...]] = []

    def listing(*words: str) -> list[Any]:
        asked.append(words)
        return [SimpleNamespace(name=name) for name in names]

    return SimpleNamespace(
        compute=SimpleNamespace(virtual_machine_images=SimpleNamespace(list=listing))
    ), asked


def test_the_newest_version_is_the_newest_by_number() -> None:
    assert offers.newest_version(["24.04.9", "24.04.10", "latest", "24.03.99"]) == "24.04.10"
    assert offers.newest_version(["latest"]) is None


def test_a_run_asks_once_and_a_resumed_one_keeps_what_its_manifest_has() -> None:
    scenario, run = scenario_file.load("zone-disks"), _Run()
    clients, asked = _clients("1.0.9", "1.0.10")
    assert offers.image_versions(clients, run, scenario, "westeurope") == {"linux": "1.0.10"}  # type: ignore[arg-type]
    assert asked == [("westeurope", "Canonical", "ubuntu-24_04-lts", "server")]
    newer, more = _clients("1.0.11")
    assert offers.image_versions(newer, run, scenario, "westeurope") == {"linux": "1.0.10"}  # type: ignore[arg-type]
    assert not more


def test_a_region_without_the_image_is_said() -> None:
    clients, _ = _clients()
    with pytest.raises(DiskbookError, match="westeurope lists no version of the image Canonical:ubuntu"):
        offers.image_versions(clients, _Run(), scenario_file.load("zone-disks"), "westeurope")  # type: ignore[arg-type]


def test_the_emulated_azure_lists_versions_as_the_sdk_reads_them(plane: World) -> None:
    image = arm.IMAGES["linux"]
    listed = plane.compute.virtual_machine_images.list(
        "westeurope", image["publisher"], image["offer"], image["sku"]
    )
    assert [item.name for item in listed] == ["1.0.9", "1.0.10"]
    assert listed[0].id.endswith("/offers/ubuntu-24_04-lts/skus/server/versions/1.0.9")


def test_no_image_asks_for_the_latest() -> None:
    assert all("version" not in image for image in arm.IMAGES.values())
