"""What a job starts, read as far as it goes without a choice of MPI."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mpigraft.binary import FolderRoot, host_path
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.model import Bind, BindKind, GuestKind
from mpigraft.graft import (
    Guest,
    GuestCommand,
    command_of,
    examine_command,
    examine_guest,
    visible_folders,
)
from mpigraft.request.job.spec import RunSpec

KNOWN = GuestCommand()  # what a person named
CHECKED = "--program PATH names what needs MPI, if it starts that"


def suggest_programs(no: CheckFailed, spec: RunSpec, guest: Guest) -> CheckFailed:
    """Return the same answer, with a way out where a script was judged by all programs of the
    image."""
    if spec.programs or len(guest.label.programs) < 2:
        return no
    way = f"--program PATH, if {spec.program[0]} starts only some of what needs MPI in the image"
    return no.amended(fix=f"{no.fix}; or {way}" if no.fix else way)


def parse_bind(word: str, optional: Sequence[str]) -> Iterator[Bind]:
    """`/scratch`, `/scratch:/data` or `/scratch:/data:ro`. What a site's profile binds need not
    be on every one of its machines."""
    source, *rest = word.split(":")
    target = rest[0] if rest and rest[0] else source
    mode = rest[1] if len(rest) > 1 else "rw"
    if len(rest) > 2 or mode not in ("ro", "rw") or not (source[:1] == target[:1] == "/"):
        raise UsageError.of("bind-invalid", word=word)
    path = Path(source)
    if path.exists():
        kind = BindKind.FOLDER if path.is_dir() else BindKind.FILE
        yield Bind(source, target, kind, writable=mode == "rw", why="asked for")
    elif word not in optional:
        raise UsageError.of("bind-source-missing", word=word, source=source)


@dataclass(frozen=True, slots=True)
class JobSubject:
    """What a job starts, read without a choice of MPI."""

    guest: Guest | None  # None: it is of this machine
    command: GuestCommand
    others: tuple[GuestCommand, ...] = ()  # of the programs behind a colon

    @property
    def sources(self) -> tuple[str, ...]:
        """Files of this machine that the command was read from, or that it would be read from if
        they were there."""
        if self.guest is None:
            return self.command.sources
        files = (host_path(self.guest.root, path) for path in self.command.sources)
        return tuple(str(file) for file in files if file)


def job_subject(spec: RunSpec, environ: Mapping[str, str]) -> JobSubject:
    """Return the part of the guest that the program needs, and what is known of it. Raises
    CheckFailed for a program that does not use MPI or starts a launcher itself, if proof is
    requested."""
    if spec.image:
        return _in_guest(spec, environ)
    environment, root = {**environ, **_settings(spec)}, FolderRoot(Path("/"))

    def examine(words: Sequence[str]) -> GuestCommand:
        return command_of(root, words, environment, str(Path.cwd()))

    command = examine(spec.program)
    if spec.programs:
        _refuse_launcher(spec, command)
        command = _named_command(spec, examine, command.sources)
    else:
        _refuse(spec, command)
    return JobSubject(None, command, _other_commands(spec, examine))


def _named_command(
    spec: RunSpec, examine: Callable[[Sequence[str]], GuestCommand], sources: tuple[str, ...]
) -> GuestCommand:
    """Return the programs that a person named, alone. Raises CheckFailed for one without MPI."""
    named = [examine((word,)) for word in spec.programs]
    for word, one in zip(spec.programs, named, strict=True):
        _refuse(spec, one, (word,))
    also = (program for one in named[1:] for program in one.programs)
    files = (*sources, *(file for one in named for file in one.sources))
    return replace(named[0], also=(*named[0].also, *also), sources=files)


def _in_guest(spec: RunSpec, environ: Mapping[str, str]) -> JobSubject:
    itself = shutil.which(spec.program[0], path=environ.get("PATH"))
    if itself and Path(spec.image).is_file() and Path(spec.image).samefile(itself):
        return JobSubject(examine_guest(spec.image), KNOWN)
    settings, shown = _settings(spec), folders_of_job(spec, environ)
    if spec.programs:
        guest, command = examine_guest(spec.image, spec.programs, shown), KNOWN
        _refuse_launcher(spec, guest.command_of(spec.program, settings))
    else:
        guest, command = examine_command(spec.image, spec.program, settings, shown)
        _refuse(spec, command)
    others = _other_commands(spec, partial(guest.command_of, settings=settings))
    mpi = [one.program for one in others if one.needs_mpi and not one.interpreted]
    if mpi and not guest.loose and not guest.libraries:
        every = (*guest.label.programs, *mpi)
        guest = examine_guest(spec.image, tuple(dict.fromkeys(every)), shown)
    return JobSubject(guest, command, others)


def _other_commands(
    spec: RunSpec, examine: Callable[[Sequence[str]], GuestCommand]
) -> tuple[GuestCommand, ...]:
    """Examine the programs behind a colon. Raises CheckFailed for a launcher among them."""
    commands = tuple(examine(other.words) for other in spec.where.others)
    for other, command in zip(spec.where.others, commands, strict=True):
        _refuse_launcher(spec, command, other.words)
    return commands


def _refuse_launcher(spec: RunSpec, command: GuestCommand, words: Sequence[str] = ()) -> None:
    if command.is_launcher:
        _refuse(spec, command, words)


def _refuse(spec: RunSpec, command: GuestCommand, words: Sequence[str] = ()) -> None:
    if spec.proof:
        way = CHECKED if spec.image else ""
        command.refuse(words or spec.program, verb=spec.verb, options=spec.typed, other_way=way)


def _settings(spec: RunSpec) -> dict[str, str]:
    return {name: value for name, eq, value in (w.partition("=") for w in spec.settings) if eq}


def folders_of_job(
    spec: RunSpec, environ: Mapping[str, str]
) -> Callable[[GuestKind], dict[str, Path]]:
    """Make the function that gives, for a kind of guest, the folders of this machine that the
    ranks of a job see."""
    extra = [bind for word in spec.binds for bind in parse_bind(word, spec.optional)]

    def shown(kind: GuestKind) -> dict[str, Path]:
        try:
            cwd = str(Path.cwd())
        except FileNotFoundError as error:
            raise UsageError.of("cwd-gone") from error
        return visible_folders(kind, environ, cwd, spec.engine, extra)

    return shown


def program_of(word: str, environ: Mapping[str, str]) -> Path:
    path = shutil.which(word, path=environ.get("PATH", os.defpath))
    if path is None and word.startswith("-"):
        raise UsageError.of("program-is-option", program=word)
    if path is None and "/" in word and Path(word).exists():
        raise UsageError.of("program-not-executable", program=word)
    if path is None:
        raise UsageError.of("program-missing", program=word)
    return Path(path).absolute()
