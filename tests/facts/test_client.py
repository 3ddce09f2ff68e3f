"""The secret of this client: made once, kept from others, and what is signed with it."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from diskbook.facts import client
from diskbook.facts.errors import DiskbookError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "diskbook"


def test_a_signature_holds_for_its_words_and_purpose_only() -> None:
    signature = client.sign("key", "run", "a")
    assert client.is_signed(signature, "key", "run", "a")
    assert not client.is_signed(signature, "group", "run", "a")
    assert not client.is_signed(signature, "key", "runa")
    assert not client.is_signed(signature, "key", "ru", "na")
    assert not client.is_signed(signature[:-1] + "g", "key", "run", "a")
    assert not any(client.is_signed(other, "key", "run", "a") for other in ("", None, 1, ["x"], "\u00e9"))


def test_asking_writes_nothing_and_another_client_signs_otherwise(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not client.is_signed("0" * 64, "key", "run")
    assert not state.exists()
    signature = client.sign("key", "run")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
    assert not client.is_signed(signature, "key", "run")
    assert client.sign("key", "run") != signature


def test_the_secret_is_for_the_user_alone_and_made_once(state: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        signatures = set(pool.map(lambda _: client.sign("key", "run"), range(32)))
    assert len(signatures) == 1
    assert stat.S_IMODE((state / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


@pytest.mark.parametrize("open_to_others", ["secret", "."])
def test_a_secret_that_others_can_reach_is_refused(state: Path, open_to_others: str) -> None:
    signature = client.sign("key", "run")
    (state / open_to_others).chmod(0o755)
    with pytest.raises(DiskbookError, match="is a link, or not yours alone: remove it"):
        client.is_signed(signature, "key", "run")


def test_a_secret_that_is_a_link_is_refused(state: Path, tmp_path: Path) -> None:
    client.sign("key", "run")
    (state / "secret").rename(tmp_path / "secret")
    (state / "secret").symlink_to(tmp_path / "secret")
    with pytest.raises(DiskbookError, match="is a link"):
        client.sign("key", "run")


@pytest.mark.parametrize("content", ["", "no hexadecimal", "\u00e9"])
def test_a_damaged_secret_is_told(state: Path, content: str) -> None:
    client.sign("key", "run")
    (state / "secret").write_text(content)
    with pytest.raises(DiskbookError, match="runs begun so far are then not known here"):
        client.sign("key", "run")


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(DiskbookError, match="set XDG_STATE_HOME to a folder of your own"):
        client.sign("key", "run")
