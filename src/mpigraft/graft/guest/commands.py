"""Find out what the words of a job start: a program with MPI, one without, or an unknown one.

Files are read, nothing is run. The closure of an ELF program shows whether it needs MPI, and the
imports of a Python script or the packages of an R script show it. For a shell, a profiler or
another interpreter, the words that follow may name the program. A script that starts a launcher of
MPI is no program of a job.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mpigraft.binary import ElfError, Root, RootError
from mpigraft.graft.guest import own_mpi, python_words, r_packages
from mpigraft.graft.guest.command import MANY, CommandKind, GuestCommand
from mpigraft.graft.guest.mpi_free import STATIC, without_mpi
from mpigraft.graft.guest.opened import named_libraries
from mpigraft.graft.guest.python_imports import follow
from mpigraft.graft.guest.python_search import is_python, python_of
from mpigraft.graft.guest.scripts.calls import is_language
from mpigraft.graft.guest.scripts.cshell import is_cshell
from mpigraft.graft.guest.scripts.launches import InnerLaunch, inner_programs, launch_of
from mpigraft.graft.guest.scripts.r_source import is_r, r_script
from mpigraft.graft.guest.scripts.reading import ScriptReader, ScriptReading, interpreter_of
from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.graft.guest.scripts.starters import SHELLS, behind_starters, shell_code, shell_script
from mpigraft.graft.guest.scripts.starters import STARTERS as SHELL_STARTERS
from mpigraft.graft.guest.starting import (
    ELF,
    MAX_HEAD,
    behind_env,
    first_line,
    is_executable,
    locate,
    refuse_unstartable,
)

MAX_DEPTH = 8  # of programs that start programs
MAX_STARTED = 200  # commands of a script that are examined
STARTERS = frozenset({  # start others, also where they are one static program (busybox)
    "sh", "ash", "bash", "dash", "ksh", "zsh", "csh", "tcsh", "fish", "busybox", "toybox", "env",
    "nice", "ionice", "nohup", "time", "timeout", "xargs", "setsid", "stdbuf", "chroot", "tini",
    "dumb-init", "gosu", "su-exec",
})  # fmt: skip
NO_SCRIPT = ScriptReading()
Started = tuple[GuestCommand, bool]  # by a script; whether in any case


def command_of(
    root: Root, words: Sequence[str], environment: Mapping[str, str], cwd: str
) -> GuestCommand:
    """Find out what `words` start, in a process with this environment and working folder. Raises
    as `refuse_unstartable`."""
    command = _command(root, list(words), dict(environment), cwd, 0)
    if not command.is_launcher:
        refuse_unstartable(root, words, environment, cwd)
    if command.kind is CommandKind.UNKNOWN:
        start = behind_env(list(words), dict(environment))[:1]
        entries = (locate(root, word, environment, cwd)[1] for word in start)
        files = (*(entry.path for entry in entries if entry), *command.sources)
        return replace(command, opened=named_libraries(root, files))
    return command


def _command(
    root: Root, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> GuestCommand:
    words = behind_env(words, environment)
    if not words or depth > MAX_DEPTH:
        return GuestCommand(CommandKind.UNKNOWN)
    if (launcher := launch_of(behind_starters(tuple(words))[0])) is not None:
        launch = InnerLaunch(launcher[0], behind_starters(tuple(words))[0], own=launcher[1].own)
        launches = _with_programs(root, (launch,), environment, cwd)
        return GuestCommand(CommandKind.LAUNCHER, launches=launches)
    spelled, entry = locate(root, words[0], environment, cwd)
    if entry is None or entry.kind != "file":
        return GuestCommand(CommandKind.UNKNOWN)
    try:
        head = root.read(entry.path, MAX_HEAD)
    except RootError:
        return GuestCommand(CommandKind.UNKNOWN)
    if head.startswith(b"#!"):
        return _script(root, head, [spelled, *words[1:]], environment, cwd, depth)
    reader = ScriptReader(root, _finder(root), cwd)
    if not head.startswith(ELF):  # execvp's fallback: a script for sh
        reading = reader.read("sh", spelled, words[1:], environment)
        return _read(root, reading, words, environment, cwd, depth)
    if is_python(spelled) or is_python(entry.path):
        return _python(root, spelled, words[1:], environment, cwd, depth)
    if own_mpi.needs(root, entry.path):
        return GuestCommand(CommandKind.MPI, entry.path)
    if is_interpreter(spelled):
        reading = _of_interpreter(reader, spelled, words, environment)
        return _read(root, reading, words, environment, cwd, depth)
    starts = spelled.rpartition("/")[2] in STARTERS
    why = "" if starts else without_mpi(root, entry.path)
    if why and why != STATIC:
        return GuestCommand(CommandKind.NONE, entry.path, why=why)
    behind = _opaque(root, words, environment, cwd, depth)
    # Wrappers are often static, without imported symbols that show whether they start others. So
    # the words that follow decide.
    if why and not behind.program:
        return GuestCommand(CommandKind.NONE, entry.path, why=why)
    return behind


def _script(
    root: Root, head: bytes, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> GuestCommand:
    """Follow a file that begins with #!: its interpreter starts with the file's path."""
    command = [*first_line(head), *words]
    target = behind_env(command, dict(environment))
    if target and (is_python(target[0]) or not (is_interpreter(target[0]) or is_r(words[0]))):
        return _command(root, command, environment, cwd, depth + 1)
    reader = ScriptReader(root, _finder(root), cwd)
    if is_r(words[0]):  # R itself is started by a shell script
        reading = _of_interpreter(reader, words[0], words, environment)
    else:
        reading = reader.read(interpreter_of(head), words[0], words[1:], environment)
    return _read(root, reading, words, environment, cwd, depth)


def _finder(root: Root) -> Callable[[str, Mapping[str, str], str], str]:
    def find(word: str, environment: Mapping[str, str], cwd: str) -> str:
        path, entry = locate(root, word, environment, cwd)
        return path if entry is not None else ""

    return find


def is_interpreter(path: str) -> bool:
    """Return whether a program of this name runs scripts, and is not Python."""
    name = path.rpartition("/")[2]
    return name in SHELLS or is_cshell(name) or is_language(name)


def _of_interpreter(
    reader: ScriptReader, spelled: str, words: list[str], environment: Mapping[str, str]
) -> ScriptReading:
    """Read the script that an interpreter other than Python is given."""
    name = spelled.rpartition("/")[2]
    if code := shell_code(tuple(words)):
        return reader.read_code(
            name, code[0].encode("utf-8", "surrogateescape"), code[1], environment
        )
    if is_r(name):
        text, path, rest = r_script(words)
        if text:
            data = text.encode("utf-8", "surrogateescape")
            return reader.read_code(spelled, data, rest, environment)
        path = path if path.startswith("/") or not path else f"{reader.cwd}/{path}"
        return reader.read(spelled, path, rest, environment) if path else NO_SCRIPT
    place = shell_script(tuple(words)) if name in SHELLS else 0
    if name not in SHELLS:
        place = next((n for n, word in enumerate(words[1:], 1) if not word.startswith("-")), 0)
    if not place:
        return NO_SCRIPT
    path = words[place] if words[place].startswith("/") else f"{reader.cwd}/{words[place]}"
    return reader.read(name, path, words[place + 1 :], environment)


def _read(
    root: Root,
    reading: ScriptReading,
    words: list[str],
    environment: dict[str, str],
    cwd: str,
    depth: int,
) -> GuestCommand:
    """Describe a script by what it starts; where it surely starts a launcher and no MPI program
    beside, it is no program of a job."""
    if reading is NO_SCRIPT:
        return replace(_opaque(root, words, environment, cwd, depth), alone=True)
    started = _started_commands(root, reading, environment, depth)
    mpi = _mpi_commands(started)
    packages = _r_packages(root, reading, environment, cwd)
    sure_mpi = bool(packages.certain) or any(sure for _, sure in mpi)
    if any(launch.certain for launch in reading.launches) and not sure_mpi:
        launches = _with_programs(root, reading.launches, environment, cwd)
        return GuestCommand(CommandKind.LAUNCHER, launches=launches, sources=reading.sources)
    if packages.certain or (packages.possible and not reading.started):
        behind = packages
    elif mpi and all(sure for _, sure in mpi) and _are_all(reading, mpi):
        behind = replace(mpi[0][0], also=tuple(one.program for one, _ in mpi[1:]))
    else:
        behind = _opaque(root, words, environment, cwd, depth)
        if behind.kind is CommandKind.UNKNOWN:
            behind = replace(behind, candidates=_candidates(reading, started))
    launches = tuple(replace(launch, certain=False) for launch in reading.launches)
    sources = (*behind.sources, *reading.sources)
    starts = sum(sure * one.starts for one, sure in started if one.kind is CommandKind.MPI)
    return replace(behind, launches=launches, sources=sources, starts=starts)


def _are_all(reading: ScriptReading, mpi: Sequence[Started]) -> bool:
    """Return whether nothing is started but these, each known by its file."""
    programs = len(mpi) == 1 or not any(one.interpreted for one, _ in mpi)
    return programs and not _starts_unknown(reading)


def _starts_unknown(reading: ScriptReading) -> bool:
    return any(UNKNOWN in one.words[0] for one in reading.started)


def _r_packages(
    root: Root, reading: ScriptReading, environment: Mapping[str, str], cwd: str
) -> GuestCommand:
    """Find what packages of an R script need MPI, by the R beside its interpreter."""
    if not reading.packages:
        return GuestCommand()
    beside = f"{reading.r.rpartition('/')[0]}/R" if "/" in reading.r else "R"
    entry = locate(root, beside, environment, cwd)[1]
    return r_packages.follow(root, dict(reading.packages), entry.path if entry else "", environment)


def _with_programs(
    root: Root, launches: Sequence[InnerLaunch], environment: Mapping[str, str], cwd: str
) -> tuple[InnerLaunch, ...]:
    """Add to each launch the programs that it starts."""

    def read(launch: InnerLaunch) -> InnerLaunch:
        folder = cwd if UNKNOWN in launch.cwd else launch.cwd or cwd

        def is_program(word: str) -> bool:
            return is_executable(locate(root, word, environment, folder)[1])

        return replace(launch, programs=inner_programs(launch, is_program))

    return tuple(read(launch) for launch in launches)


def _started_commands(
    root: Root, reading: ScriptReading, environment: Mapping[str, str], depth: int
) -> list[Started]:
    """List what a script starts without a launcher."""
    known: dict[tuple[str, ...], GuestCommand] = {}
    started = []
    for one in reading.started[:MAX_STARTED]:
        name = one.words[0].rpartition("/")[2]
        whole = is_python(name) or is_r(name) or name in STARTERS or name in SHELL_STARTERS
        words = one.words if whole else one.words[:1]
        if words not in known:
            known[words] = _command(root, list(words), dict(environment), one.cwd, depth + 1)
        started.append((known[words], one.certain))
    return started


def _mpi_commands(started: Sequence[Started]) -> list[Started]:
    commands: dict[tuple[str, tuple[str, ...]], Started] = {}
    for command, certain in started:
        if command.kind is CommandKind.MPI:
            commands.setdefault((command.program, command.certain), (command, certain))
    return list(commands.values())


def _candidates(reading: ScriptReading, started: Sequence[Started]) -> tuple[str, ...]:
    """List the MPI programs that a script may start, first those that it surely starts; empty
    where it may start others."""
    others = _starts_unknown(reading)
    scripts = any(
        c.interpreted or (c.kind is CommandKind.UNKNOWN and c.sources) for c, _ in started
    )
    if others or scripts or len(reading.started) > MAX_STARTED:
        return ()
    mpi = sorted(_mpi_commands(started), key=lambda one: not one[1])
    return tuple(dict.fromkeys(c.program for c, _ in mpi))


def _opaque(
    root: Root, words: list[str], environment: dict[str, str], cwd: str, depth: int
) -> GuestCommand:
    """Describe a program that starts others by the first word that names an MPI program."""
    for place, word in enumerate(words[1:], 1):
        _, entry = locate(root, word, environment, cwd) if "=" not in word else ("", None)
        if not is_executable(entry):
            continue
        command = _command(root, words[place:], dict(environment), cwd, depth + 1)
        if command.kind is CommandKind.MPI or command.interpreted:
            return command
    name = words[0].rpartition("/")[2]
    return GuestCommand(CommandKind.UNKNOWN, notes=(f"which programs {name} starts",))


def _python(
    root: Root,
    spelled: str,
    rest: Sequence[str],
    environment: dict[str, str],
    cwd: str,
    depth: int,
) -> GuestCommand:
    """Describe a Python program by what it imports, and one without MPI by what it starts."""
    command = _imported(root, spelled, rest, environment, cwd)
    line = python_words.parse_words(rest)
    reader = ScriptReader(root, _finder(root), cwd)
    if line.kind == "code":
        code = line.value.encode("utf-8", "surrogateescape")
        reading = reader.read_code("python3", code, line.rest, environment)
    elif line.kind == "script":
        path = line.value if line.value.startswith("/") else f"{cwd.rstrip('/')}/{line.value}"
        reading = reader.read("python3", path, line.rest, environment)
    else:
        return command
    certain = any(launch.certain for launch in reading.launches)
    without = certain and command.kind is not CommandKind.MPI
    started = _started_commands(root, reading, environment, depth) if without else []
    if without and not any(sure for _, sure in _mpi_commands(started)):
        launches = _with_programs(root, reading.launches, environment, cwd)
        return GuestCommand(CommandKind.LAUNCHER, launches=launches, sources=reading.sources)
    launches = tuple(replace(launch, certain=False) for launch in reading.launches)
    return replace(command, launches=launches)


def _imported(
    root: Root, spelled: str, rest: Sequence[str], environment: dict[str, str], cwd: str
) -> GuestCommand:
    """Describe a Python program by what it imports."""
    entry = root.find(spelled)
    assert entry is not None
    line = python_words.parse_words(rest)
    python = python_of(root, spelled, environment, line.options)
    starts, notes = python_words.entry_points(root, line, cwd)
    alone = not line.kind and not rest
    bare = GuestCommand(CommandKind.UNKNOWN, entry.path, interpreted=True, alone=alone)
    if python is None:
        return replace(bare, notes=(f"where {spelled} finds its modules",))
    if not starts:
        return replace(bare, notes=notes or (f"what {spelled} is to run",))
    imports = follow(root, python, starts, _machine(root, entry.path))
    notes = (*notes, *_some(imports.unknown))
    if imports.certain or imports.possible or own_mpi.needs(root, entry.path):
        return GuestCommand(
            CommandKind.MPI, entry.path, imports.certain, imports.possible, notes,
            sources=imports.sources, interpreted=True,
        )  # fmt: skip
    if notes or imports.beyond:
        notes = notes or _some(imports.beyond)
        return replace(bare, notes=notes, sources=imports.sources)
    why = "nothing that it imports needs an MPI library"
    return GuestCommand(
        CommandKind.NONE, entry.path, why=why, sources=imports.sources, interpreted=True
    )


def _some(notes: Sequence[str]) -> tuple[str, ...]:
    more = len(notes) - MANY
    return (*notes[:MANY], *([f"{more} more of the kind"] if more > 0 else []))


def _machine(root: Root, path: str) -> str:
    try:
        return root.elf(path).machine
    except (ElfError, RootError):
        return ""
