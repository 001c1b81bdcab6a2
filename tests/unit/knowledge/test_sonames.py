"""What names of libraries say: bindings of one interface, and roles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Abi, Role
from mpigraft.knowledge import sonames
from mpigraft.knowledge.reader import read_table
from mpigraft.knowledge.sonames import Binding, SonameTable, binding_of, role_of

SAME = {
    Binding("mpich", "c"): ("libmpi.so.12", "libmpich.so.12", "libmpi_gnu_123.so.12",
                            "libmpi_cray.so.12", "libmpi_nvidia.so.12"),
    Binding("mpich", "fortran"): ("libmpifort.so.12", "libmpichfort.so.12", "libfmpich.so.12",
                                  "libmpifort_gnu_123.so.12"),
    Binding("mpich", "cxx"): ("libmpicxx.so.12", "libmpichcxx.so.12"),
    Binding("ompi", "c"): ("libmpi.so.40",),
    Binding("ompi", "fortran", "mpifh"): ("libmpi_mpifh.so.40",),
    Binding("ompi", "fortran", "usempif08"): ("libmpi_usempif08.so.40",),
    Binding("ompi", "fortran", "usempi"): ("libmpi_usempi_ignore_tkr.so.40",
                                           "libmpi_usempi.so.40"),
    Binding("ompi", "cxx"): ("libmpi_cxx.so.40",),
    Binding("mpi-abi", "c"): ("libmpi_abi.so.1", "libmpi_abi.so.0", "libmpi_abi_openmpi.so.1"),
    Binding("ompi-old", "c"): ("libmpi.so.20", "libmpi.so.1"),
}  # fmt: skip
NONE = (
    "libmpi.so", "libmpi.so.120", "xlibmpi.so.12", "libmpi.so.12.1", "libmpi_foo.so.12",
    "libmpi.so.40.30.4", "libmpir.so.12", "libc.so.6", "", "libmpi_abi.so.2",
)  # fmt: skip


@pytest.mark.parametrize(("binding", "names"), SAME.items(), ids=str)
def test_names_of_one_binding(binding: Binding, names: tuple[str, ...]) -> None:
    assert {binding_of(name) for name in names} == {binding}
    assert {role_of(name) for name in names} == {Role.MPI}


@pytest.mark.parametrize("name", NONE)
def test_other_names_are_no_binding(name: str) -> None:
    assert binding_of(name) is None


@pytest.mark.parametrize(
    ("role", "names"),
    [
        (Role.MPI, "libopen-pal.so.80 libpmix.so.2 libmca_common_sm.so.40 libmpi_gtl_cuda.so.0"),
        (Role.MPI, "mca_pml_ucx.so pmix_mca_psec_munge.so libpmi2.so.0 libpmi_cray.so.0"),
        (Role.NET, "libfabric.so.1 libpsm3-fi.so libucp.so.0 libuct_ib.so.0 libibverbs.so.1"),
        (Role.NET, "libcxi.so.1 libxpmem.so.0 libmlx5-rdmav34.so libmlx5.so.1 libpsm2.so.2"),
        (Role.LIBC, "libc.so.6 libm.so.6 libpthread.so.0 ld-linux-x86-64.so.2 libresolv.so.2"),
        (Role.LIBC, "ld-linux-aarch64.so.1 libnss_files.so.2 libdl.so.2 libmvec.so.1"),
        (Role.OTHER, "libstdc++.so.6 libnl-3.so.200 libjson-c.so.5 libhwloc.so.15 libcrypt.so.1"),
    ],
)
def test_roles(role: Role, names: str) -> None:
    assert {name: role_of(name) for name in names.split()} == dict.fromkeys(names.split(), role)


@given(st.text(max_size=40))
def test_any_name_has_a_role(name: str) -> None:
    assert role_of(name) in Role
    if binding_of(name):
        assert role_of(name) is Role.MPI


def test_every_abi_has_a_c_binding() -> None:
    abis = {row.abi for row in sonames.soname_table().bindings if row.language == "c"}
    assert abis == {*(abi.value for abi in Abi), *sonames.OLD_ABIS}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"abi": "mvapich"}, "abi: 'mvapich' is unknown"),
        ({"language": "ada"}, "language: 'ada' is unknown"),
        ({"soname": ["libmpi("]}, "key soname"),
        ({"soname": []}, "key soname: is empty"),
        ({"sources": []}, "sources: is empty"),
        ({"extra": 1}, "extra: unknown key"),
    ],
)
def test_a_wrong_row_is_named(row: dict[str, object], said: str) -> None:
    good = {"soname": ["a"], "abi": "ompi", "language": "c", "sources": ["s"]}
    read_table(SonameTable, {"binding": [good]}, "sonames.toml")
    with pytest.raises(UsageError, match=r"sonames\.toml, binding 1") as caught:
        read_table(SonameTable, {"binding": [good | row]}, "sonames.toml")
    assert said in str(caught.value)


def test_two_rows_of_one_binding_are_refused() -> None:
    row = {"soname": ["a"], "abi": "ompi", "language": "c", "sources": ["s"]}
    with pytest.raises(UsageError, match="two rows"):
        read_table(SonameTable, {"binding": [row, row | {"soname": ["b"]}]}, "sonames.toml")
