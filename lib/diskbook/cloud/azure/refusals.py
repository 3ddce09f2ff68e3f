"""Azure's errors in one line: code and message, whether to retry, and what to change.

Codes are from Microsoft's table of common errors of virtual machines (error-messages.md in
MicrosoftDocs/SupportArticles-docs) and from Azure Resource Manager's list of deployment errors. Codes of the
network provider are from its documentation and were not seen in real answers. A failed sign-in is one line
too, where azure-identity writes a page. Operations record their time.
"""

import contextlib
import json
import re
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from azure.core.exceptions import AzureError, HttpResponseError

from diskbook.cloud.azure.clients import Clients
from diskbook.cloud.azure.retry import Tell
from diskbook.facts import redact
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run, now_utc

_ATTEMPT = re.compile(r"^\t(\w+): (.*?)(?=^\t\w+: |^To mitigate|\Z)", re.MULTILINE | re.DOTALL)
_PAGE = re.compile(r"Attempted credentials:|^(DefaultAzure|ChainedToken)Credential failed", re.MULTILINE)

_KNOWN = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_WORDS: dict[str, str] = _KNOWN["words"]
_ADVICE = {code: words.format(**_WORDS) for code, words in _KNOWN["advice"].items()}
_LONGEST = 60  # characters of a reason that none of these fits
_BY_VARIABLES = "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET"


def is_signin_page(message: str) -> bool:
    """Whether a message is azure-identity's page about a failed sign-in."""
    return _PAGE.search(message) is not None


def signin_attempts(message: str) -> list[tuple[str, str]]:
    """Names of the credentials that were tried, each with the reason why it gave no token."""
    return [(name, _reason(text)) for name, text in _ATTEMPT.findall(message)]


def signin_line(message: str) -> str:
    """Summarize the page in one line: what was tried, and what to run."""
    tried = signin_attempts(message)
    if not tried:
        return f"nobody is signed in to Azure ({_reason(message)}): run 'az login'"
    listed = ", ".join(f"{name} ({reason})" for name, reason in tried)
    return f"nobody is signed in to Azure; tried {listed}: {_remedy(dict(tried))}"


def _reason(text: str) -> str:
    for pattern, words in _KNOWN["reasons"]:
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


Result = TypeVar("Result")

_OF_QUOTAS = ("OperationNotAllowed", "ResourceQuotaExceeded", "QuotaExceeded")


def message(error: AzureError) -> str:
    """Azure's own code and message in one line, without anything secret."""
    text = str(error.message)
    if is_signin_page(text):
        return signin_line(text)
    if isinstance(error, HttpResponseError) and (named := code(error)):
        body = _body(error)
        reason = str(body.get("message") or "the operation was ended by Azure")
        return _line(f"{body.get('code') or named}: {reason}")
    return _line(text)


def with_advice(error: AzureError) -> str:
    """Azure's message, and what to change where that is known."""
    text, hint = message(error), advice(error)
    return f"{text.rstrip('.')}. {hint[0].upper()}{hint[1:]}" if hint else text


def code(error: AzureError) -> str:
    """Innermost code of the refusal, which names the cause; "" where Azure gave none."""
    codes = list(_codes(_body(error)))
    return codes[-1] if codes else ""


def repeatable(error: AzureError) -> bool:
    """Whether an operation that ended so is worth one more try, unchanged."""
    body = _body(error)
    if "internal error" in str(body.get("message", "")).lower() and code(error) == "AllocationFailed":
        return True
    return code(error) in _KNOWN["repeatable"]


def advice(error: AzureError) -> str:
    """What to change, in a few words; "" where only Azure's own message helps."""
    known = code(error)
    if known in _OF_QUOTAS and "quota" in (text := json.dumps(_body(error)).lower()):
        if "cores" in text:
            return _WORDS["cores"]
        return _WORDS["addresses"] if re.search(r"public ?ip|ipv4|addresses", text) else _WORDS["quota"]
    return _ADVICE.get(known, "")


def lacks_room(error: AzureError) -> bool:
    """Whether Azure has no room for a size there, so that another size or zone may do."""
    return _WORDS["room"] in advice(error)


def retry_once(action: Callable[[], Result], tell: Tell) -> Result:
    """Run an operation, and a second time where Azure ended it through no fault of what was asked for."""
    try:
        return action()
    except AzureError as error:
        if not repeatable(error):
            raise
        tell(f"Azure ended an operation with {code(error)}; trying it once more")
    return action()


def _body(error: AzureError) -> dict[str, Any]:
    """The inside of Azure's envelope, or of a failed operation; {} where there is none."""
    response = getattr(error, "response", None)
    if response is None:
        return {}
    try:
        document = json.loads(response.text())
    except (AzureError, ValueError, AttributeError):
        return {}
    if not isinstance(document, dict):
        return {}
    inner = document.get("error")
    if isinstance(inner, dict):
        return inner
    status = document.get("status")
    return {"code": status} if status in ("Failed", "Canceled") else {}


def _codes(body: dict[str, Any]) -> Iterator[str]:
    """Codes from the outermost to the innermost of the first detail at each level."""
    if body.get("code"):
        yield str(body["code"])
    for row in [row for row in body.get("details") or [] if isinstance(row, dict)][:1]:
        yield from _codes(row)


def _line(text: str) -> str:
    """One line, without queries of URLs (they carry signatures) and secrets."""
    first = " ".join(text.split())
    return redact.hide(re.sub(r"(/[^\s?'\"]*)\?[^\s'\")]+", r"\1", first))


@contextlib.contextmanager
def operation(run: Run, name: str, target: str, clients: Clients | None = None) -> Iterator[None]:
    """Record the time of one control-plane operation, and put Azure's refusal into one sentence.

    With `clients` given the unscaled time is recorded as well; it is only right while no other operation
    runs. On the emulator both are the profile's own delays, not a finding about Azure.
    """
    started_utc, started, saved = now_utc(), time.monotonic(), clients.saved_s if clients else 0.0
    try:
        yield
    except AzureError as error:
        changed = _change_text(run, target) if name.endswith("machine") and lacks_room(error) else ""
        reason = with_advice(error) + changed
        raise DiskbookError(f"{name} {target}: {reason}") from error
    real_s = time.monotonic() - started
    unscaled_s = round(real_s + clients.saved_s - saved, 3) if clients else None
    run.append(
        "operation",
        name=name,
        target=target,
        started_utc=started_utc,
        real_s=round(real_s, 3),
        unscaled_s=unscaled_s,
    )


def _change_text(run: Run, target: str) -> str:
    """Say how another size or zone is taken for a machine, e.g. r1-vm1, that Azure has no room for."""
    if run.has_trials():
        return ". This run has trials, so it keeps its sizes and zones: another one takes a new run"
    machine = f"'diskbook run --resume {run.name} --set machine.{target.partition('-')[2]}"
    return f". {machine}.size=SIZE' takes another size, {machine}.zone=ZONE' another zone"
