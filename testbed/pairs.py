"""Pairs of a guest's program and a host MPI: what the check says of them, and what really runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mpigraft.core.model import (
    Configuration,
    GraftPlan,
    Layout,
    Level,
    Machine,
    MpiInstall,
    Replace,
)
from mpigraft.core.process.command import run_command
from mpigraft.core.serialize import digest
from mpigraft.discovery import inventory
from mpigraft.evidence import check_witness, judge
from mpigraft.graft import assemble
from mpigraft.graft.folder import folders
from mpigraft.graft.guest import examination
from mpigraft.launch import LaunchRequest, prepare_launch
from mpigraft.native.programs import choose_natives

HOSTS = ("openmpi@5.0.11", "openmpi@4.1.8", "openmpi@4.1.4", "mpich@5.0.2", "mpich@4.0.2",
         "intel@2021")  # fmt: skip
OMPI, MPICH = HOSTS[:3], HOSTS[3:]
LIMIT_S = 40.0


@dataclass(frozen=True, slots=True)
class Pair:
    """`program` is a path inside; `form` is how the image is given."""

    image: str
    program: str
    host: str
    replace: str = "mpi"
    engine: str = "bwrap"
    form: str = "folder"  # folder, sif, oci

    @property
    def name(self) -> str:
        program = self.program.removeprefix("/opt/")
        return f"{self.image}-{program}-{self.host}-{self.replace}-{self.engine}-{self.form}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was said and what was seen. `why` is one line where it did not run."""

    pair: Pair
    refused: tuple[str, ...]  # codes of the check's errors
    ran: bool
    why: str
    glibc: bool

    @property
    def agrees(self) -> bool:
        return bool(self.refused) is not self.ran


def _programs() -> Iterator[tuple[str, tuple[str, ...], Sequence[str]]]:
    """(image, programs, host MPIs): for programs of one ABI one host of the other is enough."""
    app = tuple(f"/opt/app/{n}" for n in ("hello", "hello_mpi", "hello_f08"))
    paths = ("/opt/app/hello_rpath", "/opt/app/hello_runpath")
    yield "bookworm", (*app, *paths, "/opt/app/hello_cxx"), OMPI
    yield "bullseye", (*app, "/opt/app/hello_rpath", "/opt/app/hello_cxx"), OMPI
    yield "trixie", (*app, *paths), OMPI
    yield "bookworm-bare", ("/opt/app/hello",), OMPI
    standard = ("/opt/app/hello_mpich5", "/opt/app/hello_abi", "/opt/app/attach")
    yield "bookworm-mpich", (*app, "/opt/app/hello_rpath", *standard), MPICH
    yield "bookworm-bare", ("/opt/app-mpich/hello", "/opt/app-mpich/hello_abi"), MPICH
    yield "bookworm", ("/opt/app/hello",), ("mpich@5.0.2",)
    yield "bookworm-mpich", ("/opt/app/hello",), ("openmpi@5.0.11",)


def pairs() -> tuple[Pair, ...]:
    found = [
        Pair(image, program, host)
        for image, programs, hosts in _programs()
        for program in programs
        for host in hosts
    ]
    hello = "/opt/app/hello"
    for image, host in (("trixie", "openmpi@5.0.11"), ("bookworm", "openmpi@5.0.11"),
                        ("bookworm", "openmpi@4.1.4"), ("bookworm", "mpich@5.0.2"),
                        ("bookworm-mpich", "mpich@4.0.2"), ("bookworm-mpich", "mpich@5.0.2"),
                        ("bookworm-mpich", "intel@2021")):  # fmt: skip
        found.append(Pair(image, hello, host, "nothing"))  # a hybrid as people make it by hand
    for image, host in (("trixie", "openmpi@5.0.11"), ("bookworm", "openmpi@4.1.4")):
        found.append(Pair(image, hello, host, "libfabric"))
    for engine in ("apptainer", "charliecloud", "podman"):
        found += [
            Pair("bookworm", hello, "openmpi@5.0.11", engine=engine),
            Pair("bookworm", "/opt/app/hello_rpath", "openmpi@5.0.11", engine=engine),
            Pair("bookworm-bare", hello, "openmpi@5.0.11", engine=engine),
            Pair("bullseye", hello, "openmpi@4.1.4", engine=engine),
            Pair("bookworm-mpich", hello, "mpich@5.0.2", engine=engine),
            Pair("bookworm-mpich", hello, "intel@2021", engine=engine),
        ]
    found.append(Pair("bookworm", hello, "openmpi@5.0.11", engine="apptainer", form="sif"))
    found.append(Pair("bookworm", hello, "openmpi@5.0.11", engine="podman", form="oci"))
    return tuple(found)


def covering() -> frozenset[Pair]:
    """Some of the pairs in which each program is, each image under each of its hosts, on each of
    its engines and with each of the things replaced in it, and each engine with each form."""

    def covers(pair: Pair) -> set[tuple[str, ...]]:
        program = pair.program.rpartition("/")[2]
        return {
            ("program", program),
            ("host", pair.image, pair.host),
            ("engine", pair.image, pair.engine),
            ("replace", pair.image, pair.replace),
            ("form", pair.engine, pair.form),
        }

    every, chosen = pairs(), set()
    due = {one for pair in every for one in covers(pair)}
    while due:
        best = max(every, key=lambda pair: len(covers(pair) & due))
        chosen.add(best)
        due -= covers(best)
    return frozenset(chosen)


class Tried:
    """Everything that pairs share, looked at once a session."""

    @cached_property
    def machine(self) -> Machine:
        return inventory.discover_machine()

    def host(self, spec: str) -> MpiInstall | None:
        return next((m for m in self.machine.mpis if m.id.startswith(spec) and m.usable), None)

    def outcome(self, pair: Pair, image: Path) -> Outcome:
        """The check's verdict, and two real ranks, which are started whatever it says."""
        mpi = self.host(pair.host)
        assert mpi is not None
        on = examination.examine_guest(str(image), (pair.program,))
        wanted = assemble.GraftOptions(Replace(pair.replace), pair.engine, force=True)
        plan = assemble.plan_graft(on, mpi, self.machine, wanted)
        errors = [f.code for p in plan.parts for f in p.findings if f.level is Level.ERROR]
        why = self._run(pair, on, mpi, plan)
        return Outcome(pair, tuple(dict.fromkeys(errors)), not why, why, plan.glibc)

    def _run(self, pair: Pair, on: examination.Guest, mpi: MpiInstall, plan: GraftPlan) -> str:
        """Why two ranks did not run as one world on the right library; empty if they did."""
        records = (
            folders.materialize(plan)
            / folders.RANKS_FOLDER
            / f"test-{os.getpid()}-{digest(pair.name)[:8]}"
        )
        records.mkdir()
        configuration = Configuration(plan.key, pair.name, mpi, None, graft=plan)
        served = assemble.mpi_under_ranks(on, mpi, Replace(pair.replace))
        request = LaunchRequest(
            configuration,
            Layout(),
            (pair.program,),
            natives=folders.paths_in_guest(
                plan, choose_natives(served, self.machine.cpu.architecture)
            ),
            witness=records,
            limit_s=LIMIT_S,
            cwd=Path("/"),
        )
        launch = prepare_launch(request)
        ended = run_command(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=LIMIT_S + 10)
        found = check_witness(configuration, Layout(), judge.read_witness(records))
        wrong = [f for f in found if f.level is Level.ERROR]
        if ended.ok and not wrong:
            return ""
        if any(f.code == "LCH-01" for f in wrong):
            return "worlds of one rank each"
        codes = [f.code for f in wrong] or [f"exit {ended.code}"]
        return _word(ended.text()) or codes[0]


TELLING = (  # of a program that did not run: what is looked for, and what is said of it
    (r"undefined symbol|symbol lookup error", "undefined symbol"),
    (r"cannot open shared object", "library not found"),
    (r"version `\S+' not found", "version not found"),
    (r"opal_init|MPI_INIT|MPI_Init", "MPI_Init ends it"),
    (r"write_line error", "no connection to its launcher"),
)


def _word(text: str) -> str:
    """Why a program failed, in words that are the same in every run."""
    return next((said for pattern, said in TELLING if re.search(pattern, text)), "")


def untouched(folder: Path) -> str:
    """A digest over every file's path, size and times: what writes into a guest changes it, since
    no program can set the time of a file's last change of any kind."""
    rows = []
    for path in sorted(folder.rglob("*")):
        now = path.lstat()
        rows.append((str(path), now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))
    return digest(rows)
