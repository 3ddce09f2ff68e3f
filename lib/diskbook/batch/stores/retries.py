"""What a store answered: which errors pass by themselves, how long to wait for that, words for the others.

Azure asks clients to try again, ever more slowly, on 408, 429, 500, 502, 503 and 504 (Microsoft's pages on
transient faults and on the Blob service's error codes). So does S3, with 409 where two writers meet.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from azure.core.exceptions import AzureError, HttpResponseError, ServiceRequestError, ServiceResponseError

from diskbook.facts import redact
from diskbook.facts.errors import DiskbookError

_Answer = TypeVar("_Answer")

PATIENCE_S = 60.0
"""How long a store may fail before what was asked of it is given up."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 8.0
_PASSING = {408, 409, 412, 425, 429, 500, 502, 503, 504}
_KNOWN = (AzureError, OSError, ValueError)
_REMEDY = {
    401: "sign in with 'az login', or name the account: AZURE_STORAGE_ACCOUNT_NAME",
    403: "ask for the role Storage Blob Data Contributor there (to read: Storage Blob Data Reader)",
    404: "make that container or bucket first, or mend the address",
}


class StoreError(DiskbookError):
    """A store did not do what was asked of it."""


class UnreachableError(StoreError):
    """A store failed for longer than it is waited for."""


def patiently(do: Callable[[], _Answer], where: str, patience_s: float = PATIENCE_S) -> _Answer:
    """Ask a store, and again while its answers are such as pass by themselves.

    - `do`: asks once; asking again must do no harm.
    - `where`: what is asked for, in the sentence of an error.
    - `patience_s`: how long to go on.

    Returns what `do` returns.

    Raises FileNotFoundError, FileExistsError as they come: they are answers. Raises StoreError with the
    store's reason; UnreachableError when it went on failing.
    """
    deadline, wait = time.monotonic() + patience_s, _FIRST_WAIT_S
    while True:
        try:
            return do()
        except (FileNotFoundError, FileExistsError):
            raise
        except _KNOWN as error:
            if not _passes(error):
                raise StoreError(f"{where}: {_words(error)}") from None
            if time.monotonic() + wait > deadline:
                raise UnreachableError(
                    f"{where}: the store failed for {patience_s:.0f} s (last: {_words(error)}); what "
                    "is stored is whole: try again when it is well"
                ) from None
        time.sleep(wait * random.uniform(0.5, 1.0))  # many workers must not come back at once
        wait = min(2 * wait, _LONGEST_WAIT_S)


class Passing(OSError):
    """An answer that contradicts itself, and is asked for again."""


def _passes(error: Exception) -> bool:
    if isinstance(error, HttpResponseError):
        # An answer that says all is well, and is an error, was cut short on its way.
        return error.status_code in _PASSING or (error.status_code or 200) < 300
    if isinstance(error, PermissionError):
        return False
    return isinstance(error, OSError | ServiceRequestError | ServiceResponseError)


def _words(error: Exception) -> str:
    """Reason in one line, with what to do where that is known."""
    status = getattr(error, "status_code", None)
    code = getattr(getattr(error, "error_code", None), "value", None) or getattr(error, "error_code", None)
    lines = str(error).splitlines() or [type(error).__name__]
    reason = f"{status} {code}" if status and code else lines[0]
    remedy = _REMEDY.get(status or (403 if isinstance(error, PermissionError) else 0))
    return redact.hide(reason + (f"; {remedy}" if remedy else ""))
