"""What check knows of launchers, plugins, networks and GPUs."""

from __future__ import annotations

from dataclasses import replace as changed_to
from pathlib import Path

import pytest

from mpigraft.core.model import (
    AbiObject,
    Family,
    Fit,
    Gpu,
    GuestKind,
    LauncherInfo,
    Level,
    Machine,
    MpiAbi,
    NetDevice,
    NetLibrary,
    Replace,
)
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.guest.own_mpi import GuestMpi
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.fits import codes, finding, own, part, verdict
from tests.builders.guests import (
    C_SYMBOLS,
    LIB,
    MPICH,
    OPENMPI,
    a_guest,
    a_program,
    an_abi,
    library,
)
from tests.builders.messages import matches, shows

# ------------------------------------------------------------------ launcher


def kept(mpi: GuestMpi, launched_by: str) -> Fit:
    """The guest's own MPI over the host's libfabric, under the host's launcher."""
    uses = library("libmpi.so.40", exported=C_SYMBOLS, needed=("libfabric.so.1", "libc.so.6"))
    guest = a_guest(a_program(), uses, library("libfabric.so.1"))
    abi = an_abi(launched_by, library("libfabric.so.1"))
    return verdict(guest, abi, own=mpi, replace=Replace.LIBFABRIC)


@pytest.mark.parametrize(
    ("version", "launched_by", "code"),
    [
        ("4.1.4", "openmpi@5.0.11", "world-of-one"),
        ("5.0.7", "openmpi@5.0.11", None),
        ("4.1.4", "openmpi@4.1.8", None),
        ("5.0.7", "openmpi@4.1.8", None),
        ("5.0.7", "mpich@5.0.2", "world-of-one"),
        ("3.1.6", "openmpi@4.1.8", "pmi-unknown"),
    ],
)
def test_who_starts_the_guests_own_open_mpi(version: str, launched_by: str, code: str) -> None:
    fit = kept(own(version=version), launched_by)
    assert {f.code for f in part(fit, "pmi").findings} == ({code} if code else set())
    assert fit.ok is (code != "world-of-one")
    if code == "world-of-one":
        assert "0 of 1" in finding(fit, code).message
        assert matches(finding(fit, code), "world-of-one")


def test_mpich_under_open_mpis_launcher_speaks_pmix_or_is_alone() -> None:
    deaf = kept(own(Family.MPICH, "4.0.2", pmi=("pmi1",)), "openmpi@5.0.11")
    assert "world-of-one" in codes(deaf)
    speaks = kept(own(Family.MPICH, "4.2.0", pmi=("pmi1", "pmix")), "openmpi@5.0.11")
    assert "world-of-one" not in codes(speaks)


def test_an_image_without_env_cannot_start_a_rank() -> None:
    """So are images that hold a program and its libraries alone."""
    on = a_guest(a_program(), OPENMPI)
    bare = changed_to(on, label=changed_to(on.label, env_program=""))
    fit = verdict(bare, an_abi("openmpi@5.0.11"), own=own())
    assert finding(fit, "env-absent").level is Level.ERROR
    here = changed_to(bare, label=changed_to(bare.label, kind=GuestKind.PROGRAM))
    assert verdict(here, an_abi("openmpi@5.0.11"), own=own()).ok


def test_an_mpi_without_a_launcher_is_started_by_the_schedulers() -> None:
    srun = LauncherInfo("srun", Path("/usr/bin/srun"), "22.05", ("pmi2", "pmix"))
    machine = changed_to(a_machine(), launchers=(srun,))
    abi = an_abi(an_mpi("cray-mpich@8.1.29", launcher=None, launcher_kind=""))
    guest = a_guest(a_program(["libmpi.so.12"]), MPICH)
    found = finding(verdict(guest, abi, machine=machine), "launcher-none")
    assert found.level is Level.INFO
    assert matches(found, "launcher-none", offers="pmi2")


# ------------------------------------------------------------------ libfabric alone


def test_nothing_to_replace_where_the_guests_mpi_has_no_libfabric() -> None:
    abi = an_abi("openmpi@5.0.11", library("libfabric.so.1"))
    fit = verdict(a_guest(a_program(), OPENMPI), abi, own=own(), replace=Replace.LIBFABRIC)
    assert finding(fit, "nothing-replaced").level is Level.ERROR
    bare = verdict(a_guest(a_program()), abi, replace=Replace.LIBFABRIC)
    assert finding(bare, "no-own-mpi").level is Level.ERROR


# ------------------------------------------------------------------ plugins


def cxi(needs: str) -> AbiObject:
    path = "/opt/libfabric/libcxi-fi.so"
    return library("libcxi-fi.so", needed=(needs,), opened=True, place="libfabric", path=path)


def provided(*libraries: AbiObject) -> MpiAbi:
    needed = ("libfabric.so.1", "libc.so.6")
    return an_abi("openmpi@5.0.11", library("libfabric.so.1"), *libraries, needed=needed)


def test_a_plugin_whose_library_goes_in_with_it() -> None:
    abi = provided(cxi("libjson-c.so.5"), library("libjson-c.so.5"))
    fit = verdict(a_guest(a_program(), OPENMPI), abi, own=own())
    assert part(fit, "plugins").findings == ()
    assert shows(part(fit, "plugins").message, "1 plugin")


def test_a_plugin_that_cannot_be_opened_in_the_guest_is_a_warning() -> None:
    """The host's libjson-c needs what the host's own loader finds and the guest's does not."""
    abi = provided(cxi("libjson-c.so.5"), library("libjson-c.so.5", needed=("libgone.so.1",)))
    fit = verdict(a_guest(a_program(), OPENMPI), abi, own=own())
    assert fit.ok
    found = finding(fit, "plugins-closed")
    assert found.level is Level.WARNING
    assert shows(found.evidence, "libcxi-fi.so")


def test_a_plugin_that_the_host_cannot_open_either_is_no_news() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), provided(cxi("libze_loader.so.1")), own=own())
    assert part(fit, "plugins").level is Level.INFO
    (line,) = finding(fit, "plugins-closed-at-home").evidence
    assert shows(line, "libcxi-fi.so", "libze_loader.so.1")


def ucx_guest(*modules: str) -> Guest:
    """An image with an MPICH of its own over a UCX of its own."""
    uses = library("libmpi.so.12", exported=C_SYMBOLS, needed=("libucs.so.0", "libc.so.6"))
    beside = [library(name, path=f"{LIB}/ucx/{name}") for name in modules]
    return a_guest(a_program(["libmpi.so.12"]), uses, library("libucs.so.0"), *beside)


@pytest.mark.parametrize("modules", [(), ("libuct_cma.so.0",)])
def test_modules_in_the_folder_of_a_bound_ucx_are_mixed(
    modules: tuple[str, ...],
) -> None:
    """Seen: UCX 1.20 over Debian's 1.13 ends in uct_tl_register."""
    abi = an_abi("mpich@5.0.2", library("libucs.so.0"), needed=("libucs.so.0", "libc.so.6"))
    mpich = own(Family.MPICH, "4.0.2")
    fit = verdict(ucx_guest(*modules), abi, own=mpich, replace=Replace.LIBFABRIC)
    assert fit.ok is not bool(modules)
    assert ("modules-mixed" in codes(fit)) is bool(modules)
    if modules:
        assert finding(fit, "modules-mixed").level is Level.ERROR
        assert finding(fit, "modules-mixed").evidence == (f"{LIB}/ucx/libuct_cma.so.0",)
    whole = verdict(ucx_guest(*modules), abi, own=mpich)
    assert "modules-mixed" not in codes(whole)


# ------------------------------------------------------------------ network


SLINGSHOT = changed_to(
    a_machine(), fabrics=(NetDevice("cxi0", "cxi", "up"), NetDevice("eth0", "ethernet", "up"))
)
INFINIBAND = changed_to(a_machine(), fabrics=(NetDevice("mlx5_0", "infiniband", "up"),))
TCP = NetLibrary("libfabric", "2.5.1", None, ("tcp", "shm"))
CXI = NetLibrary("libfabric", "2.1.0", None, ("cxi", "tcp", "shm"))
UCX = NetLibrary("ucx", "1.20", None, ("rc_mlx5", "tcp"))


@pytest.mark.parametrize(
    ("machine", "libfabric", "ucx", "reached"),
    [
        (SLINGSHOT, TCP, None, False),
        (SLINGSHOT, CXI, None, True),
        (SLINGSHOT, TCP, UCX, False),
        (INFINIBAND, TCP, None, False),
        (INFINIBAND, TCP, UCX, True),
        (INFINIBAND, None, None, False),
        (a_machine(), TCP, None, True),
    ],
)
def test_a_network_that_the_host_mpi_does_not_reach(
    machine: Machine, libfabric: NetLibrary | None, ucx: NetLibrary | None, reached: bool
) -> None:
    abi = an_abi(an_mpi("openmpi@5.0.11", libfabric=libfabric, ucx=ucx))
    fit = verdict(a_guest(a_program(), OPENMPI), abi, own=own(), machine=machine)
    assert fit.ok
    assert ("network-unreached" in codes(fit)) is not reached


# ------------------------------------------------------------------ GPUs


def gpu_guest(*libraries: AbiObject) -> Guest:
    program = a_program(["libmpi.so.40", "libcudart.so.12", "libcuda.so.1"])
    return a_guest(program, OPENMPI, library("libcudart.so.12"), *libraries)


def test_a_cuda_program_on_a_login_node_without_a_gpu() -> None:
    """A warning: compute nodes may have one, and engines bring the driver."""
    abi = an_abi("openmpi@5.0.11")
    fit = verdict(gpu_guest(), abi, own=own(), machine=a_machine())
    assert fit.ok
    assert codes(fit) >= {"gpu-none", "gpu-driver", "gpu-unaware"}
    assert "library-missing" not in codes(fit)
    assert "--nv" in finding(fit, "gpu-driver").fix


def test_a_cuda_program_where_everything_is_there() -> None:
    gpus = (Gpu(0, "nvidia", "H200", 141_000),)
    gtl = library("libmpi_gtl_cuda.so", opened=True, place="", path="/opt/lib/libmpi_gtl_cuda.so")
    fit = verdict(
        gpu_guest(library("libcuda.so.1")), an_abi("openmpi@5.0.11", gtl), own=own(),
        machine=changed_to(a_machine(), gpus=gpus),
    )  # fmt: skip
    assert part(fit, "gpu").findings == ()
    assert shows(part(fit, "gpu").message, "nvidia")


def test_a_rocm_program_over_an_mpi_for_cuda() -> None:
    program = a_program(["libmpi.so.40", "libamdhip64.so.6"])
    guest = a_guest(program, OPENMPI, library("libamdhip64.so.6"))
    cuda = an_mpi("openmpi@5.0.11", components=(("accelerator", ("cuda", "null")),))
    assert "gpu-unaware" in codes(verdict(guest, an_abi(cuda), own=own()))
    rocm = an_mpi("openmpi@5.0.11", components=(("accelerator", ("rocm", "null")),))
    assert "gpu-unaware" not in codes(verdict(guest, an_abi(rocm), own=own()))
