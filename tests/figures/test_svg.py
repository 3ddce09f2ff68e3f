"""SVG: names of clips do not tell the last digits of a layout."""

from __future__ import annotations

from diskbook.figures.svg import _clips

RECT = '<rect x="1.00" y="2.00"/>'


def drawing(*names: str) -> str:
    used = "".join(f'<path clip-path="url(#{name})"/>' for name in names)
    return f"{used}<defs>" + "".join(f'<clipPath id="{name}">{RECT}</clipPath>' for name in names) + "</defs>"


def test_a_clip_has_one_name_whatever_its_hash() -> None:
    once = f'<path clip-path="url(#clip1)"/><defs><clipPath id="clip1">{RECT}</clipPath></defs>'
    assert _clips(drawing("pd1e3dec5cc")) == _clips(drawing("p71fa404862")) == once


def test_clips_that_are_alike_are_one() -> None:
    assert _clips(drawing("pa", "pb")).count("<clipPath") == 1
    assert _clips(drawing("pa", "pb")).count("url(#clip1)") == 2


def test_what_has_no_clip_stays_as_it_is() -> None:
    assert _clips('<path fill="url(#h1)"/>') == '<path fill="url(#h1)"/>'
