"""Pairs of a guest's program and a host MPI: what the check says of them, and what really runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mpigraft import discover, graft, grafts, guest, prove
from mpigraft.cache import file_digest
from mpigraft.jsonout import digest
from mpigraft.launch import prepare
from mpigraft.model import (
    Configuration,
    GraftPlan,
    Layout,
    Level,
    Machine,
    MpiInstall,
    Replace,
    Transport,
)
from mpigraft.natives import natives
from mpigraft.run import run

OWN_CHOICE = Transport("", "", (), (), (), (), (), (), ())  # nothing is forced
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


class Tried:
    """Everything that pairs share, looked at once a session."""

    @cached_property
    def machine(self) -> Machine:
        return discover.machine()

    def host(self, spec: str) -> MpiInstall | None:
        return next((m for m in self.machine.mpis if m.id.startswith(spec) and m.usable), None)

    def outcome(self, pair: Pair, image: Path) -> Outcome:
        """The check's verdict, and two real ranks, which are started whatever it says."""
        mpi = self.host(pair.host)
        assert mpi is not None
        on = guest.examine(str(image), (pair.program,))
        wanted = graft.Wanted(Replace(pair.replace), pair.engine, force=True)
        plan = graft.planned(on, mpi, self.machine, wanted)
        errors = [f.code for p in plan.parts for f in p.findings if f.level is Level.ERROR]
        why = self._run(pair, on, mpi, plan)
        return Outcome(pair, tuple(dict.fromkeys(errors)), not why, why, plan.glibc)

    def _run(self, pair: Pair, on: guest.Guest, mpi: MpiInstall, plan: GraftPlan) -> str:
        """Why two ranks did not run as one world on the right library; empty if they did."""
        records = grafts.make(plan) / grafts.RANKS / f"test-{os.getpid()}-{digest(pair.name)[:8]}"
        records.mkdir()
        configuration = Configuration(plan.key, pair.name, mpi, OWN_CHOICE, graft=plan)
        served = graft.serves(on, mpi, Replace(pair.replace))
        launch = prepare(
            configuration,
            Layout(),
            (pair.program,),
            natives=grafts.seen(plan, natives(served, self.machine.cpu.architecture)),
            witness=records,
            limit_s=LIMIT_S,
            cwd=Path("/"),
        )
        ended = run(launch.argv, env=dict(launch.env), cwd=launch.cwd, limit_s=LIMIT_S + 10)
        found = prove.check_witness(configuration, Layout(), prove.read_witness(records))
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
    """A digest over every file's path, content and time: what writes into a guest changes it."""
    rows = [
        (str(path), path.stat().st_mtime_ns, file_digest(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    return digest(rows)
