"""Export of figures: pictures, words, numbers and snippets to paste; the same data give the same bytes."""

import hashlib
import html as markup
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote
from weakref import WeakKeyDictionary

import matplotlib as mpl
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import PlaceHolderLayoutEngine
from matplotlib.text import Text

from diskbook import __version__
from diskbook.facts.errors import UsageError, visible
from diskbook.facts.files import write_atomic
from diskbook.facts.table_writers import csv_text
from diskbook.report.figures import formats
from diskbook.report.figures.style import NARROW_PX, RC, WIDTH_PX, Picture, RunSource, px_per_in

PHONE_PX = 480
"""Width of a page up to which a figure is shown as drawn for a phone."""
_LAYOUT_DPI = 400.0
"""Letters are as wide there as in an SVG; at those of a page hinting makes them up to 2 % narrower."""
_UNSHOWN = re.compile(r"^.*?(?=<svg)|<title>.*?</title>|<metadata>.*?</metadata>|(?<=>)\s+(?=<)", re.DOTALL)
_RENDERED: WeakKeyDictionary[Figure, dict[tuple[str, formats.Theme, int], bytes]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Look:
    """How a figure is exported: width in pixels, and theme."""

    width_px: int = WIDTH_PX
    theme: formats.Theme = "auto"

    @property
    def suffix(self) -> str:
        """What is added to names of files, so that looks lie beside each other; nothing for the usual one."""
        width = f"-{self.width_px}px" if self.width_px != WIDTH_PX else ""
        theme = f"-{self.theme}" if self.theme != "auto" else ""
        return width + theme

    @property
    def pixels(self) -> int:
        """Pixels of a PNG to each of the page: 2, and 4 on paper, which is 400 to the inch at 720."""
        return 4 if self.theme == "print" else 2


USUAL = Look()


def data_csv(data: pd.DataFrame) -> bytes:
    """The numbers drawn, as CSV."""
    return csv_text(data).encode()


def data_hash(data: pd.DataFrame) -> str:
    """SHA-256 of the numbers drawn, which is that of their CSV."""
    return hashlib.sha256(data_csv(data)).hexdigest()


def as_svg(picture: Picture, theme: formats.Theme = "auto") -> bytes:
    """Render as SVG. Rendered once."""
    kept, key = _RENDERED.setdefault(picture.figure, {}), ("svg", theme, 0)
    if key not in kept:
        _settle(picture.figure)
        kept[key] = formats.render_svg(picture.figure, _metadata(picture), picture.width_px, theme)
    return kept[key]


def as_png(picture: Picture, theme: formats.Theme = "light", pixels: int = 2) -> bytes:
    """Render as PNG with so many pixels to each of the page; twice as many by default. Rendered once."""
    kept, key = _RENDERED.setdefault(picture.figure, {}), ("png", theme, pixels)
    if key not in kept:
        _settle(picture.figure)
        dpi = pixels * px_per_in(picture.width_px)
        software = {"Software": f"diskbook {__version__}"}
        kept[key] = formats.render_png(picture.figure, software | _metadata(picture), dpi, theme)
    return kept[key]


def sidecar(picture: Picture) -> str:
    """Words, data hash, run and provenance as JSON."""
    facts = {
        "slug": picture.slug,
        "title": picture.title,
        "caption": picture.caption,
        "alt": picture.alt,
        "description": picture.description,
        "data_sha256": data_hash(picture.data),
        "run": picture.run,
        "provenance": picture.provenance,
    }
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


def export(picture: Picture, folder: Path, look: Look = USUAL) -> list[Path]:
    """Write a figure into a folder; return the paths.

    These are <slug>.svg and <slug>@2x.png, with what the look adds to their names, the drawing for phones as
    <slug>-390px.svg, snippets to paste as <slug>.md and <slug>.html, its words as <slug>.caption.txt and
    <slug>.description.txt, its numbers as <slug>.csv, and all facts as <slug>.json.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _contents(picture.at(look.width_px), look, folder).items():
        write_atomic(folder / name, content)
    return [folder / name for name in _names(picture.slug, look)]


def export_all(pictures: Sequence[Picture], folder: Path, look: Look = USUAL) -> list[Path]:
    """Write figures into a folder (`export`); return the paths."""
    return [path for picture in pictures for path in export(picture, folder, look)]


def refuse_others(pictures: Iterable[Picture], folder: Path, look: Look = USUAL) -> None:
    """Refuse to write over figures of another run, told by the run that their <slug>.json names.

    Raises UsageError when a file is there that is not of the same run, or of no run that is known.
    """
    for picture in pictures:
        there = [name for name in _names(picture.slug, look) if (folder / name).exists()]
        owner = _owner(folder / f"{picture.slug}.json")
        if there and owner != picture.run:
            whose = f"is of run {owner}" if owner else "is of no run that is known"
            raise UsageError(
                f"{folder / there[0]} {whose}, not of {picture.run}: name another folder with --out, or "
                "replace it with --force"
            )


def html(picture: Picture) -> str:
    """Figure as self-contained HTML, drawn again for phones; its long description is folded."""
    image = f'<img alt="{_quoted(picture.alt)}" src="{_address(as_svg(picture))}">'
    return (
        f'<figure id="{picture.slug}"><picture>{_narrow(picture)}{image}</picture>'
        f"<figcaption>{_quoted(picture.caption)}{_folded(picture)}</figcaption></figure>"
    )


def _narrow(picture: Picture) -> str:
    """Source of a figure for phones; empty where it cannot be drawn again."""
    narrow = picture.at(NARROW_PX)
    if narrow is picture:
        return ""
    return f'<source media="(max-width:{PHONE_PX}px)" srcset="{_address(as_svg(narrow))}">'


def _folded(picture: Picture) -> str:
    if picture.description == picture.caption:
        return ""
    words = _quoted(picture.description)
    return f'<details class="description"><summary>In words</summary><p>{words}</p></details>'


def _names(slug: str, look: Look) -> tuple[str, ...]:
    looks = f"{slug}{look.suffix}"
    return (
        f"{looks}.svg",
        f"{looks}@{look.pixels}x.png",
        f"{slug}.json",
        f"{looks}.md",
        f"{looks}.html",
        f"{slug}.caption.txt",
        f"{slug}.description.txt",
        f"{slug}.csv",
        f"{slug}{_phone(look).suffix}.svg",
    )


def _phone(look: Look) -> Look:
    """The look of the drawing for phones that belongs to another."""
    return replace(look, width_px=NARROW_PX)


def _contents(picture: Picture, look: Look, folder: Path) -> Mapping[str, bytes]:
    light: formats.Theme = "light" if look.theme == "auto" else look.theme
    drawing = as_svg(picture, look.theme)
    contents = (
        drawing,
        as_png(picture, light, look.pixels),
        sidecar(picture).encode(),
        _markdown(picture, look).encode(),
        _page(picture, look, drawing, folder).encode(),
        f"{picture.caption}\n".encode(),
        f"{picture.description}\n".encode(),
        data_csv(picture.data),
        as_svg(picture.at(NARROW_PX), look.theme),
    )
    return dict(zip(_names(picture.slug, look), contents, strict=True))


def _markdown(picture: Picture, look: Look) -> str:
    """A snippet for Markdown; the paths are those beside it."""
    name = f"{picture.slug}{look.suffix}.svg"
    alt, caption = _unmarked(picture.alt), _unmarked(picture.caption)
    return f"![{alt}]({name})\n\n*{caption}* [Numbers]({picture.slug}.csv)\n"


def _page(picture: Picture, look: Look, drawing: bytes, folder: Path) -> str:
    """A snippet for HTML; the paths are those beside it."""
    name, narrow = (f"{picture.slug}{each.suffix}.svg" for each in (look, _phone(look)))
    size = re.search(rb'width="\d+" height="\d+"', drawing)
    links = "".join(f' <a href="{path}">{words}</a>' for path, words in _links(picture, folder).items())
    return (
        f"<figure>\n"
        f'  <picture><source media="(max-width:{PHONE_PX}px)" srcset="{narrow}">\n'
        f'  <img src="{name}" {size[0].decode() if size else ""} style="max-width:100%;height:auto"\n'
        f'       alt="{_quoted(picture.alt)}"></picture>\n'
        f"  <figcaption>{_quoted(picture.title)}. {_quoted(picture.caption)}{links}</figcaption>\n"
        f"</figure>\n"
    )


def _links(picture: Picture, folder: Path) -> dict[str, str]:
    """Paths from the folder of a figure to its numbers, and to its run's report and files."""
    links = {f"{picture.slug}.csv": "Numbers"}
    run = picture.run.folder if isinstance(picture.run, RunSource) else None
    if run is not None:
        path = quote(Path(os.path.relpath(run.resolve(), folder.resolve())).as_posix())
        links |= {f"{path}/report.html": "Report", f"{path}/": f"Run {_quoted(picture.run)}"}
    return links


def _unmarked(text: str) -> str:
    """Text whose characters mean nothing in Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|~!])", r"\\\1", text.replace("\n", " "))


def _quoted(text: str) -> str:
    return markup.escape(text, quote=True)


def _owner(path: Path) -> str:
    """Run that a sidecar names; empty where there is none, or it is damaged."""
    try:
        run = json.loads(path.read_text("utf-8"))["run"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return visible(str(run))


def _address(drawing: bytes) -> str:
    """The figure as an address: percent-encoded, which takes less room than base64, and without spaces.

    Words that no page shows stay away; what stands beside the figure says the same.
    """
    shown = _UNSHOWN.sub("", drawing.decode())
    lines = re.sub(r"\s*\n\s*", " ", shown)
    quoted = lines.replace("xlink:href", "href").replace("'", "&#39;").replace('"', "'")
    address = quote(quoted, safe="~()*!.'/:;,?@=+$-_[]{}")
    # Names of XML vocabularies, not addresses: who searches a page for what it loads finds nothing.
    return "data:image/svg+xml," + address.replace("http://", "http%3A//")


def _metadata(picture: Picture) -> dict[str, str]:
    return {
        "Title": picture.title,
        "Description": picture.alt,
        "Source": f"run {picture.run}, {picture.provenance}",
    }


def _settle(figure: Figure) -> None:
    """Lay a figure out, once for all forms that it is rendered in."""
    engine = figure.get_layout_engine()
    if engine is None or isinstance(engine, PlaceHolderLayoutEngine):
        return
    with mpl.rc_context(RC):
        for text in figure.findobj(Text):  # those that somebody made without `RC`, in a module of their own
            text.set_parse_math(False)
        FigureCanvasAgg(figure)
        dpi, figure.dpi = figure.dpi, _LAYOUT_DPI
        for _ in range(2):  # the first time moves what the second goes by
            engine.execute(figure)
        figure.dpi = dpi
        figure.set_layout_engine("none")
