"""Stable pseudonyms: the same original always gets the same one, and only who holds the key can tell which.

A pseudonym keeps the shape of what it stands for, so that an address can still be told from a name, and can
be told from any original: ids begin with zeros, addresses are of the networks for documentation and for
benchmarks (RFC 3849, RFC 2544), names are `x-` and ten hexadecimal digits. Made by HMAC-SHA256 (RFC 2104).
"""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import ipaddress
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
GIVEN = re.compile(
    r"x-[0-9a-f]{10}|00000000-0000-4000-8000-[0-9a-f]{12}|198\.1[89]\.\d{1,3}\.\d{1,3}(/\d{1,2})?"
    r"|2001:db8::[0-9a-f]{1,4}:[0-9a-f]{1,4}(/\d{1,3})?|\(hidden\)",
    re.IGNORECASE,
)
"""A pseudonym, or what stands in place of a secret that was recognised by its form."""
_LEAST = 3  # characters; what is shorter would hide ordinary words and numbers
_LEAST_WITHIN = 6  # the same within a longer word


def is_pseudonym(text: str) -> bool:
    """Whether a text as a whole has the form of a pseudonym."""
    return bool(GIVEN.fullmatch(text))


class Pseudonyms:
    """Pseudonyms under one key, and what they have been given for.

    Parameters
    ----------
    key
        Secret of whoever makes them; another key makes others.

    Attributes
    ----------
    kinds
        Each pseudonym that was given, with what it stands for, in words: "password", "resourceGroups".
    known
        Pseudonyms of names and secrets, which are replaced as words of a sentence too.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._within: dict[str, str] = {}  # what is looked for within words, each spelling with its pseudonym
        self._pattern: re.Pattern[str] | None = None
        self.kinds: dict[str, str] = {}
        self.known: set[str] = set()

    def give(self, original: str, kind: str, *, known: bool = False) -> str:
        """Return the pseudonym of an original, and record its kind; a pseudonym stays as it is."""
        if not original or is_pseudonym(original):
            return original
        made = self._made(original)
        self.kinds.setdefault(made.lower(), kind)
        if known:
            self.known.add(made.lower())
        return made

    def keep_out(self, original: str, kind: str) -> None:
        """Have an original replaced within other words too, and as base64, in URLs, in JSON and in hex."""
        if len(original) < _LEAST or is_pseudonym(original):
            return
        made = self.give(original, kind, known=True)
        if len(original) >= _LEAST_WITHIN and original.casefold() not in self._within:
            self._within |= {spelling.casefold(): made for spelling in spellings(original)}
            self._pattern = None

    def is_known(self, word: str) -> bool:
        """Whether a word is a name or a secret that was replaced, now or on record."""
        return len(word) >= _LEAST and self._made(word).lower() in self.known

    def without_known(self, text: str) -> str:
        """Replace all that `keep_out` was given, wherever it stands in a text."""
        if self._within and self._pattern is None:
            longest_first = sorted(self._within, key=len, reverse=True)
            self._pattern = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE)
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda match: self._within.get(match[0].casefold(), "x"), text)

    def _made(self, original: str) -> str:
        digest = _digest(self._key, original.casefold())
        if GUID.fullmatch(original):
            made = f"00000000-0000-4000-8000-{digest[:12]}"
        else:
            made = _address(original, digest) or f"x-{digest[:10]}"
        # Azure returns names in other case at times, which is worth seeing.
        return made.upper() if original.isupper() else made


@functools.lru_cache(maxsize=65536)
def _digest(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _address(original: str, digest: str) -> str | None:
    """An address or network in place of one; None for what is none."""
    try:
        version = ipaddress.ip_interface(original).version
    except ValueError:
        return None
    slash, width = ("/", original.partition("/")[2]) if "/" in original else ("", "")
    if version == 6:
        return f"2001:db8::{int(digest[:4], 16):x}:{int(digest[4:8], 16):x}{slash}{width}"
    return f"198.{18 + int(digest[0], 16) % 2}.{int(digest[1:3], 16)}.{int(digest[3:5], 16)}{slash}{width}"


def spellings(original: str) -> Iterator[str]:
    """Ways in which an original may stand in a text: as it is, in JSON, in URLs, in hex, within base64.

    Base64 writes three bytes as four characters, so a text within a longer one has three spellings, by where
    it begins; of each only the characters that no neighbour changes are given.
    """
    yield original
    yield json.dumps(original)[1:-1]
    quoted = quote(original, safe="")
    yield from (quoted, quote(original), quote_plus(original), quote(quoted))
    raw = original.encode("utf-8", "surrogatepass")
    yield raw.hex()
    for before in range(3):
        whole = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        sure = whole[(0, 2, 3)[before] : (len(raw) + before) * 8 // 6]
        yield sure
        yield sure.replace("+", "-").replace("/", "_")
