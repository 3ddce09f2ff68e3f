"""The measuring tools, by name, and what is decided by them: whose trial it is, and what it can do."""

from collections.abc import Iterator, Mapping
from typing import Any

from diskbook.design.diskspd_arguments import check_runnable, parse
from diskbook.design.model import FLEET, TOOLS_OF_SYSTEM, Scenario, ToolName
from diskbook.facts.errors import UsageError
from diskbook.facts.neighbours import LazyTable
from diskbook.tools.protocol import Tool

TOOLS: Mapping[str, Tool] = LazyTable(
    {
        "fio": "diskbook.tools.fio:TOOL",
        "diskspd": "diskbook.tools.diskspd:TOOL",
        "vmfleet": "diskbook.clusters.vmfleet:TOOL",
        "elbencho": "diskbook.tools.protocol:ELBENCHO",
        "sysbench": "diskbook.tools.protocol:SYSBENCH",
        "other": "diskbook.tools.protocol:OTHER",
    },
    "tool",
)
"""Where each tool is; it is imported when it is first asked for."""
USUAL: ToolName = "fio"
"""Where a ledger names no tool, it was this one; plans do not name it either."""
IMPORTED = "json"
"""Kind, in the ledger of an imported run, of the file that holds the result, whatever its format."""


def name_of(event: Mapping[str, Any], workload_tool: str = "any") -> str:
    """Name the tool of a trial: as its line of the ledger does, else its workload, else the usual one."""
    named = USUAL if workload_tool == "any" else workload_tool
    return str(event.get("tool") or named)


def result_file(event: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Path and hash of the raw file that holds the result of a trial; None when the ledger has none."""
    files = event.get("files") or {}
    kind = IMPORTED if "imported" in event else TOOLS[name_of(event)].main
    entry: Mapping[str, str] | None = files.get(kind)
    return entry


def of_version(version: str) -> Tool | None:
    """Tool that this is a version of, as the tables of a run name it; None for one that is not named."""
    return next((TOOLS[name] for name in TOOLS if version.startswith(name)), None)


def packages(system: str) -> list[str]:
    """Packages that machines with this system need for their tools."""
    return [package for name in TOOLS_OF_SYSTEM[system] for package in TOOLS[name].install.packages]


def check(scenario: Scenario) -> list[str]:
    """Say of each cell what its tool cannot do, a sentence each; empty when all is well."""
    return list(dict.fromkeys([*_of_cells(scenario), *_of_checks(scenario)]))


def _of_cells(scenario: Scenario) -> Iterator[str]:
    for arm, workload in scenario.cells:
        tool = TOOLS[scenario.tool_of(arm, workload)]
        if workload.instances > 1 and not tool.fleet:
            yield (
                f"[[workload]] {workload.name} on {arm.name}: {tool.title} measures on one machine, not on "
                f'{workload.instances}; set tool = "{FLEET}", or leave instances out'
            )
        try:
            if workload.verbatim is not None and not tool.fleet:
                check_runnable(parse(workload.verbatim))
            tool.command(workload, tool.example, seed=1)
        except UsageError as error:
            yield f"[[workload]] {workload.name} on {arm.name}: {error}"


def _of_checks(scenario: Scenario) -> Iterator[str]:
    fio = TOOLS["fio"]
    for item in scenario.check:
        systems = {scenario.machine_named(name).os for name in (item.machine, item.from_machine) if name}
        if item.kind == "data-intact" and (without := systems - {fio.system}):
            yield (
                f"[[check]] {item.name}: data are verified by {fio.title}, "
                f"which {without.pop().title()} machines do not have"
            )
