"""Summarize a failed sign-in: what azure-identity tried, in one line instead of its page of text."""

from __future__ import annotations

import re

from diskbook.facts import redact

_ATTEMPT = re.compile(r"^\t(\w+): (.*?)(?=^\t\w+: |^To mitigate|\Z)", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"Attempted credentials:|^(DefaultAzure|ChainedToken)Credential failed", re.MULTILINE)

# Azure's words, and ours: the first that fits counts. AADSTS numbers are those of Microsoft's list of
# authentication errors.
_REASONS = (
    (r"not found on path|could not be found|not installed|package", "not installed"),
    (r"AADSTS(70043|700082|700084|50173|50078|50132|500133)|expired", "the sign-in has expired"),
    (r"AADSTS(50076|50079|50158)", "asks for a second factor"),
    (r"AADSTS7000215|invalid client secret", "the client secret is wrong"),
    (r"AADSTS7000222", "the client secret has expired"),
    (r"AADSTS700016", "the application is not known in this tenant"),
    (r"AADSTS(90002|900023)", "there is no such tenant"),
    (r"AADSTS(\d+)", r"refused with AADSTS\1"),
    (r"az login|azd auth login|Connect-AzAccount|No accounts? (was|were) found", "not signed in"),
    (r"timed out waiting|process.*tim(ed|e) ?out", "did not answer in time"),
    (r"not fully configured|not configured|no environment|not set", "not configured"),
    (r"IMDS|managed identity|link-local", "not on an Azure machine"),
    (r"resolve|connect|unreachable|timed out", "its server cannot be reached"),
)
_LONGEST = 60  # characters of a reason that none of these fits
_BY_VARIABLES = "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"


def is_page(message: str) -> bool:
    """Whether a message is azure-identity's page about a failed sign-in."""
    return _PAGE.search(message) is not None


def attempts(message: str) -> list[tuple[str, str]]:
    """Names of the credentials that were tried, each with the reason why it gave no token."""
    return [(name, _reason(text)) for name, text in _ATTEMPT.findall(message)]


def line(message: str) -> str:
    """Summarize the page in one line: what was tried, and what to run."""
    tried = attempts(message)
    if not tried:
        return f"nobody is signed in to Azure ({_reason(message)}): run 'az login'"
    listed = ", ".join(f"{name} ({reason})" for name, reason in tried)
    return f"nobody is signed in to Azure; tried {listed}: {_remedy(dict(tried))}"


def _reason(text: str) -> str:
    for pattern, words in _REASONS:
        if match := re.search(pattern, text, re.IGNORECASE):
            return match.expand(words)
    first = re.split(r"(?<=\w)[.;\n]", text.strip(), maxsplit=1)[0]
    return redact.hide(first)[:_LONGEST]


def _remedy(tried: dict[str, str]) -> str:
    names = list(tried)
    if names == ["EnvironmentCredential"] and tried[names[0]] != "not configured":
        return "check AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"
    if names == ["ManagedIdentityCredential"]:
        return "give this machine an identity, or unset AZURE_TOKEN_CREDENTIALS and run 'az login'"
    if tried.get("AzureCliCredential") == "not installed":
        return f"install the Azure CLI and run 'az login', or {_BY_VARIABLES}"
    return f"run 'az login', or {_BY_VARIABLES}"
