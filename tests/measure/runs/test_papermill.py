"""Each notebook by plain papermill with a YAML file of parameters, as docs/how-to/papermill.md says.

All are prepared, into a file, a store (abfs://) and papermill's own abs://; what those that are executed here
show is a sample run, copied.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest
import yaml
from click.testing import CliRunner
from papermill.cli import papermill as command

from diskbook.batch.stores import address, lease, record as records
from diskbook.batch.stores.objects import RemoteObjects
from diskbook.batch.stores.record import Entry
from diskbook.facts import paths
from diskbook.measure.runs.begin import begin
from support import azurite, blob_names, own_scenario

DOCUMENT = (paths.ROOT / "docs" / "how-to" / "papermill.md").read_text("utf-8")
NOTEBOOKS = sorted(path for path in paths.NOTEBOOKS.glob("*.ipynb") if papermill.inspect_notebook(str(path)))
A_RUN = "abfs://runs/lab/run-1"
OTHER = {
    "str": "another",
    "dict": {"design.replicates": 3},
    "list": ["a", "b"],
    "int": 7,
    "float": 2.5,
    "bool": True,
}


def documented() -> dict[str, Any]:
    """The YAML file of the document."""
    match = re.search(r"```yaml\n(.*?)```", DOCUMENT, re.S)
    assert match
    content: dict[str, Any] = yaml.safe_load(match[1])
    return content


def injected(notebook: Path | bytes) -> dict[str, Any]:
    """Values of the cell that papermill has put in."""
    text = notebook.decode() if isinstance(notebook, bytes) else notebook.read_text("utf-8")
    cells = nbformat.reads(text, as_version=4).cells
    cell = next(cell for cell in cells if "injected-parameters" in cell.metadata.get("tags", []))
    names: dict[str, Any] = {}
    exec(cell.source, {}, names)
    return names


def values_of(path: Path) -> dict[str, Any]:
    """Other values for all parameters of a notebook."""
    kinds = {
        name: facts["inferred_type_name"] for name, facts in papermill.inspect_notebook(str(path)).items()
    }
    assert set(kinds.values()) <= set(OTHER), "an annotation tells papermill's users what to write"
    return {name: OTHER[kind] for name, kind in kinds.items()}


def prepare(path: Path, target: str, folder: Path) -> None:
    """Have papermill put values of a YAML file into a notebook, without executing it."""
    (folder / "run.yaml").write_text(yaml.safe_dump(values_of(path)))
    words = [str(path), target, "-f", str(folder / "run.yaml"), "--prepare-only"]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0 and "unknown parameter" not in done.output, done.output


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_parameter_of_a_notebook_can_come_from_yaml(path: Path, tmp_path: Path) -> None:
    prepare(path, str(tmp_path / "out.ipynb"), tmp_path)
    assert injected(tmp_path / "out.ipynb") == values_of(path)


def test_the_file_of_the_document_is_all_of_the_first_notebook_and_what_begin_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path))
    values = documented()
    assert set(values) == set(papermill.inspect_notebook(str(paths.NOTEBOOKS / "1-provision.ipynb")))
    run = begin(values["run"], values["scenario"], values["cloud"], values["preset"], values["overrides"])
    assert run.scenario.design.replicates == 2
    assert all(
        (paths.NOTEBOOKS / name).exists() for name in re.findall(r"papermill notebooks/(\S+)", DOCUMENT)
    )


@pytest.fixture
def finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A YAML file that names a finished run."""
    monkeypatch.setenv("DISKBOOK_RUNS", str(tmp_path / "runs"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shutil.copytree(paths.RUNS / "sample-zone-disks", tmp_path / "runs" / "finished")
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**documented(), "run": "finished"}))
    return tmp_path / "run.yaml"


@pytest.mark.emulator
def test_a_notebook_runs_from_any_folder(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(paths.NOTEBOOKS / "1-provision.ipynb"), "out.ipynb", "-f", finished.name]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    executed = nbformat.read(tmp_path / "out.ipynb", as_version=4)
    assert executed.metadata.papermill.exception is None
    assert "sample" not in injected(tmp_path / "out.ipynb")["run"]


@pytest.mark.emulator
def test_a_parameter_that_no_notebook_has_stops_it_with_one_sentence(tmp_path: Path, finished: Path) -> None:
    notebook, target = str(paths.NOTEBOOKS / "4-teardown.ipynb"), str(tmp_path / "out.ipynb")
    done = CliRunner().invoke(command, [notebook, target, "-f", str(finished), "-p", "runn", "x"])
    assert done.exit_code == 1
    cells = nbformat.read(target, as_version=4).cells
    (error,) = [
        output for cell in cells for output in cell.get("outputs", []) if output.output_type == "error"
    ]
    assert error.traceback == ["UsageError: papermill: there is no parameter 'runn'; did you mean 'run'?"]


@pytest.fixture(scope="module")
def store() -> Iterator[RemoteObjects]:
    """An empty store on a real server, as abfs://runs/lab."""
    adlfs = pytest.importorskip("adlfs", reason="the extra 'cluster' is not installed ('make azurite' does)")
    with azurite.running() as port, pytest.MonkeyPatch.context() as patch:
        patch.setenv(azurite.VARIABLE, azurite.connection_string(port))
        adlfs.AzureBlobFileSystem(connection_string=azurite.connection_string(port)).mkdir("runs")
        yield RemoteObjects(address.parse("abfs://runs/lab"), 5)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of an account under Azure's name, with a container `runs`."""
    blobs = pytest.importorskip("azure.storage.blob", reason="the extra 'cluster' is not installed")
    with blob_names.served(tmp_path_factory.mktemp("tls")):
        client = blobs.BlobServiceClient(f"https://{blob_names.HOST}", azurite.KEY)
        yield client.create_container("runs")


@pytest.mark.emulator
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_goes_into_a_store(path: Path, store: RemoteObjects, tmp_path: Path) -> None:
    prepare(path, f"abfs://runs/lab/{path.name}", tmp_path)
    assert injected(store.read(path.name)) == values_of(path)


@pytest.mark.emulator
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_notebook_goes_to_abs_which_keeps_the_signature_of_its_address(
    path: Path, account: Any, tmp_path: Path
) -> None:
    signature = blob_names.shared_access()
    prepare(path, f"abs://{blob_names.HOST}/runs/lab/{path.name}?{signature}", tmp_path)
    content = account.download_blob(f"lab/{path.name}").readall()
    assert injected(content) == values_of(path)
    assert signature in nbformat.reads(content.decode(), 4).metadata.papermill.output_path


@pytest.mark.emulator
def test_an_analysis_is_executed_into_a_store(store: RemoteObjects, finished: Path) -> None:
    """The notebook down to its first screen: what comes after that is executed as it is."""
    whole = nbformat.read(paths.NOTEBOOKS / "3-analyse-zone-disks.ipynb", as_version=4)
    end = next(n for n, cell in enumerate(whole.cells) if cell.source.startswith("show.doubts"))
    whole.cells = whole.cells[: end + 1]
    notebook = finished.with_name("3-analyse-zone-disks.ipynb")
    nbformat.write(whole, notebook)
    done = CliRunner().invoke(command, [str(notebook), "abfs://runs/lab/done.ipynb", "-f", str(finished)])
    assert done.exit_code == 0, done.output
    executed = nbformat.reads(store.read("done.ipynb").decode(), 4)
    assert executed.metadata.papermill.exception is None
    assert all(cell.outputs for cell in executed.cells if "hide-input" in cell.metadata.get("tags", []))
    assert executed.metadata.papermill.output_path == "abfs://runs/lab/done.ipynb"


@pytest.mark.emulator
def test_a_notebook_is_executed_to_abs(account: Any, finished: Path) -> None:
    target = f"abs://{blob_names.HOST}/runs/lab/done.ipynb?{blob_names.shared_access()}"
    made, notebook = own_scenario.notebook(), finished.with_name("small.ipynb")
    made.metadata.kernelspec["language"] = "python"  # JupyterLab writes it, and papermill wants it
    made.cells[2:] = [nbformat.v4.new_code_cell(text) for text in ("str(run)", "print(run)", "[run]")]
    nbformat.write(made, notebook)
    done = CliRunner().invoke(command, [str(notebook), target, "-f", str(finished)])
    assert done.exit_code == 0, done.output
    executed = nbformat.reads(account.download_blob("lab/done.ipynb").readall().decode(), 4)
    assert executed.metadata.papermill.exception is None
    assert [bool(cell.get("outputs")) for cell in executed.cells[-3:]] == [True] * 3


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("abfs://absent/lab/out.ipynb", "404 ContainerNotFound; make that container or bucket first"),
        ("abfs://runs/lab/out.ipynb?sig=topsecretsignature", "given with a key or a query"),
        (f"{A_RUN}/{records.name_of(1)}.ipynb", "name a notebook .* beside the runs of a store"),
        (f"{A_RUN}/{records.place_of('notebooks/1-provision.ipynb', Entry.of(b''))}", "beside the runs"),
        (f"{A_RUN}/{lease._sign(1)}.ipynb", "beside the runs"),
        ("abfs://runs/lab/out.txt", "name a notebook"),
        ("abfs://out.ipynb", "is a whole container"),
    ],
)
def test_what_a_store_does_not_take_ends_papermill_with_a_sentence(
    target: str, words: str, store: RemoteObjects
) -> None:
    before = store.names()
    done = CliRunner().invoke(command, [str(NOTEBOOKS[0]), target, "--prepare-only"])
    assert done.exit_code == 1 and done.exception.__class__ is SystemExit
    assert (
        re.search(words, " ".join(done.output.split())) and "topsecret" not in done.output.split("Error")[-1]
    )
    assert store.names() == before


@pytest.mark.emulator
def test_notebook_and_parameters_may_come_from_a_store(store: RemoteObjects, tmp_path: Path) -> None:
    place = f"file://{tmp_path}/lab"
    store.replace("in/notebook.ipynb", NOTEBOOKS[0].read_bytes())
    store.replace("in/run.yaml", b"run: from-a-store")
    words = ["abfs://runs/lab/in/notebook.ipynb", f"{place}/out.ipynb", "-f", "abfs://runs/lab/in/run.yaml"]
    done = CliRunner().invoke(command, [*words, "--prepare-only"])
    assert done.exit_code == 0, done.output
    assert injected(tmp_path / "lab" / "out.ipynb") == {"run": "from-a-store"}
    listed = papermill.iorw.papermill_io.listdir("abfs://runs/lab/in")
    assert listed == ["abfs://runs/lab/in/notebook.ipynb", "abfs://runs/lab/in/run.yaml"]
    done = CliRunner().invoke(command, ["abfs://runs/lab/absent.ipynb", f"{place}/out.ipynb"])
    assert done.exit_code == 1 and "there is nothing at abfs://runs/lab/absent.ipynb" in done.output
