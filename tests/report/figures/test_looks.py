"""Figures in other looks: narrow, dark, for paper, with text as text; and what is beside them."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from diskbook.facts import paths
from diskbook.facts.errors import UsageError
from diskbook.importing.noise import analysis as noise
from diskbook.report import figures
from diskbook.report.analysis import published, write
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.figures import Look, Picture, formats, style
from diskbook.report.figures.export import as_png, as_svg
from support import drawn_words, samples, synthetic


@pytest.fixture(scope="module")
def emulated(tmp_path_factory) -> Analysis:
    return analyse(synthetic.run_folder(tmp_path_factory.mktemp("runs") / "synthetic").folder)


@pytest.fixture(scope="module")
def ratios(emulated: Analysis) -> Picture:
    return emulated.ratios


def sizes(drawing: bytes) -> tuple[int, int]:
    size = re.search(rb'width="(\d+)" height="(\d+)"', drawing)
    assert size is not None
    return int(size[1]), int(size[2])


@pytest.mark.long
def test_a_figure_is_drawn_again_for_a_phone_not_shrunk(ratios: Picture) -> None:
    narrow = ratios.at(style.NARROW_PX)
    assert sizes(as_svg(narrow))[0] == 390 and sizes(as_svg(ratios))[0] == 720
    assert narrow.figure is not ratios.figure and narrow.title == ratios.title
    # Letters are as high as before, and what was at the left is above.
    assert narrow.figure.get_figwidth() > 390 / 100 and narrow.figure.axes[0].get_yticklabels() == []
    assert ratios.at(720) is ratios and style.width_px() == 720


@pytest.mark.long
@pytest.mark.parametrize("pixels", [720, style.NARROW_PX])
def test_long_names_and_values_stay_inside(emulated: Analysis, ratios: Picture, pixels: int) -> None:
    looks = {
        arm: replace(look, label=f"{look.label} of a label that somebody wrote who had a great deal to say")
        for arm, look in style.looks(emulated.scenario).items()
    }
    words = dict.fromkeys(
        ratios.data["workload"], "a load whose words have no end, and then another few of them"
    )
    title = "A title that is long enough to need more lines than two where there is little room " * 2
    with style.drawn_at(pixels):
        long = figures.forest(
            ratios.data.assign(ratio=100 * ratios.data["ratio"]), looks, words, title, "run"
        )
    assert drawn_words.near_the_edge(long.figure, pixels) == []
    with style.drawn_at(pixels):
        tall = figures.forest(ratios.data, looks, words, "Short", "run")
    tall.figure.draw_without_rendering()
    assert drawn_words.colliding(tall) == []


def test_a_text_at_the_edge_is_noticed() -> None:
    figure, (axes,) = style.new_figure(2.0)
    axes.text(1.0, 0.5, "runs out", transform=axes.transAxes).set_in_layout(False)
    assert drawn_words.near_the_edge(figure, 720) == ["runs out"]


@pytest.mark.long
def test_words_beside_figures_of_no_run_count_as_people_do() -> None:
    public = noise.read()
    published_ones = figures.shares(published.assess(published.read()))
    for picture in (public.spreads, public.apart, published_ones):
        assert drawn_words.odd(picture) == [], picture.slug


@pytest.mark.parametrize(
    "text", ["1 comparisons are", "of 1 emulated trials", "2 cell sit", "from 0.37 to 0.37", "0 of 0 cells"]
)
def test_a_wrong_count_is_noticed(text: str) -> None:
    assert drawn_words.UNGRAMMATICAL.search(text)
    assert not drawn_words.UNGRAMMATICAL.search(
        "zone 1 takes 1 block, 1.1 to 1.15 of 12 cells, 1 of 11 cells, 11 trials"
    )


@pytest.mark.long
def test_a_dark_page_has_its_colours_in_the_same_svg(ratios: Picture) -> None:
    drawing = as_svg(ratios).decode()
    assert "prefers-color-scheme:dark" in drawing and "--c7a5c00:" in drawing
    # Programs without variables paint what the attributes say.
    assert 'stroke="#7a5c00"' in drawing and "var(" not in drawing.partition("</style>")[2]
    for theme in ("light", "dark", "print"):
        assert "prefers-color-scheme" not in as_svg(ratios, theme).decode()
    assert "#d55e00" not in as_svg(ratios, "dark").decode()


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one_colour: str, other: str) -> float:
    high, low = sorted((luminance(one_colour), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_lines_and_letters_can_be_read_on_a_dark_page() -> None:
    ground = formats.themed_colour(style.GROUND, "dark")
    lines = (
        style.BLUE,
        style.VERMILLION,
        style.GREEN,
        style.PURPLE_DARK,
        style.INK,
        style.GREY,
    )
    assert all(contrast(formats.themed_colour(line, "dark"), ground) >= 4.5 for line in lines)
    letters = formats.themed_colour(style.ON_COLOUR, "dark")
    cells = (style.BLUE, style.VERMILLION, style.PURPLE_DARK, style.GREY)
    assert all(contrast(formats.themed_colour(cell, "dark"), letters) >= 4.5 for cell in cells)


_DEUTERANOPIA = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)  # Machado, Oliveira and Fernandes 2009, severity 1, linear RGB
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str) -> np.ndarray:
    """CIE L*a*b* (D65) of a colour as eyes without green cones see it."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.clip(_DEUTERANOPIA @ linear, 0, 1)
    x, y, z = np.cbrt(np.maximum(_XYZ @ seen / [0.95047, 1.0, 1.08883], 0.008856))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_series_are_told_apart_without_green_cones(theme: formats.Theme) -> None:
    series = (style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE_DARK, style.DIFFERENCE, style.GREY)
    seen = {colour: lab(formats.themed_colour(colour, theme)) for colour in series}
    near = {pair: np.linalg.norm(seen[pair[0]] - seen[pair[1]]) for pair in combinations(series, 2)}
    assert min(near.values()) >= 11, min(near, key=lambda pair: near[pair])


def test_arms_differ_by_3_to_1_on_paper_without_colour() -> None:
    lrs, zrs = (formats.themed_colour(colour, "print") for colour in (style.BLUE, style.VERMILLION))
    assert contrast(lrs, zrs) >= 3 and contrast(zrs, "#ffffff") >= 3
    assert formats.themed_colour(style.INK, "print") == "#000000"


@pytest.mark.long
def test_a_png_is_painted_in_its_theme(ratios: Picture) -> None:
    for theme, ground, pixels in (
        ("light", (255, 255, 255), 1),
        ("dark", (21, 25, 30), 1),
        ("print", (255,) * 3, 2),
    ):
        with Image.open(io.BytesIO(as_png(ratios, theme, pixels))) as image:
            assert image.getpixel((1, 1)) == ground and image.width == 720 * pixels
            colours = {colour for _, colour in image.getcolors(1 << 20)}
        ink = tuple(
            int(formats.themed_colour(style.INK, theme)[place : place + 2], 16) for place in (1, 3, 5)
        )
        assert ink in colours


def test_text_stays_text(ratios: Picture) -> None:
    drawing = as_svg(ratios).decode()
    assert "Headline</text>" in drawing and "Verdana, Arial, sans-serif" in drawing


@pytest.mark.long
def test_what_is_beside_a_figure_can_be_pasted(emulated: Analysis, ratios: Picture, tmp_path: Path) -> None:
    look = Look(390, "dark")
    names = {path.name for path in figures.export(ratios, tmp_path, look)}
    looks = {f"ratios-390px-dark{end}" for end in (".svg", "@2x.png", ".md", ".html")}
    plain = {f"ratios{end}" for end in (".json", ".csv", ".caption.txt", ".description.txt")}
    assert names == looks | plain == {path.name for path in tmp_path.iterdir()}
    facts = json.loads((tmp_path / "ratios.json").read_text())
    assert facts["data_sha256"] == hashlib.sha256((tmp_path / "ratios.csv").read_bytes()).hexdigest()
    assert (tmp_path / "ratios.caption.txt").read_text() == f"{ratios.caption}\n"
    markdown = (tmp_path / "ratios-390px-dark.md").read_text()
    assert markdown.startswith("![9 emulated latency changes") and "](ratios-390px-dark.svg)" in markdown
    page = (tmp_path / "ratios-390px-dark.html").read_text()
    assert 'src="ratios-390px-dark.svg" width="390"' in page and f"<figcaption>{ratios.title}. Em" in page
    figures.export(ratios, tmp_path / "figures")
    page = (tmp_path / "figures" / "ratios.html").read_text()
    assert '<source media="(max-width:480px)" srcset="ratios-390px.svg">' in page
    assert sizes((tmp_path / "figures" / "ratios-390px.svg").read_bytes())[0] == 390
    addresses = re.findall('href="([^"]+)"', page)
    assert [Path(address).name for address in addresses] == ["ratios.csv", "report.html", "synthetic"]
    assert (tmp_path / "figures" / addresses[2]).samefile(emulated.run.folder)


@pytest.mark.long
def test_snippets_hold_no_markup_of_names(ratios: Picture, tmp_path: Path) -> None:
    hostile = replace(ratios, caption='<b>a</b> [x](y) "z" `q`', alt="](evil) <img>")
    figures.export(hostile, tmp_path)
    assert "<b>" not in (tmp_path / "ratios.html").read_text()
    assert r"\](evil) \<img\>" in (tmp_path / "ratios.md").read_text()
    assert r"\[x\](y)" in (tmp_path / "ratios.md").read_text()


@pytest.mark.long
def test_figures_of_another_run_stay_unless_forced(emulated: Analysis, tmp_path: Path) -> None:
    write.export_figures(emulated, tmp_path, only=["ratios"], force=False)
    write.export_figures(emulated, tmp_path, only=["ratios"], force=False)  # its own may be replaced
    before = (tmp_path / "ratios.svg").read_bytes()
    sidecar = tmp_path / "ratios.json"
    for words, whose in (
        (sidecar.read_text().replace("synthetic", "other"), "is of run other"),
        ("{", "no run that is known"),
    ):
        sidecar.write_text(words)
        with pytest.raises(UsageError, match=f"{whose}.*--force"):
            write.export_figures(emulated, tmp_path, only=["ratios"], force=False)
    assert (tmp_path / "ratios.svg").read_bytes() == before
    write.export_figures(emulated, tmp_path, only=["ratios"], force=True)
    assert json.loads(sidecar.read_text())["run"] == "synthetic"


def test_a_figure_that_is_not_there_is_said_with_the_nearest(emulated: Analysis, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no figure 'rations'; did you mean 'ratios'"):
        write.export_figures(emulated, tmp_path, only=["rations"])


@pytest.mark.long
def test_samples_have_their_figures_under_the_scenario(emulated: Analysis) -> None:
    sample = samples.analysed("zone-disks").run
    assert write.folder_of_figures(sample) == paths.FIGURES / "zone-disks"
    assert write.folder_of_figures(emulated.run) == paths.FIGURES / "synthetic"
