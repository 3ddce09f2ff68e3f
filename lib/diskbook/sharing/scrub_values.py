"""Replace whatever in an exchange could name somebody or give access, and keep public facts.

The field and the value decide. Public lists of Azure and software releases stay, except for ids and secrets.
Elsewhere a value stays if it consists of Azure's own words, numbers, sizes and times. Names of resources and
people, ids, addresses and secrets become pseudonyms.
"""

import contextlib
import gzip
import io
import json
import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from diskbook.facts import redact
from diskbook.sharing import pseudonyms

_MOST_BYTES = 64 * 1024**2  # of a packed body; what is larger is replaced whole
_DEEPEST = 40

_SECRET = re.compile(
    r"pass(word|wd|phrase)|pwd|secret|token|credential|sas(ur[il])?$|keydata|(custom|user)_?data|protectedsettings"
    r"|commandtoexecute|certificate|signature|authori[sz]ation|cookie|thumbprint|^(sig|keys?)$"
    r"|(access|account|private|public|shared|storage|host|primary|secondary|api|client)[_-]?keys?",
    re.IGNORECASE,
)
"""Keys of values that are secret, and of all that is within them."""
_PROSE = re.compile(
    r"message|(display)?(status|description)|localizedvalue|reason|question|title|label|words|text|what|of|source",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"""
    access(tier)? | aggregation(type)? | (private|public)?(ip)?(allocation(method)?|addressversion) | caching
    | private(ipallocationmethod|ipaddressversion) | api-version | architecture | article | bypass
    | cache(state)? | changed | cloud | data | ioengine | physicalzone | quality | region(type|category)
    | (reason|error)?code
    | computemode | (create|detach|copy)option | [a-z]*deleteoption | dataaccessauthmode
    | default(action|value) | direction | diskcontroller(types?)? | disk(state|type) | evictionpolicy
    | (exact|typehandler)?version | family | hypervgeneration(s)? | interval | kind | level | location(s)?
    | measure | metric | minimumtlsversion | model | namespace | (public)?network(accesspolicy|access) | offer
    | os(state|type|version)? | pairing | (patch|assessment)mode | pattern | placement | power(state)?
    | preset | priority | product | protocol | provenance | provisioningstate | publisher | (resource)?region
    | registrationstate | resourcetype | schema | securitytype | site | (vm)?size(s)? | sku(name)? | stage
    | state | storageaccounttype | system | targetresourcetype | tasktype | tier | time(grain|zoneid) | tool
    | type | unit | usagename | values | zone(s)? | (source|destination)(portrange|addressprefix)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Keys of values that are Azure's words, or the workbook's."""
_RELEASE = re.compile(r"kernel|image|toolversion|offer|publisher|sku|(exact)?version", re.IGNORECASE)
"""Keys of what software is used, whose values may have any form but a private one."""
_PRIVATE = re.compile(
    r"name|id|.*(user|owner|principal|person|author|displayname|createdby|modifiedby|computername|address(es)?|guid"
    r"|prefix(es)?|tag|identity|domain|host(name)?|title|path|contact|phone|mail)s?|etag",
    re.IGNORECASE,
)
"""Keys of values that are private, whatever they are."""
_PLAIN_PARENTS = re.compile(
    r"sku|capabilities|name|zonedetails|values|restrictions|metrics|costs|plan", re.IGNORECASE
)
"""Keys within which `name` and `value` are Azure's words too."""
_PLAIN_VALUE = re.compile(
    r"[*]|#?[A-Za-z]{1,40}\d{0,3}( [A-Za-z]{1,20}){0,5}|[A-Z]{1,3}\d{1,3}[a-z]{0,4}(_[A-Z]\w{0,8})?(_v\d)?"
)
"""A word, a few words, or the short name of a size such as DS1_v2."""
_LONGEST_ACRONYM = 7  # letters
_SHORT_SIZE = re.compile(r"[A-Z]{1,3}\d{1,3}(-\d{1,3})?[a-z]{0,5}(_[A-Z]\w{0,8})?(_v\d)?")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?|P(T?\d+[DHMS])+")
_NUMBER = re.compile(r"-?\d{1,12}(\.\d{1,9}){0,2}%?")
_WORD = re.compile(r"[A-Za-z]{1,40}")
_HUMPS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_OF_WORDS = re.compile(r"W([ ,/()+._-]+W)*[).]?".replace("W", r"([A-Za-z]{2,40}\d{0,3}|[Vv]?\d{1,12})"))
_LEAST_HUMP = 3.0  # letters, on the mean: "AttachDiskWhileBeingDetached" is words, "ZbQxKdLm" is not
_SIZE = re.compile(r"(Standard|Premium|Basic|UltraSSD|StandardSSD|PremiumV2)_[A-Za-z]{1,6}[\w-]{0,30}")
_FAMILY = re.compile(r"standard\w{1,24}Family", re.IGNORECASE)
_TIER = re.compile(r"[EPS]\d{1,2}")  # of a disk
_ACTION = re.compile(r"[A-Za-z]{2,30}:[A-Za-z]{2,30}|v\d(\.\d)?")  # metrics:getBatch; v1.0
_TYPE = re.compile(r"[Mm]icrosoft(\.[A-Za-z]{2,30})+(/[A-Za-z]{2,40})*")
_CODE = re.compile(
    r"(PowerState|ProvisioningState|OSState|ReplicationState)/[A-Za-z]{2,30}(/[A-Za-z]{2,30})?"
)
_KEY = re.compile(r"[@$#]?[A-Za-z]{1,40}(_[A-Za-z]{1,40}){0,6}|@?odata\.[A-Za-z]{1,20}")
_TAG = re.compile(r"diskbook(-[a-z]{2,20}){1,3}")
_HEADER = re.compile(
    r"x-ms-[a-z-]{1,60}|x-diskbook-[a-z]{1,20}|(content|transfer|retry|accept|user|set|cache|api|azure)-[a-z]{1,20}"
    r"(-[a-z]{1,20})?|authorization|etag|location|server|date|accept|connection|expires|pragma|vary|via"
    r"|strict-transport-security|x-(cache|content-type-options|frame-options|azure-ref|msedge-ref)",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"""'(?P<single>[^'\n]{1,400})'(?!\w)|"(?P<double>[^"\n]{1,400})"|(?P<word>[^\s'"<>(){}\[\]|,;]+)"""
    r"|(?P<rest>.)",
    re.DOTALL,
)
_EMBEDDED = re.compile(r"\[\{.*\}\]|\{.*\}", re.DOTALL)
_PHRASED = re.compile(r"[^\s,;:'\"<>(){}\[\]]*[^\s,;:'\"<>(){}\[\].!?]")
_LONGEST_PHRASE = 4  # words
_ADDRESS = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*://")
"""How a URL and a resource's id begin. What has a slash further on only is neither, and is replaced whole."""
_ASSIGNED = re.compile(r"([A-Za-z_.-]{1,40}|[Xx]-[\dA-Fa-f]{10})[=:](.+)", re.DOTALL)

_HOSTS = re.compile(
    r"(management|prices)\.azure\.com|management\.(usgovcloudapi\.net|chinacloudapi\.cn)|graph\.microsoft\.com"
    r"|login\.microsoftonline\.com"
)
_PAGES = re.compile(r"aka\.ms|(learn|docs|go)\.microsoft\.com")
"""Hosts of Microsoft's pages, which everybody can read."""
_DOMAIN = re.compile(
    r"(?P<own>.+?)(?P<rest>(\.(blob|table|file|metrics))?\.((core\.windows|cloudapp\.azure)\.(net|com)"
    r"|monitor\.azure\.com|azure\.com|microsoft\.com))"
)
_NAMED_WORDS = re.compile(r"publishers|artifacttypes|offers|skus|versions|providers|locations", re.IGNORECASE)
"""Kinds of resources whose names are Azure's own."""
_QUERY_WORDS = re.compile(
    r"api-version|\$(filter|expand|select|top|orderby)|metricnames(pace)?|aggregation|interval|timespan"
    r"|(start|end)time|includeextendedlocations|monitor",
    re.IGNORECASE,
)
_HEADERS = {
    "content-type": re.compile(r"[a-z]+/[a-z.+-]+(; ?[a-z-]+=\"?[a-z0-9.-]{1,20}\"?)*", re.IGNORECASE),
    "azure-asyncnotification": re.compile(r"[A-Za-z]{1,10}"),
    "content-encoding": re.compile(r"[a-z]{1,10}"),
    "transfer-encoding": re.compile(r"[a-z]{1,10}"),
    "cache-control": re.compile(r"[a-z, =0-9-]{1,60}"),
    "content-length": re.compile(r"\d{1,12}"),
    "retry-after": re.compile(r"\d{1,6}"),
    "date": re.compile(r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"),
    "x-ms-error-code": re.compile(r"[A-Za-z]{1,60}"),
    "x-ms-failure-cause": re.compile(r"[a-z-]{1,40}"),
    "x-ms-ratelimit-remaining-resource": re.compile(r"(Microsoft\.\w{1,30}/\w{1,60};\d{1,9},? ?){1,20}"),
    "x-diskbook-provenance": re.compile(r"[a-z]{1,20}"),
    "api-supported-versions": re.compile(r"[\d, -]{1,200}(preview)?"),
    "connection": re.compile(r"[a-z-]{1,20}", re.IGNORECASE),
    "accept": re.compile(r"[a-z/*+., -]{1,60}"),
    "strict-transport-security": re.compile(r"max-age=\d{1,10}(; includeSubDomains)?(; preload)?"),
    "x-content-type-options": re.compile(r"nosniff"),
    "x-cache": re.compile(r"[A-Z_]{1,30}"),
}
_COUNTS = re.compile(r"x-ms-(ratelimit-remaining|request-charge)[a-z-]*")
_URL_HEADERS = frozenset({"location", "azure-asyncoperation", "operation-location"})


class Scrubber:
    """Scrubs exchanges with the same pseudonyms, which remember what was replaced.

    `vocabulary` are words that stay anywhere: regions, sizes, kinds of disks. `words` are those that Azure's
    own values are made of, such as "provisioning"; a value of nothing else stays, unless its field is
    private.
    """

    def __init__(
        self, names: pseudonyms.Pseudonyms, vocabulary: Collection[str] = (), words: Collection[str] = ()
    ) -> None:
        self.names = names
        self._vocabulary = {word.casefold() for word in vocabulary}
        self._words = {word.casefold() for word in words}
        self._public_values: dict[tuple[str, str, int, int], str] = {}

    # --- parts of an exchange

    def headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Scrub headers: of those that are known the value's form decides, of all others the name stays."""
        return {
            name if _HEADER.fullmatch(name) else self.names.give(name, "header"): self._header(
                name.lower(), str(value)
            )
            for name, value in given.items()
        }

    def _header(self, name: str, value: str) -> str:
        if name in _URL_HEADERS:
            return self.url(value)
        if name in ("user-agent", "server"):
            return self._public(value, "header")
        pattern = _HEADERS.get(name) or (_HEADERS["content-length"] if _COUNTS.fullmatch(name) else None)
        if pattern and pattern.fullmatch(value) and not self._tells(value):
            return self.names.without_known(value)
        return self._secret(value) if _SECRET.search(name) else self.names.give(value, name)

    def body(self, content: bytes, public: bool = False) -> Any:
        """Scrub a body: JSON, packed or not; anything else is replaced whole."""
        if not content:
            return None
        scrub = self.catalogue if public else self.json
        with contextlib.suppress(OSError, EOFError, ValueError, RecursionError):
            return scrub(json.loads(_unpacked(content).decode("utf-8-sig")))
        return self.names.give(content.decode("latin-1"), "body")

    def url(self, text: str) -> str:
        """Scrub a URL or a resource's id: kinds of resources stay; names, hosts and parameters do not."""
        text = text.strip()
        if not _ADDRESS.match(text):
            return self.names.give(text, "URL") if text and not pseudonyms.is_pseudonym(text) else text
        try:
            parts = urlsplit(re.sub(r"^[/\s]+", "/", text))
            port = f":{parts.port}" if parts.port else ""
        except ValueError:
            return self.names.give(text, "URL")
        if parts.scheme and _PAGES.fullmatch(parts.netloc) and not pseudonyms.is_private(parts.path[1:]):
            return self.names.without_known(f"{parts.scheme}://{parts.netloc}{parts.path}")
        host = f"{parts.scheme}://{self._host(parts.hostname or '')}{port}" if parts.scheme else ""
        query = "&".join(self._parameter(pair) for pair in parts.query.split("&") if pair)
        path = (
            "/".join(quote(self.names.give(_decoded(name), "URL")) for name in parts.path.split("/"))
            if "core.windows.net" in host
            else self._path(parts.path)
        )
        return host + path + (f"?{query}" if query else "")

    def json(self, value: Any, key: str = "", parent: str = "", secret: bool = False, depth: int = 0) -> Any:
        """Scrub a value of JSON and all that is within it."""
        if depth > _DEEPEST:
            return self.names.give(json.dumps(value), "body")
        secret = secret or bool(_SECRET.search(key))
        if isinstance(value, Mapping):
            tags = key.casefold() == "tags"
            return {
                (name if _TAG.fullmatch(name) else self.names.give(name, "tag"))
                if tags
                else self._key(name): self.json(inner, "" if tags else name, key, secret, depth + 1)
                for name, inner in value.items()
            }
        if isinstance(value, list):
            return [self.json(inner, key, parent, secret, depth + 1) for inner in value]
        if secret and not isinstance(value, bool | None):
            return self._secret(str(value))
        return (
            self._leaf(value, key.casefold(), parent.casefold(), depth) if isinstance(value, str) else value
        )

    def catalogue(self, value: Any, depth: int = 0) -> Any:
        """Scrub a list that Azure gives everybody: all of it stays but what has a private form."""
        if depth > _DEEPEST:
            return self.names.give(json.dumps(value), "body")
        if isinstance(value, Mapping):
            return {
                self._public(key, "name"): self.json(inner, key)
                if _SECRET.search(key)
                else self.catalogue(inner, depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self.catalogue(inner, depth + 1) for inner in value]
        return self._public(value, "value") if isinstance(value, str) else value

    # --- words

    def prose(self, text: str) -> str:
        """Scrub a sentence: words stay, and what is Azure's; names, ids, addresses, odd tokens do not."""
        embedded = _EMBEDDED.search(text)  # such as the policies that refuse something
        if embedded:
            with contextlib.suppress(ValueError, RecursionError):
                inner = json.dumps(self.json(json.loads(embedded[0])))
                before, after = text[: embedded.start()], text[embedded.end() :]
                return self._sentence(before) + inner + self._sentence(after)
        return self._sentence(text)

    def _sentence(self, text: str) -> str:
        text = self._without_phrases(self.names.without_known(redact.hide(text)))
        return _TOKEN.sub(self._token, text)

    def _without_phrases(self, text: str) -> str:
        """Replace what was replaced elsewhere as several words, such as a user's full name."""
        words = list(_PHRASED.finditer(text))
        for number in range(_LONGEST_PHRASE, 1, -1):
            for first, last in zip(words, words[number - 1 :], strict=False):
                phrase = text[first.start() : last.end()]
                if self.names.is_known(phrase) and phrase.casefold() not in self._vocabulary:
                    return "".join(
                        [
                            self._without_phrases(text[: first.start()]),
                            self.names.give(phrase, "message"),
                            self._without_phrases(text[last.end() :]),
                        ]
                    )
        return text

    def _token(self, match: re.Match[str]) -> str:
        for mark, quoted in (("'", match["single"]), ('"', match["double"])):
            if quoted is not None:
                inner = self.prose(quoted) if " " in quoted else self._quoted(quoted)
                return f"{mark}{inner}{mark}"
        return match["rest"] if match["word"] is None else self._word(match["word"])

    def _quoted(self, word: str) -> str:
        """A quoted word: a name, unless it is Azure's."""
        capital = word[:1].isupper() and self._is_made_of_words(word) and not self._is_known(word)
        if capital or self._is_azures(word):
            return word
        if word.startswith("/"):
            return self.url(word)
        return self.names.give(word, "message")

    def _word(self, word: str) -> str:
        bare = word.rstrip(".:!?")
        end = word[len(bare) :]
        assigned = _ASSIGNED.fullmatch(bare)
        if _ADDRESS.match(bare):
            return self.url(bare) + end
        if assigned and not self._is_azures(bare):
            return f"{self._word(assigned[1])}{bare[len(assigned[1])]}{self._quoted(assigned[2])}{end}"
        if self._is_azures(bare) or (
            (_is_word(bare) or self._is_made_of_words(bare)) and not self._is_known(bare)
        ):
            return bare + end
        return self.names.give(bare, "message") + end

    def _is_azures(self, word: str) -> bool:
        """Whether a word is one of Azure's own, a number, a time or no word at all."""
        if not word or pseudonyms.is_pseudonym(word) or word.replace(" ", "").casefold() in self._vocabulary:
            return True
        if pseudonyms.GUID.search(word) or self._is_known(word):
            return False
        known = (_TIME, _NUMBER, _SIZE, _FAMILY, _TYPE, _TIER)
        return any(pattern.fullmatch(word) for pattern in known) or not re.search(r"\w", word)

    def _is_known(self, word: str) -> bool:
        """Whether a word, or a part of it, was replaced somewhere."""
        words = {word, *re.split(r"[^A-Za-z0-9]+", word)}
        return any(self.names.is_known(each) for each in words if each.casefold() not in self._vocabulary)

    def _leaf(self, value: str, key: str, parent: str, depth: int) -> str:
        """Scrub a text of JSON by the keys that it stands at."""
        if not value or pseudonyms.is_pseudonym(value):
            return value
        if value.lstrip()[:1] in ("{", "["):
            with contextlib.suppress(ValueError, RecursionError):
                return json.dumps(self.json(json.loads(value), key, parent, False, depth + 1))
        if _ADDRESS.match(value):
            return self.url(value) if not re.search(r"\s", value) else self.prose(value)
        if _PROSE.fullmatch(key):
            return self.prose(value)
        bare = key.replace("_", "")
        azures = key in ("name", "value") and _PLAIN_PARENTS.fullmatch(parent)
        if self._is_azures(value) or self._is_public_at(value, bare, bool(azures)):
            return self.names.without_known(value)
        return self.names.give(value, key or "tag")

    def _is_public_at(self, value: str, key: str, azures: bool) -> bool:
        """Whether a value is one of Azure's by its form, at a key that may have such values."""
        if _RELEASE.fullmatch(key) and not (pseudonyms.is_private(value) or self._tells(value)):
            return True
        if (azures or _PLAIN.fullmatch(key)) and self._is_plain(value):
            return True
        if key == "size" and _SHORT_SIZE.fullmatch(value):
            return not self._is_known(value)
        may = azures or (key and not _PRIVATE.fullmatch(key))
        return bool(may and self._is_made_of_words(value) and not self._is_known(value))

    def _is_made_of_words(self, text: str) -> bool:
        """Whether a text has only words that Azure's values are made of, and numbers."""
        if not self._words or not _OF_WORDS.fullmatch(text) or pseudonyms.is_private(text):
            return False
        words = [word for word in re.split(r"[^A-Za-z]+", text) if word not in ("", "v", "V")]
        humps = [hump.casefold() for word in words for hump in _HUMPS.findall(word)]
        return all(map(_is_word, words)) and all(hump in self._words for hump in humps)

    def _public(self, value: str, place: str) -> str:
        """Scrub a value at a place that is public, once for all that is known: lists repeat their values."""
        asked = value, place, *self.names.known
        if asked not in self._public_values:
            self._public_values[asked] = self._unless_private(value, place)
        return self._public_values[asked]

    def _unless_private(self, value: str, place: str) -> str:
        if not value or pseudonyms.is_pseudonym(value) or value.casefold() in self._vocabulary:
            return value
        if _ADDRESS.match(value) and not re.search(r"\s", value):
            return self.url(value)
        if pseudonyms.is_private(value) or self._tells(value):
            return self.names.give(value, place)
        return self.names.without_known(value)

    def _tells(self, value: str) -> bool:
        """Whether a value of Azure's, or a part of it, was replaced somewhere and is no word of Azure's."""
        parts = [part for part in re.split(r"[^A-Za-z0-9]+", value) if part.casefold() not in self._words]
        return self.names.is_known(value) or any(map(self._is_known, parts))

    def _is_plain(self, value: str) -> bool:
        """Whether a value at a key for Azure's words has the form of one: words, with numbers after them."""
        if self._is_known(value) or self.names.without_known(value) != value:
            return False
        if self._is_azures(value) or _CODE.fullmatch(value):
            return True
        words = [word.rstrip("0123456789") for word in value.lstrip("#").split(" ")]
        return bool(_PLAIN_VALUE.fullmatch(value)) and ("_" in value or all(map(_is_word, words)))

    def _key(self, name: str) -> str:
        if _ADDRESS.match(name):
            return self.url(name)
        is_key = _KEY.fullmatch(name) and all(map(_is_word, re.split(r"[@$#._]+", name)))
        if self._is_azures(name) or (is_key and not self._is_known(name)):
            return name
        return self.names.give(name, "name")

    def _secret(self, value: str) -> str:
        self.names.keep_out(value, "secret")
        return self.names.give(value, "secret")

    # --- URLs

    def _host(self, host: str) -> str:
        if not host or pseudonyms.is_pseudonym(host) or _HOSTS.fullmatch(host):
            return host
        domain = _DOMAIN.fullmatch(host)
        if domain is None:
            return self.names.give(host, "host").lower()
        own = domain["own"]
        return (own if own in self._vocabulary else self.names.give(own, "host")) + domain["rest"]

    def _path(self, path: str) -> str:
        """Scrub a path of kinds and names, such as /subscriptions/ID/resourceGroups/NAME."""
        kind = ""
        clean: list[str] = []
        for raw in path.split("/"):
            segment = _decoded(raw)
            if not segment:
                clean.append(segment)
            elif kind and kind != "providers":
                clean.append(quote(self._name_in_path(segment, kind)))
                kind = ""
            else:
                clean.append(quote(self._kind_in_path(segment), safe="$:"))
                # A version such as v1.0, and a provider's namespace, are followed by a kind.
                kind = (
                    "" if kind == "providers" or re.fullmatch(r"v\d(\.\d)?", segment) else segment.casefold()
                )
        return "/".join(clean)

    def _kind_in_path(self, segment: str) -> str:
        known = self._is_known(segment)
        if not known and (_TYPE.fullmatch(segment) or _is_word(segment) or _ACTION.fullmatch(segment)):
            return segment
        return self.names.give(segment, "URL")

    def _name_in_path(self, segment: str, kind: str) -> str:
        if pseudonyms.is_pseudonym(segment) or segment.casefold() in self._vocabulary:
            return segment
        if _NAMED_WORDS.fullmatch(kind) and self._is_plain(segment):
            return self.names.without_known(segment)
        return self.names.give(segment, kind)

    def _parameter(self, pair: str) -> str:
        name, equals, value = pair.partition("=")
        name, value = _decoded(name), _decoded(value.replace("+", " "))
        if _QUERY_WORDS.fullmatch(name):
            return f"{quote(name, safe='$')}{equals}{quote(self.prose(value), safe='$:,-')}"
        clean = self._key(name)
        return f"{quote(clean, safe='$')}{equals}{quote(self._secret(value), safe='')}"


def _is_word(text: str) -> bool:
    """Whether a text is a word, or several in the manner of programs; "" is."""
    if not text:
        return True
    humps = _HUMPS.findall(text)
    if not _WORD.fullmatch(text) or sum(map(len, humps)) != len(text):
        return False
    if not text.isupper() and any(hump.isupper() and len(hump) > _LONGEST_ACRONYM for hump in humps):
        return False
    return len(humps) <= 2 or len(text) / len(humps) >= _LEAST_HUMP


def _decoded(text: str) -> str:
    """A part of a URL without its encoding, also where it was encoded twice."""
    for _ in range(3):
        text = unquote(text)
    return text


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(b"\x1f\x8b"):
        return content
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        inner = file.read(_MOST_BYTES + 1)
    if len(inner) > _MOST_BYTES:
        raise ValueError("too large")
    return inner
