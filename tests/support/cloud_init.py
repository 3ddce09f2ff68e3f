"""cloud-init's schema, from Debian's package: downloaded and unpacked into .tools, never installed."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema.validators import validator_for

from diskbook.facts import paths

SCHEMA = paths.ROOT / ".tools" / "cloud-init" / "schema-cloud-config-v1.json"
_INSIDE = "./usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json"
MISSING = (
    "cloud-init's schema is missing: it comes from Debian's package cloud-init, and apt-get cannot get "
    f"that ({{}}); have apt reach its packages, or put schema-cloud-config-v1.json at {SCHEMA}"
)


def violations(config: dict[str, Any]) -> list[str]:
    """Return what a cloud-config violates of the schema, each as place and sentence."""
    schema = json.loads(schema_file().read_text("utf-8"))
    validator = validator_for(schema)(schema)
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(config)]


def schema_file() -> Path:
    """Path of the schema; the network is needed until it is there.

    A test that needs it fails where it cannot be had: what was not compared with the schema has not passed.
    """
    if not SCHEMA.exists():
        try:
            content = _of_package(_downloaded(SCHEMA.parent))
        except (OSError, subprocess.SubprocessError, KeyError, tarfile.TarError) as error:
            output = getattr(error, "stderr", None) or str(error)
            pytest.fail(
                MISSING.format(output.strip().splitlines()[-1] if output.strip() else "no word"),
                pytrace=False,
            )
        with tempfile.NamedTemporaryFile(dir=SCHEMA.parent, delete=False) as part:
            part.write(content)
        Path(part.name).rename(SCHEMA)
    return SCHEMA


def _downloaded(folder: Path) -> Path:
    """Download the package: with the system's lists, or else with lists of our own, which need no root."""
    folder.mkdir(parents=True, exist_ok=True)
    own = [f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache"]
    try:
        _apt(folder, "download", "cloud-init")
    except subprocess.CalledProcessError:
        for name in ("lists/partial", "cache/archives/partial"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        try:
            _apt(folder, *own, "update")
            _apt(folder, *own, "download", "cloud-init")
        finally:
            shutil.rmtree(folder / "lists", ignore_errors=True)
            shutil.rmtree(folder / "cache", ignore_errors=True)
    return max(folder.glob("cloud-init_*.deb"))


def _apt(folder: Path, *words: str) -> None:
    subprocess.run(
        ["apt-get", "-qq", *words], cwd=folder, check=True, capture_output=True, text=True, timeout=180
    )


def _of_package(package: Path) -> bytes:
    content = subprocess.run(
        ["dpkg-deb", "--fsys-tarfile", package], check=True, stdout=subprocess.PIPE
    ).stdout
    package.unlink()
    with tarfile.open(fileobj=io.BytesIO(content)) as tree:
        file = tree.extractfile(_INSIDE)
        assert file is not None
        return file.read()
