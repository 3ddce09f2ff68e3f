"""What `[azure]` of a scenario may say: tags of the user's own, and an existing resource group.

Limits of tags are those of Microsoft's page "Use tags to organize your Azure resources".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from diskbook.design.model import Scenario
from diskbook.design.network_rules import is_azure_name
from diskbook.facts.untrusted_text import is_visible

OURS = (
    *("diskbook-run", "diskbook-owner", "diskbook-scenario", "diskbook-site", "diskbook-credit-scale"),
    *("diskbook-depth", "diskbook-expires", "diskbook-client", "diskbook-created", "diskbook-signature"),
)
"""Tags that every resource of a run has, which count as well."""
PREFIX = "diskbook-"
MOST_TAGS, LONGEST_NAME, LONGEST_VALUE = 50, 512, 256
LONGEST_NAME_OF_ACCOUNT = 128
"""Characters in the name of a tag of a storage account."""
REFUSED = "<>%&\\?/"
"""Characters that the name of a tag cannot have."""


def check(scenario: Scenario) -> list[str]:
    """Sentences on what `[azure]` says wrong; none where it is in order."""
    group = scenario.azure.resource_group
    named = (
        [] if not group or is_azure_name(group) else [f"[azure]: {group!r} is no name of a resource group"]
    )
    return [*named, *_number(scenario), *_names(scenario), *_values(scenario)]


def _number(scenario: Scenario) -> Iterator[str]:
    own, most = len(scenario.azure.tags), MOST_TAGS - len(OURS)
    if own > most:
        yield (
            f"[azure.tags]: {own} tags; Azure takes {MOST_TAGS} per resource, of which {len(OURS)} are "
            f"diskbook's: give at most {most}"
        )
    many = [
        name for name, count in Counter(name.lower() for name in scenario.azure.tags).items() if count > 1
    ]
    if many:
        yield f"[azure.tags]: {many[0]} is there twice: Azure ignores case in names of tags; leave one out"


def _names(scenario: Scenario) -> Iterator[str]:
    witnessed = scenario.witness_redundancy is not None
    longest = LONGEST_NAME_OF_ACCOUNT if witnessed else LONGEST_NAME
    of = " of a storage account" if witnessed else ""
    for name in scenario.azure.tags:
        shown = f"[azure.tags]: tag {name[:40]!r}"
        refused = [sign for sign in REFUSED if sign in name]
        if not name.strip() or not is_visible(name):
            yield f"{shown}: a name has one character or more, and no control characters"
        elif refused:
            yield f"{shown} has {refused[0]!r} in its name, which Azure refuses, as each of {REFUSED}"
        elif len(name) > longest:
            yield f"{shown}: its name has {len(name)} characters, and a tag{of} may have {longest}"
        elif name.lower().startswith(PREFIX):
            yield f"{shown}: names with {PREFIX!r} in front are diskbook's; take another"


def _values(scenario: Scenario) -> Iterator[str]:
    for name, value in scenario.azure.tags.items():
        if len(value) > LONGEST_VALUE:
            yield (
                f"[azure.tags]: the value of {name[:40]!r} has {len(value)} characters, and Azure takes "
                f"{LONGEST_VALUE}"
            )
        elif not is_visible(value):
            yield f"[azure.tags]: the value of {name[:40]!r} has control characters; write text"
