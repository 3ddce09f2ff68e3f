"""Where a run was: a region on Azure alone."""

from __future__ import annotations

from diskbook.show import places


def test_only_azure_has_regions() -> None:
    assert places.words("azure", "westeurope", None) == "westeurope"
    assert places.words("emulator", "westeurope", None) == "profile default, as in westeurope"
    assert places.words("emulator", "westeurope", "null") == "profile null, as in westeurope"
    assert places.words("inventory", "westeurope", None) == "hosts of your own"
