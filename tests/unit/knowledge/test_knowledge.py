"""Transports and known issues: what is in the files, and what a wish resolves to."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Cpu, Family, Machine, MpiInstall, NetDevice, NetLibrary, Peer, Scope
from mpigraft.knowledge import known_issues, version_numbers
from mpigraft.knowledge.transports import match
from mpigraft.knowledge.transports.match import (
    Facts,
    resolve_transport,
    transport_names,
    transport_offers,
    transport_rows,
)
from mpigraft.knowledge.transports.rows import TransportRow
from tests.builders.messages import shows
from tests.builders.probes import HERE, install

SLINGSHOT = Facts(interface="hsn0", devices=(("cxi", ("cxi0", "cxi1")),))
MELLANOX = Facts("eth0", (("verbs", ("mlx5_0",)), ("mellanox", ("mlx5_0",))))
LOOPBACK = Facts(interface="lo")


def openmpi(libfabric: str | None = "2.5.1", version: str = "5.0.11") -> MpiInstall:
    library = libfabric and NetLibrary("libfabric", libfabric, None, ("tcp", "shm", "lnx", "cxi"))
    return install(f"openmpi@{version}", libfabric=library)


# ------------------------------------------------------------------ what is in the files


def test_the_public_names() -> None:
    lists = {family: set(transport_names(family)) for family in Family}
    assert lists[Family.OPENMPI] >= {"ob1-sm", "ob1-tcp", "ofi-tcp", "ofi-lnx", "ofi-cxi", "ucx"}
    assert lists[Family.MPICH] >= {"ofi-tcp", "ofi-cxi", "ucx"}
    assert lists[Family.INTEL] >= {"shm", "shm-ofi-tcp", "ofi-tcp", "shm-ofi-mlx", "shm-ofi-cxi"}
    assert lists[Family.CRAY_MPICH] == {"shm-ofi-cxi", "shm-ucx"}
    assert lists[Family.MVAPICH] >= {"shm-ofi-cxi", "shm-ofi-psm3", "shm-ofi-opx", "shm-ucx"}


def test_every_known_issue_is_a_row() -> None:
    found = {issue.id for issue in known_issues()}
    for area, count in (
        ("LNX", 14), ("SHM", 3), ("CXI", 12), ("BLD", 5), ("UCX", 6), ("CMA", 3), ("SEL", 9),
        ("GPU", 6), ("LCH", 10), ("COL", 3),
    ):  # fmt: skip
        assert {f"{area}-{n:02}" for n in range(1, count + 1)} <= found


def test_every_issue_says_what_to_do_and_where_it_is_from() -> None:
    known = {"source", "doc", "issue", "observed"}
    for issue in known_issues():
        assert issue.symptom, issue.id
        assert issue.cause, issue.id
        assert issue.fix, issue.id
        assert issue.sources, issue.id
        assert issue.evidence, issue.id
        for word in issue.evidence:
            assert word in known or word.startswith(("inferred", "observed")), (issue.id, word)


@pytest.mark.parametrize("row", transport_rows(), ids=lambda row: row.id)
def test_every_row_forces_the_top_layer(row: TransportRow) -> None:
    top = {
        Family.OPENMPI: "OMPI_MCA_pml",
        Family.MPICH: "MPIR_CVAR_CH4_NETMOD",
        Family.INTEL: "I_MPI_FABRICS",
        Family.MVAPICH: "MPICH_CH4_NETMOD",
        Family.CRAY_MPICH: "MPICH_OFI_USE_PROVIDER",
    }
    assert dict(row.env).get(top[row.family]) or (row.modules and row.needs.netmod)
    assert row.sources


@pytest.mark.parametrize("row", transport_rows(), ids=lambda row: row.id)
def test_every_sign_can_contradict_and_no_line_is_both(row: TransportRow) -> None:
    """A sign of the wish comes with the sign of anything else, for the same kind and peers."""
    for sign in row.signs:
        re.compile(sign.pattern)
        twins = [s for s in row.signs if (s.kind, s.peer) == (sign.kind, sign.peer)]
        if sign.proves:
            assert any(not twin.proves for twin in twins)


def test_probe_settings_never_select_a_transport() -> None:
    loud = re.compile(r"VERBOSE|DEBUG|LOG|DISPLAY|REPORT", re.IGNORECASE)
    for row in transport_rows():
        for name, _ in row.probe:
            assert loud.search(name), f"{row.id}: {name}"
        assert not {name for name, _ in row.probe} & {name for name, _ in row.env}


# ------------------------------------------------------------------ one row for a wish


@pytest.mark.parametrize("facts", [HERE, SLINGSHOT, MELLANOX, LOOPBACK], ids=lambda f: f.interface)
@pytest.mark.parametrize("libfabric", [None, "1.22", "2.0.0", "2.1.0", "2.2.0", "2.5.1", "2.6.0"])
@pytest.mark.parametrize("number", ["4.0.7", "4.1.8", "5.0.11", "6.0.0rc2"])
def test_one_row_or_none_with_a_reason(facts: Facts, libfabric: str | None, number: str) -> None:
    mpi = (
        openmpi(libfabric, number)
        if number[0] in "45"
        else install("openmpi@5.0.11", version=number, libfabric=openmpi(libfabric).libfabric)
    )
    offered = transport_offers(mpi, facts)
    assert [offer.name for offer in offered] == list(transport_names(Family.OPENMPI))
    for offer in offered:
        assert offer.usable or offer.reason
        if offer.usable:
            assert resolve_transport(offer.name, mpi, facts).row == offer.row


@pytest.mark.parametrize(
    ("libfabric", "facts", "include", "links", "table"),
    [
        ("2.1.0", HERE, "shm+tcp;ofi_rxm:lnx", "shm+tcp", None),
        ("2.1.0", SLINGSHOT, "shm+cxi:lnx", "shm+cxi", None),
        ("2.2.0", HERE, "lnx", "shm+tcp:eth0", "table"),
        ("2.5.1", HERE, "lnx", "shm+tcp:eth0", "table"),
        ("2.5.1", LOOPBACK, "lnx", "shm+tcp:lo", "table"),
        ("2.5.1", SLINGSHOT, "lnx", "shm+cxi:cxi0|shm+cxi:cxi1", "table"),
        ("2.6.0", HERE, "lnx", "shm+tcp:eth0", None),
        ("2.6.0", SLINGSHOT, "lnx", "shm+cxi:cxi0|shm+cxi:cxi1", None),
    ],
)
def test_lnx_by_version_of_libfabric(
    libfabric: str, facts: Facts, include: str, links: str, table: str | None
) -> None:
    found = resolve_transport("ofi-lnx", openmpi(libfabric), facts)
    env = {row.name: row.value for row in found.env}
    assert env["OMPI_MCA_pml"] == "cm"
    assert env["OMPI_MCA_opal_common_ofi_provider_include"] == include
    assert env["FI_LNX_PROV_LINKS"] == links
    assert env.get("OMPI_MCA_mtl_ofi_av") == table
    scopes = {row.name: row.scope for row in found.env}
    on_head = "PRTE_MCA_ras_base_launch_orted_on_hn"
    assert scopes.get(on_head) is (Scope.LAUNCHER if dict(facts.devices) else None)


def test_ucx_is_opened_to_all_devices_off_mellanox_only() -> None:
    gate = "OMPI_MCA_opal_common_ucx_devices"
    here = resolve_transport("ucx", openmpi(), HERE)
    there = resolve_transport("ucx", openmpi(), MELLANOX)
    assert {row.name: row.value for row in here.env}[gate] == "any"
    assert gate not in {row.name for row in there.env}
    assert here.row != there.row


def test_shared_memory_of_open_mpi_4_is_vader() -> None:
    old = resolve_transport("ob1-sm", install("openmpi@4.1.8"), HERE)
    new = resolve_transport("ob1-sm", install("openmpi@5.0.11"), HERE)
    assert {r.value for r in old.env} == {"ob1", "self,vader"}
    assert {r.value for r in new.env} == {"ob1", "self,sm"}


def test_mpich_forces_the_netmod_it_is_named_for() -> None:
    mpich = install("mpich@5.0.2")
    for name in ("ofi-tcp", "ucx"):
        env = {row.name: row.value for row in resolve_transport(name, mpich, HERE).env}
        assert env["MPIR_CVAR_NOLOCAL"] == "1"
    local = {row.name: row.value for row in resolve_transport("shm-ofi-tcp", mpich, HERE).env}
    assert local["MPIR_CVAR_NOLOCAL"] == "0"


def test_a_template_is_the_same_on_every_machine() -> None:
    """The key of a configuration holds no interface's name."""
    one, two = (resolve_transport("ofi-lnx", openmpi(), f) for f in (HERE, LOOPBACK))
    assert one.template == two.template
    assert one.env != two.env


# ------------------------------------------------------------------ why not


def reason(name: str, mpi: MpiInstall, facts: Facts = HERE) -> str:
    offer = next(o for o in transport_offers(mpi, facts) if o.name == name)
    assert not offer.usable
    return offer.reason


def test_why_a_transport_is_not_offered() -> None:
    mpi = openmpi()
    assert shows(reason("ofi-cxi", mpi), "Slingshot NIC")
    assert shows(reason("ofi-lnx", openmpi(None)), "version", "libfabric", "not known")
    assert shows(reason("ofi-lnx", openmpi("1.22.0")), "libfabric >=2", "1.22.0")
    assert shows(reason("ofi-lnx", install("openmpi@4.1.8")), "openmpi >=5")
    bare = install("openmpi@5.0.11", components=(("pml", ("ob1",)), ("btl", ("self", "tcp"))))
    assert shows(reason("ob1-sm", bare), "btl", "sm")
    plain = install("openmpi@5.0.11", libfabric=NetLibrary("libfabric", "2.5.1", None, ("tcp",)))
    assert shows(reason("ofi-lnx", plain), "provider lnx")
    assert "without ucx" in reason("ucx", install("mpich@5.0.2", device="ch4:ofi"))
    assert shows(reason("ofi-shm", mpi), "aborts")
    assert shows(reason("ofi-efa", mpi), "EFA")
    assert shows(reason("ofi-opx", mpi), "Omni-Path")
    verbs = MELLANOX
    alone = install("openmpi@5.0.11", libfabric=NetLibrary("libfabric", "2.5.1", None, ("verbs",)))
    assert shows(reason("ofi-verbs", alone, verbs), "provider ofi_rxm")
    ucx = NetLibrary("ucx", "1.18.1", None, ("self", "tcp", "sysv", "rc_verbs"))
    with_ucx = install("openmpi@5.0.11", ucx=ucx)
    assert shows(reason("shm-ucx-dc", with_ucx, verbs), "transport dc")
    assert shows(reason("shm-ucx-srd", with_ucx, verbs), "UCX >=1.19", ucx.version)
    cuda = replace(with_ucx, ucx=replace(ucx, offers=("rc_verbs", "cuda_copy")))
    assert shows(reason("shm-ucx-cuda", cuda, verbs), "nvidia GPU")
    assert shows(reason("ob1-ugni", install("openmpi@4.1.8")), "btl", "ugni")


def test_what_is_not_known_is_not_offered_but_may_be_asked_for() -> None:
    mute = NetLibrary("libfabric", "2.5.1", None, (), "timed out")
    cases = [
        ("ofi-tcp", install("openmpi@5.0.11", libfabric=mute), "not known: timed out"),
        ("ob1-sm", install("openmpi@5.0.11", components=()), "pml components are not known"),
        ("ucx", install("mpich@5.0.2", device=""), "ch4 device is not known"),
        ("shm-ofi-tcp", install("intel@2021.18.1", libfabric=None), "providers"),
    ]
    for name, mpi, says in cases:
        assert says in reason(name, mpi)
        assert resolve_transport(name, mpi, HERE).name == name


def test_a_broken_transport_is_run_for_who_asks() -> None:
    assert resolve_transport("ofi-shm", openmpi(), HERE).row == "openmpi-ofi-shm"


def test_a_name_that_a_family_does_not_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="openmpi has no transport 'lnx'") as caught:
        resolve_transport("lnx", openmpi(), HERE)
    assert "ofi-lnx" in caught.value.fix
    with pytest.raises(MissingError, match="no Slingshot NIC"):
        resolve_transport("ofi-cxi", openmpi(), HERE)
    with pytest.raises(MissingError, match="ofi-lnx is not known"):
        resolve_transport("ofi-lnx", openmpi("1.22.0"), HERE)


# ------------------------------------------------------------------ facts and issues


def machine(*devices: NetDevice) -> Machine:
    cpu = Cpu("", "x86_64", 2, 2, 1, ((0, 1),), ((0, 1),))
    return Machine("h", "", "", cpu, 1, devices, (), (), (), None, ())


def test_facts_of_a_machine() -> None:
    lo = NetDevice("lo", "loopback", "up")
    assert Facts.of(machine(lo)) == Facts("lo")
    eth = [NetDevice("eth0", "ethernet", "down"), NetDevice("eth1", "ethernet", "up")]
    assert Facts.of(machine(lo, *eth)).interface == "eth1"
    cxi = [NetDevice("cxi0", "cxi", "up"), NetDevice("cxi1", "cxi", "down")]
    mlx = NetDevice("mlx5_0", "infiniband", "active")
    found = Facts.of(machine(lo, *cxi, mlx), nodes=2)
    assert (found.nodes, dict(found.devices)) == (
        2, {"cxi": ("cxi0",), "verbs": ("mlx5_0",), "mellanox": ("mlx5_0",)}
    )  # fmt: skip
    here = {"cxi", "verbs", "mellanox", "loopback"}
    assert found.flags == {name: name in here for name in found.flags}
    assert set(found.flags) >= {*here, "efa", "omnipath", "xpmem"}


@given(st.text())
def test_versions_never_fail(text: str) -> None:
    found = version_numbers(text)
    assert all(isinstance(n, int) for n in found)
    assert not found or found[-1] != 0


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("5.0.11", (5, 0, 11)), ("2.4.0-impi", (2, 4)), ("v6.0.0rc2", (6,)), ("", ()), ("x", ())],
)
def test_versions(text: str, numbers: tuple[int, ...]) -> None:
    assert version_numbers(text) == numbers


def test_off_node_is_served_by_what_can() -> None:
    for row in transport_rows():
        local = row.name in ("shm", "ofi-shm") or row.name.startswith("ob1-sm")
        local = local or row.id.endswith("loopback")
        assert (Peer.OFF_NODE in row.peers) is not local, row.id


def test_the_files_have_no_place_of_one_machine() -> None:
    folder = Path(match.__file__).parents[1]
    for file in folder.glob("*.toml"):
        text = file.read_text()
        tomllib.loads(text)
        assert not re.search(r"/(tmp|home|root|work)/", text), file


@pytest.mark.parametrize("name", ["transports", "engines"])
def test_a_page_is_what_the_data_says(name: str) -> None:
    tool = Path(__file__).parents[3] / f"tools/document_{name}.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], check=False)
    assert done.returncode == 0, f"run tools/document_{name}.py"
