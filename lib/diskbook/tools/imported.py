"""Tools whose results `diskbook import` reads, and that diskbook itself never runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from diskbook.design.model import ToolName
from diskbook.facts.errors import UsageError
from diskbook.tools.protocol import Install, Job, Releases, Target
from diskbook.tools.record import Measurement


@dataclass(frozen=True)
class _Nowhere:
    engine: str = ""
    target: str = ""


_NOT_INSTALLED = Install(version="")
_ALIKE = Releases()
_NO_TARGET = _Nowhere()


@dataclass(frozen=True)
class Imported:
    """A tool as `protocol.Tool` has it, without the parts that run it: these raise UsageError."""

    name: ToolName
    title: str
    system: Literal["linux", "windows"] = "linux"
    fleet: bool = False
    main: str = ""
    raw: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    install: Install = _NOT_INSTALLED
    releases: Releases = _ALIKE
    prints_mib: bool = False
    example: Target = _NO_TARGET

    def command(self, *_: Any, **__: Any) -> Job:
        """Refuse: there is no command.

        Raises UsageError: always.
        """
        raise UsageError(f"diskbook reads results of {self.title}, but does not run it; choose another tool")

    prefill = overwrite = command

    def read(self, *_: Any, **__: Any) -> Measurement:
        """Refuse as `command` does: `diskbook.importing` reads the results."""
        raise UsageError(f"results of {self.title} are read by 'diskbook import'")

    def version(self, printed: str) -> str:
        """Return what was printed."""
        return printed

    def log_unit_ns(self, version: str) -> int | None:
        """Return None: it writes no logs that are read."""
        return None


ELBENCHO = Imported("elbencho", "elbencho")
SYSBENCH = Imported("sysbench", "sysbench")
OTHER = Imported("other", "another tool")
"""A tool that is not named, as that of a table of results."""
