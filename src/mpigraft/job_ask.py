"""What a person and a site ask of one job, read as far as it goes without a choice of MPI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.engines.mounts import TMP
from mpigraft.errors import AnswerIsNo, UsageError
from mpigraft.guest import Guest, examine, examine_command
from mpigraft.guests.commands import Command, Kind, command_of
from mpigraft.job_layout import Where
from mpigraft.model import Bind, BindKind, Replace
from mpigraft.root import FolderRoot

NOWHERE = Where()
KNOWN = Command(Kind.MPI)  # what a person named
STDIN = {"0": "read by rank 0", "all": "read by every rank", "none": "read by no rank"}


@dataclass(frozen=True, slots=True)
class Ask:
    """What a person and a site ask of a job. Empty: nobody said, and a default is taken."""

    program: tuple[str, ...]
    image: str = ""
    programs: tuple[str, ...] = ()  # in it, that need MPI: what a script starts
    mpi: str = ""
    mpis: tuple[str, ...] = ()  # of a site, in its order, where nobody named one
    transport: str = ""
    launcher: str = ""  # own, srun, flux, pals, aprun
    engine: str = ""
    engine_options: tuple[tuple[str, tuple[str, ...]], ...] = ()  # by engine, of a site
    replace: str = ""
    binds: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # of these, what a site binds where it is
    where: Where = NOWHERE
    settings: tuple[str, ...] = ()  # NAME=VALUE
    proof: bool = True
    stdin: str = "0"  # ranks that read standard input: 0, all, none
    site: Path | None = None  # the profile that was asked, there or not
    sources: tuple[tuple[str, str], ...] = ()  # (what, who asked): ("mpi", "site.toml:3")
    fixed: tuple[tuple[str, str], ...] = ()  # keys that a site leaves to nobody, and where it says

    @property
    def wishes(self) -> tuple[str, ...]:
        """MPIs to be tried one after the other; "" stands for whichever fits."""
        return self.mpis or (self.mpi,)

    def mpi_source(self, why: str) -> str:
        """Who decided on the MPI; of a site's list, which were tried. `why` where nobody asked."""
        source = self.source("mpi", default=why)
        return f"{source}: the first that fits of {', '.join(self.mpis)}" if self.mpis else source

    def source(self, what: str, *, default: str = "default") -> str:
        return dict(self.sources).get(what, default)


def replaced(word: str) -> Replace:
    try:
        return Replace(word or Replace.MPI)
    except ValueError:
        known = ", ".join(Replace)
        raise UsageError(f"--replace {word!r} is unknown", mend=f"one of {known}") from None


def narrowed(no: AnswerIsNo, ask: Ask, guest: Guest) -> AnswerIsNo:
    """The same answer, with a way out where a script was judged by all programs of the image."""
    if ask.programs or len(guest.label.programs) < 2:
        return no
    way = f"--program PATH, if {ask.program[0]} starts only some of what needs MPI in the image"
    return AnswerIsNo(no.seen, why=no.why, mend=f"{no.mend}; or {way}" if no.mend else way)


def without_host(ask: Ask) -> Ask:
    """A job of which a guest brings the MPI: a site's choice gives way to the user's, and two
    wishes of one user contradict each other."""
    if ask.mpi and ask.source("mpi") == ask.source("replace"):
        raise UsageError(
            f"--mpi {ask.mpi} with --replace nothing",
            why="then nothing of this machine's goes in: the guest's own MPI and launcher run",
            mend="leave one of the two out",
        )
    sources = tuple(pair for pair in ask.sources if pair[0] != "mpi")
    return replace(ask, mpi="", mpis=(), sources=sources)


def bind(word: str, optional: Sequence[str]) -> Iterator[Bind]:
    """`/scratch`, `/scratch:/data` or `/scratch:/data:ro`. What a site's profile binds need not
    be on every one of its machines."""
    source, *rest = word.split(":")
    target = rest[0] if rest and rest[0] else source
    mode = rest[1] if len(rest) > 1 else "rw"
    if len(rest) > 2 or mode not in ("ro", "rw") or not (source[:1] == target[:1] == "/"):
        raise UsageError(
            f"--bind {word!r} is not SOURCE[:TARGET[:ro]]",
            mend="give absolute paths: /scratch:/data",
        )
    path = Path(source)
    if path.exists():
        kind = BindKind.FOLDER if path.is_dir() else BindKind.FILE
        yield Bind(source, target, kind, writable=mode == "rw", why="asked for")
    elif word not in optional:
        raise UsageError(f"--bind {word!r}: {source} is not here")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a job starts, read without a choice of MPI."""

    guest: Guest | None  # None: it is of this machine
    command: Command

    @property
    def sources(self) -> tuple[str, ...]:
        """Files of this machine that the command was read from."""
        if self.guest is None:
            return self.command.sources
        found = (self.guest.root.find(path) for path in self.command.sources)
        return tuple(str(entry.source) for entry in found if entry and entry.source)


def subject(ask: Ask, environ: Mapping[str, str]) -> Subject:
    """The guest as far as the program is concerned, and what is known of that. Raises AnswerIsNo
    for a program that has nothing to do with MPI, of which proof is wanted."""
    if ask.image:
        return _in_guest(ask, environ)
    environment = {**environ, **_settings(ask)}
    command = command_of(FolderRoot(Path("/")), ask.program, environment, str(Path.cwd()))
    _refuse_without_mpi(ask, command)
    return Subject(None, command)


def _in_guest(ask: Ask, environ: Mapping[str, str]) -> Subject:
    itself = shutil.which(ask.program[0], path=environ.get("PATH"))
    if itself and Path(ask.image).is_file() and Path(ask.image).samefile(itself):
        return Subject(examine(ask.image), KNOWN)
    if ask.programs:
        return Subject(examine(ask.image, ask.programs), KNOWN)
    found, command = examine_command(
        ask.image, ask.program, _settings(ask), dict(_folders(ask, environ))
    )
    _refuse_without_mpi(ask, command)
    return Subject(found, command)


def _refuse_without_mpi(ask: Ask, command: Command) -> None:
    if command.kind is not Kind.NONE or not ask.proof:
        return
    raise AnswerIsNo(
        f"{' '.join(ask.program[:2] if command.interpreted else ask.program[:1])} is no MPI "
        f"program: {command.why}",
        why="a rank proves what it runs on when it calls MPI_Init, and here none would",
        mend="--no-proof starts it all the same"
        + ("; --program PATH names what needs MPI, if it starts that" if ask.image else ""),
    )


def _settings(ask: Ask) -> dict[str, str]:
    return {name: value for name, eq, value in (w.partition("=") for w in ask.settings) if eq}


def _folders(ask: Ask, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """{path inside: folder of this host} of what ranks in a guest see, whichever engine it is."""
    for folder in (TMP, environ.get("TMPDIR", ""), str(Path.cwd())):
        if folder.startswith("/"):
            yield folder, Path(folder)
    for word in ask.binds:
        for one in bind(word, ask.optional):
            yield one.target, Path(one.source)


def program(word: str, environ: Mapping[str, str]) -> Path:
    found = shutil.which(word, path=environ.get("PATH", os.defpath))
    if found is None:
        raise UsageError(
            f"{word}: no such program",
            mend="give the path of a program that may be executed, or a name that is in PATH",
        )
    return Path(found).absolute()
