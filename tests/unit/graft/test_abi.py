"""A host MPI as `check` sees it: which libraries, which plugins, which files, which words."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import AbiObject, Family, MpiAbi, MpiInstall, Role
from mpigraft.core.serialize import plain, revive
from mpigraft.discovery.sources import interfaces
from mpigraft.graft.abi import libraries
from mpigraft.graft.abi import saved as saved_machine
from tests.builders.configuration import an_mpi
from tests.builders.elf import compiled

pytestmark = pytest.mark.usefixtures("home")


SEARCH = "$ORIGIN:$ORIGIN/.."


def library(path: Path, *needs: Path, soname: str | None = None, source: str = "") -> Path:
    flags = (f"-Wl,-rpath,{SEARCH}",)
    return compiled(path, source, soname=soname or path.name, needs=needs, flags=flags)


LIBMPI, PAL, FABRIC = "libmpi.so.40", "libopen-pal.so.80", "libfabric.so.1"
LIBRARIES = {
    "libucs.so.0": (), FABRIC: (), PAL: ("libucs.so.0",), LIBMPI: (PAL,),
    "libmpi_mpifh.so.40": (LIBMPI,), "liboshmem.so.40": (LIBMPI,),
}  # fmt: skip
PLUGINS = {
    "openmpi/mca_mtl_ofi.so": (FABRIC,), "openmpi/mca_spml_ucx.so": (), "ucx/libuct_cma.so.0": (),
    "libfabric/libtcp-fi.so": (FABRIC,),
}  # fmt: skip
HELP = "share/openmpi/help-mpi.txt"


def openmpi(prefix: Path) -> MpiInstall:
    """An Open MPI with components, UCX with a module, and libfabric with a provider."""
    lib = prefix / "lib"
    source = (
        "int MPI_Init(void) { return 0; }\nextern int deep(void);\nint x(void) { return deep(); }"
    )
    made: dict[str, Path] = {}
    for name, needs in {**LIBRARIES, **PLUGINS}.items():
        text = source if name == LIBMPI else ""
        made[name] = library(lib / name, *(made[one] for one in needs), source=text)
    libmpi = made[LIBMPI]
    (lib / "openmpi/mca_broken.so").write_text("not a library")
    (prefix / "share/openmpi").mkdir(parents=True)
    (prefix / HELP).write_text("help")
    (prefix / "share/openmpi/mpicc-wrapper-data.txt").write_text("no rank reads it")
    return an_mpi(prefix=prefix, libmpi=libmpi)


def named(facts: MpiAbi, *, opened: bool) -> set[str]:
    return {f"{x.place}/{Path(x.path).name}".lstrip("/") for x in facts.objects
            if x.opened is opened and x.role is not Role.LIBC}  # fmt: skip


def test_libraries_plugins_files_and_environment(tmp_path: Path) -> None:
    facts = libraries.read_abi(openmpi(tmp_path / "mpi"))
    assert facts.objects[0].soname == LIBMPI
    assert named(facts, opened=False) == LIBRARIES.keys()
    assert named(facts, opened=True) == PLUGINS.keys()
    roles = {x.soname: x.role for x in facts.objects}
    assert (roles[PAL], roles["libucs.so.0"]) == (Role.MPI, Role.NET)
    assert [file.place for file in facts.data] == [HELP]
    words = {row.name: row.value for row in facts.environment}
    assert words["OPAL_PREFIX"] == "{graft}"
    assert words["FI_PROVIDER_PATH"] == "{graft}/lib/libfabric"
    assert "UCX_CONFIG_DIR" not in words  # there is no ucx.conf, and UCX warns of unused words
    assert "IBV_DRIVERS" not in words
    assert all("opened.toml" in row.source for row in facts.environment)


def test_symbols_as_a_linker_has_them(tmp_path: Path) -> None:
    libmpi = libraries.read_abi(openmpi(tmp_path / "mpi")).objects[0]
    assert "MPI_Init" in libmpi.exported
    assert "deep" in libmpi.imported
    assert libmpi.needed == (PAL,)
    assert SEARCH in (libmpi.runpath, libmpi.rpath)


def test_what_a_plugin_brings_may_open_more(tmp_path: Path) -> None:
    """libibverbs comes with a provider of libfabric, and opens its drivers by itself."""
    mpi = openmpi(tmp_path / "mpi")
    lib = tmp_path / "mpi/lib"
    verbs = library(lib / "libfabric/libibverbs.so.1")
    library(lib / "libfabric/libverbs-fi.so", verbs)
    driver = "libibverbs/libmlx5-rdmav34.so"
    library(lib / "libfabric" / driver, soname="libmlx5.so.1")
    facts = libraries.read_abi(mpi)
    assert driver in named(facts, opened=True)
    words = {row.name: row.value for row in facts.environment}
    assert words["IBV_DRIVERS"] == "{graft}/lib/libibverbs/libmlx5"


def test_one_library_of_each_name(tmp_path: Path) -> None:
    """A plugin whose own search finds another libucs gets the one that is loaded already."""
    mpi = openmpi(tmp_path / "mpi")
    other = tmp_path / "mpi/lib/openmpi"
    below = library(other / "libbelow.so.1")
    stale = library(other / "libucs.so.0", below)
    library(other / "mca_pml_ucx.so", stale)
    facts = libraries.read_abi(mpi)
    assert [x.path for x in facts.objects if x.soname == "libucs.so.0"] == [
        str(tmp_path / "mpi/lib/libucs.so.0")
    ]
    assert below.name not in {x.soname for x in facts.objects}


def test_in_a_shared_folder_only_what_belongs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Debian has it: Open MPI and MPICH side by side, and an MPI-5 library of the latter."""
    mpi = openmpi(tmp_path / "usr")
    lib = tmp_path / "usr/lib"
    monkeypatch.setattr(interfaces, "SHARED", (str(lib),))
    mpich = library(lib / "libmpich.so.12")
    fortran = library(lib / "libmpichfort.so.12", mpich)
    standard = library(lib / "libmpi_abi.so.1")
    assert named(libraries.read_abi(mpi), opened=False) == LIBRARIES.keys()
    second = an_mpi("mpich@4.0.2", prefix=tmp_path / "usr", libmpi=mpich)
    other = named(libraries.read_abi(second), opened=False)
    assert other == {mpich.name, fortran.name}
    monkeypatch.setattr(interfaces, "SHARED", ())
    assert standard.name in named(libraries.read_abi(second), opened=False)


def test_the_c_library_goes_as_a_set(tmp_path: Path) -> None:
    libmpi = compiled(
        tmp_path / "lib/libmpi.so.12", soname="libmpi.so.12", flags=("-nodefaultlibs", "-lc")
    )
    facts = libraries.read_abi(an_mpi("mpich@5.0.2", prefix=tmp_path, libmpi=libmpi))
    libc = {x.soname for x in facts.objects if x.role is Role.LIBC}
    assert {"libc.so.6", "libm.so.6", "libpthread.so.0"} <= libc
    assert any(name.startswith("ld-linux") for name in libc)
    assert float(facts.glibc) > 2


def test_an_mpi_that_is_not_usable_or_went_away(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be used"):
        libraries.read_abi(an_mpi(usable=False, reason="it does not load"))
    with pytest.raises(MissingError, match="cannot be read"):
        libraries.read_abi(an_mpi(libmpi=tmp_path / "gone.so"))


# ------------------------------------------------------------------ a saved machine


def an_object(**changes: Any) -> AbiObject:
    values = {
        "soname": "libmpi.so.40", "path": "/opt/lib/libmpi.so.40", "digest": "0" * 64,
        "role": Role.MPI, "machine": "x86_64", "needed": ("libc.so.6",),
        "needs": (("libc.so.6", "GLIBC_2.17", False),), "defines": (), "exported": ("MPI_Init",),
        "imported": ("printf@GLIBC_2.2.5",),
    }  # fmt: skip
    return AbiObject(**(values | changes))


def a_document(*facts: MpiAbi | None) -> dict[str, Any]:
    """None: an MPI that was not usable."""
    broken = {"id": "intel@2021.18", "family": "intel", "reason": "it does not load"}
    rows = [
        {"id": f.mpi.id, "family": f.mpi.family, "reason": "", "abi_facts": plain(f)}
        if f
        else broken | {"abi_facts": None}
        for f in facts
    ]
    return {"schema": 1, "mpis": rows}


def saved(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "machine.json"
    path.write_text(json.dumps(document))
    return path


OURS = MpiAbi(an_mpi("openmpi@5.0.11"), (an_object(),), glibc="2.36")
OLDER = MpiAbi(an_mpi("openmpi@4.1.8"), (an_object(digest="1" * 64),))
THEIRS = MpiAbi(an_mpi("mpich@5.0.2"), (an_object(soname="libmpi.so.12"),))


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("openmpi", OURS), ("openmpi@4.1.8", OLDER), ("openmpi@4", OLDER), ("mpich", THEIRS),
        ("openmpi@5.0.11", OURS),
    ],
)  # fmt: skip
def test_an_mpi_of_a_saved_machine(tmp_path: Path, spec: str, found: MpiAbi) -> None:
    path = saved(tmp_path, a_document(OURS, OLDER, THEIRS, None))
    assert saved_machine.abi_from_machine(path, spec) == found


BAD: Sequence[tuple[Any, str, str]] = (
    ({"schema": 1, "mpis": {}}, "openmpi", "no list `mpis`"),
    ([], "openmpi", "no description of a machine"),
    ({"schema": 7, "mpis": []}, "openmpi", "of schema 2"),
    (a_document(OURS), "mpich", "no MPI 'mpich'; it has openmpi@5.0.11"),
    (a_document(None), "intel", "it does not load"),
    ({"schema": 1, "mpis": [{"id": "a", "family": "openmpi"}]}, "openmpi", "without --abi"),
    ({"schema": 1, "mpis": [{"id": "a", "abi_facts": []}]}, "a", "abi_facts of a"),
    ({"schema": 1, "mpis": [{"id": "a", "abi_facts": {"mpi": None}}]}, "a", "abi_facts of a"),
)


@pytest.mark.parametrize(("document", "spec", "said"), BAD)
def test_a_wrong_file_is_named(tmp_path: Path, document: Any, spec: str, said: str) -> None:
    path = saved(tmp_path, document)
    with pytest.raises(UsageError) as caught:
        saved_machine.abi_from_machine(path, spec)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_no_file_and_no_json(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        saved_machine.abi_from_machine(tmp_path / "none.json", "openmpi")
    path = tmp_path / "text"
    path.write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        saved_machine.abi_from_machine(path, "openmpi")


@pytest.mark.parametrize(
    "change",
    [{"soname": "../libmpi.so.40"}, {"path": "lib/libmpi.so"}, {"place": "../../etc"},
     {"place": "/etc"}, {"digest": 7}, {"exported": ("MPI_Init", 3)}, {"needed": "libc.so.6"}],
)  # fmt: skip
def test_a_description_cannot_lead_out_of_the_graft(tmp_path: Path, change: Any) -> None:
    facts = MpiAbi(an_mpi(), (an_object(**change),))
    with pytest.raises(UsageError, match="abi_facts of openmpi"):
        saved_machine.abi_from_machine(saved(tmp_path, a_document(facts)), "openmpi")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.sampled_from(["mpi", "objects", "data", "environment", "glibc"]), JSON)
def test_damage_is_a_usage_error(
    tmp_path_factory: pytest.TempPathFactory, key: str, value: Any
) -> None:
    document = a_document(OURS)
    document["mpis"][0]["abi_facts"][key] = value
    path = saved(tmp_path_factory.mktemp("machine"), document)
    with contextlib.suppress(UsageError):
        assert isinstance(saved_machine.abi_from_machine(path, "openmpi"), MpiAbi)


def test_facts_survive_json(tmp_path: Path) -> None:
    facts = libraries.read_abi(openmpi(tmp_path / "mpi"))
    assert revive(MpiAbi, json.loads(json.dumps(plain(facts)))) == facts
    assert facts.mpi.family is Family.OPENMPI
