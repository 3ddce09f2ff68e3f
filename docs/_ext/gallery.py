"""Draw the gallery: every kind of figure from the samples, wide, for a phone, on a dark page, on paper."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

from diskbook.importing.noise import analysis as noise
from diskbook.report import figures
from diskbook.report.analysis import published, write
from diskbook.report.analysis.run import analyse
from diskbook.report.comparing import compared, side_by_side
from diskbook.report.figures import Picture
from diskbook.report.figures.formats import Theme
from diskbook.report.figures.style import NARROW_PX, WIDTH_PX
from diskbook.results.run import open_run

SAMPLES = ("zone-disks", "disk-options", "s2d-azure", "nested-resiliency", "shared-zrs")
LOOKS: dict[str, tuple[int, Theme]] = {
    "wide": (WIDTH_PX, "light"),
    "narrow": (NARROW_PX, "light"),
    "dark": (WIDTH_PX, "dark"),
    "printed": (WIDTH_PX, "print"),
}
HEAD = """# Gallery

Every kind of figure, drawn from the sample runs when this site was built: wide, for a phone, on a dark page,
and for print. All samples are **emulated** and say nothing about Azure.

"""


def every_kind() -> Iterator[Picture]:
    """Draw one figure of each kind, in the order of the samples."""
    seen: set[str] = set()
    for name in SAMPLES:
        for picture in write.figures_of(analyse(f"sample-{name}")):
            if picture.slug not in seen:
                seen.add(picture.slug)
                yield picture
    yield figures.shares(published.assess(published.read()))
    public = noise.read()
    yield from (public.spreads, public.apart)
    yield from _over_runs(open_run("sample-zone-disks").folder)


def _over_runs(folder: Path) -> Iterator[Picture]:
    """Draw figures over runs, of a sample and its copy: a copy is no second measurement, but drawn as one."""
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "copy-of-sample"
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("raw", "figures", "notebooks"))
        names = [str(folder), str(copy)]
        yield compared.compare(names).picture
        yield side_by_side.picture(side_by_side.read({name: Path(name).name for name in names}), "gallery")


def draw(app: Sphinx) -> None:
    """Write the page and its drawings, which differ by width and theme."""
    folder = Path(app.srcdir) / "gallery"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    parts = [HEAD]
    for picture in every_kind():
        parts.append(f"## {picture.slug}\n\n{picture.title}. {picture.caption}\n\n")
        for look, (pixels, theme) in LOOKS.items():
            name = f"{picture.slug}-{look}.svg"
            (folder / name).write_bytes(figures.as_svg(picture.at(pixels), theme))
            options = f":alt: {picture.alt}\n:width: {pixels}px\n"
            parts.append(f"```{{figure}} {name}\n{options}\n{look.capitalize()}\n```\n\n")
    (folder / "index.md").write_text("".join(parts), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
