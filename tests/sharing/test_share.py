"""A shared run: nothing private survives in any spelling, and everything that its tables need does."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest

from diskbook.facts.errors import DiskbookError, UsageError
from diskbook.results import tables
from diskbook.results.run import Run
from diskbook.sharing import bundle, share
from support.shared import SECRETS, short_run


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


FORMS: dict[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "upper case": str.upper,
    "in a word": lambda text: f"xx{text}yy",
    "in a sentence": lambda text: f"the disk of {text} is locked",
    "JSON": lambda text: "".join(f"\\u{ord(sign):04x}" for sign in text),
    "URL": lambda text: "".join(f"%{ord(sign):02X}" for sign in text),
    "URL twice": lambda text: quote("".join(f"%{ord(sign):02X}" for sign in text)),
    "HTML": lambda text: "".join(f"&#{ord(sign)};" for sign in text),
    "base64": _base64,
    "base64 in a text": lambda text: f"Zm9v{base64.b64encode(b'x' + text.encode()).decode()}",
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(f"ab{text}??".encode()).decode(),
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex dump": lambda text: text.encode().hex(" "),
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "UTF-16 in base64": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "gzip in base64": lambda text: base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode(),
    "split over lines": lambda text: "\n".join(text[at : at + 4] for at in range(0, len(text), 4)),
    "split by quotes": lambda text: '","'.join((text[:5], text[5:])),
    "quoted-printable": lambda text: "".join(f"={ord(sign):02X}" for sign in text),
    "codes": lambda text: ", ".join(str(ord(sign)) for sign in text),
    "reversed": lambda text: text[::-1],
}


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
    """Plant texts in what fio prints, in messages, settings, notebooks and names of files."""
    first, second = sorted((run.folder / "raw").glob("*-a1.json.gz"))[:2]

    def in_fio(text: str) -> str:
        start = text.index("{")
        document = json.loads(text[start:])
        document["jobs"][0]["job options"] |= {"description": planted[0], "filename": planted[1]}
        document["jobs"][0]["job options"][planted[2]] = "1"
        document["disk_util"] = [{"name": text} for text in planted]
        return f"fio: note: {' '.join(planted)}\n{json.dumps(document, indent=1)}\n{planted[0]}"

    for path in (first, second):
        _rewrite(run, f"raw/{path.name}", in_fio)
    run.append(
        "notice", text=f"cannot reach {planted[0]}", error=planted[1], lists=planted, about={planted[3]: 1}
    )
    run.append("stage", stage="provision", requests={planted[4]: 1})
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["overrides"] = {"design.seed": planted[0], "note": planted[1], planted[2]: "x"}
    manifest["versions"]["fio"] = planted[3]
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    (run.folder / "notebooks").mkdir()
    (run.folder / "notebooks" / "1-provision.ipynb").write_text(json.dumps({"cells": planted}))
    (run.folder / "raw" / f"{quote(planted[0], safe='')[:40]}.json.gz").write_bytes(gzip.compress(b"{}"))


def _held(content: bytes) -> dict[str, str]:
    """All that a bundle holds, by file."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


@pytest.mark.parametrize("form", FORMS)
def test_no_planted_form_of_a_secret_survives(form: str, tmp_path: Path) -> None:
    """Five secrets of a run in each of 22 forms, in some ten places: replaced, or the run is refused."""
    run = short_run(tmp_path / "planted")
    planted = [FORMS[form](text) for text in SECRETS.values()]
    _plant(run, planted)
    if form == "codes":  # numbers are what a bundle is for, so none can be replaced
        with pytest.raises(DiskbookError, match=r"raw/r1-\S+json, line \d+: .* in some spelling; nothing"):
            share.prepare(run)
        return
    held = _held(share.prepare(run).content)
    told = "\n".join(f"{name}\n{text}" for name, text in held.items()).casefold()
    for text in (*planted, *SECRETS.values()):
        for spelling in (text, json.dumps(text)[1:-1], html.escape(text)):
            assert spelling.casefold() not in told, form
        for part in text.split("\n") if "\n" in text else ():
            assert f'"{part.casefold()}"' not in told


def test_what_no_rule_can_replace_is_refused_with_file_and_line(tmp_path: Path) -> None:
    run = short_run(tmp_path / "odd")
    log = min((run.folder / "raw").glob("*_lat.log.gz"))
    _rewrite(run, f"raw/{log.name}", lambda text: text.replace("\n", f"\n{SECRETS['tenant']}\n", 1))
    with pytest.raises(DiskbookError, match=rf"raw/{log.name[:-3]}, line 2: a log of fio has only numbers"):
        share.prepare(run)


def test_a_secret_over_several_fields_is_refused_with_file_and_line(tmp_path: Path) -> None:
    """Words spread over fields that may each stay are only seen when they are joined."""
    run = short_run(tmp_path / "arms")
    run.append("notice", kind="Contoso", state="Payments")
    with pytest.raises(DiskbookError, match=r"ledger\.jsonl, line \d+: .*split over lines; nothing"):
        share.prepare(run)


def test_the_same_run_gives_the_same_bytes_and_its_tables_stay(tmp_path: Path) -> None:
    run = short_run(tmp_path / "mine")
    prepared = share.prepare(run, by="A. Author, 2026")
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


def test_the_page_shows_what_was_replaced_and_every_text_that_is_left(tmp_path: Path) -> None:
    page = share.prepare(short_run(tmp_path / "mine")).page
    assert "10.0.0.5 -> 198.1" in page and "rg-northwind-prod -> x-" in page
    assert "  cpu_model: AMD EPYC" in page and "  title: Zone-redundant against locally" in page
    assert "stays here: notebooks" in page and "not begun by you" in page


def test_what_was_imported_or_has_no_trials_is_not_shared(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is imported: share what its authors published"):
        share.prepare(short_run(tmp_path / "a", provenance="imported"))
    with pytest.raises(UsageError, match="has no trials yet"):
        share.prepare(short_run(tmp_path / "b", trials=0))


def test_a_time_in_a_message_is_no_secret(tmp_path: Path) -> None:
    """A clock time stands in many places, so one that was replaced elsewhere refuses no run."""
    run = short_run(tmp_path / "mine")
    run.append("notice", text="it is deallocated at 14:48 UTC, or stopped at 14:57:03", about="14:48")
    run.append("expiry", machine="r1-vm1", deallocated_utc="2026-11-24T14:48+00:00")
    assert share.prepare(run).content
