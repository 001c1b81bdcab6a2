"""Rows of networks, GPUs and machines that are not here: what they need and what they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    Cpu,
    Family,
    Gpu,
    Machine,
    MpiInstall,
    NetDevice,
    NetLibrary,
    SingleCopy,
)
from mpigraft.discovery.sources import fabrics
from mpigraft.knowledge import load_document, read_rows, version_numbers
from mpigraft.knowledge.transports.fabrics import Fabric, devices_by_fabric
from mpigraft.knowledge.transports.match import (
    Facts,
    resolve_transport,
    transport_names,
    transport_offers,
    transport_rows,
)
from tests.builders.machine_trees import plant
from tests.builders.messages import shows
from tests.builders.probes import COMPONENTS, install

SLINGSHOT = Facts(interface="hsn0", devices=(("cxi", ("cxi0", "cxi1")),))
LIBFABRIC = NetLibrary(
    "libfabric", "2.5.1", None,
    ("cxi", "efa", "verbs", "ofi_rxm", "tcp", "shm", "lnx", "psm3", "psm2", "opx", "ucx", "mlx"),
)  # fmt: skip
UCX = NetLibrary("ucx", "1.20.1", None, ("self", "sysv", "tcp", "rc_mlx5", "dc_mlx5", "srd"))


def machine(*devices: NetDevice) -> Machine:
    cpu = Cpu("", "x86_64", 2, 2, 1, ((0, 1),), ((0, 1),))
    return Machine("h", "", "", cpu, 1, devices, (), (), (), None, ())


def reason(name: str, mpi: MpiInstall, facts: Facts) -> str:
    offer = next(o for o in transport_offers(mpi, facts) if o.name == name)
    assert not offer.usable
    return offer.reason


def test_every_fabric_has_its_rows() -> None:
    """What knowledge of a machine's network asks for: EFA, InfiniBand, Omni-Path, Slingshot."""
    wanted = {
        Family.OPENMPI: ("ofi-efa", "ofi-verbs", "ofi-psm3", "ofi-psm2", "ofi-opx", "ofi-ucx",
                         "shm-ucx-rc", "shm-ucx-dc", "shm-ucx-srd", "shm-ucx-cuda", "shm-ucx-rocm",
                         "shm-ucx-tcp", "ob1-sm-xpmem", "ob1-sm-cma", "ob1-sm-knem"),
        Family.MPICH: ("ofi-efa", "shm-ofi-verbs", "shm-ofi-psm3", "ofi-opx", "shm-ucx"),
        Family.INTEL: ("shm-ofi-mlx", "shm-ofi-psm3", "shm-ofi-efa", "shm-ofi-verbs", "ofi-cxi"),
    }  # fmt: skip
    for family, needed in wanted.items():
        assert set(needed) <= set(transport_names(family)), family


def test_rows_of_machines_that_are_gone_name_the_study() -> None:
    old = [row for row in transport_rows() if row.historic]
    assert {row.name for row in old} == {"ob1-ugni", "ob1-ugni-xpmem", "ob1-ugni-cma"}
    for row in old:
        assert any("2014" in source for source in row.sources)
        assert row.when.mpi is not None
        assert version_numbers("5.0") not in row.when.mpi


def test_cray_mpich_names_the_modules_of_its_other_network() -> None:
    cray = install("mpich@4.1.0", family=Family.CRAY_MPICH, version="8.1.29", device="ch4:ofi")
    infiniband = Facts("eth0", (("verbs", ("mlx5_0",)), ("mellanox", ("mlx5_0",))))
    why = reason("shm-ucx", cray, infiniband)
    assert shows(why, "ch4:ofi", "without ucx")
    assert "-craype-network-ofi,-cray-mpich,craype-network-ucx,cray-mpich-ucx" in why
    assert "without cxi" in reason("shm-ucx", cray, SLINGSHOT)


def test_cray_mpich_copies_by_xpmem_where_it_can() -> None:
    library = NetLibrary("libfabric", "1.22.0", None, ("cxi", "tcp"))
    cray = install(
        "mpich@4.1.0", family=Family.CRAY_MPICH, version="8.1.29", device="ch4:ofi",
        libfabric=library,
    )  # fmt: skip
    for copies, mode in (((("xpmem", ""),), "XPMEM"), ((("xpmem", "no file"),), "CMA")):
        found = resolve_transport("shm-ofi-cxi", cray, replace(SLINGSHOT, copies=copies))
        env = {row.name: row.value for row in found.env}
        assert env["MPICH_SMP_SINGLE_COPY_MODE"] == mode
        assert env["MPICH_OFI_USE_PROVIDER"] == "cxi"


def test_efa_and_omni_path_are_no_verbs_devices() -> None:
    """They stand in the kernel's class of InfiniBand."""

    def device(name: str, driver: str = "") -> NetDevice:
        return NetDevice(name, "infiniband", "up", details=(("driver", driver),))

    here = [
        device("rdmap0s31", "efa 2.13"),
        device("hfi1_0"),
        device("mlx5_bond_0", "mlx5_core 24.10"),
        device("rocep59s0", "mlx5_core 24.10"),
        NetDevice("irdma0", "infiniband", "down"),
    ]
    found = Facts.of(machine(*here))
    assert dict(found.devices) == {
        "verbs": ("mlx5_bond_0", "rocep59s0"),
        "mellanox": ("mlx5_bond_0",),
        "efa": ("rdmap0s31",),
        "omnipath": ("hfi1_0",),
    }
    assert Facts.of(machine(device("rocep59s0", "mlx5_core"))).flags["mellanox"] is False


def test_gpus_and_copies_are_facts() -> None:
    gpus = tuple(Gpu(i, "amd", "MI250X", 65536) for i in range(2))
    copies = (SingleCopy("xpmem", True, "fine"), SingleCopy("knem", False, "there is no /dev/knem"))
    found = Facts.of(replace(machine(), gpus=gpus, single_copy=copies))
    assert found.gpus == ("amd",)
    assert dict(found.copies) == {"xpmem": "", "knem": "there is no /dev/knem"}
    assert found.flags["xpmem"]
    needy = install("openmpi@5.0.11", components=(*COMPONENTS["5"], ("smsc", ("knem", "xpmem"))))
    assert shows(reason("ob1-sm-knem", needy, found), "/dev/knem")
    usable = {o.name: o.variant for o in transport_offers(needy, found) if o.usable}
    assert usable["ob1-sm-xpmem"] is True
    assert usable["ob1-sm"] is False


# ------------------------------------------------------------------ recorded machines


MPIS = {
    Family.OPENMPI: ("openmpi@5.0.11", "5.0.11"),
    Family.MPICH: ("mpich@5.0.2", "5.0.2"),
    Family.INTEL: ("intel@2021.18.1", "2021.18.1"),
    Family.CRAY_MPICH: ("mpich@5.0.2", "8.1.29"),
    Family.MVAPICH: ("mpich@5.0.2", "4.0"),
}


def usable(family: Family, facts: Facts) -> set[str]:
    """What an MPI that was built with everything can use."""
    like, number = MPIS[family]
    mpi = install(like, family=family, version=number, libfabric=LIBFABRIC, ucx=UCX)
    return {offer.name for offer in transport_offers(mpi, facts) if offer.usable}


@pytest.mark.parametrize(
    ("name", "family", "there", "missing"),
    [
        ("slingshot-amd", "openmpi", "ofi-cxi ofi-lnx", "ofi-verbs shm-ucx-rc ofi-efa"),
        ("slingshot-amd", "mpich", "ofi-cxi shm-ofi-cxi", "ofi-verbs ofi-opx"),
        ("slingshot-amd", "cray-mpich", "shm-ofi-cxi", "shm-ucx"),
        ("slingshot-amd", "mvapich", "shm-ofi-cxi", "shm-ofi-verbs shm-ofi-opx"),
        ("slingshot-amd", "intel", "shm-ofi-cxi ofi-cxi", "shm-ofi-mlx"),
        ("infiniband", "openmpi", "ucx shm-ucx-rc shm-ucx-dc ofi-verbs", "ofi-cxi shm-ucx-srd"),
        ("infiniband", "mpich", "ucx ofi-verbs shm-ofi-psm3", "ofi-cxi ofi-efa"),
        ("infiniband", "cray-mpich", "shm-ucx", "shm-ofi-cxi"),
        ("infiniband", "intel", "shm-ofi-mlx ofi-verbs", "ofi-efa ofi-cxi"),
        ("infiniband", "mvapich", "shm-ofi-verbs shm-ucx", "shm-ofi-cxi"),
    ],
)
def test_what_a_recorded_machine_can_use(
    tmp_path: Path, name: str, family: str, there: str, missing: str
) -> None:
    facts = Facts.of(machine(*fabrics.devices(plant(name, tmp_path))))
    found = usable(Family(family), facts)
    assert set(there.split()) <= found
    assert not set(missing.split()) & found


def test_a_new_fabric_is_one_row() -> None:
    """Its devices are its own and no longer those of verbs, and transports may need it."""
    row = {"id": "bull", "device": "a BXI NIC", "kind": "infiniband", "drivers": ["bxi"],
           "sources": ["s"]}  # fmt: skip
    table = {"fabric": [*load_document("fabrics.toml")["fabric"], row]}
    rows = read_rows(Fabric, "fabric", table, "fabrics.toml")
    here = [NetDevice("bxi_0", "infiniband", "up"), NetDevice("mlx5_0", "infiniband", "up")]
    assert devices_by_fabric(here, rows) == {
        "verbs": ("mlx5_0",), "mellanox": ("mlx5_0",), "bull": ("bxi_0",)
    }  # fmt: skip


@pytest.mark.parametrize("change", [{"ucx": "yes"}, {"name": "("}, {"sources": []}, {"odd": 1}])
def test_a_wrong_fabric_is_named(change: dict[str, object]) -> None:
    row = {"id": "a", "device": "an A NIC", "kind": "a", "sources": ["s"]} | change
    with pytest.raises(UsageError, match=f"fabrics.toml, row a, key {next(iter(change))}"):
        read_rows(Fabric, "fabric", {"fabric": [row]}, "fabrics.toml")
