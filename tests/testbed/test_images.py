"""The images are what their names say, whether or not they can be run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.image.opening import open_root
from testbed.images import IMAGES, USUAL_IMAGES, Images, native
from testbed.kept import kept, recipe

GLIBC = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"}
OMPI4 = {"hello", "hello_cxx", "hello_f08", "hello_mpi", "hello_rpath", "hello_runpath"}
MPICH = (OMPI4 - {"hello_cxx"}) | {"attach", "hello_abi", "hello_mpich5"}
PROGRAMS = {
    "bullseye": OMPI4,
    "bookworm": OMPI4,
    "bookworm-bare": OMPI4,
    "bookworm-mpich": MPICH,
    "trixie": OMPI4 - {"hello_cxx"},  # Open MPI 5 has no C++ bindings
    "arm64": {"hello"},
}
OWN_LIBMPI = {
    "bullseye": "libmpi.so.40",
    "bookworm": "libmpi.so.40",
    "bookworm-bare": None,
    "bookworm-mpich": "libmpich.so.12",
    "trixie": "libmpi.so.40",
    "arm64": "libmpi.so.40",
}


def facts(images: Images, name: str, program: str, folder: str = "opt/app") -> reader.Elf:
    return reader.read_elf(images.folder(name) / folder / program)


@pytest.mark.testbed
@pytest.mark.parametrize("name", USUAL_IMAGES)
def test_image_has_what_it_says(name: str, images: Images) -> None:
    folder = images.folder(name)
    assert {path.name for path in (folder / "opt/app").iterdir()} == PROGRAMS[name]
    machine = {"arm64": "aarch64", "amd64": "x86_64"}[IMAGES[name].architecture or native()]
    (libc,) = folder.glob("lib/*/libc.so.6")
    assert facts(images, name, "hello").machine == reader.read_elf(libc).machine == machine
    assert f"release version {GLIBC[IMAGES[name].suite]}.".encode() in libc.read_bytes()
    own = {path.name for path in folder.glob("usr/lib/*/libmpi*.so.*")}
    if libmpi := OWN_LIBMPI[name]:
        assert libmpi in own
        assert libmpi in facts(images, name, "hello").needed
    else:
        assert own == set()
    assert not list(folder.glob("usr/share/man/man1/*"))


@pytest.mark.testbed
@pytest.mark.parametrize("name", ["bullseye", "bookworm", "trixie", "bookworm-mpich"])
def test_search_paths_in_programs_lead_to_a_private_mpi(name: str, images: Images) -> None:
    with_rpath, with_runpath = (
        facts(images, name, f"hello_{kind}") for kind in ("rpath", "runpath")
    )
    assert (with_rpath.rpath, with_rpath.runpath) == ("/opt/mpi/lib", None)
    assert (with_runpath.rpath, with_runpath.runpath) == (None, "/opt/mpi/lib")
    (private,) = (images.folder(name) / "opt/mpi/lib").iterdir()
    assert private.name == OWN_LIBMPI[name] == reader.read_elf(private).soname


@pytest.mark.testbed
def test_programs_are_linked_to_what_they_are_for(images: Images) -> None:
    needed = {
        program: facts(images, "bookworm-bare", program, "opt/app-mpich").needed
        for program in MPICH
    }
    assert "libmpich.so.12" in needed["hello"]
    assert "libmpi.so.12" in needed["hello_mpich5"]
    assert "libmpi_abi.so.1" in needed["hello_abi"]
    assert "libmpi_cxx.so.40" in facts(images, "bookworm", "hello_cxx").needed
    assert "libmpi_usempif08.so.40" in facts(images, "bookworm", "hello_f08").needed
    assert "libmpi_mpifh.so.40" in facts(images, "bookworm", "hello_mpi").needed
    imported = facts(images, "bookworm-bare", "attach", "opt/app-mpich").imported
    assert "MPI_Comm_attach_buffer" in {symbol.name for symbol in imported}


@pytest.mark.testbed
@pytest.mark.parametrize("name", ["bookworm-bare", "arm64"])
def test_second_layer_takes_away_from_the_first(name: str, images: Images) -> None:
    root = open_root(images.oci(name), "aarch64" if name == "arm64" else "")
    assert set(root.names("/opt/app")) == PROGRAMS[name]
    assert root.names("/opt/emptied") == ("new",)
    assert "removed" not in root.names("/opt")


@pytest.mark.testbed
def test_image_that_was_cut_short_is_made_anew(
    images: Images, cache_folder: Path, tmp_path: Path
) -> None:
    whole = images.oci("arm64").stat().st_size
    made = cache_folder / "image-arm64-oci.tar"
    with made.open("r+b") as file:
        file.truncate(whole // 2)
    again = Images(cache_folder, images.as_root, images.mpis)
    try:
        assert again.oci("arm64").stat().st_size == whole
    finally:
        again.close()


# ------------------------------------------------------------------ the cache, without images


class Maker:
    """Writes what it is told to and counts how often."""

    def __init__(self, text: str = "made") -> None:
        self.text, self.times = text, 0

    def __call__(self, to: Path) -> None:
        assert not to.exists()
        self.times += 1
        to.write_text(self.text, encoding="utf-8")


def test_what_is_kept_is_made_once(tmp_path: Path) -> None:
    make = Maker()
    for _ in range(3):
        file = kept(tmp_path / "cache" / "file.tar", "recipe", make)
    assert (file.read_text(encoding="utf-8"), make.times) == ("made", 1)


def test_another_recipe_makes_it_anew(tmp_path: Path) -> None:
    kept(tmp_path / "file", "old", Maker("old"))
    assert kept(tmp_path / "file", "new", Maker("new")).read_text(encoding="utf-8") == "new"


@pytest.mark.parametrize("harm", ["cut", "removed", "note"])
def test_what_is_broken_is_made_anew(harm: str, tmp_path: Path) -> None:
    make = Maker()
    file = kept(tmp_path / "file", "recipe", make)
    if harm == "cut":
        file.write_text("ma", encoding="utf-8")
    else:
        (file if harm == "removed" else tmp_path / "file.made").unlink()
    assert kept(file, "recipe", make).read_text(encoding="utf-8") == "made"
    assert make.times == 2


def test_a_maker_that_fails_leaves_nothing_to_be_taken_for_whole(tmp_path: Path) -> None:
    def fail(to: Path) -> None:
        to.write_text("half", encoding="utf-8")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        kept(tmp_path / "file", "recipe", fail)
    assert kept(tmp_path / "file", "recipe", Maker()).read_text(encoding="utf-8") == "made"


def test_recipe_tells_content_apart(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("bc", encoding="utf-8")
    (tmp_path / "b").write_text("bc", encoding="utf-8")
    assert recipe("ab", "c") != recipe("a", "bc")
    assert recipe(tmp_path / "a") == recipe(tmp_path / "b") == recipe("bc")
