"""Where programs of suites are started, and whether one fits there: on this machine, or in a guest.

A program is judged as `run` judges a user's: before anything is launched it is known which libmpi
each rank loads.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from mpigraft.bench.suites.programs import Tool
from mpigraft.bench.suites.rank_files import RankFiles
from mpigraft.bench.suites.registry import PROGRAM_SUITES
from mpigraft.binary import ElfError, FolderRoot, closure
from mpigraft.core import env
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.model import (
    Benchmark,
    Bind,
    BindKind,
    Configuration,
    EngineContext,
    EnvRow,
    GraftPlan,
    Layout,
    Machine,
    MpiInstall,
    Scope,
)
from mpigraft.graft import (
    GraftOptions,
    Guest,
    GuestCommand,
    StackGuest,
    command_of,
    engine_words,
    examine_stack,
    graft_folder,
    plan_stack,
    visible_folders,
)
from mpigraft.launch import engine_context
from mpigraft.request import CampaignSpec, parse_bind
from mpigraft.selection import MpiSelection, mpi_under_program

Rows = tuple[EnvRow, ...]
SCRATCH = "/tmp/mpigraft"  # noqa: S108  placeholder of the empty folder in which ranks start


@dataclass(frozen=True, slots=True)
class Start:
    """A program of a suite under one configuration."""

    benchmark: Benchmark
    tool: Tool
    configuration: Configuration  # with what the program's ranks need besides to find its libmpi
    files: tuple[Path, ...]  # the program and all that it maps and reads: none may change
    binds: tuple[Bind, ...] = ()  # folders of this machine that a guest is given

    @property
    def key(self) -> tuple[str, str]:
        """Keys of the configuration and of the benchmark."""
        return (self.configuration.key, self.benchmark.key)

    def words(self, spec: CampaignSpec, layout: Layout) -> tuple[str, ...]:
        """Return the command line of one rank."""
        suite = PROGRAM_SUITES[self.benchmark.suite]
        return suite.words(self.benchmark, self.tool, spec, layout)


class Here:
    """This machine."""

    def __init__(self, machine: Machine) -> None:
        self.root, self.machine = FolderRoot(Path("/")), machine

    def files(self, mpi: MpiInstall) -> RankFiles:
        return RankFiles.of_host(self.root, mpi)

    def start(
        self, benchmark: Benchmark, tool: Tool, configuration: Configuration, given: Rows = ()
    ) -> Start:
        """Start a program whose ranks are given these rows besides, if it fits: nothing runs yet.
        Raises CheckFailed where it would not run on the configuration's MPI."""
        assert configuration.mpi is not None
        folder = str(tool.folder or Path("/"))
        command = command_of(FolderRoot(Path("/")), tool.words, dict(os.environ), folder)
        command.refuse(tool.words)
        choice = mpi_under_program(
            configuration.mpi, self.machine, Path(tool.words[0]), command, given
        )
        configured = _with_rows(configuration, choice.rows)
        return Start(benchmark, tool, configured, tuple(_files(tool, command, configured)))


class InGuest:
    """The image of a campaign; it is opened when it is first needed."""

    def __init__(self, spec: CampaignSpec, machine: Machine, folders: Sequence[str]) -> None:
        self.spec, self.machine, self.folders = spec, machine, folders
        self._contexts: dict[Path, EngineContext] = {}

    @cached_property
    def guest(self) -> Guest:
        return Guest.opened(self.spec.image)

    @cached_property
    def shared(self) -> dict[str, Path]:
        """{path inside: folder of this machine} of what every engine lets ranks see."""
        kind = self.guest.label.kind
        folders = visible_folders(kind, env.base(), SCRATCH, self.spec.engine, self._binds)
        own = (app.folder for app in self.spec.app if app.folder.startswith("/"))
        return {**folders, **{folder: Path(folder) for folder in own}}

    @cached_property
    def _binds(self) -> tuple[Bind, ...]:
        return tuple(bind for word in self.spec.bind for bind in parse_bind(word, ()))

    @cached_property
    def _files(self) -> RankFiles:
        files = RankFiles.inside(self.guest.root, self.guest.label.name, self.shared, self.folders)
        for flag, texts in (("--osu", self.spec.osu), ("--imb", self.spec.imb)):
            for text in texts:
                if not files.is_folder(files.folder(text)):
                    where = f", neither in {files.guest} nor on this machine"
                    raise UsageError.of("suite-folder-missing", flag=flag, path=text, where=where)
        return files

    def files(self, _mpi: MpiInstall) -> RankFiles:
        return self._files

    def start(
        self, benchmark: Benchmark, tool: Tool, configuration: Configuration, given: Rows = ()
    ) -> Start:
        """As `Here.start`; raises CheckFailed also for what the engine cannot show to ranks."""
        mpi, bare = configuration.mpi, configuration.graft
        assert mpi is not None
        assert bare is not None
        bound = self._files.binds_of(tool.words)
        folders = {**self.shared, **{folder: Path(folder) for folder in bound}}
        folder = str(tool.folder or Path(SCRATCH))
        with _as_refusals(tool, self.guest.label.name):
            guest, command = self.guest.for_words(tool.words, folders, folder)
            command.refuse(tool.words)
            wanted = GraftOptions(
                engine=bare.engine,
                native_build=self.spec.native_build,
                engine_options=self.spec.engine_options,
            )
            choice = MpiSelection.inside(mpi, guest, self.machine, wanted)
            assert choice.plan is not None
            plan = _shared_folder(choice.plan, bare)
            own = (Bind(folder, folder, BindKind.FOLDER) for folder in bound)
            binds = (*self._binds, *own)
            engine_words(plan, self._context(plan, tool, binds))
        configured = replace(_with_rows(configuration, (*choice.rows, *given)), graft=plan)
        return Start(
            benchmark, tool, configured, tuple(_guest_files(tool, command, guest, plan)), binds
        )

    def _context(self, plan: GraftPlan, tool: Tool, binds: tuple[Bind, ...]) -> EngineContext:
        cwd = tool.folder or Path(SCRATCH)
        if cwd not in self._contexts:
            self._contexts[cwd] = engine_context(plan, 1, cwd)
        return replace(self._contexts[cwd], graft=str(graft_folder(plan)), extra=binds)


class InStack:
    """The stack of a campaign, whose programs are programs of this machine."""

    def __init__(self, spec: CampaignSpec, machine: Machine) -> None:
        self.spec, self.machine = spec, machine
        self.root = FolderRoot(Path("/"))

    @cached_property
    def guest(self) -> StackGuest:
        return examine_stack(self.spec.stack)

    def files(self, mpi: MpiInstall) -> RankFiles:
        return RankFiles.of_host(self.root, mpi)

    def start(
        self, benchmark: Benchmark, tool: Tool, configuration: Configuration, given: Rows = ()
    ) -> Start:
        """As `Here.start`, for a program that searches the stack's overrides."""
        mpi, bare = configuration.mpi, configuration.graft
        assert mpi is not None
        assert bare is not None
        folder = str(tool.folder or Path("/"))
        command = command_of(self.root, tool.words, dict(os.environ), folder)
        command.refuse(tool.words)
        program = command.program if not command.interpreted else tool.words[0]
        wanted = GraftOptions(engine=bare.engine, native_build=self.spec.native_build)
        guest = replace(self.guest, started=program or tool.words[0])
        plan = _shared_folder(plan_stack(guest, mpi, wanted, self.machine), bare)
        configured = replace(_with_rows(configuration, given), graft=plan)
        files = (*_files(tool, command, configured), *(Path(s.path) for s in plan.inputs))
        return Start(benchmark, tool, configured, tuple(path for path in files if path.is_file()))


Place = Here | InGuest | InStack


def places(
    spec: CampaignSpec, machine: Machine, folders: Sequence[str]
) -> Callable[[Configuration], Place]:
    """Make the function that gives a configuration's place. `folders` of this machine may have
    programs that an image lacks."""
    here: Place = Here(machine)
    inside: Place = InStack(spec, machine) if spec.stack else InGuest(spec, machine, folders)
    return lambda configuration: inside if configuration.graft else here


@contextlib.contextmanager
def _as_refusals(tool: Tool, guest: str) -> Iterator[None]:
    """Leave out a program that something keeps from a guest, and no more."""
    try:
        yield
    except CheckFailed:
        raise
    except (UsageError, MissingError) as error:
        problem = f"{error.message}; {error.fix}" if error.fix else error.message
        raise CheckFailed.of(
            "program-not-in-guest", program=tool.words[0], name=guest, problem=problem
        ) from error


def _with_rows(configuration: Configuration, rows: tuple[EnvRow, ...]) -> Configuration:
    return replace(configuration, environment=(*rows, *configuration.environment))


def _shared_folder(plan: GraftPlan, bare: GraftPlan) -> GraftPlan:
    """Return the plan with the graft folder of our own programs, where both have the same content:
    a suite of a hundred programs then has one folder."""

    def content(one: GraftPlan) -> tuple[object, ...]:
        return one.copies, one.binds, one.devices, one.environment, one.libmpi, one.libmpi_copy

    return replace(plan, key=bare.key) if content(plan) == content(bare) else plan


def _files(tool: Tool, command: GuestCommand, configuration: Configuration) -> Iterator[Path]:
    """Yield the program, what the loader maps for it, what a script is made of, and named
    inputs."""
    program = Path(tool.words[0])
    own = [Path(word) for word in tool.words[1:] if "/" in word and Path(word).is_file()]
    programs = [program, *map(Path, (*command.programs, *command.certain)), *own]
    environment = env.base()
    if configuration.mpi:
        environment = env.apply(environment, configuration.mpi.environment, Scope.RANK)
    environment = env.apply(environment, configuration.rows, Scope.RANK)
    for path in dict.fromkeys(programs):
        if path.is_file():
            yield path
            with contextlib.suppress(ElfError):
                yield from (o.path for o in closure(path, environment=environment) if o.path)
    yield from map(Path, command.sources)
    yield from tool.files


def _guest_files(
    tool: Tool, command: GuestCommand, guest: Guest, plan: GraftPlan
) -> Iterator[Path]:
    """Yield files of this machine: what the plan was made from, with the image; programs and
    scripts of a folder; named inputs. The content of an image file is part of its digest."""
    yield from (path for stamp in plan.inputs if (path := Path(stamp.path)).is_file())
    inside = (*tool.words, *command.programs, *command.certain, *command.sources)
    for word in dict.fromkeys(word for word in inside if word.startswith("/")):
        entry = guest.root.find(word)
        if entry is not None and entry.source is not None and entry.kind == "file":
            yield entry.source
    yield from tool.files
