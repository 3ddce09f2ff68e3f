"""Stable pseudonyms, and which values are private or public by their form.

The same original always gets the same pseudonym; only the holder of the key can match the two. A pseudonym
keeps the shape of the original, so an address still looks like one, and is never a real value: ids begin with
zeros, addresses are from the networks for documentation and benchmarks (RFC 3849, RFC 2544), names are `x-`
and ten hexadecimal digits. Pseudonyms are made by HMAC-SHA256 (RFC 2104).

Azure's public catalogues are known by their address. Their values stay, except for those that have the form
of an id, an address, a secret or a local path.
"""

import base64
import functools
import hashlib
import hmac
import ipaddress
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus, urlsplit

from diskbook.facts import redact

GUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
GIVEN = re.compile(
    r"x-[0-9a-f]{10}|00000000-0000-4000-8000-[0-9a-f]{12}|198\.1[89]\.\d{1,3}\.\d{1,3}(/\d{1,2})?"
    r"|2001:db8::[0-9a-f]{1,4}:[0-9a-f]{1,4}(/\d{1,3})?|\(hidden\)",
    re.IGNORECASE,
)
"""A pseudonym, or what stands in place of a secret that was recognised by its form."""
KINDS = (
    ("secret", "secret|pass|token|credential|cookie|certificate|signature|authori[sz]ation|key|custom_?data"),
    ("header", "header|agent|etag"),
    ("subscription", "subscription"),
    ("tenant", "tenant|directory"),
    ("resource group", "resource_?group|bastion_?group"),
    ("user", "user|owner|principal|mail|login|author|person|account|created_?by|display_?name"),
    ("machine", "machine|computer|vm"),
    ("disk", "disk|volume"),
    ("network", "network|subnet|bastion|security_?(group|rule)|ip_?config"),
    ("address", "address|prefix|(^|_)ip|ssh_source"),
    ("host", "host|server|gateway|domain"),
    ("run", "run"),
    ("tag", "tag"),
    ("message", "message"),
    ("URL", "url|path|location|link|endpoint"),
    ("body", "body"),
    ("name", "name"),
    ("id", "id$|guid|operation|correlation"),
    ("value", ""),
)
"""All kinds of originals, each with a pattern for the JSON key, header or part of a path that one stood at.

Such a key may itself name somebody, so only the kind is kept of it.
"""
_LEAST = 3  # characters; what is shorter would hide ordinary words and numbers
_LEAST_WITHIN = 6  # the same within a longer word


@functools.lru_cache(maxsize=4096)
def kind_of(place: str) -> str:
    """Return the kind of an original, from `KINDS`, by the name of the place that it stood at."""
    if any(place == kind for kind, _ in KINDS):
        return place
    spaced = re.sub(r"[ -]", "_", place)
    return next(kind for kind, within in KINDS if re.search(within, spaced, re.IGNORECASE))


def is_pseudonym(text: str) -> bool:
    """Whether a text as a whole has the form of a pseudonym."""
    return bool(GIVEN.fullmatch(text))


class Pseudonyms:
    """Pseudonyms under one secret key. `kinds`: of each that was given, what it stands for, e.g. "user"."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._within: dict[str, str] = {}  # what is looked for within words, each spelling with its pseudonym
        self._pattern: re.Pattern[str] | None = None
        self.kinds: dict[str, str] = {}

    def give(self, original: str, place: str) -> str:
        """Return the pseudonym of an original, of a user's name also each part; a pseudonym stays as it is.

        - `place`: a kind, or the name of the place that it stood at (`kind_of`).
        """
        if not original or is_pseudonym(original):
            return original
        made, kind = self._made(original), kind_of(place)
        self.kinds.setdefault(made.lower(), kind)
        if kind == "user":
            for part in re.split(r"[^\w]+|_", original):
                self.kinds.setdefault(self._made(part).lower(), kind)
        return made

    def keep_out(self, original: str, place: str) -> None:
        """Have an original replaced within other words too, and as base64, in URLs, in JSON and in hex."""
        if len(original) < _LEAST or is_pseudonym(original):
            return
        made = self.give(original, place)
        if len(original) >= _LEAST_WITHIN and original.casefold() not in self._within:
            self._within |= {spelling.casefold(): made for spelling in spellings(original)}
            self._pattern = None

    @property
    def known(self) -> tuple[int, int]:
        """Numbers of pseudonyms and of spellings so far: while they stay, a text is scrubbed alike."""
        return len(self.kinds), len(self._within)

    def is_known(self, word: str) -> bool:
        """Whether a word was replaced somewhere, now or on record."""
        return len(word) >= _LEAST and self._made(word).lower() in self.kinds

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


_CATALOGUE = re.compile(
    r"/subscriptions/[^/]+/(locations|providers(/[\w.]+)?"
    r"|providers/Microsoft\.Compute/(skus|locations/\w+/(vmSizes|publishers(/.*)?))"
    r"|providers/[\w.]+/locations/\w+/usages)"
    r"|/subscriptions/.+/providers/microsoft\.insights/metricDefinitions|/api/retail/prices",
    re.IGNORECASE,
)
_FORMS = (
    GUID,
    re.compile(r"[&$^`|<>\"]|\S@\S|\\|(^|\s)~?/\w|([0-9a-f]{2}[:-]){5}|\d{16}", re.IGNORECASE),
    re.compile(r"(^|[^\w.])[a-z0-9-]+(\.[a-z0-9-]+)+\.[a-z]{2,}", re.IGNORECASE),  # a host
    re.compile(r"(secret|pass(word|wd)?|pwd|key|sig|token|credential)\s*[=:]|-----BEGIN", re.IGNORECASE),
    re.compile(r"([A-Z0-9]{4,8}-){3,}[A-Z0-9]{4,8}|S-1-\d+-\d+"),  # a licence key, an account of Windows
)
_WORD = re.compile(r"[A-Za-z0-9+/=]+")
_LEAST_TOKEN = 12  # characters
_LONG_CAPITALS = 16  # characters
_MOST_CHANGES = 0.2  # per character; "standardNCADSA100v4Family" has 0.25 and is known by its form
_KINDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^A-Za-z0-9]+")
_FAMILY = re.compile(r"standard\w{1,24}Family|(Standard|Basic)_[A-Z]\w{1,40}", re.IGNORECASE)
_AZURES = re.compile(r"(?<![\w.])Microsoft(\.\w+)+(/\w+)*", re.IGNORECASE)


def is_catalogue(method: str, url: str) -> bool:
    """Whether Azure gives everybody the list that a request asks for: sizes, usages, locations, images."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return False
    return method == "GET" and bool(_CATALOGUE.fullmatch(path.rstrip("/")))


def is_private(text: str) -> bool:
    """Whether a text has the form of an id, an address, a secret, a host or a path on a computer."""
    bare = _AZURES.sub("", text)
    if any(form.search(bare) for form in _FORMS) or redact.hide(bare) != bare:
        return True
    return any(map(_is_address, re.split(r"[\s,;()\[\]]+", bare))) or any(map(_is_token, _WORD.findall(bare)))


def _is_address(word: str) -> bool:
    try:
        ipaddress.ip_interface(re.sub(r"(?<=\.\d)(?P<last>\d*):\d+$", r"\g<last>", word))
    except ValueError:
        return False
    return bool(re.search(r"[.:]", word))


def _is_token(word: str) -> bool:
    """Whether letters and digits alternate as in keys and hashes, more often than in words."""
    if len(word) < _LEAST_TOKEN or _FAMILY.fullmatch(word):
        return False
    kinds = _KINDS.findall(word)
    changes = len(kinds) - 1 > _MOST_CHANGES * len(word) or (word.isupper() and len(word) >= _LONG_CAPITALS)
    return changes and any(map(str.isdigit, word))
