"""Azure's errors in one line: code and message, whether to retry, and what to change.

Codes are from Microsoft's table of common errors of virtual machines (error-messages.md in
MicrosoftDocs/SupportArticles-docs) and from Azure Resource Manager's list of deployment errors. Codes of the
network provider are from its documentation and were not seen in real answers. A failed sign-in is one line
too, where azure-identity writes a page.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from azure.core.exceptions import AzureError, HttpResponseError

from diskbook.cloud.azure.retry import Tell
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


Result = TypeVar("Result")

# The operation ended, but through no fault of what was asked for.
_REPEATABLE = {
    "AnotherOperationInProgress",
    "Canceled",
    "CanceledAndSupersededDueToAnotherOperation",
    "GatewayTimeout",
    "InternalError",
    "InternalExecutionError",
    "InternalOperationError",
    "InternalServerError",
    "NetworkingInternalOperationError",
    "OperationPreempted",
    "RetryableError",
    "RetryableErrorDueToAnotherOperation",
    "ServerTimeout",
    "ServiceUnavailable",
}

_ROOM = "choose another size, zone or region, or try again later"
_CORES = (
    "the quota of cores is used up: take a smaller size, one of another family, fewer replicates or another "
    "region, or ask for more (portal, Quotas, Compute)"
)
_ADDRESSES = (
    "the quota of public addresses is used up: delete those that are not needed, use a private network "
    "(network.kind), or ask for more (portal, Quotas, Networking)"
)
_QUOTA = "ask for more quota (portal, Quotas), or take a smaller size, fewer machines or another region"
_REGION = "--set scenario.region=REGION"
_ROLE = "the account needs the role Contributor on this subscription; ask its owner"
_LOGIN = "sign in again with 'az login'"
_OTHER = (
    "name another subscription with --subscription or AZURE_SUBSCRIPTION_ID ('az account list' shows yours)"
)

_ADVICE = {
    "SkuNotAvailable": f"Azure has no room for this size there: {_ROOM}",
    "AllocationFailed": f"Azure has no room for this size now: {_ROOM}",
    "ZonalAllocationFailed": f"Azure has no room for this size in this zone: {_ROOM}",
    "OverconstrainedAllocationRequest": f"no host has all of size, zone and disks at once: {_ROOM}",
    "OverconstrainedZonalAllocationRequest": f"no host of this zone has all of size and disks: {_ROOM}",
    "NotAvailableForSubscription": f"this subscription may not use it there: {_ROOM}",
    "QuotaExceeded": _QUOTA,
    "PublicIPCountLimitReached": _ADDRESSES,
    "RequestDisallowedByAzure": "this subscription may use only some regions, as is usual for students and "
    f"trials: take one of them ({_REGION}), or have support open this one",
    "OSProvisioningTimedOut": "the machine's system did not report in time, though it may still start: "
    "resume the run; if it happens again, keep the machine with --debug-minutes 10",
    "VMExtensionProvisioningError": "the script that sets a Windows machine up failed, with that output: "
    "check that the network lets the machine out to port 443 for downloads, then resume",
    "PlatformImageNotFound": "this version of the image was withdrawn or is not in this region: begin a new "
    f"run, which looks for the newest version, or take another region ({_REGION})",
    "MarketplacePurchaseEligibilityFailed": "this subscription may not buy from the Marketplace, or nobody "
    "has accepted the image's terms: ask its billing owner, or take another subscription",
    "NoRegisteredProviderFound": "this region or cloud lacks the resource type or the API version that is "
    f"named: take another region ({_REGION}); if its provider is not registered, 'az provider register'",
    "AuthorizationFailed": _ROLE,
    "LinkedAuthorizationFailed": _ROLE,
    "RequestDisallowedByPolicy": "a policy of this subscription forbids it: give the tags that it requires "
    "(--tag KEY=VALUE), take a size, region or network that it allows, or ask its owner for an exemption",
    "MissingSubscriptionRegistration": "register the provider that is named with 'az provider register'",
    "StorageAccountAlreadyTaken": "somebody has an account of this name; provision again, in another group",
    "KeyBasedAuthenticationNotPermitted": "a policy forbids keys of storage accounts, which a witness needs; "
    "take three nodes, which need no witness, or another subscription",
    "ScopeLocked": "remove the lock from the resource group or the subscription",
    "SubscriptionNotFound": f"sign in to its tenant with 'az login --tenant TENANT', or {_OTHER}",
    "InvalidSubscriptionId": _OTHER,
    "ReadOnlyDisabledSubscription": f"this subscription is disabled: have it enabled again, or {_OTHER}",
    "SubscriptionNotRegistered": f"this subscription is not active: {_OTHER}",
    "AuthenticationFailed": _LOGIN,
    "InvalidAuthenticationToken": _LOGIN,
    "ExpiredAuthenticationToken": _LOGIN,
    "InvalidAuthenticationTokenTenant": "sign in to its tenant with 'az login --tenant TENANT'",
    "TooManyRequests": "wait some minutes, then go on",
    "ResourceGroupBeingDeleted": "wait until its deletion has ended, then go on",
}

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
    return code(error) in _REPEATABLE


def advice(error: AzureError) -> str:
    """What to change, in a few words; "" where only Azure's own message helps."""
    known = code(error)
    if known in _OF_QUOTAS and "quota" in (text := json.dumps(_body(error)).lower()):
        if "cores" in text:
            return _CORES
        return _ADDRESSES if re.search(r"public ?ip|ipv4|addresses", text) else _QUOTA
    return _ADVICE.get(known, "")


def lacks_room(error: AzureError) -> bool:
    """Whether Azure has no room for a size there, so that another size or zone may do."""
    return _ROOM in advice(error)


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
