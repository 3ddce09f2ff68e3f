"""Tell private values by their form, and Azure's public catalogues by their address.

Used where the field says that a value is public, such as in Azure's list of sizes: everything stays there but
what has the form of an id, an address, a secret or a place on somebody's computer.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

from diskbook.cloud.azure.recording.pseudonyms import GUID
from diskbook.facts import redact

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
