"""Shell commands of jobs: names stand in them as they are, everything else is quoted."""

from __future__ import annotations

import shlex

import pytest

from diskbook.base.errors import DiskbookError
from diskbook.machines import jobs


@pytest.mark.parametrize("name", ["a; rm -rf ~", "$(calc)", "../x", "a b", "", "A", "-rf", "a\nb", "é"])
def test_a_name_that_a_shell_would_read_is_refused(name: str) -> None:
    commands = (
        lambda: jobs.start(name, ["true"]),
        lambda: jobs.finish(name, [], limit_s=1),
        lambda: jobs.times(name),
    )
    for command in commands:
        with pytest.raises(DiskbookError, match="a job cannot be called"):
            command()


def test_arguments_and_files_reach_the_job_as_they_are() -> None:
    hostile = "--filename=x; $(calc) `calc` 'calc' \"calc\"\n&calc"
    script = shlex.split(jobs.start("r1-b01-p001-lrs-read-a1", ["fio", hostile]))
    assert any(hostile in shlex.split(word) for word in script if "fio" in word)
    assert shlex.quote(hostile) in jobs.finish("job", [hostile], limit_s=1)
