"""Every example at the end of a command's help is executed, in the order of the commands' names.

As typed, on some trials of a sample, in a temporary folder. What would take minutes, or needs Azure, is
begun for real and stopped short: the stages of `run` and the notebook of `report` are not executed, emulators
are not started, `sample` and `record` not made, figures laid out and not rendered. A device is a file, read
for 5 times 0.2 s.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from diskbook import cli
from diskbook.batch.stores import address, push
from diskbook.cli.options import HEAD
from diskbook.facts import paths
from diskbook.measure.runs import pipeline, stage
from diskbook.publish import sample
from diskbook.report.figures import formats
from diskbook.results.run import Run
from diskbook.sharing import recording, share
from diskbook_emulator import jump, lifecycle
from support import fio_documents
from support.shared import one_replicate, short_run

pytestmark = [pytest.mark.emulator, pytest.mark.xdist_group("examples")]  # one world, and fio runs
EXIT = {"doctor": {0, 1}, "pool": {1}, "sweep": {0, 3}, "zone-affinity": {0, 10, 11}}
"""Statuses that an example may end with, where 0 is not the only one: this machine may lack what doctor looks
for, `pool` refuses a run and its copy, other tests run machines that sweep finds, and one file is as far
from every zone."""


def commands() -> Iterator[tuple[str, ...]]:
    for name in cli.COMMANDS:
        with click.Context(cli.cli) as context:
            command = cli.cli.get_command(context, name)
        if isinstance(command, click.Group):
            yield from ((name, child) for child in command.list_commands(context))
        else:
            yield (name,)


def examples_of(*words: str) -> list[str]:
    """Lines below "Examples:" in the help, as a user sees them."""
    help_text = CliRunner().invoke(cli.cli, [*words, "--help"], catch_exceptions=False).output
    return [line.strip() for line in help_text.partition(f"{HEAD}\n")[2].splitlines() if line.strip()]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a sample, a run begun here, results to import, and a file in place of a device."""
    place = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        patch.setenv("DISKBOOK_RUNS", str(place / "runs"))
        patch.setattr(tempfile, "tempdir", str(place))
        patch.delenv("AZURE_SUBSCRIPTION_ID", raising=False)
        patch.setattr(paths, "FIGURES", place / "figures")
        patch.chdir(place)
        for number, name in enumerate(("sample-zone-disks", "my-run"), 1):
            one_replicate(place / "runs" / name, number, "randwrite-qd1")
        for arm in ("a", "b"):
            fio_documents.write(place / "results" / arm / "read.json", fio_documents.entry())
        (place / "nightly.toml").write_text('[matrix]\nscenario = ["zone-disks"]\npreset = ["quick"]\n')
        (place / "device").write_bytes(bytes(1 << 24))
        iostat = (paths.ROOT / "tests/samples/choose/iostat-12-xt.txt").read_text()
        (place / "iostat.txt").write_text(iostat.replace("vda", "sdc"))
        bundle = share.prepare(short_run(place / "short", trials=1))
        (place / "shared.diskbook.zip").write_bytes(bundle.content)
        push.push(place / "runs" / "my-run", address.parse(f"file://{place}/lab"))
        _stop_short(patch)
        yield place


def _stop_short(patch: pytest.MonkeyPatch) -> None:
    def ended(run: Any, **options: Any) -> pipeline.Outcome:
        return pipeline.Outcome(run, "begun", run.folder / "report.html")

    patch.setattr(pipeline, "execute", ended)
    patch.setattr(stage, "executing", lambda *asked: contextlib.nullcontext())
    patch.setattr(sample, "make", lambda name: ended(Run(paths.RUNS / f"sample-{name}")))
    drawing = importlib.import_module("diskbook.report.figures.export")
    patch.setattr(drawing, "_RENDERED", {})  # other tests share pictures with these
    for render in ("render_svg", "render_png"):
        patch.setattr(formats, render, lambda *drawn: b"")
    patch.setattr(recording, "pack", lambda run: SimpleNamespace(words="packed"))
    patch.setattr(
        lifecycle, "start", lambda name, **options: SimpleNamespace(endpoint="https://x", folder=Path())
    )
    patch.setattr(lifecycle, "stop", lambda name, **options: None)
    patch.setattr(jump, "words", lambda folder: [])


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_every_example_does_what_it_says(command: tuple[str, ...], world: Path) -> None:
    lines = examples_of(*command)
    assert lines, "the help has no examples"
    for line in lines:
        typed = line.replace("/dev/sdc", "device --seconds 0.2 --size-gib 0.01").replace("/srv", str(world))
        program, *words = shlex.split(typed)
        assert program == "diskbook" and tuple(words[: len(command)]) == command
        done = CliRunner().invoke(cli.cli, [word.replace("recorded", "my-run") for word in words])
        assert done.exit_code in EXIT.get(command[0], {0}), f"{line}: {done.output} {done.exception!r}"
        if "--json" in words:
            assert json.loads(done.stdout)


def test_the_blocks_of_zone_affinity_are_command_lines() -> None:
    help_text = CliRunner().invoke(cli.cli, ["zone-affinity", "--help"]).output.replace("\\\n", " ")
    lines = [line.strip() for line in help_text.partition(HEAD)[0].splitlines() if "--device /dev" in line]
    with click.Context(cli.cli) as context:
        command = cli.cli.get_command(context, "zone-affinity")
    assert len(lines) == 2 and command is not None
    for line in lines:
        words = shlex.split(line)
        command.make_context("zone-affinity", words[2:])
