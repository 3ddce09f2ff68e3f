"""Addresses: read as they are written, and refused where they lead elsewhere or carry a key."""

from __future__ import annotations

import pytest

from diskbook.batch.stores import address
from diskbook.facts import paths
from diskbook.facts.errors import UsageError


@pytest.mark.parametrize(
    ("text", "scheme", "name", "parent"),
    [
        ("file:///srv/lab/run-1", "file", "run-1", "file:///srv/lab"),
        ("abfs://runs/lab/run-1", "abfs", "run-1", "abfs://runs/lab"),
        ("ABFS://runs/lab/run-1/", "abfs", "run-1", "abfs://runs/lab"),
        (
            "abfss://runs@acc.dfs.core.windows.net/run-1",
            "abfss",
            "run-1",
            "abfss://runs@acc.dfs.core.windows.net",
        ),
        ("s3://bucket/run-1", "s3", "run-1", "s3://bucket"),
    ],
)
def test_an_address_is_a_run_in_a_store(text: str, scheme: str, name: str, parent: str) -> None:
    run = address.run(text)
    assert (run.scheme, run.name, str(run.parent)) == (scheme, name, parent)
    assert run.parent / name == run


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run-1", "not an address"),
        ("http://host/run", "not a kind of store"),
        ("file://relative/run", "names no place"),
        ("abfs:///run", "names no place"),
        ("abfs://", "names no place"),
        ("abfs://runs/../other/run", "leads upwards"),
        ("file:///srv//run", "empty part"),
        ("abfs://runs", "whole container"),
        ("abfs://runs/lab/run?sv=2024&sig=abcdefghijklmnopqrstuv", "with a key or a query"),
        ("s3://AKIA:topsecret@bucket/run", "with a key or a query"),
    ],
)
def test_what_is_no_run_s_address_is_refused_in_a_sentence(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        address.run(text)
    assert "topsecret" not in str(refused.value) and "abcdefgh" not in str(refused.value)


def test_a_name_or_path_is_no_address() -> None:
    assert not any(paths.is_address(text) for text in ("run-1", "/srv/runs/run-1", "./a:b", "a//b"))
