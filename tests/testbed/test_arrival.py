"""Arguments and standard input of a job in a container, whichever engine starts it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images
from tests.arrival import NOTHING, ODD, content, digest, of_size, shown
from tests.testbed.conftest import IN_EACH_ENGINE, Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]


@IN_EACH_ENGINE
def test_it_arrives_as_it_was_typed(
    outside: Mapping[str, str], images: Images, need: Need, engine: str, tmp_path: Path
) -> None:
    """The second start is the kept one, with other input; what nobody read is left there."""
    need(engine)
    of = ("--image", images.folder("bookworm"), "--engine", engine, "--mpi", "openmpi@4.1.8")
    for size in (229_000, 400):
        with of_size(tmp_path, size).open("rb") as file:
            read, arguments = shown((*of, "-n", 1), ODD, file, env=outside, cwd=tmp_path)
        assert (read, arguments) == ([digest(content(size))], list(ODD))
    with of_size(tmp_path, 400).open("rb") as file:
        none = (*of, "-n", 2, "--stdin", "none")
        assert shown(none, env=outside, cwd=tmp_path, stdin=file)[0] == [NOTHING, NOTHING]
        assert file.tell() == 0
        two = shown((*of, "-n", 2), env=outside, cwd=tmp_path, stdin=file)[0]
        assert two == sorted([NOTHING, digest(content(400))])


@pytest.mark.long
@pytest.mark.parametrize("mpi", ["openmpi@5", "mpich", "intel"])
def test_it_arrives_under_other_launchers(
    outside: Mapping[str, str], images: Images, mpi: str, tmp_path: Path
) -> None:
    image, program = ("bookworm", "hello") if mpi[0] == "o" else ("bookworm-mpich", "hello_mpi")
    of = ("--image", images.folder(image), "--program", f"/opt/app/{program}", "--mpi", mpi)
    with of_size(tmp_path, 229_000).open("rb") as file:
        words = (*of, "--engine", "bwrap", "-n", 1)
        read, arguments = shown(words, ODD, file, env=outside, cwd=tmp_path)
    assert (read, arguments) == ([digest(content(229_000))], list(ODD))


def test_the_first_rank_of_hydra_reads_it_where_no_files_are_passed_on(
    outside: Mapping[str, str], images: Images, need: Need, tmp_path: Path
) -> None:
    """podman closes PMI_FD, so ranks talk to a port, and their number is in another variable."""
    need("podman")
    of = ("--image", images.folder("bookworm-mpich"), "--program", "/opt/app/hello_mpi")
    with of_size(tmp_path, 400).open("rb") as file:
        words = (*of, "--engine", "podman", "--mpi", "mpich", "-n", 2)
        read, _ = shown(words, env=outside, cwd=tmp_path, stdin=file)
    assert read == sorted([NOTHING, digest(content(400))])


def test_a_guests_own_launcher_hands_it_on(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """Debian's Open MPI 4.1.4 in the image: mpigraft-gpu-select stands in the guest too."""
    of = ("--image", images.folder("bookworm"), "--replace", "nothing", "--engine", "bwrap")
    with of_size(tmp_path, 229_000).open("rb") as file:
        read, arguments = shown((*of, "-n", 1), ODD, file, env=outside, cwd=tmp_path)
    assert (read, arguments) == ([digest(content(229_000))], list(ODD))


def test_no_program_of_this_machine_is_started_beside_the_guest(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """A colon made the launcher start `ls` of this machine, which saw its folders."""
    (tmp_path / "mine").mkdir()
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "--mpi", "openmpi@4.1.8")
    words = ("args", "a", ":", "ls", str(tmp_path / "mine"))
    _, arguments = shown((*of, "-n", 1), words, env=outside, cwd=tmp_path)
    assert tuple(arguments) == words
