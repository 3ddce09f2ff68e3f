"""The table of disk options: each one is asked for, read back, kept by the emulator and put in words."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from azure.mgmt.compute import models

from diskbook.cloud.azure import readback, requests
from diskbook.cost import plan_sections
from diskbook.design.model import Disk
from diskbook.facts.disk_options import OPTIONS, Option
from diskbook.facts.errors import DiskbookError
from diskbook.facts.rules import DiskAsk
from diskbook_emulator.arm import disk_rules
from support.disk_options import other

NO_OPTION = {"name", "sku", "size_gib", "zone", "cache", "count"}
"""What is no option of the resource: its identity, their number, and the cache, which an attachment has."""
EACH = pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)


def disk(**options: Any) -> Disk:
    return Disk(name="d", sku="PremiumV2_LRS", size_gib=1024, zone="1", **options)


def test_every_field_of_a_disk_is_an_option_or_named_as_none() -> None:
    names = [option.name for option in OPTIONS]
    assert len(set(names)) == len(names)
    assert {*names, *NO_OPTION} == set(Disk.model_fields) and not NO_OPTION & set(names)


@EACH
def test_the_default_is_that_of_the_scenario_and_of_the_rules(option: Option) -> None:
    fields = {field.name: field.default for field in dataclasses.fields(DiskAsk)}
    assert option.default == Disk.model_fields[option.name].default == fields[option.name]


@EACH
def test_an_option_is_asked_for_and_read_back(option: Option) -> None:
    spec = disk(**{option.name: other(option)})
    body = requests.disk(spec, "westeurope", {})
    assert option.get(body["properties"]) == other(option)
    resource = models.Disk(body)
    assert readback.disk(resource)[option.name] == other(option)
    readback.check_disk(spec, resource)
    if option.default is not None:
        with pytest.raises(DiskbookError, match=f"{option.name} was to be {option.default}, but Azure says"):
            readback.check_disk(disk(), resource)


@EACH
def test_an_option_that_is_not_asked_for_is_left_to_azure(option: Option) -> None:
    body = requests.disk(disk(), "westeurope", {})
    assert option.get(body["properties"]) == option.default
    if not option.always:
        assert option.ask[-1] not in str(body)


@EACH
def test_the_emulated_control_plane_sees_an_option(option: Option) -> None:
    body = requests.disk(disk(**{option.name: other(option)}), "westeurope", {})
    assert getattr(disk_rules.ask_of(body), option.name) == other(option)
    assert option.parameter.startswith("disk.")


@EACH
def test_a_plan_names_an_option(option: Option) -> None:
    words = plan_sections._disk(disk(**{option.name: other(option)}))
    expected = option.words.format(other(option))
    assert words == "PremiumV2_LRS 1024 GiB" + (f" ({expected})" if expected else "")


def test_a_sized_disk_has_computed_figures_that_are_no_wish() -> None:
    body = requests.disk(disk(iops=8000, mb_s=300), "westeurope", {})
    body["sku"]["name"] = "Premium_LRS"
    ask = disk_rules.ask_of(body)
    assert (ask.iops, ask.mb_s) == (None, None)
