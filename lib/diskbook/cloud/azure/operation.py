"""Record the time of a control-plane operation, and put Azure's refusal into one sentence."""

import contextlib
import time
from collections.abc import Iterator

from azure.core.exceptions import AzureError

from diskbook.cloud.azure import refusals
from diskbook.cloud.azure.clients import Clients
from diskbook.facts.errors import DiskbookError
from diskbook.results.run import Run, now_utc


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
        changed = _change_text(run, target) if name.endswith("machine") and refusals.lacks_room(error) else ""
        reason = refusals.with_advice(error) + changed
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
