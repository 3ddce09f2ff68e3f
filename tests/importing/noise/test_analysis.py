"""The report on real Azure: tables and figures made from the component tables, and their provenance."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import pytest

from diskbook.cost import estimate
from diskbook.design import scenario_file
from diskbook.facts import noise_series as reference
from diskbook.facts.paths import NOTEBOOKS
from diskbook.importing.noise import analysis as noise
from diskbook.report.figures.export import as_svg
from diskbook.stats import power


@pytest.fixture(scope="module")
def data() -> noise.Noise:
    return noise.read()


def test_what_is_said_follows_from_the_tables(data: noise.Noise) -> None:
    first, slow, capped = noise.sentences(data)
    assert "runs of one D8s_v5 vary by 0.68 to 0.9 %" in first and "weeks by 1.9 to 2.2 %" in first
    assert slow.startswith("2.5 % to 3.6 % of fresh pairs") and capped.startswith(
        "10 of 24 cells sit on a cap"
    )
    assert "1.8 (1.3 to 2.5)" in noise.spreads_table(data)
    assert "3.6 % (2.6 to 4.6)" in noise.slow_table(data)
    assert noise.kinds_table(data).count("on a cap") == 5


@pytest.mark.long
@pytest.mark.parametrize("name", ["spreads", "apart"])
def test_a_figure_names_source_licence_and_dates(data: noise.Noise, name: str) -> None:
    picture = getattr(data, name)
    assert "CC-BY-4.0" in picture.caption and "measured 2023-05-28 to 2024-09-23" in picture.caption
    assert picture.provenance == "imported: Azure, published by Microsoft (CC-BY-4.0)"
    assert "mulated" not in picture.caption + picture.alt and len(picture.data)
    assert as_svg(picture) == as_svg(replace(getattr(data, name)))  # drawn twice, the same bytes


def test_pairs_are_computed_and_priced(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = scenario_file.load("zone-disks", "standard")
    blocks = tuple(item.model_copy(update={"blocks": 3}) for item in scenario.workload)
    usd = estimate.another_replicate(scenario.model_copy(update={"workload": blocks}), "azure").usd
    number = power.for_power(0.0205, 0.02, 0.8)
    shown = noise.pairs_table(scenario, 3)
    assert f"{number} ({number * usd:,.0f} USD)" in shown and "90 to 130 (" in shown
    assert "131 or more (" in shown and "at list price" in shown
    monkeypatch.setattr(
        noise.estimate, "another_replicate", lambda *_: estimate.Priced(None, "has no price here")
    )
    assert f"{number} (price unknown)" in noise.pairs_table(scenario, 3)


def test_recomputed_tables_are_shown_as_imported(data: noise.Noise, tmp_path) -> None:
    for name in (reference.COMPONENTS, reference.SHARES):
        text = (noise.paths.REFERENCE / name).read_text()
        (tmp_path / name).write_text(
            text.replace(
                "Azure/AzurePublicDataset@b469a113 AzureVMNoiseDataset2024", "x (azure; imported)"
            ).replace("x (azure; imported)", '"x (azure, imported)"')
        )
    again = noise.read(str(tmp_path))
    assert again.provenance == "imported" == again.spreads.provenance
    assert again.components["sd_log"].equals(data.components["sd_log"])


def test_tables_without_long_lived_machines_are_shown_as_far_as_they_go(data: noise.Noise) -> None:
    fresh = replace(data, components=data.components[data.components["component"] == "fresh"])
    assert "<table" in noise.kinds_table(fresh) and "<table" in noise.spreads_table(fresh)
    assert noise.sentences(fresh)[-1].startswith("0 of 0 cells")
    assert "of 4 components of noise" in fresh.spreads.alt and "nan" not in fresh.apart.alt


def test_a_cell_is_on_a_cap_by_its_spread_whatever_its_load(data: noise.Noise) -> None:
    wider = data.components.assign(sd_log=data.components["sd_log"].clip(lower=0.01))
    other = replace(data, components=wider)
    assert noise.sentences(other)[-1].startswith("0 of 24 cells sit on a cap")


@pytest.mark.long
def test_every_cell_of_the_notebook_runs_as_it_stands() -> None:
    """In this process: a kernel of its own would take 20 s, and `test_compare_notebook` starts one."""
    names: dict[str, object] = {}
    shown = ""
    for cell in json.loads((NOTEBOOKS / "7-real-noise.ipynb").read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            *before, last = ast.parse("".join(cell["source"])).body
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(before, []), "cell", "exec"), names)
                shown += eval(compile(ast.Expression(last.value), "cell", "eval"), names) or ""
            else:
                exec(compile(ast.Module([*before, last], []), "cell", "exec"), names)
    assert shown.count("<figure") == 2 and shown.count("<table") == 4
    assert "emulated" not in shown.rpartition("</style>")[2].lower()
    assert "Provenance: imported: Azure, published by Microsoft (CC-BY-4.0)" in shown
