"""What a person and a site ask of one job, read as far as it goes without a choice of MPI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, UsageError
from mpigraft.guest import Guest, examine
from mpigraft.guests import own_mpi
from mpigraft.job_layout import Where
from mpigraft.model import Bind, BindKind, Replace

NOWHERE = Where()


@dataclass(frozen=True, slots=True)
class Ask:
    """What a person and a site ask of a job. Empty: nobody said, and a default is taken."""

    program: tuple[str, ...]
    image: str = ""
    programs: tuple[str, ...] = ()  # in it, that need MPI: what a script starts
    mpi: str = ""
    transport: str = ""
    launcher: str = ""  # own, srun, flux, pals, aprun
    engine: str = ""
    replace: str = ""
    binds: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()  # of these, what a site binds where it is
    where: Where = NOWHERE
    settings: tuple[str, ...] = ()  # NAME=VALUE
    proof: bool = True
    site: Path | None = None  # the profile that was asked, there or not
    sources: tuple[tuple[str, str], ...] = ()  # (what, who asked): ("mpi", "site.toml:3")

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
    return replace(ask, mpi="", sources=sources)


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


def guest(ask: Ask, environ: Mapping[str, str]) -> Guest:
    """The guest as far as this program is concerned. Of a script, a shell or an interpreter that
    starts something else, all that needs MPI in the image is meant."""
    itself = shutil.which(ask.program[0], path=environ.get("PATH"))
    if itself and Path(ask.image).is_file() and Path(ask.image).samefile(itself):
        return examine(ask.image)
    if ask.programs:
        return examine(ask.image, ask.programs)
    try:
        named = examine(ask.image, ask.program[:1])
    except UsageError as error:
        if not isinstance(error.__cause__, ElfError):
            raise
    else:
        if all(own_mpi.needs(named.root, program) for program in named.label.programs):
            return named
    return examine(ask.image)


def program(word: str, environ: Mapping[str, str]) -> Path:
    found = shutil.which(word, path=environ.get("PATH", os.defpath))
    if found is None:
        raise UsageError(
            f"{word}: no such program",
            mend="give the path of a program that may be executed, or a name that is in PATH",
        )
    return Path(found).absolute()
