"""Forms in which a secret may stand in a text: encoded, packed, split, or written with other letters."""

from __future__ import annotations

import base64
import binascii
import bz2
import codecs
import gzip
import html
import io
import json
import lzma
import string
import uuid
import zipfile
import zlib
from collections.abc import Callable
from urllib.parse import quote


def _b64(content: str | bytes) -> str:
    return base64.b64encode(content.encode() if isinstance(content, str) else content).decode()


def _each(form: str) -> Callable[[str], str]:
    """Write every letter by its number."""
    return lambda text: "".join(form.format(ord(sign)) for sign in text)


def _apart(mark: str, width: int) -> Callable[[str], str]:
    return lambda text: mark.join(text[at : at + width] for at in range(0, len(text), width))


def _zip(text: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("part.txt", text)
    return stream.getvalue()


def _number(text: str, base: int) -> str:
    """Write the bytes of a text as one number."""
    number, digits = int.from_bytes(text.encode(), "big"), ""
    while number:
        number, last = divmod(number, base)
        digits = (string.digits + string.ascii_uppercase + string.ascii_lowercase)[last] + digits
    return digits


def _png(text: str) -> bytes:
    """Write a picture's comment, without the picture."""
    return (
        b"\x89PNG\r\n\x1a\n" + len(text).to_bytes(4, "big") + b"tEXtComment\0" + text.encode() + b"\0\0\0\0"
    )


def _as_guid(change: Callable[[uuid.UUID], str]) -> Callable[[str], str]:
    """Change an id; other texts stay plain."""
    return lambda text: change(uuid.UUID(text)) if text.count("-") == 4 else text


_PLAIN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "upper case": str.upper,
    "title case": str.title,
    "swapped case": str.swapcase,
    "in a word": lambda text: f"xx{text}yy",
    "in a sentence": lambda text: f"the disk of {text} is locked",
    "assigned": lambda text: f"password={text};",
    "braces": lambda text: f"{{{text}}}",
    "urn": _as_guid(lambda guid: guid.urn),
    "GUID as hex": _as_guid(lambda guid: guid.bytes.hex()),
    "GUID as hex of Windows": _as_guid(lambda guid: guid.bytes_le.hex()),
    "GUID as base64": _as_guid(lambda guid: _b64(guid.bytes)),
    "GUID as base64 of Windows": _as_guid(lambda guid: _b64(guid.bytes_le)),
    "GUID as base32": _as_guid(lambda guid: base64.b32encode(guid.bytes).decode()),
    "GUID as a number": _as_guid(lambda guid: str(guid.int)),
}
_ESCAPED: dict[str, Callable[[str], str]] = {
    "JSON": _each("\\u{:04x}"),
    "JSON in capitals": _each("\\u{:04X}"),
    "JSON twice": lambda text: json.dumps(json.dumps(f'{text}"')),
    "C": _each("\\x{:02x}"),
    "octal": _each("\\{:03o}"),
    "Unicode": _each("U+{:04X} "),
    "JavaScript": _each("\\u{{{:x}}}"),
    "URL": _each("%{:02X}"),
    "URL in small letters": _each("%{:02x}"),
    "URL twice": lambda text: quote(_each("%{:02X}")(text)),
    "URL three times": lambda text: quote(quote(_each("%{:02x}")(text))),
    "URL in part": lambda text: f"{text[:3]}%{ord(text[3]):02x}{text[4:]}",
    "HTML": _each("&#{};"),
    "HTML in hex": _each("&#x{:X};"),
    "HTML padded": _each("&#{:07d};"),
    "HTML by names": lambda text: (
        text.replace("-", "&hyphen;").replace(".", "&period;").replace(" ", "&nbsp;") + "&amp;"
    ),
    "quoted-printable": _each("={:02X}"),
    "quoted-printable in small letters": _each("={:02x}"),
    "quoted-printable over lines": lambda text: f"{text[:6]}=\n{text[6:]}",
    "binary": _each("{:08b} "),
    "codes": lambda text: ", ".join(str(ord(sign)) for sign in text),
}
_ENCODED: dict[str, Callable[[str], str]] = {
    "base64": _b64,
    "base64 after a letter": lambda text: _b64(f"x{text}"),
    "base64 after two": lambda text: _b64(f"xy{text}zzz"),
    "base64 in a text": lambda text: f"Zm9v{_b64(f'x{text}')}",
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(f"ab{text}??".encode()).decode(),
    "base64 twice": lambda text: _b64(_b64(text)),
    "base64 without its end": lambda text: _b64(text).rstrip("="),
    "base64 over lines": lambda text: _apart("\n", 8)(_b64(text)),
    "base64 of a URL": lambda text: _b64(_each("%{:02X}")(text)),
    "base64 of UTF-16": lambda text: _b64(text.encode("utf-16-le")),
    "base64 of UTF-16, big end first": lambda text: _b64(text.encode("utf-16-be")),
    "base64 of UTF-32": lambda text: _b64(text.encode("utf-32-le")),
    "base64 backwards": lambda text: _b64(text)[::-1],
    "a word of MIME": lambda text: f"=?utf-8?B?{_b64(text)}?=",
    "base32": lambda text: base64.b32encode(text.encode()).decode(),
    "base32 in small letters": lambda text: base64.b32encode(text.encode()).decode().lower(),
    "base32 with digits first": lambda text: base64.b32hexencode(text.encode()).decode(),
    "base36": lambda text: _number(text, 36),
    "base62": lambda text: _number(text, 62),
    "decimal number": lambda text: _number(text, 10),
    "octal number": lambda text: _number(text, 8),
    "uuencode": lambda text: binascii.b2a_uu(text.encode()).decode(),
    "uuencode with backticks": lambda text: binascii.b2a_uu(text.encode(), backtick=True).decode(),
    "uuencode in a text": lambda text: binascii.b2a_uu(f"at {text}.".encode()).decode().strip(),
    "hex of EBCDIC": lambda text: text.encode("cp037").hex(),
    "base85": lambda text: base64.b85encode(text.encode()).decode(),
    "ascii85": lambda text: base64.a85encode(text.encode()).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex in capitals": lambda text: text.encode().hex().upper(),
    "hex dump": lambda text: text.encode().hex(" "),
    "hex dump of words": lambda text: text.encode().hex(" ", 2),
    "hex with colons": lambda text: text.encode().hex(":"),
    "hex with dashes": lambda text: text.encode().hex("-"),
    "hex of C": lambda text: ", ".join(f"0x{code:02x}" for code in text.encode()),
    "hex of base64": lambda text: _b64(text).encode().hex(),
    "hex of UTF-16": lambda text: text.encode("utf-16").hex(),
    "UTF-7": lambda text: f"+{_b64(text.encode('utf-16-be')).rstrip('=')}-",
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
    "UTF-16, big end first": lambda text: text.encode("utf-16-be").decode("latin-1"),
}
_PACKED: dict[str, Callable[[str], str]] = {
    "gzip": lambda text: _b64(gzip.compress(text.encode(), mtime=0)),
    "gzip twice": lambda text: _b64(gzip.compress(gzip.compress(text.encode(), mtime=0), mtime=0)),
    "gzip in hex": lambda text: gzip.compress(text.encode(), mtime=0).hex(),
    "zlib": lambda text: _b64(zlib.compress(text.encode())),
    "deflate": lambda text: _b64(zlib.compress(text.encode(), wbits=-15)),
    "bzip2": lambda text: _b64(bz2.compress(text.encode())),
    "xz": lambda text: _b64(lzma.compress(text.encode())),
    "zip": lambda text: _b64(_zip(text)),
    "comment of a PNG": lambda text: _b64(_png(text)),
    "text of an SVG": lambda text: f"<svg><text>{html.escape(text)}</text></svg>",
    "SVG in base64": lambda text: f"data:image/svg+xml;base64,{_b64(f'<svg><text>{text}</text></svg>')}",
}
_SPLIT: dict[str, Callable[[str], str]] = {
    "underscores": lambda text: text.replace("-", "_").replace(" ", "_").replace(".", "_"),
    "split over lines": _apart("\n", 4),
    "split over lines of Windows": _apart("\r\n", 3),
    "split by quotes": _apart('","', 5),
    "split by plus": _apart('" + "', 5),
    "split by backslash": _apart("\\\n", 5),
    "split by tags": _apart("</b><b>", 5),
    "spaced": _apart(" ", 1),
    "with spaces of no width": _apart("\u200b", 1),
    "with soft hyphens": _apart("\u00ad", 1),
    "other dashes and spaces": lambda text: text.replace(" ", "\u00a0").replace("-", "\u2011"),
    "full width": lambda text: "".join(chr(ord(sign) + 0xFEE0) if sign != " " else sign for sign in text),
    "reversed": lambda text: text[::-1],
    "rot13": lambda text: codecs.encode(text, "rot13"),
}
REPLACED = _PLAIN | _ESCAPED | _ENCODED | _PACKED | _SPLIT


def bare(text: str) -> str:
    """Leave letters and digits: an address may be a number of a result then, so the run is refused."""
    return text.replace("-", "").replace(" ", "").replace(".", "")
