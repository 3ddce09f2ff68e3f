"""What notebooks get from `from diskbook.report import show`."""

from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

from diskbook.report import show


def test_every_name_that_notebooks_use_is_there() -> None:
    assert {"comparisons", "figure", "banner", "bullets"} <= set(dir(show))
    assert all(callable(getattr(show, name)) for name in show.__all__)
    with pytest.raises(AttributeError, match=r"no attribute comparison$"):
        show.comparison  # noqa: B018


def test_no_name_hides_a_module_of_the_package() -> None:
    modules = {module.name for module in pkgutil.iter_modules(show.__path__)}
    assert not modules & set(show.__all__)


@pytest.mark.emulator
def test_notebooks_that_only_measure_load_no_statistics_and_no_drawing() -> None:
    code = "import sys; from diskbook.report import show; show.banner, show.target, show.run\n"
    code += "print(sorted({'scipy', 'matplotlib'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
