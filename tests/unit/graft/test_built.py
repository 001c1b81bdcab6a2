"""What a guest's MPI was built with, and the transports that it is planned under for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.schedule import campaign
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.core import env
from mpigraft.core.model import Configuration, Family, Machine, Scope
from mpigraft.discovery import inventory
from mpigraft.graft.guest import built, examination, own_mpi
from mpigraft.native.programs import choose_natives
from mpigraft.request.spec import CampaignSpec
from tests.builders.elf import compiled, program
from tests.builders.messages import shows

MPICH = 'const char x[] __attribute__((used)) = "MPICH Version:\\0" "%s\\0" "%s\\0" "%s\\0";'
DATE = "Thu Jan 1 00:00:00 UTC 2023"
OMPI = (
    'const char x[] __attribute__((used)) = "Open MPI v%d.%d.%d\\0v4.1.4\\0Open MPI\\0'
    '%s:version:repo\\0";'
)


def test_the_device_of_mpich() -> None:
    assert built.device(b"\0ch4:ucx\0") == "ch4:ucx"
    assert built.device(b"x\0ch4:ucx ofi\0y") == "ch4:ucx,ofi"
    assert built.device(b"\0ch3:nemesis:tcp\0\0ch3:nemesis:tcp\0") == "ch3:nemesis:tcp"
    assert not built.device(b"\0ch4:ofi\0\0ch4:ucx\0")  # two answers are none
    assert not built.device(b"--with-device=ch4:ucx --with-pm=hydra\0")


@given(st.binary(max_size=200))
def test_any_bytes_have_a_device_or_none(data: bytes) -> None:
    found = built.device(b"\0ch4:" + data)
    assert not found or (found.startswith("ch4:") and found.isascii() and " " not in found)


def test_nothing_is_concluded_from_components_that_were_looked_for_in_the_wrong_place() -> None:
    files = ("/lib/openmpi/mca_btl_self.so", "/lib/openmpi/mca_pml_ob1.so", "/lib/libother.so")
    assert built.components((), files) == (("btl", ("self",)), ("pml", ("ob1",)))
    assert built.components((), files[1:]) == ()


@pytest.mark.mpi
def test_bytes_say_what_the_mpis_themselves_say(mpis: Mapping[Family, Path]) -> None:
    """Held against ompi_info and MPI_Get_library_version of every MPI that is here."""
    compared = set()
    for mpi in inventory.discover_machine().mpis:
        if not mpi.usable or mpi.family not in (Family.OPENMPI, Family.MPICH):
            continue
        assert mpi.libmpi is not None
        rows = dict(env.apply(env.base(), mpi.environment, Scope.RANK))
        rows["LD_LIBRARY_PATH"] = f"{mpi.libmpi.parent}:{rows.get('LD_LIBRARY_PATH', '')}"
        bench = choose_natives(mpi, inventory.discover_machine().cpu.architecture, "prebuilt").bench
        own = own_mpi.find_own_mpi(FolderRoot(Path("/")), [str(bench)], rows)
        assert own is not None, mpi.id
        if mpi.family is Family.MPICH:
            assert own.device == mpi.device, mpi.id
        for framework in ("pml", "mtl", "btl", "osc") if mpi.components else ():
            by_bytes, by_itself = dict(own.components)[framework], mpi.components_of(framework)
            # Open MPI 4's file mca_btl_sm.so only says that vader has its place.
            assert set(by_bytes) - {"sm"} == set(by_itself) - {"sm"}, (mpi.id, framework)
        compared.add(mpi.family)
    assert compared >= {Family.OPENMPI, Family.MPICH}


# ------------------------------------------------------------------ what is planned


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image whose first program is on an MPICH for UCX alone, its second on Open MPI."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    top = tmp_path / "image"
    lib = top / "usr/lib"
    mpich = compiled(
        lib / "libmpich.so.12", MPICH % (DATE, "4.0.2", "ch4:ucx"), soname="libmpich.so.12"
    )
    pal = compiled(lib / "libopen-pal.so.40", soname="libopen-pal.so.40")
    ompi = compiled(lib / "libmpi.so.40", OMPI, soname="libmpi.so.40")
    for name in ("btl_self", "btl_vader", "pml_ob1"):
        compiled(lib / f"openmpi/mca_{name}.so", needs=[pal])
    program(top / "opt/app/a", needs=[mpich])
    program(top / "opt/app/b", needs=[ompi, pal])
    for name in ("env", "mpirun.openmpi", "mpiexec.hydra"):
        program(top / "usr/bin" / name)
    (top / "lib").symlink_to("usr/lib")
    (top / "lib64").symlink_to("usr/lib")
    return top


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    del mpis
    return inventory.discover_machine()


def _own(machine: Machine, image: Path, **asked: object) -> tuple[list[Configuration], list[str]]:
    """The configurations on the image's own MPI, and why others were left out."""
    spec = CampaignSpec(image=str(image), engine="bwrap", **asked)  # type: ignore[arg-type]
    found = campaign.plan_campaign(spec, machine, contents=lambda mpi: ((mpi.id, ""),))
    own = [c for c in found.configurations if c.graft and c.mpi and c.mpi.source == "guest"]
    return own, [why for name, why in found.skipped if name.startswith(f"{image.name}:")]


def short(own: list[Configuration]) -> list[tuple[str, str]]:
    """(family, transport) of each: versions of an image's own MPIs are in other tests."""
    return [(str(c.mpi.family), c.id.rpartition("/")[2]) for c in own if c.mpi]


@pytest.mark.mpi
def test_an_image_with_two_mpis(image: Path) -> None:
    found = [m.family for m in examination.own_mpis_of(examination.examine_guest(str(image)))]
    assert found == [Family.MPICH, Family.OPENMPI]


@pytest.mark.mpi
def test_the_own_mpi_is_that_of_the_family_that_was_named(machine: Machine, image: Path) -> None:
    own, _ = _own(machine, image, mpi=("openmpi@5",), transport=("ob1-sm",))
    assert short(own) == [("openmpi", "ob1-sm")]
    assert not own[0].named  # by default, so its failure is a row and no exit code
    own, _ = _own(machine, image, mpi=("openmpi@5",))
    assert short(own) == [("openmpi", "ob1-sm")]


@pytest.mark.mpi
def test_an_own_mpi_of_another_family_is_there_when_it_is_named(
    machine: Machine, image: Path
) -> None:
    (image / "opt/app/b").unlink()
    own, why = _own(machine, image, mpi=("openmpi@5",), transport=("ob1-sm",))
    assert own == []
    assert len(why) == 1
    assert shows(why[0], "--guest own")
    where = ("native", "own")
    own, _ = _own(machine, image, mpi=("openmpi@5",), transport=("ob1-sm",), guest=where)
    assert short(own) == [("mpich", "ucx")]  # the one that it was built with
    own, _ = _own(machine, image, mpi=("openmpi@5",))  # no transport was named: all by default
    assert short(own) == [("mpich", "ucx")]


@pytest.mark.mpi
def test_a_transport_that_it_was_not_built_with_is_not_offered(
    machine: Machine, image: Path
) -> None:
    own, why = _own(machine, image, mpi=("mpich@5",), transport=("ofi-tcp",))
    assert own == []
    assert len(why) == 1
    assert shows(why[0], "ch4:ucx", "without ofi")
    own, _ = _own(machine, image, mpi=("mpich@5",), transport=("ucx",), guest=("native", "own"))
    assert (short(own), own[0].named) == ([("mpich", "ucx")], True)
    both = replace(machine, fabrics=())
    own, _ = _own(both, image, mpi=("mpich@5",))
    assert short(own) == [("mpich", "ucx")]
