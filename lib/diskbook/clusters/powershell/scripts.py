"""The scripts of the steps: their texts, and where they lie on a node. Light: emulated machines import it."""

from pathlib import Path

FOLDER = r"C:\ProgramData\diskbook\cluster"  # as task.ps1 names it
NAMES = tuple(file.stem for file in Path(__file__).parent.glob("*.ps1") if file.stem != "common")


def script(step: str) -> str:
    """Return the whole script of a step, to be put at `path(step)` on the node; it holds no secret."""
    folder = Path(__file__).parent
    return "\n".join((folder / f"{name}.ps1").read_text("utf-8") for name in ("common", step))


def path(step: str) -> str:
    """Return where the script of a step lies on a node."""
    return rf"{FOLDER}\{step}.ps1"
