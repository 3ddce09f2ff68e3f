"""Azure's documented rules as one page, docs/reference/azure-rules.md.

`make format` writes it; a test compares page and table.
"""

from collections.abc import Iterator

from checks import markdown
from checks.azure_rules_table import RULES, SECTIONS, Rule
from diskbook.facts import paths

PAGE = paths.ROOT / "docs" / "reference" / "azure-rules.md"
COLUMNS = ("What must hold", "A request that breaks it", "The nearest that does not", "Azure's answer")
MORE = ("Refused before a run by", "Source")


def page() -> str:
    quoted = sum(rule.quoted for rule in RULES)
    known = sum(bool(rule.known) for rule in RULES)
    return "\n".join(
        [
            "# Azure's rules, as the emulator keeps them",
            "",
            f"These are {len(RULES)} documented rules. A test sends both requests of every row to the",
            "emulated control plane. It must refuse the first with that status and code, by a rule that",
            f"reads the request, and accept the second. A scenario can break {known} of them. diskbook",
            "refuses such a scenario before it creates anything, by the rule in the column.",
            "",
            f"The codes of {quoted} rows come from Microsoft's pages, recordings or quoted answers. The",
            "others are **inferred**: the rule is documented, the code of the refusal is not. If a quote",
            "had no status, the row has the usual one of the code. Nothing here was tried on real Azure.",
            "",
            "Made by `make format` from `checks/azure_rules.yaml`.",
            *_sections(),
            "",
        ]
    )


def _sections() -> Iterator[str]:
    for title, rules in SECTIONS.items():
        yield from ("", f"## {title}", "", markdown((*COLUMNS, *MORE), map(_row, rules)))


def _row(rule: Rule) -> tuple[str, ...]:
    inferred = "" if rule.quoted else ", inferred"
    day = f" on {rule.day}" if rule.day else ""
    requests = (f"`{request.words()}`" for request in (rule.breaks, rule.neighbour))
    answer = f"{rule.status} `{rule.code}`{inferred}"
    return f"{rule.name}{day}", *requests, answer, f"`{rule.known}`" if rule.known else "", rule.source
