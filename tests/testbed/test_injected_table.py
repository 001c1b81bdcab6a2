"""One table: what check, run --stack and --verify say of each program on an injected MPI, and what
becomes of it alone, by the MPI's launcher, by srun and from a script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed import rootfs, science
from testbed.cluster import Cluster
from testbed.language_stacks import MPICH, OMPI, Abi, LanguageStack, language_stack, mpigraft
from testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("MPIGRAFT")}
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LOADER = "/lib64/ld-linux-x86-64.so.2"
OWN_LAUNCHERS = {OMPI.own: "/usr/bin/mpirun.openmpi", MPICH.own: "/usr/bin/mpiexec.mpich"}
WAYS = ("alone", "launcher", "script", "srun")
HOSTS: Mapping[str, tuple[Abi, str, str]] = {  # launcher, PMI of srun
    "openmpi@4.1.8": (OMPI, "mpirun", "pmix"),
    "openmpi@4.1.4": (OMPI, "/usr/bin/mpirun.openmpi", "pmix"),
    "openmpi@5.0.11": (OMPI, "mpirun", "pmix"),
    "mpich@5.0.2": (MPICH, "mpiexec", "pmi2"),
    "mpich@4.0.2": (MPICH, "/usr/bin/mpiexec.mpich", "pmi2"),
    "intel@2021.18.1": (MPICH, "mpiexec", ""),  # wants Slurm's libpmi2, which Debian lacks
}
ROWS = [
    pytest.param(host, marks=pytest.mark.covering if host == "openmpi@4.1.8" else [])
    for host in HOSTS
]


@pytest.fixture(scope="module", autouse=True)
def bookworm() -> None:
    if rootfs.own_suite() != science.SUITE:
        pytest.skip(f"these MPIs are of Debian {science.SUITE}")


class Table:
    """Programs of a stack on one host MPI, on the first of two nodes under Slurm."""

    def __init__(self, stack: LanguageStack, host: str, home: Path, cluster: Cluster) -> None:
        self.stack, self.host, self.home, self.cluster = stack, host, home, cluster
        _, launcher, self.pmi = HOSTS[host]
        own = home / "mpi" / host.replace("@", "-") / "bin" / launcher
        self.launcher = Path(launcher) if launcher.startswith("/") else own
        self.script = stack.site.parent / "job.sh"

    def words(self, language: str, way: str) -> list[str]:
        program = list(self.stack.words(language))
        if way == "script":
            quoted = " ".join(f"'{word.replace(chr(39), chr(34))}'" for word in program)
            self.script.write_text(f"#!/bin/sh\n{quoted}\n")
            self.script.chmod(0o755)
            return [str(self.script)]
        if way == "srun":
            return ["srun", "-N1", "-n2", "--overlap", f"--mpi={self.pmi}", *program]
        spread = ["--oversubscribe"] if self.stack.abi is OMPI else []
        launch = [str(self.launcher), *spread, "-n", "2"]
        return [*launch, *program] if way == "launcher" else program

    def ran_before(self, language: str, way: str) -> bool:
        """Whether a program runs on the stack's own MPI, by its launcher, while nothing is
        injected."""
        own = self.stack.abi.own.partition("/")[2].partition("-")[0]
        words = self.words(language, way)
        if way == "launcher":
            words[0] = OWN_LAUNCHERS[self.stack.abi.own]
        ended = subprocess.run(
            words, env={**CLEAN, **ROOT}, capture_output=True, text=True, timeout=60, check=False
        )
        lines = [line for line in ended.stdout.splitlines() if "LIBRARY" in line]
        ranks = 2 if way == "launcher" else 1
        world = language == "opens" or f"of SIZE {ranks} " in ended.stdout
        return len(lines) == ranks and all(own in line for line in lines) and world

    def mixed(self, language: str) -> bool:
        """Ask the loader for parts of the stack's own MPI."""
        words = [LOADER, "--list", str(self.stack.program(language))]
        listed = subprocess.run(words, capture_output=True, text=True, check=False).stdout
        own = {Path(path).name for path in re.findall(r"=> (\S+)", listed)
               if path.startswith(f"{self.stack.own}/")}  # fmt: skip
        return bool(own - {"libmpifort.so.12", "libmpicxx.so.12"})

    def ran(self, language: str, way: str, library: str, slurm: Slurm) -> bool:
        """Whether each rank of a program reports the library, in one world, and no other part of
        the stack's own MPI is loaded than bindings that may be kept."""
        if self.mixed(language):
            return False
        words, environment = self.words(language, way), {**CLEAN, **ROOT}
        if way in ("launcher", "srun"):
            environment |= slurm.environ
            ended = self.cluster.run("n1", words, env=environment, timeout=60)
        else:
            ended = subprocess.run(
                words, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
        ranks = 2 if way in ("launcher", "srun") else 1
        lines = [line for line in ended.stdout.splitlines() if "LIBRARY" in line]
        world = language == "opens" or f"of SIZE {ranks} " in ended.stdout
        return len(lines) == ranks and all(library in line for line in lines) and world


def judged(document: Mapping[str, object], stack: LanguageStack) -> dict[str, bool]:
    """{language: whether its program fits} of a verdict."""
    modules: Sequence[Mapping[str, Sequence[Mapping[str, str]]]] = document["modules"]  # type: ignore[assignment]
    fates = {p["path"]: p["fate"] for module in modules for p in module["programs"]}
    return {
        language: fates[str(stack.program(language))] == "fits"
        for language in stack.abi.languages
        if str(stack.program(language)) in fates
    }


@pytest.fixture(scope="module")
def stacks(mpis: Mapping[Family, Path]) -> Iterator[Mapping[str, LanguageStack]]:
    """A stack of each ABI, with a program of each language."""
    with (
        language_stack(OMPI, mpis[Family.OPENMPI] / "include", [*OMPI.languages]) as ompi,
        language_stack(MPICH, mpis[Family.MPICH] / "include", [*MPICH.languages]) as mpich,
    ):
        yield {OMPI.own: ompi, MPICH.own: mpich}


@pytest.fixture(scope="module")
def site(
    stacks: Mapping[str, LanguageStack],
    clusters: Callable[..., Cluster],
    mpis: Mapping[Family, Path],
    cache_folder: Path,
    slurms_here: None,
) -> Iterator[tuple[Cluster, Slurm, Path]]:
    """Two nodes that see the stacks, their Slurm, and a home with all MPIs."""
    with clusters(2, binds=[stack.root.parent for stack in stacks.values()]) as cluster:
        home = cluster.shared / "home"
        (home / "mpi").mkdir(parents=True)
        older = cache_folder / "home-openmpi-4/mpi/openmpi-4.1.8"
        for prefix in (older, *mpis.values()):
            (home / "mpi" / prefix.name).symlink_to(prefix)
        with Slurm(cluster) as slurm:
            yield cluster, slurm, home


@pytest.mark.long
@pytest.mark.parametrize("host", ROWS)
def test_what_is_said_is_what_happens(
    stacks: Mapping[str, LanguageStack],
    site: tuple[Cluster, Slurm, Path],
    monkeypatch: pytest.MonkeyPatch,
    host: str,
) -> None:
    cluster, slurm, home = site
    monkeypatch.setenv("MPIGRAFT_HOME", str(home))
    stack = stacks[HOSTS[host][0].own]
    stack.empty_site()
    table = Table(stack, host, home, cluster)
    before = {
        (language, way): table.ran_before(language, way)
        for language in stack.abi.languages
        for way in ("alone", "launcher", "script")
    }
    assert all(before.values()), before
    planned = json.loads(mpigraft("check", stack.root, "--mpi", host, "--json")[1])
    assert mpigraft("inject", stack.root, "--mpi", host, "--force")[0] == 0
    code, page, _ = mpigraft("check", stack.root, "--json")
    (now,) = json.loads(page)["injected"]
    fits = judged(now, stack)
    assert judged(planned["checks"][0], stack) == fits
    assert code == (0 if all(fits.values()) else 1)
    assert mpigraft("inject", stack.root, "--verify")[0] == code
    version = host.partition("@")[2]
    rows = {}
    for language, good in fits.items():
        job = ("run", "--stack", stack.root, "-n", "2", "--", *stack.words(language))
        started = mpigraft(*job)[1].count("LIBRARY") == 2  # Debian's OpenSHMEM crashes at its end
        tried = WAYS if table.pmi else WAYS[:-1]
        ways = {way: table.ran(language, way, version, slurm) for way in tried}
        rows[language] = (good, started, ways)
    print_table(host, rows)
    for language, (good, started, ways) in rows.items():
        assert started is good, language
        assert {*ways.values()} == {good}, (language, ways)


def print_table(host: str, rows: Mapping[str, tuple[bool, bool, Mapping[str, bool]]]) -> None:
    """Print one part of the table: pytest shows it with -rP."""
    words = {True: "yes", False: "-"}
    lines = ["".join([f"{host:18}{'check':>9}{'run':>9}", *(f"{way:>9}" for way in WAYS)])]
    for language, (good, started, ways) in rows.items():
        cells = [good, started, *ways.values()]
        lines.append("".join([f"  {language:16}", *(f"{words[cell]:>9}" for cell in cells)]))
    sys.stdout.write("\n".join(lines) + "\n")
