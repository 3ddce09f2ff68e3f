"""Imports that leave out what nobody asks for."""

from __future__ import annotations

import sys

import pytest

from diskbook.facts import imports


def test_what_is_left_out_cannot_be_imported_and_can_be_afterwards() -> None:
    assert "this" not in sys.modules
    with imports.without("this"), pytest.raises(ImportError):
        import this  # noqa: F401
    assert "this" not in sys.modules


def test_what_was_imported_before_stays() -> None:
    with imports.without("json"):
        import json
    assert json is sys.modules["json"]
