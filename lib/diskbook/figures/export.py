"""Export of figures: SVG, PNG at twice the size, and a sidecar; the same data give the same bytes."""

from __future__ import annotations

import hashlib
import html as markup
import io
import json
import re
from pathlib import Path
from urllib.parse import quote
from weakref import WeakKeyDictionary

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from diskbook import __version__
from diskbook.base.files import write_atomic
from diskbook.figures.style import RC, Picture

DPI = 100
_RENDERED: WeakKeyDictionary[Figure, bytes] = WeakKeyDictionary()


def data_hash(data: pd.DataFrame) -> str:
    """SHA-256 of the numbers drawn, as CSV with full precision."""
    return hashlib.sha256(data.to_csv(index=False).encode()).hexdigest()


def as_svg(picture: Picture) -> bytes:
    """Render as SVG, with text as paths, so that it looks the same without our fonts. Rendered once."""
    if picture.figure not in _RENDERED:
        _RENDERED[picture.figure] = _compact(_render(picture, "svg", {"Date": None, **_metadata(picture)}))
    return _RENDERED[picture.figure]


def as_png(picture: Picture) -> bytes:
    """Render as PNG at twice the size of the page."""
    return _render(picture, "png", {"Software": f"diskbook {__version__}", **_metadata(picture)})


def sidecar(picture: Picture) -> str:
    """Caption, alt text, data hash, run and provenance as JSON."""
    facts = {
        "slug": picture.slug,
        "title": picture.title,
        "caption": picture.caption,
        "alt": picture.alt,
        "data_sha256": data_hash(picture.data),
        "run": picture.run,
        "provenance": picture.provenance,
    }
    return json.dumps(facts, indent=1, ensure_ascii=False) + "\n"


def export(picture: Picture, folder: Path) -> list[Path]:
    """Write <slug>.svg, <slug>@2x.png and <slug>.json into a folder; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    contents = {
        f"{picture.slug}.svg": as_svg(picture),
        f"{picture.slug}@2x.png": as_png(picture),
        f"{picture.slug}.json": sidecar(picture).encode(),
    }
    for name, content in contents.items():
        write_atomic(folder / name, content)
    return [folder / name for name in contents]


def html(picture: Picture) -> str:
    """Figure as self-contained HTML with alt text and caption, for a notebook's output."""
    alt, caption = markup.escape(picture.alt, quote=True), markup.escape(picture.caption)
    return (
        f'<figure id="{picture.slug}"><img alt="{alt}" src="{_address(as_svg(picture))}">'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _compact(svg: bytes) -> bytes:
    """Take out what nobody sees: indentation, long names of glyphs, digits below a hundredth of a point.

    Together a quarter of what Matplotlib writes. The metadata stay as they are.
    """
    head, end, drawing = re.sub(rb"\s*\n\s*", b" ", svg).partition(b"</metadata>")
    drawing = drawing.replace(b"DejaVuSans-Bold-", b"b").replace(b"DejaVuSans-", b"g")
    short = re.sub(rb"(?<!scale\()(?<![\d.])\d+\.\d{3,}", lambda number: b"%.2f" % float(number[0]), drawing)
    return head + end + short


def _address(svg: bytes) -> str:
    """The figure as an address: percent-encoded, which takes a fifth less room than base64."""
    quoted = svg.decode().replace("'", "&#39;").replace('"', "'")
    address = quote(quoted, safe=" ~()*!.'/:;,?@=+$-_")
    # Names of XML vocabularies, not addresses: who searches a page for what it loads finds nothing.
    return "data:image/svg+xml," + address.replace("http://", "http%3A//")


def _metadata(picture: Picture) -> dict[str, str]:
    return {
        "Title": picture.title,
        "Description": picture.alt,
        "Source": f"run {picture.run}, {picture.provenance}",
    }


def _render(picture: Picture, form: str, metadata: dict[str, str | None]) -> bytes:
    buffer = io.BytesIO()
    # Identifiers in an SVG are hashed from the salt, which `RC` fixes.
    with mpl.rc_context(RC):
        for text in picture.figure.findobj(
            Text
        ):  # those that somebody made without `RC`, in a module of their own
            text.set_parse_math(False)
        picture.figure.savefig(buffer, format=form, dpi=2 * DPI, metadata=metadata)
    return buffer.getvalue()
