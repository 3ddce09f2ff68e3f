"""The file of a batch: what is a run, once each, and what is wrong with a file, in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from diskbook.batch import matrix
from diskbook.batch.matrix import Matrix
from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from support.batches import TINY


def read(place: Path, text: str) -> Matrix:
    path = place / "nightly.toml"
    path.write_text(text.replace("TINY", f'"{TINY}"'))
    return matrix.read(path)


def labels(asked: Matrix) -> list[str]:
    return [item.label for item in asked.items]


def test_every_combination_is_a_run_but_those_left_out_and_included_ones_are_added(tmp_path: Path) -> None:
    text = """
    max_cost_usd = 20
    jobs = 3
    [matrix]
    scenario = [TINY]
    emulator_profile = ["quiet", "null"]
    "design.seed" = [1, 2]
    [[exclude]]
    emulator_profile = "null"
    "design.seed" = 2
    [[include]]
    scenario = "first-run"
    preset = "standard"
    """
    asked = read(tmp_path, text)
    assert (asked.name, asked.max_cost_usd, asked.jobs) == ("nightly", 20.0, 3)
    runs = [(item.scenario.name, item.scenario.preset, item.scenario.design.seed) for item in asked.items]
    assert runs == [*[("tiny", "quick", seed) for seed in (1, 2, 1)], ("first-run", "standard", 20266)]
    assert labels(asked)[0].endswith("tiny.toml quiet design.seed=1")  # only what varies


def test_the_same_in_other_words_is_one_run(tmp_path: Path) -> None:
    text = (
        '[matrix]\nscenario = [TINY]\n"design.seed" = [7, 8]\n[[include]]\nscenario = TINY\npreset = "quick"'
    )
    asked = read(tmp_path, text)
    assert [item.scenario.design.seed for item in asked.items] == [7, 8]


def test_a_scenario_file_is_named_from_where_the_matrix_lies(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(Path(TINY).read_text())
    assert read(tmp_path, '[matrix]\nscenario = ["own.toml"]').items[0].scenario.name == "own"


def test_a_region_is_a_setting_like_others(tmp_path: Path) -> None:
    asked = read(tmp_path, '[matrix]\nscenario = [TINY]\n"scenario.region" = ["westeurope", "eastus"]')
    assert [item.scenario.region for item in asked.items] == ["westeurope", "eastus"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it asks for no run; write [matrix] with scenario"),
        ("[matrix", "is not valid TOML"),
        ("max_cost = 3", "there is no key 'max_cost'; did you mean 'max_cost_usd'"),
        ("max_cost_usd = -3", "max_cost_usd: input should be greater than 0"),
        ("jobs = 0", "jobs: input should be greater than or equal to 1"),
        ('[matrix]\nscenarios = ["a"]', "no key 'scenarios'; did you mean 'scenario'?"),
        ('[matrix]\nscenario = "first-run"', "scenario = 'first-run' is not a list"),
        ("[matrix]\nscenario = []", "scenario is an empty list"),
        ("[matrix]\nscenario = [TINY]\ndesign.seed = [1]", 'in quotes, "design.seed"'),
        ('[matrix]\n"design.seed" = [1]', "it names no scenario"),
        ("[matrix]\nscenario = [3]", "scenario = 3 is not a name"),
        ('[matrix]\nscenario = ["first-rum"]', "there is no scenario 'first-rum'; did you mean 'first-run'"),
        ('[matrix]\nscenario = [TINY]\npreset = ["quik"]', "no preset 'quik'; did you mean 'quick'"),
        ('[matrix]\nscenario = [TINY]\ncloud = ["azur"]', "no cloud 'azur'; did you mean 'azure'"),
        ('[matrix]\nscenario = [TINY]\nemulator_profile = ["nul"]', "did you mean 'null'"),
        ('[matrix]\nscenario = [TINY]\n"design.sed" = [1]', "no key 'sed'; did you mean 'seed'"),
        (
            '[matrix]\nscenario = [TINY]\ncloud = ["azure"]\nemulator_profile = ["null"]',
            'emulator_profile goes with cloud "emulator", not with "azure"; leave such runs out',
        ),
        ('[[exclude]]\nscenario = "a"', "[[exclude]] 1: there is no key of [matrix] 'scenario'"),
        ('[matrix]\nscenario = [TINY]\n[[exclude]]\nscenario = "a"', "[[exclude]] 1 leaves no run out"),
        ("[matrix]\nscenario = [TINY]\n[[exclude]]", "it has no key, so it would leave out every run"),
        ("[[include]]\nscenario = TINY\nprest = 3", "[[include]] 1"),
        ('[[include]]\nscenario = ["a"]', "scenario = ['a'] is not a name"),
        ('[[include]]\nscenario = TINY\n"a.password" = "x"', "password"),
        (
            "[matrix]\nscenario = [TINY]\n" + '"a.b" = [' + "1," * 1_001 + "]",
            "1,001 runs, of at most 1,000",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert "nightly.toml" in str(caught.value) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        matrix.read(tmp_path / "none.toml")


def test_the_file_of_the_document_is_one(tmp_path: Path) -> None:
    match = re.search(
        r"```toml\n(.*?)```", (paths.ROOT / "docs" / "how-to" / "batch.md").read_text("utf-8"), re.S
    )
    assert match
    asked = read(tmp_path, match[1])
    assert (len(asked.items), asked.max_cost_usd, asked.jobs) == (2 * 2 * 3 - 2 + 1, 40.0, 6)


def test_the_file_of_the_cluster_s_document_says_where_runs_run(tmp_path: Path) -> None:
    text = (paths.ROOT / "docs" / "how-to" / "cluster.md").read_text().split("```toml\n")[1].split("```")[0]
    (tmp_path / "nightly.toml").write_text(f'{text}\n[matrix]\nscenario = ["first-run"]\n')
    asked = matrix.read(tmp_path / "nightly.toml")
    assert (asked.engine, asked.scheduler, asked.store) == ("dask", "tls://10.0.0.4:8786", "abfs://runs/lab")
    assert asked.quota == {"westeurope/standardDASv4Family": 64, "westeurope/cores": 100}
    for line, said in (
        ('engine = "slurm"', "engine"),
        ('[quota]\n"westeurope/cores" = 0', "cores"),
        ('[quota]\n"mars/cores" = 4', "there is no region 'mars'"),
    ):
        (tmp_path / "bad.toml").write_text(f'{line}\n[matrix]\nscenario = ["first-run"]\n')
        with pytest.raises(UsageError, match=said) as told:
            matrix.read(tmp_path / "bad.toml")
        assert "\n" not in str(told.value)
