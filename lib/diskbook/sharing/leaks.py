"""Look for what must not be in a bundle: originals in any spelling, and texts of a private form.

A text is read as it stands, and once more without its encoding: as base64, base32, base85, hexadecimal,
binary, URL, HTML, JSON, C, UTF-16, UTF-32, packed, reversed, in letters that look alike, or split by what is
no letter or digit; encodings within encodings, too.
"""

import base64
import bz2
import codecs
import contextlib
import html
import lzma
import re
import sys
import unicodedata
import uuid
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from diskbook.facts import archives
from diskbook.sharing import pseudonyms
from diskbook.sharing.pseudonyms import GIVEN

_LEAST = 5  # characters of an original that is looked for within other words
_DEEPEST = 3  # encodings within each other
_MOST_BYTES = 1_000_000  # that come out of a packed part
_UNPACKERS: dict[bytes, Callable[[], Any]] = {b"BZh": bz2.BZ2Decompressor, b"\xfd7zXZ": lzma.LZMADecompressor}
_ZIP_HEAD = 30  # bytes before the name of the first file of a zip
_ESCAPE = re.compile(
    r"(?:\\u\{?|\\x|\\U0{3}|U\+|=(?=[0-9a-fA-F]{2}))([0-9a-fA-F]{2,5})\}?|\\([0-7]{3})|&#?\w+;", re.ASCII
)
_SPLIT = re.compile(r"(\\[nrt]|[\W_])+")
_TAGS = re.compile(r"</?[a-z][^<>]{0,200}>|=\r?\n", re.IGNORECASE)
_PART = re.compile(r"[^\w]+|_")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{16,}={0,6}", re.IGNORECASE)
_BASE85 = re.compile(r"[!-~]{15,400}")
_HEX = re.compile(r"(?:(?:\\x|0x|%|:|\s|-)?[0-9a-fA-F]{2}){6,}")
_CODES = re.compile(r"(?:\d{2,3}[,;\s]+){5,}\d{2,3}")
_BINARY = re.compile(r"(?:[01]{8}[,;\s]*){5,}")
_ADDRESS = re.compile(r"(?<![\w.])(?!198\.1[89]\.|0\.0\.0\.0|127\.)\d{1,3}(\.\d{1,3}){3}(?![\w.])")
_PRIVATE = (
    re.compile(r"[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{2,60}"),
    re.compile(r"(/home/|/Users/|/root/|\\Users\\)[\w.-]+", re.IGNORECASE),
    re.compile(r"ssh-(rsa|ed25519|dss) [A-Za-z0-9+/=]{20,}|-----BEGIN"),
    _ADDRESS,
)


class Leaks:
    """Finds originals in texts.

    - `originals`: what was replaced, and must be nowhere.
    - `allowed`: words that may stay although they were replaced somewhere, such as the name of an arm.
    """

    def __init__(self, originals: Iterable[str], allowed: Collection[str]) -> None:
        kept = {word.casefold() for word in allowed}
        private = (text for text in originals if re.search("[A-Za-z]", text) or pseudonyms.is_private(text))
        texts = {spelling.casefold() for text in private for spelling in (text, *_of_guid(text))} - kept
        self._whole = sorted(text for text in texts if len(text) >= _LEAST and not text.isdecimal())
        # Words that may each stay make up an original by chance, when they follow one another.
        parts = {part for word in kept for part in _PART.split(word)}
        odd = (text for text in self._whole if not parts.issuperset(_PART.split(text)))
        split = ((text, _SPLIT.sub("", GIVEN.sub("", text))) for text in odd)
        telling = (bare for text, bare in split if not bare.isdecimal() or _ADDRESS.search(text))
        self._bare = sorted({bare for bare in telling if len(bare) > _LEAST})
        self._clean: set[str] = set()

    def find(self, text: str) -> str | None:
        """Return what of a text must not be there, in words, None for a clean one."""
        if text in self._clean:
            return None
        bare = GIVEN.sub("", text)  # a pseudonym may have an original in it by chance, also read backwards
        for view in views(bare):
            if leak := self._original_in(view) or self._form_in(view):
                return leak
        if leak := next(filter(None, map(self._original_in, guesses(bare))), None):
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

    def _original_in(self, view: str) -> str | None:
        low = view.casefold()
        if any(text in low for text in self._whole):
            return "a text that was replaced elsewhere is still here in some spelling"
        bare = _SPLIT.sub("", low)
        if any(text in bare for text in self._bare):
            return "a text that was replaced elsewhere is still here, split into parts"
        return None

    def _form_in(self, view: str) -> str | None:
        rest = GIVEN.sub("", view)
        if pseudonyms.GUID.search(rest):
            return "there is an id in it"
        is_private = any(form.search(rest) for form in _PRIVATE)
        return "it has the form of an address, key or path" if is_private else None


def views(text: str, depth: int = 0) -> Iterator[str]:
    """Yield a text, and what it says once its encodings are undone."""
    yield text
    if depth < _DEEPEST:
        for inner in {*_decoded(text)} - {text}:
            yield from views(inner, depth + 1)


def guesses(text: str) -> Iterator[str]:
    """Yield what a text may say by encodings that nearly every text could have, so that most is nonsense."""
    yield codecs.encode(text, "rot13")
    yield from views(text[::-1], _DEEPEST - 1)
    for match in _BASE32.finditer(text):
        for shift in range(8):
            yield from _texts(_unbase32(match[0].upper().rstrip("=")[shift:]))
    for match in _BASE85.finditer(text):
        for decode in (base64.b85decode, base64.a85decode):
            with contextlib.suppress(ValueError):
                yield from _texts(decode(match[0]))


def _decoded(text: str) -> Iterator[str]:
    if not text.isascii():
        visible = (sign for sign in text if unicodedata.category(sign) not in ("Cc", "Cf"))
        yield unicodedata.normalize("NFKC", "".join(visible))
    yield unquote(text)
    yield _ESCAPE.sub(_character, text)
    yield _TAGS.sub("", text.replace("\x00", ""))
    for match in _CODES.finditer(text):
        yield "".join(chr(int(code)) for code in re.findall(r"\d+", match[0]))
    for match in _BINARY.finditer(text):
        yield "".join(chr(int(code, 2)) for code in re.findall(r"[01]{8}", match[0]))
    joined = re.sub(r"(\\[nrt]|[\s\"',])+", "", text)
    for content in {*_contents(text), *_contents(joined)}:
        yield from _texts(content)


def _contents(text: str) -> Iterator[bytes]:
    """Bytes that parts of a text may stand for."""
    for match in _HEX.finditer(text):
        digits = re.sub(r"\\x|0x|[^0-9a-fA-F]", "", match[0])
        yield bytes.fromhex(digits[: len(digits) // 2 * 2])
    for match in _BASE64.finditer(text):
        yield from (_unbase64(match[0].rstrip("=")[shift:]) for shift in range(4))


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return chr(min(int(match[1], 16), sys.maxunicode))
    return chr(int(match[2], 8)) if match[2] else html.unescape(match[0])


def _of_guid(text: str) -> Iterator[str]:
    """Bytes of an id in both orders, as hexadecimal and base64."""
    if pseudonyms.GUID.fullmatch(text):
        for content in (uuid.UUID(text).bytes, uuid.UUID(text).bytes_le):
            yield from (content.hex(), base64.b64encode(content).decode().rstrip("="))


def _unbase64(text: str) -> bytes:
    text = text[: len(text) - (len(text) % 4 == 1)].replace("-", "+").replace("_", "/")
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _unbase32(text: str) -> bytes:
    text = text[: len(text) - (len(text) % 8 in (1, 3, 6))]
    return base64.b32decode(text + "=" * (-len(text) % 8))


def _texts(content: bytes, depth: int = 0) -> Iterator[str]:
    """Yield the texts that bytes may be, in UTF-8, UTF-16 or UTF-32; what is packed is unpacked first."""
    if depth < _DEEPEST and not content.isascii():
        for inner in _unpacked(content):
            yield from _texts(inner, depth + 1)
    for text in (
        *(content.decode(codec, "ignore") for codec in ("utf-8", "utf-16-le", "utf-16-be")),
        content.replace(b"\0", b"").decode("utf-8", "ignore"),
    ):
        printable = re.findall(r"[ -~\u00a0-\u024f\s]{4,}", text)
        if printable:
            yield " ".join(printable)


def _unpacked(content: bytes) -> Iterator[bytes]:
    """What packed bytes hold; of a zip its first file."""
    if content.startswith(archives.MAGIC) and len(content) > _ZIP_HEAD:
        content = content[_ZIP_HEAD + content[26] + 256 * content[27] + content[28] + 256 * content[29] :]
    unpackers = [zlib.decompressobj(47), zlib.decompressobj(-15)]
    unpackers += [made() for magic, made in _UNPACKERS.items() if content.startswith(magic)]
    for unpacker in unpackers:
        with contextlib.suppress(zlib.error, OSError, lzma.LZMAError, EOFError):
            if inner := unpacker.decompress(content, _MOST_BYTES):
                yield inner
