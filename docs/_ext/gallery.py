"""Draw the gallery: every kind of figure from the samples, wide, for a phone, on a dark page, on paper."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from sphinx.application import Sphinx

from diskbook.importing.noise import analysis as noise
from diskbook.report import figures
from diskbook.report.analysis import write
from diskbook.report.analysis.published import figures as published
from diskbook.report.analysis.run import Analysis, analyse
from diskbook.report.comparing import compared, side_by_side
from diskbook.report.figures import Picture
from diskbook.report.figures.style import NARROW_PX
from diskbook.results.run import open_run

SAMPLES = ("zone-disks", "disk-options", "s2d-azure", "nested-resiliency", "shared-zrs")
LOOKS = {"wide": (720, "light"), "narrow": (NARROW_PX, "light"), "dark": (720, "dark"), "printed": (720, "print")}
HEAD = """# Gallery

Every kind of figure, drawn from the sample runs when this site was built: wide, for a phone, on a dark page, and
for print. All samples are **emulated** and say nothing about Azure.

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
    run = "sample-zone-disks"
    yield compared.compare([run, run]).picture
    yield side_by_side.picture(side_by_side.read({run: str(open_run(run).folder)}), "gallery")


def draw(app: Sphinx) -> None:
    """Write the page and its drawings, which differ by width and theme."""
    folder = Path(app.srcdir) / "reference" / "gallery"
    folder.mkdir(exist_ok=True)
    parts = [HEAD]
    for picture in every_kind():
        parts.append(f"## {picture.slug}\n\n{picture.title}. {picture.caption}\n\n")
        for look, (pixels, theme) in LOOKS.items():
            shown = picture.at(pixels)
            path = folder / f"{picture.slug}-{look}.svg"
            path.write_bytes(figures.as_svg(shown, theme))
            parts.append(f"```{{figure}} gallery/{path.name}\n:alt: {picture.alt}\n:width: {pixels}px\n\n{look}\n```\n\n")
    (folder.parent / "gallery.md").write_text("".join(parts), "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("builder-inited", draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
