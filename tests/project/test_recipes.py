"""The commits that docs/recipes.md names exist, and touch as many files as it says."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from diskbook.facts import paths

ROWS = re.findall(
    r"^\| (.+?) \| (\d+) \| `([0-9a-f]{8,})` \|$",
    (paths.ROOT / "docs/recipes.md").read_text("utf-8"),
    re.MULTILINE,
)
MOST_FILES = 5


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=paths.ROOT, capture_output=True, text=True)


def has_history() -> bool:
    return (
        shutil.which("git") is not None
        and git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"
    )


@pytest.mark.emulator
@pytest.mark.parametrize(("what", "files", "commit"), ROWS, ids=[row[0] for row in ROWS])
def test_a_recipe_is_a_commit_of_that_many_files(what: str, files: str, commit: str) -> None:
    if not has_history():
        pytest.skip("a shallow clone, or no clone, has no history; git shows it")
    assert git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, f"{what}: no such commit"
    touched = git("show", "--name-only", "--format=", commit).stdout.split()
    assert len(touched) == int(files) <= MOST_FILES


def test_the_page_has_recipes() -> None:
    assert {"an option of a disk with its own price", "a scenario"} <= {row[0] for row in ROWS}
