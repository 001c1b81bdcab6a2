"""One code for one fault, whichever command meets it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from mpigraft.core.model import Family
from mpigraft.discovery import inventory
from mpigraft.trace import make_ladder
from tests.builders.commands import Run
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.forged import honest_store
from tests.unit.trace.record.test_exchanges import an_exchange

DATA = Path(__file__).parents[2] / "data"
READERS = [  # of a file that is named, as FILE
    "check guest --machine FILE", "check ./FILE", "plan ./FILE --mpi openmpi",
    "run --image ./FILE x",
    "bench FILE --dry-run", "bench --hostfile FILE --dry-run", "submit FILE --dry-run",
    "profile --show FILE", "analyse FILE", "replay FILE --dry-run", "inject ./FILE --mpi openmpi",
    "import --configuration x FILE",
]  # fmt: skip
ON_CAMPAIGNS = [
    "compare NAME", "report NAME", "results show NAME", "export NAME", "bundle NAME", "status NAME",
    "recheck NAME --dry-run", "history --accept NAME", "bench --resume NAME --dry-run",
    "submit NAME --resume --dry-run",
]  # fmt: skip
ON_MPIS = [  # with more options
    "run --dry-run --no-proof -n 1 /bin/true", "bench --dry-run", "replay a.record --dry-run",
    "analyse a.record --dry-run",
]  # fmt: skip
OF_FILES = {"missing": 2, "folder": 2, "bad.toml": 2, "bad.json": 2, "empty": 2}
FOLDERS_ARE = ("check ./", "run --image", "plan ./", "inject ./", "import")  # guests and inputs
TAKES_ANY = ("bench --hostfile",)  # each line names a host
TAKES_NONE = ("bench FILE", "submit")  # an empty file asks for what is usual


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with files of each fault."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "guest").mkdir()
    (tmp_path / "bad.toml").write_text("a = [\n")
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "empty").touch()
    (tmp_path / "a.record").write_bytes(make_ladder(an_exchange(random.Random(3), 4))[-1].data)
    return tmp_path


@pytest.fixture
def here(files: Path, replace_everywhere: Callable[[ModuleType, str, object], None]) -> Path:
    """The same, on a machine with one MPI."""
    machine = a_machine(an_mpi("openmpi@5.0.11"))
    replace_everywhere(inventory, "discover_machine", lambda: machine)
    return files


@pytest.mark.parametrize("line", READERS)
@pytest.mark.parametrize("file", OF_FILES)
@pytest.mark.usefixtures("here")
def test_a_file_that_cannot_be_used(run: Run, line: str, file: str) -> None:
    readable = file not in ("missing", "folder")
    fine = FOLDERS_ARE if file == "folder" else TAKES_ANY if readable else ()
    if not line.startswith(fine + (TAKES_NONE if file == "empty" else ())):
        ended = run(*line.replace("FILE", file).split())
        assert ended.code == OF_FILES[file], ended
        assert "Traceback" not in ended.err


@pytest.mark.parametrize("line", ON_MPIS)
@pytest.mark.usefixtures("here")
def test_an_mpi_that_is_not_here(run: Run, line: str) -> None:
    command, *rest = line.split()
    ended = run(command, "--mpi", "mpich", *rest)
    assert ended.code == 3, ended
    assert "[mpi-missing]" in ended.err


@pytest.mark.mpi
@pytest.mark.parametrize("line", ON_MPIS)
def test_a_transport_that_is_none(
    run: Run, files: Path, mpis: Mapping[Family, Path], line: str
) -> None:
    assert (files / "a.record").exists()
    command, *rest = line.split()
    ended = run(command, "--mpi", mpis[Family.OPENMPI], "--transport", "nosuch", *rest)
    assert ended.code == 2, ended
    assert "[transport-unknown]" in ended.err


@pytest.mark.parametrize("line", ON_CAMPAIGNS)
@pytest.mark.usefixtures("here")
def test_a_campaign_that_is_none(run: Run, tmp_path: Path, line: str) -> None:
    words = line.replace("NAME", "nosuch").split()
    assert run(*words).code == 3, "the store is empty"
    honest_store(tmp_path / "store")
    assert run(*words).code == 2


@pytest.mark.mpi
@pytest.mark.usefixtures("mpis")
@pytest.mark.parametrize("line", [
    "bench --quick", "import --configuration x OUTPUT", "recheck --accept", "submit ok.toml",
])  # fmt: skip
def test_a_store_that_cannot_be_written(
    run: Run, files: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = files
    (here / "store").touch()  # a file in the place of the folder
    (here / "ok.toml").write_text(json.dumps("name") + ' = "x"\n')
    (here / "bin").mkdir()
    for name in ("sbatch", "squeue", "sacct"):
        (here / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (here / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{here}/bin:/usr/bin:/bin")
    words = line.replace("OUTPUT", str(DATA / "osu-7.4/mpich-bibw.out")).split()
    ended = run(*words)
    assert ended.code == 3, ended
    assert "[store-no-folder]" in ended.err
