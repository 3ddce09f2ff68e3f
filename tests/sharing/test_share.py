"""A shared run: nothing private survives in any spelling, and everything that its tables need does."""

from __future__ import annotations

import gzip
import hashlib
import html
import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from diskbook.facts import client, files
from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.sharing import bundle, share
from diskbook.sharing.leaks import Leaks
from support.secret_forms import REPLACED, bare
from support.shared import SECRETS, short_run


def _rewrite(run: Run, name: str, change: Callable[[str], str]) -> None:
    """Change a raw result, as if fio had printed it so, with its hash in the ledger."""
    path = run.folder / name
    before = gzip.decompress(path.read_bytes())
    after = change(before.decode()).encode()
    path.write_bytes(gzip.compress(after, mtime=0))
    old, new = (hashlib.sha256(part).hexdigest() for part in (before, after))
    ledger = run.folder / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace(old, new))


def _plant(run: Run, planted: list[str]) -> None:
    """Plant texts in what fio prints, in messages, settings, notebooks, pictures and names of files."""
    first = min((run.folder / "raw").glob("*-a1.json.gz"))

    def in_fio(text: str) -> str:
        start = text.index("{")
        document = json.loads(text[start:])
        options = document["jobs"][0]["job options"]
        options |= dict(zip(("description", "filename", "directory", "hostname"), planted, strict=False))
        options |= {f"option{number}": text for number, text in enumerate(planted)}
        options |= dict.fromkeys(planted, "1")
        document["disk_util"] = [{"name": text, text: 1} for text in planted]
        said = " ".join(text for text in planted if not set("{[") & set(text))
        return f"fio: note: {said}\n{json.dumps(document, indent=1)}\n{' '.join(planted)}"

    _rewrite(run, f"raw/{first.name}", in_fio)
    for text in planted:
        run.append("notice", text=f"cannot reach {text}", error=text, lists=[text, "x"], about={text: 1})
        run.append("stage", stage="provision", requests={text: 1})
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["overrides"] = {f"note{number}": text for number, text in enumerate(planted)}
    manifest["overrides"] |= dict.fromkeys(planted, "x")
    manifest["versions"] |= dict(zip(("fio", "kernel", "image"), planted, strict=False))
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    (run.folder / "notebooks").mkdir()
    (run.folder / "notebooks" / "1-provision.ipynb").write_text(json.dumps({"cells": planted}))
    (run.folder / "figure.svg").write_text("".join(planted))
    for text in planted:
        (run.folder / "raw" / f"{quote(text, safe='')[:40]}.json.gz").write_bytes(gzip.compress(b"{}"))


@pytest.fixture(autouse=True, scope="module")
def _secret(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the same pseudonyms every time: one in some thousand spells a short part of what was planted."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        client.home().mkdir(mode=0o700)
        files.write_atomic(client.home() / "secret", "5a" * 32, 0o600)
        yield


def _held(content: bytes) -> dict[str, str]:
    """All that a bundle holds, by file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_a_hundred_forms_are_distinct() -> None:
    assert len({tuple(map(make, SECRETS.values())) for make in REPLACED.values()}) == len(REPLACED) == 100


PLANTED = 34
"""Forms at a time."""


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, len(REPLACED), PLANTED), ids=lambda first: list(REPLACED)[first])
def test_no_planted_form_of_a_secret_survives(first: int, tmp_path: Path) -> None:
    """Five secrets of a run in a hundred forms, some at a time, in a dozen places each: none is left."""
    run = short_run(tmp_path / "planted", trials=1)
    forms = list(REPLACED.items())[first : first + PLANTED]
    planted = [make(text) for _, make in forms for text in SECRETS.values()]
    _plant(run, planted)
    held = _held(share.prepare(run).content)
    told = "\n".join(f"{name}\n{text}" for name, text in held.items()).casefold()
    for text in (*planted, *SECRETS.values()):
        for spelling in (text, json.dumps(text)[1:-1], html.escape(text)):
            assert spelling.casefold() not in told
        assert not any(f'"{part.casefold()}"' in told for part in text.split("\n") if len(part) > 3)


@pytest.mark.long
def test_a_secret_that_looks_like_a_number_refuses_the_run(tmp_path: Path) -> None:
    run = short_run(tmp_path / "planted", trials=1)
    _plant(run, [bare(text) for text in SECRETS.values()])
    with pytest.raises(DiskbookError, match=r"raw/r1-\S+json, line \d+: .* split into parts; nothing"):
        share.prepare(run)


def test_what_no_rule_can_replace_is_refused_with_file_and_line(tmp_path: Path) -> None:
    run = short_run(tmp_path / "odd")
    log = min((run.folder / "raw").glob("*_lat.log.gz"))
    _rewrite(run, f"raw/{log.name}", lambda text: text.replace("\n", f"\n{SECRETS['tenant']}\n", 1))
    with pytest.raises(DiskbookError, match=rf"raw/{log.name[:-3]}, line 2: a log of fio has only numbers"):
        share.prepare(run)


@pytest.mark.long
def test_a_secret_over_several_fields_is_refused_with_file_and_line(tmp_path: Path) -> None:
    """Words spread over fields that may each stay are only seen when they are joined."""
    run = short_run(tmp_path / "arms", trials=1)
    run.append("notice", kind="Contoso", state="Payments")
    with pytest.raises(DiskbookError, match=r"ledger\.jsonl, line \d+: .*split over lines; nothing"):
        share.prepare(run)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> share.Prepared:
    return share.prepare(short_run(tmp_path_factory.mktemp("runs") / "mine", trials=2), by="A. Author, 2026")


@pytest.mark.long
def test_the_same_run_gives_the_same_bytes_and_its_tables_stay(
    prepared: share.Prepared, tmp_path: Path
) -> None:
    run = prepared.run
    assert prepared.content == share.prepare(run, by="A. Author, 2026").content
    held = _held(prepared.content)
    index = bundle.Index.model_validate_json(held.pop(bundle.INDEX))
    assert index.licence == "CC-BY-4.0" and index.by == "A. Author, 2026" and index.protocol == 1
    assert set(index.files) == set(held)
    assert index.files["ledger.jsonl"].before_hmac and index.replaced["subscription"] == 1
    made = tables.build(share.unpacked({n: t.encode() for n, t in held.items()}, tmp_path / "again"))
    own = tables.build(run)
    for name in ("lat_mean_ms", "lat_p99_ms", "iops", "physical_zone", "cap_disk_iops", "started_utc"):
        assert made.trials[name].equals(own.trials[name])
    assert made.bins.equals(own.bins)


def test_the_page_shows_what_was_replaced_and_every_text_that_is_left(prepared: share.Prepared) -> None:
    page = prepared.page
    assert "10.0.0.5 -> 198.1" in page and "rg-northwind-prod -> x-" in page
    assert "  cpu_model: AMD EPYC" in page and "  title: Zone-redundant against locally" in page
    assert "stays here: notebooks" in page and "not begun by you" in page


def test_what_was_imported_or_has_no_trials_is_not_shared(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is imported: share what its authors published"):
        share.prepare(short_run(tmp_path / "a", provenance="imported"))
    with pytest.raises(UsageError, match="has no trials yet"):
        share.prepare(short_run(tmp_path / "b", trials=0))


@pytest.mark.long
def test_a_time_in_a_message_is_no_secret(tmp_path: Path) -> None:
    """A clock time stands in many places, so one that was replaced elsewhere refuses no run."""
    run = short_run(tmp_path / "mine", trials=1)
    run.append("notice", text="it is deallocated at 14:48 UTC, or stopped at 14:57:03", about="14:48")
    run.append("expiry", machine="r1-vm1", deallocated_utc="2026-11-24T14:48+00:00")
    assert share.prepare(run).content


def test_a_pseudonym_that_has_an_original_in_it_by_chance_is_no_leak() -> None:
    leaks = Leaks(["e21-0", "abcdef"], [])
    for pseudonym in ("x-0abcdef129", "00000000-0000-4000-8000-12e000000000"):
        assert leaks.find(f"of {pseudonym}, too") is None
    for text in ("see abcdef", "see fedcba", "see e21-0", "see 0-12e"):
        assert leaks.find(text) is not None
