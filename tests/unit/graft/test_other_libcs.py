"""Programs of another C library than glibc are refused by their loader, whatever starts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core.errors import CheckFailed
from mpigraft.graft.guest.command import CommandKind
from mpigraft.graft.guest.commands import command_of
from mpigraft.graft.guest.examination import examine_guest
from tests.builders.elf import program
from tests.builders.python_installs import put

MUSL = "/lib/ld-musl-x86_64.so.1"


@pytest.fixture
def alpine(tmp_path: Path) -> Path:
    """An image as Alpine's: one program is shell, env and more, and nothing needs MPI."""
    root = tmp_path / "alpine"
    busybox = program(root / "bin/busybox", flags=[f"-Wl,--dynamic-linker={MUSL}"])
    (root / "lib").mkdir()
    (root / MUSL.lstrip("/")).write_bytes(b"\x7fELF musl libc (x86_64)")
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/python3.12").write_bytes(busybox.read_bytes())
    (root / "usr/bin/python3.12").chmod(0o755)
    for link in ("bin/sh", "bin/echo", "usr/bin/env", "usr/bin/python3"):
        target = "python3.12" if "python" in link else "/bin/busybox"
        (root / link).symlink_to(target)
    for name, line in (("job.sh", "#!/bin/sh"), ("by-env", "#!/usr/bin/env python3")):
        (root / name).write_text(f"{line}\n")
        (root / name).chmod(0o755)
    return root


@pytest.mark.parametrize("words", [
    ["echo", "hi"], ["/bin/busybox"], ["sh", "-c", "echo"], ["env", "A=1", "echo"],
    ["/job.sh"], ["python3", "/x.py"], ["/by-env"], ["sh", "/job.sh"],
])  # fmt: skip
def test_no_command_of_alpine_is_started(words: list[str], alpine: Path) -> None:
    """They were not known, and ended with 127 when all else had been tried."""
    with pytest.raises(CheckFailed, match=f"built for musl: its loader is {MUSL}") as refused:
        command_of(FolderRoot(alpine), words, {}, "/")
    assert "glibc" in refused.value.fix


def test_an_image_without_mpi_is_refused_by_its_shell(alpine: Path) -> None:
    with pytest.raises(CheckFailed, match="built for musl"):
        examine_guest(str(alpine))


@pytest.mark.parametrize(
    ("loader", "libc"),
    [("/lib/ld-uClibc.so.0", "uClibc"), ("/system/bin/linker64", "bionic"),
     ("/nix/store/abc-musl-1.2.3/lib/libc.so", "musl")],
)  # fmt: skip
def test_other_loaders_are_known_by_name_or_by_their_bytes(
    loader: str, libc: str, tmp_path: Path
) -> None:
    program(tmp_path / "p", flags=[f"-Wl,--dynamic-linker={loader}"])
    if "store" in loader:
        (tmp_path / loader.lstrip("/")).parent.mkdir(parents=True)
        (tmp_path / loader.lstrip("/")).write_bytes(b"\x7fELF\0musl libc\0")
    with pytest.raises(CheckFailed, match=libc):
        command_of(FolderRoot(tmp_path), ["/p"], {}, "/")


def test_a_static_shell_and_a_loader_of_a_store_are_fine(alpine: Path, tmp_path: Path) -> None:
    """A program with glibc beside musl's shell, as alpine-glibc images have it, has its own."""
    store = "/nix/store/abc-glibc-2.40/lib/ld-linux-x86-64.so.2"
    program(alpine / "p", flags=[f"-Wl,--dynamic-linker={store}"])
    put(alpine, {store[1:]: ""})
    assert command_of(FolderRoot(alpine), ["/p"], {}, "/").kind is not CommandKind.MPI
    program(tmp_path / "bin/sh", flags=["-static"])
    assert not examine_guest(str(tmp_path)).label.programs


def test_an_image_without_mpi_has_the_architecture_of_its_programs(tmp_path: Path) -> None:
    """Else mpigraft's own programs were searched for no architecture."""
    facts = FolderRoot(tmp_path).elf(f"/{program(tmp_path / 'p').name}")
    assert examine_guest(str(tmp_path)).label.architecture == facts.machine
