"""The picture of the house: made from the layers, and the one that CONTRIBUTING.md shows."""

from __future__ import annotations

from checks import house


def test_every_package_has_its_step_and_says_what_it_is_for() -> None:
    names = [name for layer in house.layers() for name in layer]
    packages = {path.parent.name for path in house.PACKAGE.glob("*/__init__.py")}
    modules = {path.stem for path in house.PACKAGE.glob("*.py")} - {"__init__"}
    assert len(names) == len(set(names)) and set(names) == packages | modules
    assert all(house.purpose(house.PACKAGE, name).endswith(".") for name in names)


def test_a_new_layer_changes_the_picture() -> None:
    stair = house.layers()
    assert house.picture(stair[1:]) != house.picture(stair)
    assert "| cloud " in house.picture([["cloud"]]) and "| facts" not in house.picture([["cloud"]])
