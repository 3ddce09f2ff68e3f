"""What must never be written down: secrets in parameters are refused, in messages they are hidden.

No part of the workbook takes a secret: azure-identity reads its own environment variables, and the key of a
run is made for it. So whatever looks like one in a parameter is a mistake, and is told without repeating
it.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from diskbook.facts.errors import UsageError

# Environment variables of azure-identity and of managed identities that hold a secret.
VARIABLES = (
    "AZURE_CLIENT_SECRET",
    "AZURE_CLIENT_CERTIFICATE_PASSWORD",
    "AZURE_PASSWORD",
    "IDENTITY_HEADER",
    "MSI_SECRET",
    "SYSTEM_ACCESSTOKEN",
)
HIDDEN = "(hidden)"
_LEAST = 6  # characters; a shorter value would hide ordinary words

_NAME = re.compile(
    r"(^|[._-])(pass(word|wd|phrase)?|pwd|secret|token|credentials?|sas|"
    r"(api|access|account|private|shared|client)[_-]?(key|secret|token))([._-]|$)",
    re.IGNORECASE,
)
_SHAPES = {
    "an access token": re.compile(r"eyJ[\w-]{8,}\.eyJ[\w-]{8,}(\.[\w-]*)?"),
    "a shared access signature": re.compile(r"[?&;]sig=[^&\s]{16,}", re.IGNORECASE),
    "an account key": re.compile(r"(Account|SharedAccess)Key=[^;\s]{16,}|[A-Za-z0-9+/]{86}==", re.IGNORECASE),
    "a private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?-----END [A-Z ]*-----|.*)", re.DOTALL
    ),
    # Microsoft marks the secrets of applications with these characters in the same places.
    "a client secret": re.compile(r"[\w.~-]{3}\dQ~[\w.~-]{31,34}"),
}


def refuse(parameters: Mapping[str, Any], where: str = "") -> None:
    """Refuse parameters that look like a secret, before they are written anywhere.

    - `parameters`: names and values; lists and tables are looked into.
    - `where`: put before a name, for example "--set ".

    Raises UsageError with the name of the parameter, never its value.
    """
    for name, value in _leaves(parameters):
        kind = "a secret, by its name" if _NAME.search(name) else _kind(value)
        if kind:
            raise UsageError(
                f"{where}{hide(name)} looks like {kind}; the workbook takes no secrets, and writes its "
                "parameters down: leave it out, and sign in with 'az login' or by azure-identity's variables"
            )


def hide(text: str) -> str:
    """Take secrets out of a text: those in the environment, and whatever has the shape of one."""
    for value in _planted():
        text = text.replace(value, HIDDEN)
    for shape in _SHAPES.values():
        text = shape.sub(HIDDEN, text)
    return text


def _kind(value: str) -> str | None:
    for variable in VARIABLES:
        planted = os.environ.get(variable, "")
        if len(planted) >= _LEAST and planted in value:
            return f"the value of {variable}"
    return next((kind for kind, shape in _SHAPES.items() if shape.search(value)), None)


def _planted() -> Iterator[str]:
    for variable in VARIABLES:
        if len(value := os.environ.get(variable, "")) >= _LEAST:
            yield value


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Names and texts of all values within, keys included."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner, name)
    else:
        yield name, str(value)
