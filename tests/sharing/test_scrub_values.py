"""Scrubbing: nothing planted survives, what is Azure's stays, the same original has one pseudonym."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings, strategies as st

from diskbook.sharing import recording
from diskbook.sharing.pseudonyms import (
    GIVEN,
    KINDS,
    Pseudonyms,
    is_pseudonym,
    kind_of,
    spellings,
)
from diskbook.sharing.scrub_values import Scrubber

WORDS = ("westeurope", "Standard_D4as_v4", "Premium_LRS", "ubuntu-24_04-lts")
SUBSCRIPTION = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
SECRETS = {
    "password": 'Tr0ub4dor&3/xyz"quoted"',
    "token": "eyJ0eXAiOiJKV1QiLCJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJodHRwczovL21hbmFnZW1lbnQifQ.c2lnbmF0dXJl",
    "storage key": "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYg==",
    "ssh key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGZ5vYmFyYmF6cXV4Zm9v anna@laptop",
    "private key": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END -----",
    "sas": "sv=2024-11-04&sig=c2lnbmF0dXJlLXdpdGgrcGx1cw%3D%3D",
    "subscription": SUBSCRIPTION,
    "tenant": "9B2D7A3C-0000-4F00-A000-123456789ABC",
    "user": "anna.schmidt@contoso.example",
    "host": "build-07.corp.contoso.example",
    "address": "203.0.113.77",
    "address 6": "2a02:1234:5678::beef",
    "group": "contoso-secret-project-rg",
    "operation": "MIIHpTCCBo2gAwIBAgITfwTYu0qbwU0Jo6gKugAEBNi7SjANBgkqhkiG9w0BAQsFADBEMRMw",
    "client secret": "abc8Q~dEfGhIjKlMnOpQrStUvWxYz0123456789a",
    "connection string": "DefaultEndpointsProtocol=https;AccountName=diag7;AccountKey=Zm9vYmFyYmF6cXV4Zm9v",
    "database": "Server=tcp:sql-7.contoso.example,1433;User ID=anna;Password=Wint3r-2026!",
    "blob": "https://contosodiag.blob.core.windows.net/dumps/anna.vhd?sig=c2lnbmF0dXJlLXdpdGg",
    "vault": "https://contoso-kv.vault.azure.net/secrets/db/4387e9f3d6e14c459867679a90fd0f79",
    "resource id": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/lab-7/providers/A.B/disks/d-7",
    "guid without hyphens": "3f2504e04f8911d39a0c0305e82c3301",
    "guid in braces": "{9b2d7a3c-0000-4f00-a000-123456789abc}",
    "sha256": "5f303697001e616caefab43427ca8e323ebe0e4da4a9016183970324701cc39c",
    "thumbprint": "A9:4A:8F:E5:CC:B1:9B:A6:1C:4C:08:73:D3:91:E9:87:98:2F:BB:D3",
    "git token": "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "access key": "AKIAIOSFODNN7EXAMPLE",
    "one-time code": "JBSWY3DPEHPK3PXP",
    "licence key": "VK7JG-NPHTM-C97JM-9MPGT-3V66T",
    "bcrypt": "$2b$12$EixZaYVK1fsbw1ZfbX3OXePaWxn96p36WQoeG6Lruj3vjPGga31lW",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0\n-----END -----",
    "mac address": "00-0D-3A-5F-7C-21",
    "address and port": "203.0.113.77:50022",
    "range of addresses": "203.0.113.64/26",
    "tenant domain": "contosoltd.onmicrosoft.com",
    "security id": "S-1-5-21-3623811015-3361044348-30300820-1013",
    "Windows path": "C:\\Users\\anna.schmidt\\keys.txt",
    "share": "\\\\filer-3\\contoso\\anna",
    "home": "/home/anna.schmidt/.ssh/id_ed25519",
    "card": "4111111111111111",
    "serial": "27000000cf8a1f2b3c4d5e6f708192a3b4c5d6e7",
}
assert len(SECRETS) == 40
# Made of ordinary words: only their field tells them, and what was told once is replaced everywhere.
WORDS_OF_SOMEBODY = (
    "Anna Schmidt",
    "correct horse battery staple",
    "contosodiag01",
    "Fabrikam",
    "contoso-secret-project-rg",
    "CC-4711",
    "+49 30 901820",
    "projekt_moewe",
)


AZURE = "management.azure.com"


def new_scrubber(key: bytes = b"key") -> Scrubber:
    return Scrubber(Pseudonyms(key), WORDS, recording.azures_words())


def coded(text: str) -> str:
    return quote(text, safe="")


def b64(text: str, before: int = 0) -> str:
    return base64.b64encode(b"pad"[:before] + text.encode() + b"tail").decode()


# Where somebody may put a secret: each makes a scrubbed text of it.
PLACES: dict[str, Callable[[Scrubber, str], Any]] = {
    "secret field": lambda s, x: s.json({"osProfile": {"adminPassword": x, "customData": x}}),
    "any field": lambda s, x: s.json({"properties": {"foo": x, "list": [x, {"bar": x}]}}),
    "field for Azure's words": lambda s, x: s.json({"location": x, "code": x, "type": x, "status": x}),
    "name within a sku": lambda s, x: s.json({"sku": {"name": x}, "capabilities": [{"value": x}]}),
    "key of JSON": lambda s, x: s.json({"identities": {x: {"principalId": x}}}),
    "tag": lambda s, x: s.json({"tags": {x: x, "diskbook-run": x}}),
    "message": lambda s, x: s.json({"error": {"message": f"It failed: {x} is locked."}}),
    "quoted message": lambda s, x: s.json({"error": {"message": f"The group '{x}' is not allowed."}}),
    "assigned message": lambda s, x: s.json({"message": f"AccountKey={x};EndpointSuffix=core.windows.net"}),
    "URL path": lambda s, x: s.url(f"https://{AZURE}/subscriptions/{x}/resourceGroups/{x}/foo/{x}"),
    "encoded URL": lambda s, x: s.url(f"https://a.blob.core.windows.net/{coded(x)}?sig={quote_plus(x)}"),
    "twice encoded URL": lambda s, x: s.url(f"/subscriptions/{coded(coded(x))}"),
    "operation's signature": lambda s, x: s.url(f"https://{AZURE}/a/b?t={x}&c={x}&s={x}&h={x}"),
    "URL's user": lambda s, x: s.url(f"https://{coded(x)}:{coded(x)}@{AZURE}/a"),
    "URL's host": lambda s, x: s.url(f"https://{x}/a"),
    "URL's filter": lambda s, x: s.url(f"https://graph.microsoft.com/v1.0/users?$filter=mail eq '{x}'"),
    "URL's fragment": lambda s, x: s.url(f"https://{AZURE}/a#{x}"),
    "public list": lambda s, x: s.catalogue({"value": [{"name": x, "list": [{"value": x}], x: 1}]}),
    "release": lambda s, x: s.json({"kernel": x, "image": x, "imageReference": {"offer": x, "version": x}}),
    "header of a release": lambda s, x: s.headers({"User-Agent": f"azsdk/1.0 {x}", "Server": x}),
    "header": lambda s, x: s.headers({"Authorization": f"Bearer {x}", "X-Any": x, "ETag": x}),
    "header for Azure's words": lambda s, x: s.headers({"Retry-After": x, "x-ms-error-code": x}),
    "header with a URL": lambda s, x: s.headers({"Location": f"https://{AZURE}/op/{quote(x)}?s={x}"}),
    "name of a header": lambda s, x: s.headers({x: "1"}),
    "packed body": lambda s, x: s.body(gzip.compress(json.dumps({"value": [{"id": x}]}).encode())),
    "body of text": lambda s, x: s.body(f"<Error>{x}</Error>".encode()),
    "JSON within JSON": lambda s, x: s.json({"message": json.dumps({"in": x}), "a": json.dumps([x])}),
    "base64": lambda s, x: s.json({"v": b64(x), "message": f"data {b64(x)} end", "location": b64(x)}),
    "base64, moved by 1": lambda s, x: s.json({"v": b64(x, 1), "message": b64(x, 1), "code": b64(x, 1)}),
    "base64, moved by 2": lambda s, x: s.json({"v": b64(x, 2), "message": b64(x, 2), "code": b64(x, 2)}),
}


def survivors(text: str, secret: str) -> list[str]:
    """Spellings of a secret that stand in a text."""
    lines = [secret, *(line for line in secret.split("\n") if len(line) > 12 and "KEY-" not in line)]
    return [each for line in lines for each in spellings(line) if each.casefold() in text.casefold()]


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_nothing_planted_survives(place: str) -> None:
    public = place in (
        "public list",
        "release",
        "header of a release",
    )  # a name may be that of an image there
    for kind, secret in SECRETS.items():
        if public and kind == "group":
            continue
        scrubber = new_scrubber()
        text = json.dumps(PLACES[place](scrubber, secret))
        assert not survivors(text, secret), f"{kind} in {place}: {text}"


def test_a_value_of_a_public_list_is_replaced_once_it_is_known() -> None:
    scrubber = Scrubber(Pseudonyms(b"key"), WORDS)
    listed = {"value": [{"name": "fabrikam"}, {"name": "prenorthwindpost"}]}
    assert scrubber.catalogue(listed) == listed
    scrubber.names.give("fabrikam", "tag")
    scrubber.names.give("northwind", "tag")
    assert "fabrikam" not in str(scrubber.catalogue(listed))
    assert "northwind" in str(scrubber.catalogue(listed))
    scrubber.names.keep_out("northwind", "secret")
    assert "northwind" not in str(scrubber.catalogue(listed))


@pytest.mark.parametrize("place", PLACES)
def test_what_a_field_has_told_is_replaced_in_every_place(place: str) -> None:
    for original in WORDS_OF_SOMEBODY:
        scrubber = new_scrubber()
        scrubber.json({"owner": original})
        text = json.dumps(PLACES[place](scrubber, original))
        assert not survivors(text, original), f"{original} in {place}: {text}"


def test_a_secret_of_ordinary_words_is_found_again_where_words_stay() -> None:
    scrubber = new_scrubber()
    scrubber.json({"adminPassword": "correcthorse", "name": "vm-7"})
    blob = base64.b64encode(b"xcorrecthorsey").decode()
    text = scrubber.prose(f"correcthorse of vm-7, in {blob}, in hex {b'correcthorse'.hex()}, Correcthorse")
    assert not survivors(text, "correcthorse") and "vm-7" not in text


def test_what_is_azures_stays() -> None:
    scrubber = new_scrubber()
    body = {
        "name": "vm-1",
        "location": "westeurope",
        "type": "Microsoft.Compute/virtualMachines",
        "sku": {"name": "Premium_LRS", "tier": "Premium"},
        "zones": ["1"],
        "properties": {
            "provisioningState": "Succeeded",
            "diskSizeGB": 64,
            "timeCreated": "2026-11-22T20:24:58.2+00:00",
            "statuses": [{"code": "PowerState/running", "displayStatus": "VM running"}],
            "imageReference": {
                "publisher": "Canonical",
                "offer": "ubuntu-24_04-lts",
                "version": "24.04.202611",
            },
        },
    }
    clean = scrubber.json(body)
    assert is_pseudonym(clean.pop("name")) and body.pop("name")
    assert clean == body
    headers = {"Retry-After": "17", "x-ms-ratelimit-remaining-resource": "Microsoft.Compute/PutVM3Min;3"}
    assert scrubber.headers(headers) == headers
    message = (
        "Allocation failed. Size 'Standard_D4as_v4' is not available in 'westeurope' (OperationNotAllowed)."
    )
    assert scrubber.prose(message) == message
    url = scrubber.url(
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/g1/providers/Microsoft.Compute/disks/d-1"
    )
    assert re.sub(GIVEN, "?", url) == "/subscriptions/?/resourceGroups/?/providers/Microsoft.Compute/disks/?"


def test_public_facts_stay_also_in_fields_that_nobody_has_listed() -> None:
    scrubber = new_scrubber()
    facts = {
        "kernel": "Linux 6.11.0-1018-azure",
        "tool_version": "fio-3.33",
        "image": "Canonical:ubuntu-24_04-lts:server:24.04.202611",
        "diskControllerTypes": "SCSI, NVMe",
        "aNewOption": "ReadOnlyAccess",
        "hyperVGenerations": "V1,V2",
        "retirement": "05/01/2028",
        "unit": "Count",
    }
    assert scrubber.json(facts) == facts
    headers = {
        "User-Agent": "azsdk-python-mgmt-compute/39.0.0 Python/3.11.2 (Linux-6.1.0-18-amd64-x86_64)",
        "Server": "Microsoft-HTTPAPI/2.0",
        "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    }
    assert scrubber.headers(headers) == headers
    message = (
        "The value 'Standard' of properties.sku is invalid. See https://aka.ms/allocation-guidance, "
        "or try a zone-redundant disk."
    )
    assert scrubber.prose(message) == message


def test_policies_within_a_message_are_scrubbed_as_json() -> None:
    scrubber = new_scrubber()
    assignment = {
        "policyAssignment": {"name": "Deny Public IP Contoso", "id": f"/subscriptions/{SUBSCRIPTION}"}
    }
    text = scrubber.prose(f"Resource 'vm-7' was disallowed by policy. Policy: '{json.dumps([assignment])}'.")
    assert "Contoso" not in text and "vm-7" not in text and SUBSCRIPTION not in text
    assert "was disallowed by policy" in text and "policyAssignment" in text


def test_the_same_original_has_the_same_pseudonym_under_one_key_alone() -> None:
    first, second, other = (Scrubber(Pseudonyms(key)) for key in (b"key", b"key", b"other"))
    url = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/Contoso-RG"
    upper = first.url(url.upper().replace("SUBSCRIPTIONS", "subscriptions"))
    assert first.url(url) == second.url(url) != other.url(url)
    assert upper.lower() == first.url(url).lower() and upper != first.url(url)
    named = first.json({"resourceGroup": "Contoso-RG"})["resourceGroup"]
    assert named == first.url(url).rpartition("/")[2]
    assert first.names.kinds[named] == "resource group"


@pytest.mark.parametrize("learn", [
    lambda s, x: s.json({"userName": x}),
    lambda s, x: s.json({"tags": {"team": x}}),
    lambda s, x: s.json({"foo": x}),
    lambda s, x: s.url(f"/subscriptions/{x}/foo"),
    lambda s, x: s.headers({"X-Any": x}),
    lambda s, x: s.headers({x: "1"}),
])  # fmt: skip
@pytest.mark.parametrize("name", ["anna", "Anna Schmidt", "anna-schmidt"])
def test_what_was_replaced_once_is_replaced_everywhere(
    learn: Callable[[Scrubber, str], Any], name: str
) -> None:
    scrubber = new_scrubber()
    learn(scrubber, name)
    later = new_scrubber()  # of another process, which has the pseudonyms alone
    later.names.kinds |= scrubber.names.kinds
    for each in (scrubber, later):
        texts = [
            each.prose(f"The disk is locked by {name}. Ask '{name}', or owner={name}; {name.upper()} knows"),
            json.dumps(each.json({"location": name, "message": f"{name}: no quota in westeurope", name: 1})),
            each.url(f"/subscriptions/s/{quote(name)}/x?$filter=name eq {quote(name)}"),
        ]
        assert name.casefold() not in " ".join(texts).casefold().replace("%20", " ")
        assert "The disk is locked by" in texts[0] and "no quota in westeurope" in texts[1]


def test_the_parts_of_a_user_s_name_are_replaced_too() -> None:
    scrubber = new_scrubber()
    scrubber.json({"createdBy": "anna.schmidt@contoso.example", "displayName": "Anna Maria Lee"})
    text = scrubber.prose("Schmidt of contoso asked Anna and Lee; in westeurope it failed")
    assert re.sub(GIVEN, "?", text) == "? of ? asked ? and ?; in westeurope it failed"


@pytest.mark.long
@pytest.mark.parametrize("place", PLACES)
def test_a_kind_says_nothing_of_where_an_original_stood(place: str) -> None:
    closed = {kind for kind, _ in KINDS}
    for secret in SECRETS.values():
        scrubber = new_scrubber()
        PLACES[place](scrubber, secret)
        scrubber.url(f"/foo/{secret}/contoso-proxy/x")
        scrubber.headers({f"X-{secret}": "x", "X-Contoso-Proxy": "anna"})
        scrubber.json({secret: "value-1", "contosoKey": {"contosoName": "value-2"}})
        assert set(scrubber.names.kinds.values()) <= closed
    assert kind_of("X-Contoso-Proxy") == "value" and {kind_of(kind) for kind in closed} == closed


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        ("subscriptions", "subscription"),
        ("tenantId", "tenant"),
        ("resourceGroups", "resource group"),
        ("adminUsername", "user"),
        ("virtualmachines", "machine"),
        ("privateIPAddress", "address"),
        ("user-agent", "header"),
        ("x-ms-request-id", "id"),
        ("ipConfigurations", "network"),
    ],
)
def test_a_kind_is_known_by_azure_s_own_words(place: str, kind: str) -> None:
    assert kind_of(place) == kind


def test_shapes_are_kept() -> None:
    names = Pseudonyms(b"key")
    net, address, other, link, guid = (
        names.give(text, "") for text in ("10.0.0.0/24", "203.0.113.7", "2a02::1", "fe80::/64", SUBSCRIPTION)
    )
    assert re.fullmatch(r"198\.1[89]\.\d+\.\d+/24", net) and re.fullmatch(r"198\.1[89]\.\d+\.\d+", address)
    assert other.startswith("2001:db8::") and link.startswith("2001:db8::") and link.endswith("/64")
    assert guid.startswith("00000000-0000-4000-8000-")
    assert all(map(is_pseudonym, (net, address, other, link, guid)))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.long
@settings(max_examples=150)
@given(JSON, st.text(max_size=60), st.binary(max_size=60))
@example({"?/": None}, "a?://b", b"")
def test_whatever_comes_is_scrubbed_and_scrubbing_again_changes_nothing(
    value: Any, text: str, content: bytes
) -> None:
    scrubber, again = new_scrubber(), new_scrubber()
    body = scrubber.json({"properties": value, "id": text, "message": text})
    assert again.json(body) == body
    headers = scrubber.headers({text: text, "Location": text})
    assert again.headers(headers) == headers
    url = scrubber.url(text)
    assert again.url(url) == url
    json.dumps([body, headers, url, scrubber.body(content)])
