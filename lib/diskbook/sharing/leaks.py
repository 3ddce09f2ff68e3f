"""Look for what must not be in a bundle: originals in any spelling, and texts of a private form.

A text is read as it stands, and once more without its encoding: as base64, base32, hexadecimal, URL, HTML,
JSON, UTF-16, gzip, reversed, or split by spaces, quotes and line ends; encodings within encodings, too.
"""

import base64
import binascii
import contextlib
import html
import re
import zlib
from collections.abc import Collection, Iterable, Iterator
from urllib.parse import unquote

from diskbook.cloud.azure.recording import pseudonyms
from diskbook.cloud.azure.recording.pseudonyms import GIVEN

_LEAST = 5  # characters of an original that is looked for within other words
_DEEPEST = 3  # encodings within each other
_MOST_BYTES = 1_000_000  # that come out of a packed part
_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|=([0-9A-F]{2})|&#?\w+;")
_SPLIT = re.compile(r"(\\[nrt]|[\s\x00\"'+,;\\|`._-])+")
_PART = re.compile(r"[^\w]+|_")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}", re.IGNORECASE)
_HEX = re.compile(r"(?:(?:\\x|0x|%|:|\s)?[0-9a-fA-F]{2}){6,}")
_CODES = re.compile(r"(?:\d{2,3}[,;\s]+){5,}\d{2,3}")
_PRIVATE = (
    re.compile(r"[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{2,60}"),
    re.compile(r"(/home/|/Users/|/root/|\\Users\\)[\w.-]+", re.IGNORECASE),
    re.compile(r"ssh-(rsa|ed25519|dss) [A-Za-z0-9+/=]{20,}|-----BEGIN"),
    re.compile(r"(?<![\w.])(?!198\.1[89]\.|0\.0\.0\.0|127\.)\d{1,3}(\.\d{1,3}){3}(?![\w.])"),
)


class Leaks:
    """Finds originals in texts.

    - `originals`: what was replaced, and must be nowhere.
    - `allowed`: words that may stay although they were replaced somewhere, such as the name of an arm.
    """

    def __init__(self, originals: Iterable[str], allowed: Collection[str]) -> None:
        kept = {word.casefold() for word in allowed}
        private = (text for text in originals if re.search("[A-Za-z]", text) or pseudonyms.is_private(text))
        texts = {text.casefold() for text in private} - kept
        self._whole = sorted(text for text in texts if len(text) >= _LEAST and not text.isdecimal())
        # Words that may each stay make up an original by chance, when they follow one another.
        parts = {part for word in kept for part in _PART.split(word)}
        odd = (text for text in self._whole if not parts.issuperset(_PART.split(text)))
        self._bare = sorted({bare for text in odd if len(bare := _SPLIT.sub("", text)) > _LEAST})
        self._clean: set[str] = set()

    def find(self, text: str) -> str | None:
        """Return what of a text must not be there, in words, None for a clean one."""
        if text in self._clean:
            return None
        for view in views(text):
            if leak := self._in(view):
                return leak
        self._clean.add(text)
        return None

    def find_split(self, texts: Iterable[tuple[int, str]]) -> int | None:
        """Return the line where an original begins that is spread over texts, each with its line."""
        lines: list[int] = []
        joined: list[str] = []
        for number, text in texts:
            joined.append(_SPLIT.sub("", text.casefold()))
            lines += [number] * len(joined[-1])
        bare = "".join(joined)
        return next((lines[bare.index(text)] for text in self._bare if text in bare), None)

    def _has(self, bare: str) -> bool:
        return any(text in bare for text in self._bare)

    def _in(self, view: str) -> str | None:
        low = view.casefold()
        if any(text in low for text in self._whole):
            return "a text that was replaced elsewhere is still here in some spelling"
        bare = _SPLIT.sub("", low)
        if self._has(bare) or self._has(bare[::-1]):
            return "a text that was replaced elsewhere is still here, split into parts"
        rest = GIVEN.sub("", view)
        if pseudonyms.GUID.search(rest):
            return "there is an id in it"
        return next(
            ("it has the form of an address, key or path" for form in _PRIVATE if form.search(rest)), None
        )


def views(text: str, depth: int = 0) -> Iterator[str]:
    """Yield a text, and what it says once its encodings are undone."""
    yield text
    if depth >= _DEEPEST:
        return
    for inner in {*_decoded(text)} - {text}:
        yield from views(inner, depth + 1)


def _decoded(text: str) -> Iterator[str]:
    if "\x00" in text:
        yield text.replace("\x00", "")
    if "%" in text:
        yield unquote(text)
    if "\\" in text or "&" in text or "=" in text:
        yield _ESCAPE.sub(_character, text)
    joined = re.sub(r"(\\[nrt]|[\s\"',])+", "", text)
    for source in dict.fromkeys((text, joined)):
        for match in _HEX.finditer(source):
            digits = re.sub(r"\\x|0x|[^0-9a-fA-F]", "", match[0])
            yield from _texts(bytes.fromhex(digits[: len(digits) // 2 * 2]))
        for match in _BASE64.finditer(source):
            for shift in range(4):
                yield from _texts(_unbase64(match[0].rstrip("=")[shift:]))
        for match in _BASE32.finditer(source):
            with contextlib.suppress(binascii.Error):
                bare = match[0].upper().rstrip("=")
                yield from _texts(base64.b32decode(bare + "=" * (-len(bare) % 8)))
    for match in _CODES.finditer(text):
        codes = [int(code) for code in re.findall(r"\d+", match[0])]
        yield "".join(map(chr, codes))


def _character(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    return chr(int(code, 16)) if code else html.unescape(match[0])


def _unbase64(text: str) -> bytes:
    text = text[: len(text) - (len(text) % 4 == 1)].replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _texts(content: bytes) -> Iterator[str]:
    """Texts that bytes may be: packed ones unpacked, in UTF-8 or UTF-16; nothing of bytes that are none."""
    if content[:2] in (b"\x1f\x8b", b"x\x9c", b"x\xda", b"x\x01"):
        with contextlib.suppress(zlib.error):
            content = zlib.decompressobj(47).decompress(content, _MOST_BYTES)
    for codec in ("utf-8", "utf-16-le", "utf-16-be"):
        text = content.decode(codec, "ignore")
        printable = re.findall(r"[ -~\u00a0-\u024f\s]{4,}", text)
        if printable:
            yield " ".join(printable)
