"""What a person and a site ask of one job: the value, and the options that make it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import BIND_TO, MAP_BY, Replace
from mpigraft.knowledge import Given
from mpigraft.request.engine_options import read_engine_options
from mpigraft.request.options import option, option_words, options_of, read_settings, settings_of
from mpigraft.request.settings import SETTINGS, RequestedSetting

if TYPE_CHECKING:
    from mpigraft.graft import GraftOptions

GRAFTED = (Replace.MPI, Replace.LIBFABRIC)  # what is put under a guest
INJECTED = ("mpi", "libfabric", "ucx")  # what an override may hold
STDIN = {"0": "read by rank 0", "all": "read by every rank", "none": "read by no rank"}


def _mpis(given: Given) -> str | tuple[str, ...]:
    """Read one MPI, or several in the order in which they are tried."""
    value = given.value
    if isinstance(value, str):
        return value
    valid = isinstance(value, list) and all(isinstance(word, str) and word for word in value)
    if not valid or not value or len(set(value)) < len(value):
        raise given.unfit("a text, or a list of texts, each once")
    return tuple(value)


def _settings(given: Given) -> tuple[str, ...]:
    words = read_settings(given)
    try:
        settings_of(words)
    except UsageError as error:
        source = given.place.rpartition(": ")[0]
        raise error.amended(message=f"{source}: {error.message}") from error
    return words


@dataclass(frozen=True, slots=True)
class MpmdProgram:
    """A program besides the first, with its ranks: in all, or on each node."""

    words: tuple[str, ...]
    ranks: int = 0
    ranks_per_node: int = 0


@dataclass(frozen=True, slots=True)
class JobPlacement:
    """What is asked of a job's nodes and ranks. Zero or empty: nobody said."""

    ranks: int = option(  # of the first program, in all
        0, "4", flag="-n", site=True, most=1_000_000,
        metavar="N", help="Number of ranks in all.", usual="one per core", panel="Where",
    )  # fmt: skip
    nodes: int = option(
        0, "2", metavar="N", help="Number of nodes.", usual="the allocation's", panel="Where",
        rare=True,
    )  # fmt: skip
    ranks_per_node: int = option(  # of the first program
        0, "8", metavar="K", help="Ranks on each node.", usual="one for every T cores",
        panel="Where",
    )  # fmt: skip
    threads: int = option(
        0, "7", metavar="T", help="Cores of each rank.", usual="OMP_NUM_THREADS, or 1",
        panel="Where", rare=True,
    )  # fmt: skip
    map_by: str = option(
        "", '"l3cache"', words=MAP_BY, metavar="LEVEL", usual="core",
        help="Distribute ranks over core, l3cache, numa, socket or node.",
        panel="Where", rare=True,
    )  # fmt: skip
    bind_to: str = option(
        "", '"numa"', words=BIND_TO, metavar="LEVEL", usual="core",
        help="Bind each rank to its core, l3cache, numa, socket, or none.",
        panel="Where", rare=True,
    )  # fmt: skip
    gpus: bool = option(
        default=False, example="true", help="Show each rank only its nearest GPU.",
        panel="Where", rare=True,
    )  # fmt: skip
    hosts: str = option(
        "", '"n1,n[3-5]"', metavar="LIST", help="Nodes to use: n1,n[3-5].",
        usual="the allocation, or this host", panel="Where", rare=True,
    )  # fmt: skip
    hostfile: str = option(
        "", '"nodes.txt"', metavar="FILE", help="File with a node's name on each line.",
        usual=False, panel="Where", rare=True,
    )  # fmt: skip
    ssh_command: str = option(
        "", '"blaunch"', metavar="PROGRAM", help="Program to use instead of ssh.", usual=False,
        panel="Where", rare=True,
    )  # fmt: skip
    others: tuple[MpmdProgram, ...] = ()

    @property
    def places(self) -> bool:
        """Whether it was said where on a node the ranks are to be."""
        return bool(self.map_by or self.bind_to or self.gpus)


NOWHERE = JobPlacement()


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What a person and a site ask of a job. Empty: nobody said, and a default is taken."""

    program: tuple[str, ...] = ()
    image: str = option(
        "", '"app.sif"', metavar="GUEST",
        help="Container to graft the MPI onto: SIF, podman:IMAGE. Or an OCI archive, a root "
        "folder, a program.", panel="Container or stack",
    )  # fmt: skip
    stack: str = option(
        "", '"/opt/stack"', metavar="STACK", usual="none",
        help="Software stack that PROGRAM belongs to: run it on the MPI that was injected there, "
        "or with --replace nothing on the stack's own.", panel="Container or stack", rare=True,
    )  # fmt: skip
    programs: tuple[str, ...] = option(  # in it, that need MPI: what a script starts
        (), '["/usr/bin/app"]', flag="--program", metavar="PATH", usual="PROGRAM, or all that do",
        help="Program of the guest that needs MPI, if PROGRAM is a script; repeatable.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    mpi: str = option(
        "", '["cray-mpich", "openmpi@5"]', site=True, read=_mpis, metavar="NAME",
        help="MPI to use: openmpi, mpich@5, a path.", panel="What to run",
    )  # fmt: skip
    transport: str = option(
        "", '"ob1-sm"', site=True, metavar="NAME", usual="the MPI's own choice",
        help="Transport to force: ofi-lnx, ob1-sm. It is proved before the first run.",
        panel="What to run",
    )  # fmt: skip
    where: JobPlacement = NOWHERE
    launcher: str = option(  # own, srun, flux, pals, aprun
        "", '"srun"', site=True, metavar="NAME", usual="the MPI's own, or the scheduler's",
        help="Launcher to use: own (the MPI's), srun, flux, pals or aprun.",
        panel="Where", rare=True,
    )  # fmt: skip
    engine: str = option(
        "", '"apptainer"', site=True, metavar="NAME", usual="the first that is installed",
        help="Container engine to use: apptainer, podman, charliecloud, bwrap or none.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    engine_options: tuple[str, ...] = option(  # `--nv` or `apptainer=--nv`
        (), '{ apptainer = ["--nv"] }', key="engine_option", site=True, plural=True,
        read=read_engine_options, metavar="[ENGINE=]WORD", usual="the site's",
        help="Option of the engine itself: --engine-option=--nv; repeatable.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    replace: str = option(
        "", '"mpi"', site=True, words=tuple(Replace), metavar="WHAT", usual="mpi",
        help="What to replace. mpi: the whole MPI; libfabric: only libfabric or UCX; "
        "nothing: run the guest as it is.", panel="Container or stack", rare=True,
    )  # fmt: skip
    binds: tuple[str, ...] = option(
        (), '["/scratch"]', key="bind", site=True, plural=True, metavar="A[:B[:ro]]",
        help="Show the guest a file or folder of this machine; repeatable.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    settings: tuple[str, ...] = option(  # NAME=VALUE
        (), '{ FI_LOG_LEVEL = "warn" }', key="env", site=True, plural=True, read=_settings,
        metavar="NAME=VALUE", help="Set a variable for every rank; repeatable.",
        panel="What to run",
    )  # fmt: skip
    setting: tuple[RequestedSetting, ...] = option(
        (), '"eager64"', read=SETTINGS.read, metavar="NAME", usual="none",
        help="Setting to run with: NAME of the site's profile, FILE.toml:NAME or "
        "NAME:VAR=VALUE.", panel="What to run", rare=True,
    )  # fmt: skip
    proof: bool = option(
        default=True, example="true", flag="--no-proof", site=True, names=("--proof/--no-proof",),
        usual="proof",
        help="Check what ranks run on. Use --no-proof for programs that never call MPI_Init.",
        panel="What to run", rare=True,
    )  # fmt: skip
    stdin: str = option(  # ranks that read standard input
        "0", '"all"', words=STDIN, metavar="WHO",
        help="Ranks that read standard input: 0, all or none.",
        panel="What to run", rare=True,
    )  # fmt: skip
    verb: tuple[str, ...] = ("mpigraft", "run")  # of the command that a person typed
    mpis: tuple[str, ...] = ()  # of a site, in its order, where nobody named one
    optional: tuple[str, ...] = ()  # of the binds, what a site binds where it is
    site: Path | None = None  # the profile that was asked, there or not
    sources: tuple[tuple[str, str], ...] = ()  # (what, who asked): ("mpi", "site.toml:3")
    fixed: tuple[tuple[str, str], ...] = ()  # keys that a site leaves to nobody, and where it says
    typed: tuple[str, ...] = ()  # options of the verb, as typed before the program

    @property
    def mpi_names(self) -> tuple[str, ...]:
        """MPIs to be tried one after the other; "" is any that fits."""
        return self.mpis or (self.mpi,)

    @property
    def mpi_places(self) -> tuple[str, ...]:
        """Paths among them. Of a site's list some may be on other machines."""
        return tuple(name for name in self.mpi_names if not self.mpis or Path(name).exists())

    def mpi_source(self, why: str) -> str:
        """Return who decided on the MPI; of a site's list, which were tried. `why` where nobody
        asked."""
        source = self.source("mpi", default=why)
        return f"{source}: the first that fits of {', '.join(self.mpis)}" if self.mpis else source

    @property
    def graft_options(self) -> GraftOptions:
        """The options of the graft that the job asks for."""
        from mpigraft.graft import GraftOptions

        what = replaced_part(self.replace)
        return GraftOptions(what, self.engine, engine_options=self.engine_options)

    def source(self, what: str, *, default: str = "default") -> str:
        return dict(self.sources).get(what, default)


def as_job(key: str, default: Any, **rules: Any) -> Any:
    """Make a field with the help of the same option of a job."""
    job = options_of(RunSpec)[key].rules
    return field(
        default=default,
        metadata={"rules": replace(job, site=False, plural=False, **rules)},
    )


@dataclass(frozen=True, slots=True)
class GraftSpec:
    """What a person asks of an MPI under a guest, or under the words of a job in it."""

    guest: str = ""
    words: tuple[str, ...] = ()
    mpi: str = option(
        "", '"openmpi"', metavar="SPEC", help="Host MPI to graft: openmpi, mpich@5, a path.",
        panel="Container or stack",
    )  # fmt: skip
    engine: str = as_job("engine", "")
    engine_options: tuple[str, ...] = as_job("engine_option", ())
    programs: tuple[str, ...] = option(
        (), '["/usr/bin/app"]', flag="--program", metavar="PATH", usual="all",
        help="Program inside the guest; repeatable.", panel="Container or stack", rare=True,
    )  # fmt: skip
    replace: str = option(
        "mpi", '"mpi"', words=GRAFTED, metavar="WHAT",
        help="What to replace. mpi: the whole MPI; libfabric: only libfabric or UCX.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    machine: str = option(  # the file of another one, whose MPIs are meant
        "", '"machine.json"', metavar="FILE",
        help="Use another machine: its `discover --abi --json`.", panel="Where",
    )  # fmt: skip
    no_glibc: bool = option(
        default=False, example="true", help="Refuse a graft that needs the host's glibc.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    force: bool = option(
        default=False, example="true", help="Plan even what the check refuses, to see it fail.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    ranks_per_node: int = option(
        2, "2", metavar="N", help="Ranks that share a node.", panel="Where", rare=True,
    )  # fmt: skip
    form: str = option(
        "text", '"json"', flag="--as", metavar="FORM",
        help="Form of the plan: text, json, command, shell or cdi.", panel="Output",
    )  # fmt: skip
    output: str = option(
        "", '"app.sh"', names=("--output", "-o"), metavar="FILE",
        help="Write to this file instead of printing.", panel="Output",
    )  # fmt: skip
    typed: tuple[str, ...] = ("mpigraft", "check")  # with its options, to type one in its place

    @property
    def options(self) -> GraftOptions:
        """The options of the graft. Raises UsageError for what cannot be replaced."""
        from mpigraft.graft import GraftOptions

        return GraftOptions(
            replaced_part(self.replace, GRAFTED),
            self.engine,
            glibc=not self.no_glibc,
            force=self.force,
            engine_options=self.engine_options,
        )

    def words_of(self, verb: str) -> tuple[str, ...]:
        """Return the words of a command that has these options, but for the programs."""
        return ("mpigraft", verb, *option_words(self, ("programs",)))


@dataclass(frozen=True, slots=True)
class InjectSpec:
    """What a person asks of an MPI under every program of a stack."""

    mpi: str = option(
        "", '"openmpi@5"', metavar="SPEC", help="Host MPI to inject: openmpi, openmpi@5, a path.",
        panel="Container or stack",
    )  # fmt: skip
    replace: str = option(
        "mpi", '"ucx"', words=INJECTED, metavar="WHAT",
        help="What to replace: mpi, or only libfabric or ucx of it.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    slot: str = option(
        "", '"/opt/stack/host_injections"', metavar="FOLDER", usual="the first",
        help="Override to use, of several that programs search.", panel="Container or stack",
    )  # fmt: skip
    verify: bool = option(
        default=False, example="true",
        help="Start a program on two ranks, prove what it maps, show drift.", panel="Proof",
    )  # fmt: skip
    program: str = option(
        "", '"/opt/stack/bin/app"', metavar="PATH", usual="a small one of the stack",
        help="With --verify: program to start.", panel="Proof", rare=True,
    )  # fmt: skip
    transport: str = option(
        "", '"ofi-lnx"', metavar="NAME", usual="the MPI's own choice",
        help="With --verify: transport to prove.", panel="Proof",
    )  # fmt: skip
    force: bool = option(
        default=False, example="true",
        help="Inject where the check has doubts or refuses some programs.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    exceptions: tuple[str, ...] = option(
        (), '["GROMACS/2024.1"]', flag="--except", metavar="NAME", usual="none",
        help="Accept that this module or program does not fit.",
        panel="Container or stack", rare=True,
    )  # fmt: skip
    form: str = option(
        "text", '"json"', flag="--as", metavar="FORM",
        help="Form: text, json, commands, module, tcl or spack.", panel="Output",
    )  # fmt: skip


def replaced_part(word: str, known: Collection[str] = ()) -> Replace:
    """Read --replace, which may be one of `known`, or of all. Raises UsageError."""
    if word not in (known or ("", *Replace)):
        raise UsageError.unknown("word-unknown", word, known or Replace, what="--replace")
    return Replace(word or Replace.MPI)


def without_host_mpi(spec: RunSpec) -> RunSpec:
    """Return the job of a guest or a stack, which names no MPI where that one's own stays: a site's
    choice gives way to the user's, and two requests of one user contradict each other."""
    part = replaced_part(spec.replace)
    if part is Replace.MPI or (part is Replace.LIBFABRIC and not spec.stack):
        return spec
    if spec.mpi and spec.source("mpi") == spec.source("replace"):
        raise UsageError.of("mpi-with-replace-nothing", mpi=spec.mpi)
    sources = tuple(pair for pair in spec.sources if pair[0] != "mpi")
    return replace(spec, mpi="", mpis=(), sources=sources)
