"""A run joins the catalogue with its own files, so that ten thousand others make it take no longer."""

from pathlib import Path

from diskbook.batch.catalogue import entry as entries, layout, parts
from diskbook.facts.errors import DiskbookError
from diskbook.results import run as runs


def join(run: runs.Run) -> Path:
    """Write what a run measured into the catalogue of the folder it is in, in place of its earlier entry.

    Returns the catalogue's folder.

    Raises DiskbookError when something of the run is damaged, it is being written to, or the catalogue cannot
    be written.
    """
    folder = layout.folder_of(run.folder.parent)
    entry = entries.read(run)
    with parts.writing(folder):
        folder.mkdir(exist_ok=True)
        parts.write_own(folder, entry)
    return folder


def join_finished(run: runs.Run) -> str:
    """Let a run join that was just analysed; say in a sentence why it did not, "" where it did.

    A folder that is not this user's folder of runs gets no catalogue by it; one that it has is kept current.
    """
    runs_folder = run.folder.parent
    is_ours = runs_folder.resolve() == runs.runs_root().resolve()
    if not is_ours and not layout.folder_of(runs_folder).is_dir():
        return ""
    try:
        join(run)
    except DiskbookError as error:
        return f"{error} (all else of the run is done)"
    return ""
