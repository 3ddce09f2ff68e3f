"""Measure the prose of README, documents, help, notebooks and posts: sentence lengths and phrases to avoid.

`python -m checks.prose` (`make prose`) prints one row per document, worst first. It ends with 1 if a document
misses a limit of checks/prose.toml. `python -m checks.prose FILE` prints each sentence that misses one.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from diskbook.cli import cli
from diskbook.facts import paths

SETTINGS = paths.ROOT / "checks" / "prose.toml"
_FENCE = re.compile(r"^ *```(?!\{glossary\}).*?^ *``` *$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LEFT_OUT = re.compile(r"^ *(\||>|#|!\[|\{\.).*$", re.MULTILINE)
_START = re.compile(r"^ *(?:[-*] |\d+\. |: |\[\^)", re.MULTILINE)
_CODE = re.compile(r"``.+?``|`[^`]+`", re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_QUOTED = re.compile(r"\"[^\"]{1,300}\"|“[^”]*”")
_NAME = r"[^\s,;:.()]+(?: [^\s,;:.()]+)?"
_NAMES = re.compile(
    r"(?<=: )(?:[^;]+; ){2,}[^;]+|"
    rf"(?:{_NAME}, ){{3,}}(?:(?:and|or) )?{_NAME}|(?:{_NAME}, ){{2,}}{_NAME},? (?:and|or) {_NAME}"
)
_END = re.compile(r"(?<=[.!?])[)*\"”]*\s+(?=[A-Z0-9*`\"“(])|(?<=[.!?][*)])\s+(?=[A-Z])")
_SHORT = re.compile(r"\b(e\.g|i\.e|vs|cf|s\.d)\.")
_WORD = re.compile(r"[A-Za-z0-9][\w'’.,/×^+%-]*")


@dataclass(frozen=True)
class Prose:
    """One document's running text; `group` is what its limits are enforced by."""

    group: str
    name: str
    sentences: tuple[str, ...]

    @property
    def lengths(self) -> list[int]:
        """Words of each sentence."""
        return [words(sentence) for sentence in self.sentences]

    @property
    def mean(self) -> float:
        """Mean number of words."""
        return sum(self.lengths) / max(1, len(self.lengths))

    @property
    def longest(self) -> int:
        """Words of the longest sentence."""
        return max(self.lengths, default=0)


def sentences(text: str) -> tuple[str, ...]:
    """Split Markdown into sentences, without code, tables, headings, quotations and lists of names."""
    for pattern in (_COMMENT, _FENCE, _LEFT_OUT):
        text = pattern.sub("\n\n", text)
    text = _START.sub("\n\n", text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return tuple(sentence for paragraph in paragraphs for sentence in _of_paragraph(paragraph))


def _of_paragraph(text: str) -> Iterator[str]:
    text = _LINK.sub(r"\1", _CODE.sub("Code", text))
    text = _QUOTED.sub("Quotation", _SHORT.sub(r"\1", text))
    for sentence in _END.split(text):
        if sentence and _WORD.search(sentence):
            yield sentence.strip()


def words(sentence: str) -> int:
    """Count words; a list of names counts as one."""
    return len(_WORD.findall(_NAMES.sub("names", sentence)))


def documents() -> Iterator[Prose]:
    """All documents: README, docs, help, notebooks and posts."""
    yield _of_file("README", paths.ROOT / "README.md")
    for path in sorted((paths.ROOT / "docs").glob("**/*.md")):
        if not {"_build", "samples"} & set(path.relative_to(paths.ROOT).parts):
            yield _of_file("posts" if path.parent == paths.POSTS else "docs", path)
    yield _of_file("docs", paths.SCENARIOS / "README.md")  # the page "Scenario features"
    yield from _of_commands(cli, "diskbook")
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        yield Prose("notebooks", str(path.relative_to(paths.ROOT)), sentences(text))


def _of_file(group: str, path: Path) -> Prose:
    return Prose(group, str(path.relative_to(paths.ROOT)), sentences(path.read_text("utf-8")))


def _of_commands(command: click.Command, name: str) -> Iterator[Prose]:
    helps = [command.help or "", *(getattr(option, "help", "") or "" for option in command.params)]
    texts = [text.replace("\b", "").partition("Examples:")[0] for text in helps]
    yield Prose("help", name, tuple(part for text in texts for part in sentences(text)))
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            subcommand = command.get_command(context, below)
            if subcommand and not subcommand.hidden:
                yield from _of_commands(subcommand, f"{name} {below}")


def faults(prose: Prose, settings: dict[str, Any]) -> Iterator[str]:
    """Yield what misses a limit: the mean, each long sentence, and each phrase."""
    limits = settings["limits"]
    if prose.mean > limits["mean_words"]:
        yield f"mean {prose.mean:.1f} words per sentence, more than {limits['mean_words']}"
    for sentence in prose.sentences:
        if words(sentence) > limits["longest_words"]:
            yield f"{words(sentence)} words: {sentence}"
        for pattern, instead in settings["phrases"].items():
            match = re.search(pattern, sentence, re.IGNORECASE)
            if match and not _is_excepted(prose.name, sentence, settings):
                yield f"'{match[0]}' ({instead}): {sentence}"


def _is_excepted(name: str, sentence: str, settings: dict[str, Any]) -> bool:
    return any(entry["file"] == name and entry["part"] in sentence for entry in settings["exceptions"])


def read_settings() -> dict[str, Any]:
    return tomllib.loads(SETTINGS.read_text("utf-8"))


def main(names: list[str]) -> int:
    """Print the table, or the faults of the named documents; 1 where an enforced limit is missed."""
    settings, failed = read_settings(), False
    print(f"{'group':10} {'sentences':>9} {'mean':>5} {'longest':>7} {'faults':>6}  document")
    for prose in sorted(documents(), key=lambda prose: (prose.group, -prose.longest)):
        missed = list(faults(prose, settings))
        failed |= bool(missed) and prose.group in settings["limits"]["enforced"]
        numbers = f"{len(prose.sentences):9} {prose.mean:5.1f} {prose.longest:7} {len(missed):6}"
        if not names or prose.name in names:
            print(f"{prose.group:10} {numbers}  {prose.name}")
        if prose.name in names:
            print(*(f"    {line}" for line in missed), sep="\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
