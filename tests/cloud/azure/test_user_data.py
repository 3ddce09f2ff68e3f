"""User data of machines against cloud-init's own schema."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from diskbook.cloud.azure import keys
from support import cloud_init

pytestmark = pytest.mark.emulator  # once, it downloads and unpacks a package

EXPIRES = "2026-11-21T01:40:00+00:00"


def _config(expires_utc: str | None) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(keys.cloud_init(keys.new_pair("vm"), expires_utc))
    return config


@pytest.mark.parametrize("expires_utc", [None, EXPIRES])
def test_user_data_keep_to_the_schema(expires_utc: str | None) -> None:
    assert cloud_init.violations(_config(expires_utc)) == []


@pytest.mark.parametrize(
    "mistake",
    [
        {"ssh_genkeytypes": []},
        {"ssh_keys": {"ed25519_secret": "x"}},
        {"ssh_deletekeys": "perhaps"},
        {"packages": [5]},
        {"package_update": "maybe"},
        {"write_files": [{"content": "without a path"}]},
        {"runcmd": [{"systemctl": "mask"}]},
    ],
)
def test_a_planted_mistake_is_noticed(mistake: dict[str, Any]) -> None:
    assert cloud_init.violations({**_config(EXPIRES), **mistake})


def test_where_the_schema_cannot_be_had_it_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_network(folder: Path, *words: str) -> None:
        raise subprocess.CalledProcessError(100, "apt-get", stderr="E: Unable to locate package cloud-init\n")

    monkeypatch.setattr(cloud_init, "SCHEMA", tmp_path / "schema.json")
    monkeypatch.setattr(cloud_init, "_apt", no_network)
    with pytest.raises(pytest.fail.Exception, match=r"cannot get that \(E: Unable to locate"):
        cloud_init.schema_file()
