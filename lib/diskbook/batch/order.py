"""What the process of a run is told: all it needs to run the item, or what is left of it, anywhere."""

import json
import secrets
from dataclasses import asdict, dataclass

from diskbook.batch.batch_run import Asked
from diskbook.batch.stores.lease import LEASE_S


@dataclass(frozen=True)
class Order:
    """What a process is to run. It can be written as JSON and sent anywhere.

    - `name`: name of the run, which its content has given it.
    - `asked`: what it is.
    - `limit_usd`: what it may cost, all its sessions together; None for the limit that it has by itself.
    - `start`: name of this start of the run: one that has it already is a copy that nobody asked for.
    - `store`: where the run is kept while it is worked on.
    - `is_copy`: the folder here is for the store alone: not among this machine's runs, and gone when all is
      stored.
    - `lease_s`: for how long the run is taken for owned without a sign of life.
    """

    name: str
    asked: Asked
    limit_usd: float | None = None
    start: str = ""
    store: str | None = None
    is_copy: bool = False
    lease_s: float = LEASE_S

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))


def new_start() -> str:
    return secrets.token_hex(8)


def read(text: str) -> Order:
    content = json.loads(text)
    return Order(**{**content, "asked": Asked(**content["asked"])})
