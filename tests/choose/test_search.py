"""The choice against an independent loop, against what others measured, and for readers' questions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from pathlib import Path
from random import Random

import numpy as np
import pytest

import diskbook as db
from checks import brute_choose, choose_caps
from diskbook.choose import ask, candidates, describe, need as needs, search
from diskbook.choose.need import Need
from diskbook.facts import catalog, paths, rules
from diskbook.facts.errors import UsageError
from support.notebooks import executed
from support.run_copies import copies

TODAY = date(2026, 11, 27)


def _need(iops: str = "3000", block: str = "8K", **wishes: object) -> Need:
    return needs.given(iops, block, None, "70%", "1TiB", **wishes)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_the_choice_equals_an_independent_loop(first: int) -> None:
    wrong = {seed: found for seed in range(first, first + 20) if (found := brute_choose.disagreements(seed))}
    assert not wrong


@pytest.mark.long
def test_sums_of_the_arrays_are_those_of_the_bill() -> None:
    prices = ask.prices_of("westeurope")
    trace = Need(np.array([500.0, 9000.0]), np.array([4.0, 80.0]), np.array([600.0, 60.0]), 500)
    for need in (_need(cache_hits="50%"), replace(trace, survive="zone"), replace(trace, survive="none")):
        found = search.find(need, prices, TODAY)
        assert found.cheapest
        for row in [*found.cheapest, *found.front]:
            usd, _ = search.usd_a_month(row.candidate, need, prices)
            assert usd == pytest.approx(row.usd)
            assert row.candidate.lasting_iops(need) == pytest.approx(row.lasting_iops)
            assert row.candidate.carries(need)
            assert not candidates.sentences(row.candidate, catalog.region(need.region))
            assert candidates.parsed(row.candidate.label) == row.candidate


def test_a_size_without_a_price_is_never_ranked() -> None:
    found = search.find(_need(), ask.prices_of("westus"), TODAY)  # a region whose prices are not known
    assert not found.cheapest and not found.front
    assert len(found.unpriced) > 300


@pytest.mark.parametrize(
    ("current", "first", "second"),
    [
        # The VM's 48 MB/s bind at 64 KiB long before the 300 MB/s of the disks: the VM is to change first.
        ("DS1_v2+2xP20", "VM uncached limit of 48 MB/s", "change the VM first"),
        # 9 x 500 MB/s of disks behind 768 MB/s of the VM: more threads would only wait longer.
        ("E32s_v3+9xP60", "VM uncached limit of 768 MB/s", "change the VM first"),
        ("E2as_v5+v2:1024GiB:80000IOPS:1200MBps", "VM uncached limit of 82 MB/s", "change the VM first"),
    ],
)
def test_readers_questions_have_an_answer(current: str, first: str, second: str) -> None:
    need = _need("1000", "64K")
    words = list(describe.why_words(candidates.parsed(current), need))
    assert words[0].strip().startswith(first)
    assert second in words[-1]


def test_a_disk_of_80000_iops_on_a_small_machine_is_cut_to_the_base_of_the_machine() -> None:
    candidate = candidates.parsed("E2as_v5+v2:1024GiB:80000IOPS:1200MBps")
    need = _need("3000", "4K")
    assert candidate.lasting_iops(need) == 3750
    assert (
        "You pay for 80,000 IOPS of disk; the VM lets 3,750 through"
        in list(describe.why_words(candidate, need))[-1]
    )


def test_a_burst_is_followed_until_its_credit_is_gone() -> None:
    candidate = candidates.parsed("D4s_v5+P20")  # 2,300 IOPS, 3,500 for 30 min
    seconds = np.array([1800.0, 36000.0])
    peak = Need(np.array([3500.0, 100.0]), np.array([1.0, 0.1]), seconds, 512)
    longer = replace(peak, seconds=np.array([1830.0, 36000.0]))
    without = replace(peak, seconds=np.array([1800.0, 100.0]))  # never refilled before the next round
    for need, carried in ((peak, True), (longer, False), (without, False)):
        assert candidate.carries(need) is carried
        assert _carried_by_the_search(need, base=2300, burst=3500) is carried


def _carried_by_the_search(need: Need, base: float, burst: float) -> bool:
    """By the arithmetic of `search.find`, which follows the credit of all candidates at once."""
    (carried,) = search._carries(need.iops, need.seconds, np.array([base]), np.array([burst]))
    return bool(carried)


@pytest.mark.long
def test_an_emulated_latency_is_never_shown_and_a_wish_changes_nothing() -> None:
    need = _need()
    wished = replace(need, p99_ms=0.1)
    prices = ask.prices_of("westeurope")
    assert search.find(need, prices, TODAY) == search.find(wished, prices, TODAY)
    words = ask.measured("sample-zone-disks")(candidates.parsed("D4s_v5+P30").disks, need)
    assert words == "p99 not measured (sample-zone-disks is emulated)"


@pytest.mark.long
def test_a_measured_p99_is_shown_with_its_interval_and_run(tmp_path: Path) -> None:
    (run,) = copies(tmp_path, 1)
    manifest = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps(manifest | {"provenance": "azure"}))
    disk = db.open_run(run).analysis.scenario.disk[0]
    asked = rules.DiskAsk(disk.sku, disk.size_gib, iops=disk.iops, mb_s=disk.mb_s)
    p99 = ask.measured(str(run))
    words = p99(candidates.Disks(asked), _need(block="4K"))
    assert re.match(r"p99 of [\d.]+ ms \(95 % CI [\d.]+ to [\d.]+\) in .*run-0, rand", words)
    others = (
        candidates.Disks(asked, 2),
        candidates.Disks(asked, cache="ReadOnly"),
        candidates.parsed("D4s_v5+P50").disks,
    )
    assert {p99(other, _need(block="4K")) for other in others} == {"p99 not measured"}
    assert p99(candidates.Disks(asked), _need(block="64K")) == "p99 not measured"


def test_a_saved_answer_prices_what_the_table_does_not(tmp_path: Path) -> None:
    item = {
        "armRegionName": "westus", "currencyCode": "USD", "effectiveStartDate": "2026-11-01T00:00:00Z",
        "armSkuName": "Standard_E4bds_v5", "meterName": "E4bds v5", "type": "Consumption",
        "skuName": "E4bds v5",
        "productName": "Virtual Machines Ebdsv5 Series", "unitOfMeasure": "1 Hour", "retailPrice": 0.5,
        "unitPrice": 0.5, "tierMinimumUnits": 0.0, "isPrimaryMeterRegion": True, "reservationTerm": None,
    }  # fmt: skip
    file = tmp_path / "answer.json"
    file.write_text(json.dumps({"Items": [item]}))
    prices = ask.prices_of("westus", str(file))
    vm = prices.of("vm-linux", "Standard_E4bds_v5")
    assert vm is not None and (vm.usd, str(vm.as_of)) == (0.5, "2026-11-01")
    assert (
        "saved answer answer.json"
        in ask.ask(iops="3000", block_size="8K", size="1TiB", region="westus", prices=str(file)).text()
    )
    file.write_text("[]]")
    with pytest.raises(UsageError, match="not an answer of the Retail Prices API"):
        ask.prices_of("westus", str(file))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_bought_by_the_io_is_the_least_that_carries(seed: int) -> None:
    need = replace(
        brute_choose.random_need(Random(seed)), survive="machine", disk="PremiumV2_LRS", cache_hits=0.0
    )
    region = catalog.region("westeurope")
    need = replace(need, region=region.name, iops=need.iops / 20, mb_s=need.mb_s / 20)
    found = search.find(need, ask.prices_of(region.name), TODAY)
    assert found.cheapest
    for row in found.cheapest:
        disk = row.candidate.disks.disk
        for name in ("size_gib", "iops", "mb_s"):
            less = replace(disk, **{name: getattr(disk, name) - 1})
            other = replace(row.candidate, disks=replace(row.candidate.disks, disk=less))
            room = less.size_gib * other.disks.count >= need.size_gib
            assert not (room and other.carries(need) and not candidates.sentences(other, region))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"iops": "8000MB/s"}, "a number of IOPS"),
        ({"iops": "8000", "block_size": "8K", "mb_s": "500"}, "not the 500 of --mb-s"),
        ({"iops": "8000"}, "add --block-size"),
        ({"mb_s": "100"}, "say the rate"),
        ({"iops": "8000", "block_size": "8KB/s"}, "is not a block size"),
        ({"iops": "8000", "block_size": "8K", "size": "2Tb"}, "GiB, TiB, GB or TB"),
        ({"iops": "8000", "block_size": "8K", "read": "0.7"}, "percentage with its sign"),
        ({"iops": "8000", "block_size": "8K", "survive": "zone", "disk": "Premium_LRS"}, "loss of a zone"),
        ({"iops": "8000", "block_size": "8K", "read": "0%", "cache_hits": "50%"}, "reads nothing"),
        ({"iops": "8000", "block_size": "8K", "region": "westeuropa"}, "did you mean 'westeurope'"),
        ({"iops": "0", "block_size": "8K"}, "above 0"),
        ({"iops": "8000", "block_size": "8K", "current": "E2as_v5"}, "not a machine with disks"),
        ({"iops": "8000", "block_size": "8K", "why": "E2as_v5+P31"}, "disk tier"),
        ({"iops": "8000", "block_size": "8K", "device": "sdc"}, "is about a log"),
        ({"source": "nowhere.txt"}, "there is no such file"),
        ({"source": "zone-disks:randwrite-qd1"}, "is a closed loop"),
    ],
)
def test_a_mistake_is_one_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        ask.ask(**{"size": "1TiB", **given})
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("wishes", "sentence"),
    [
        ({"survive": "zone", "region": "westus"}, "because of westus. The nearest that does in westeurope"),
        ({"vm": "B1ms"}, "because of the VM sizes asked for"),
        ({"disk": "UltraSSD_LRS", "region": "norwaywest"}, "because of the disks asked for"),
    ],
)
def test_what_cannot_be_had_is_told_with_the_nearest_that_can(wishes: dict[str, str], sentence: str) -> None:
    answer = ask.ask(iops="6000", block_size="4K", size="1TiB", **wishes)
    assert not answer.choice.fits
    assert sentence in answer.nearest


@pytest.mark.long
def test_a_rate_beyond_every_machine_is_told() -> None:
    assert "the rate is too high" in ask.ask(iops="5000000", block_size="4K", size="1TiB").nearest


@pytest.mark.long
def test_the_text_and_the_record_say_the_same() -> None:
    answer = ask.ask(iops="3000", block_size="8K", size="1TiB", current="E2as_v5+2xP30", why="D4s_v5+P30")
    text, record = answer.text(), answer.record()
    assert record["candidates"][0]["candidate"] in text
    assert [row["name"] for row in record["explained"]] == ["why", "current"]
    assert record["plan"].startswith("diskbook plan first-run")
    assert "p99 not measured" in text and "prices of 2023-12-18" in text


def test_predicted_caps_hold_against_what_others_measured() -> None:
    rows = list(choose_caps.rows())
    misses = [row.what for row in rows if row.verdict != "hit"]
    cached = [f"cached reads on D{cores}s_v4, 256 KiB" for cores in (2, 4, 8)]  # in no table
    assert sorted(misses) == sorted(["P10 on D2s_v4, 256 KiB writes", *cached])
    assert len(rows) == 17


@pytest.mark.long
@pytest.mark.parametrize(
    ("parameters", "first"),
    [
        ({}, "DS1_v2+P30-ZRS,275.0"),
        (
            {"iops": "", "mb_s": "400", "block_size": "1M", "read": "0%", "size": "16TiB"}
            | {"survive": "machine"},
            "D16s_v5+S70,2131.0",
        ),
    ],
)
def test_the_notebook_recomputes_the_sum(parameters: dict[str, str], first: str) -> None:
    notebook = executed(paths.NOTEBOOKS / "9-choose.ipynb", {}, **parameters)
    text = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
    assert first in text
    recomputed, chosen = re.search(r"recomputed ([\d,.]+), chosen ([\d,.]+) USD", text).groups()  # type: ignore[union-attr]
    assert recomputed == chosen


@pytest.mark.parametrize(
    ("wish", "sentences"),
    [
        ({"why": "D4s_v5+P10"}, ["it has 128 GiB, and the data need 1,024 GiB"]),
        ({"why": "D4s_v5+2xP10-ZRS"}, ["it has 256 GiB, and the data need 1,024 GiB"]),
        ({"why": "D4s_v5+v2:1GiB"}, ["it has 1 GiB, and the data need 1,024 GiB"]),
        ({"current": "D4s_v5+P30", "survive": "zone"}, ["its data survive: machine, not zone"]),
        ({"current": "D4s_v5+P30-ZRS", "survive": "zone"}, []),
        ({"why": "D4s_v5+4xP15", "survive": "none"}, []),
    ],
)
def test_what_a_named_candidate_does_not_do_is_told(wish: dict[str, str], sentences: list[str]) -> None:
    answer = ask.ask(iops="100", block_size="4K", size="1TiB", vm="D4s_v5", **wish)
    ((_, candidate),) = answer.explained
    assert list(candidates.unmet(candidate, answer.need)) == sentences
    assert all(f"  cannot do: {sentence}" in answer.text() for sentence in sentences)
    assert "None" not in candidate.label and candidates.parsed(candidate.label) == candidate


@pytest.mark.parametrize(("size", "disk_gib"), [("1GiB", 30), ("14GiB", 30), ("15GiB", 31), ("20GiB", 36)])
def test_an_ephemeral_disk_holds_the_system_beside_the_data(size: str, disk_gib: int) -> None:
    wishes = {"survive": "none", "vm": "DS1_v2", "why": "DS1_v2+ephemeral:10GiB"}
    answer = ask.ask(iops="10", block_size="4K", size=size, **wishes)
    labels = [row.candidate.label for row in answer.choice.cheapest]
    local = [label for label in labels if "ephemeral" in label]
    assert local and {label.rpartition(":")[2] for label in local} == {f"{disk_gib}GiB"}
    assert f"cannot do: it has 10 GiB, and the data need {disk_gib} GiB with the system" in answer.text()


def test_a_limit_that_no_page_states_is_no_documented_one() -> None:
    need = needs.given("6400", "4K", None, "100%", "1TiB")
    for name, marked in (("D4s_v5+4xv2:256GiB:3000IOPS:125MBps", True), ("D4s_v5+4xP30", False)):
        vm = [row.shown for row in candidates.parsed(name).held(need) if "vm" in row.limit.column]
        assert vm and all(
            ("Premium SSD's, since that of such disks is unknown" in row) == marked for row in vm
        )


def test_a_load_that_grows_meets_first_the_limit_that_is_nearest_to_its_peaks() -> None:
    """4,000 reads of 4 KiB and 100 writes of 1 MiB in turn: 5,000 IOPS are 25 % away, 145 MB/s 38 %."""
    need = Need(np.array([4000.0, 100.0]), np.array([16.4, 104.9]), np.array([1.0, 1.0]), 120)
    shown = describe.row(candidates.parsed("D4s_v5+P30"), need, ask.prices_of("westeurope"))
    assert shown.binds.startswith("disk limit of 5,000 IOPS")
    assert (shown.lasting_iops, shown.headroom) == (pytest.approx(5000), pytest.approx(0.25))
    words = list(describe.why_words(candidates.parsed("D4s_v5+P30"), need))
    assert "the disks give 5,000: change these first" in words[-1] and "of your load" in words[0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"read": "130%"}, "it must be from 0 to 100 %"),
        ({"read": "-1%"}, "it must be from 0 to 100 %"),
        ({"iops": "1e9"}, "at most 1e8"),
        ({"block_size": None, "mb_s": "0.01"}, "a disk reads 512 and more"),
    ],
)
def test_a_number_out_of_range_is_told_with_the_range(given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask.ask(**{"iops": "100", "block_size": "4K", "size": "10GiB", **given})


@pytest.mark.parametrize("iops", [0.5, 249, 251, 8000, 1e5])
def test_a_block_of_one_sector_is_taken_at_any_rate(iops: float) -> None:
    assert needs.given(f"{iops:g}".lstrip("0"), "512", None, "0%", "10GiB").peak_iops == iops


@pytest.mark.parametrize(
    ("block", "words"), [("4K", "4 KiB"), ("512", "0.5 KiB"), ("1M", "1,024 KiB"), ("64M", "65,536 KiB")]
)
def test_a_block_size_is_written_without_an_exponent(block: str, words: str) -> None:
    text = describe.need_words(needs.given("1e2", block, None, "0%", "10GiB"))
    assert text.startswith(f"100 IOPS of {words} (")
