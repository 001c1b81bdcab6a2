"""What is preloaded, against the real loader: it ignores what it cannot preload, and no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.loader import dependencies
from mpigraft.binary.loader.search import Rule
from tests.builders.elf import program
from tests.oracles.guest_loader import CHROOT, ENV, LOADER, agree_in, small_root
from tests.oracles.loader import library, runpath

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader"),
]
# Good ones, then those that the loader reports and ignores.
GOOD = ("one.so", "/opt/one.so", "/opt/two.so", "$ORIGIN/opt/one.so", "${ORIGIN}/opt/two.so")
BAD = (
    "absent.so", "/opt/absent.so", "relative/one.so", "/opt", "/opt/empty.so", "/opt/text.so",
    "/opt/narrow.so", "narrow.so", "/opt/other.so", "$LIB.so", "/$LIB/one.so", "$PLATFORM", "$",
    "/opt/one.so\t", "p", "/p",
)  # fmt: skip
NAMES = st.lists(st.sampled_from(GOOD + BAD), max_size=4)


@pytest.fixture(scope="module")
def guest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """p needs a.so; the libraries of /opt are one.so, two.so, which needs one.so, and bad ones."""
    folder = small_root(tmp_path_factory.mktemp("preloads"))
    one = library(folder / "opt/one.so")
    library(folder / "opt/two.so", one, flags=runpath("/opt"))
    library(folder / "opt/needy.so", library(folder / "gone.so"))
    (folder / "gone.so").unlink()
    program(folder / "p", needs=[library(folder / "opt/a.so")], flags=runpath("/opt"))
    data = bytearray(one.read_bytes())
    (folder / "opt/empty.so").touch()
    (folder / "opt/text.so").write_text("no library, but as long as the header of one" * 9)
    data[4] = 1  # ELFCLASS32
    (folder / "opt/narrow.so").write_bytes(data)
    data[4], data[18] = 2, 183  # of aarch64
    (folder / "opt/other.so").write_bytes(data)
    return folder


def starts(guest: Path, environment: dict[str, str]) -> bool:
    """Whether p really starts. The loader ends with 127; p has no code, and ends by a signal."""
    words = [CHROOT, str(guest), ENV, *(f"{n}={v}" for n, v in environment.items()), "/p"]
    pid = os.posix_spawn(words[0], words, {"PATH": os.defpath}, file_actions=[
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])  # fmt: skip
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 127


@settings(max_examples=25, deadline=None)
@given(NAMES, NAMES, st.sampled_from(": "))
@example(list(GOOD), [], ":")
@example(list(BAD), list(BAD), " ")
def test_the_real_loader_preloads_the_same(
    guest: Path, variable: list[str], listed: list[str], separator: str
) -> None:
    (guest / "etc/ld.so.preload").write_text("# of the site\n" + "\n".join(listed) + " # end\n")
    environment = {"LD_PRELOAD": separator.join(variable)}
    rows = agree_in(guest, "/p", environment).values()
    assert all(r.path for r in rows)  # so the program starts
    assert starts(guest, environment)


def test_what_a_preloaded_library_needs_has_to_be_there(guest: Path) -> None:
    (guest / "etc/ld.so.preload").unlink(missing_ok=True)
    environment = {"LD_PRELOAD": "/opt/absent.so /opt/needy.so"}
    rows = agree_in(guest, "/p", environment)
    assert rows["/opt/needy.so"].rule is Rule.PRELOAD
    assert rows["gone.so"].path is None
    assert not starts(guest, environment)


def test_a_name_that_could_not_be_preloaded_may_be_needed(guest: Path, tmp_path: Path) -> None:
    """It is then fatal, or found along the path of the library that needs it."""
    environment = {"LD_PRELOAD": "gone.so"}
    needy = guest / "q"
    program(needy, needs=[guest / "opt/needy.so"], flags=runpath("/opt"))
    rows = dependencies.closure("/q", environment=environment, root=FolderRoot(guest))
    assert [r.name for r in rows if r.path is None] == ["gone.so"]
    agree_in(guest, "/q", environment)


def test_audit_libraries_change_no_closure(guest: Path) -> None:
    """They have a namespace of their own, and those that cannot be loaded are ignored."""
    (guest / "etc/ld.so.preload").unlink(missing_ok=True)
    for name in ("/opt/absent.so", "/opt/needy.so", "/opt/one.so", "absent.so", "/opt/empty.so"):
        agree_in(guest, "/p", {"LD_AUDIT": name})
        assert starts(guest, {"LD_AUDIT": name})
