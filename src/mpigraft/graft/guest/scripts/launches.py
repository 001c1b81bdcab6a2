"""Read the command line of a launcher: which program it starts, and how `mpigraft run` would."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.knowledge import LauncherWords, find_launcher

MORE = "..."  # for arguments that reading does not show
ENGINES = frozenset({"apptainer", "singularity"})
ENGINE_OPTIONS = frozenset({  # of `apptainer exec`, with a value of their own
    "-B", "--bind", "--mount", "-H", "--home", "--pwd", "--cwd", "--env", "--env-file", "-S",
    "--scratch", "-W", "--workdir", "-o", "--overlay", "--net", "--network", "--security",
    "--add-caps", "--drop-caps", "--app", "--apply-cgroups", "--hostname", "--dns",
})  # fmt: skip
PLACING = frozenset(("mpigraft", verb) for verb in ("run", "profile", "record"))
SETTING = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class InnerProgram:
    """One program of a launch: options of `mpigraft run` for it, its words, and options of the
    launcher that have no counterpart."""

    options: tuple[str, ...]
    words: tuple[str, ...]
    dropped: tuple[str, ...]
    image: str = ""
    exists: bool = False  # the program is a file that can be started


@dataclass(frozen=True, slots=True)
class InnerLaunch:
    """A launcher's command line in a script. Unknown parts of words are UNKNOWN."""

    launcher: str  # mpirun, srun, flux run
    words: tuple[str, ...]
    script: str = ""  # as it was started; empty: the words are those of the job
    line: int = 0
    cwd: str = ""  # a folder that the script enters before; UNKNOWN: one that reading does not show
    certain: bool = True  # whenever the script runs
    own: bool = False  # it is mpigraft
    programs: tuple[InnerProgram, ...] = ()
    redirects: tuple[tuple[str, str], ...] = ()  # (operator, word); "|": it reads a pipe
    environment: tuple[str, ...] = ()  # NAME=VALUE that the script has set for it

    @property
    def place(self) -> str:
        """Say where it is."""
        return f"line {self.line} of {self.script}" if self.script and self.line else self.script

    @property
    def exists(self) -> bool:
        """Whether all of its programs are files that can be started."""
        return all(program.exists for program in self.programs)

    @property
    def text(self) -> str:
        """The command line, as messages show it."""
        return _joined(self.words)


def launch_of(words: Sequence[str]) -> tuple[str, LauncherWords] | None:
    """Find the launcher that these words start."""
    if not words or UNKNOWN in words[0]:
        return None
    return find_launcher(words[0], words[1] if len(words) > 1 else "")


def inner_programs(
    launch: InnerLaunch, is_program: Callable[[str], bool]
) -> tuple[InnerProgram, ...]:
    """Read the programs of a launch; behind a colon another one begins. `is_program` decides
    whether a word names a file that can be started."""
    found = launch_of(launch.words)
    if found is None or launch.own:
        return ()
    name, row = found
    rest = list(launch.words[len(name.split()) :])
    programs = []
    for group in _groups(rest):
        program = _program(group, row, is_program)
        if program.words:
            programs.append(program)
    return tuple(programs)


def _groups(words: Sequence[str]) -> Iterator[list[str]]:
    group: list[str] = []
    for word in words:
        if word == ":":
            yield group
            group = []
        else:
            group.append(word)
    yield group


def _program(
    words: list[str], row: LauncherWords, is_program: Callable[[str], bool]
) -> InnerProgram:
    options: list[str] = []
    dropped: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            if word == UNKNOWN or (row.settings and SETTING.match(word)):
                options += ["--env", word] if word != UNKNOWN else []
                continue
            place -= 1
            break
        option, equals, value = word.lstrip("-").partition("=")
        attached = _attached(word, row)
        if attached:
            option, values = attached
        else:
            count = 0 if equals else row.count(option)
            values = [value] if equals else words[place : place + count]
            place += count
        _take(option, values, word, row, options, dropped)
    program = words[place:]
    if program and not is_program(program[0]):
        # An option that no row knows may have had a value.
        later = next((n for n, w in enumerate(program) if "/" in w and is_program(w)), 0)
        dropped += program[:later]
        program = program[later:]
    exists = bool(program) and is_program(program[0])
    return _of_engine(InnerProgram(tuple(options), tuple(program), tuple(dropped), "", exists))


def _attached(word: str, row: LauncherWords) -> tuple[str, list[str]] | None:
    """Split `-n4` of srun's kin."""
    short = re.fullmatch(r"-([A-Za-z])(\d[\w:.]*)", word)
    if short and row.count(short[1]) == 1:
        return short[1], [short[2]]
    return None


def _take(
    option: str,
    values: Sequence[str],
    word: str,
    row: LauncherWords,
    options: list[str],
    dropped: list[str],
) -> None:
    """Take an option of the launcher over, where `mpigraft run` has one for it."""
    flag = row.meaning(option)
    value = "=".join(values)
    if flag and UNKNOWN in value:
        return  # its value is the job's own matter
    number = value.isdigit() or flag not in ("-n", "--ranks-per-node", "--nodes")
    if flag and number and (flag != "--env" or "=" in value):
        options += [flag, value]
    elif option not in ("allow-run-as-root", "oversubscribe"):
        dropped += [word, *(values if "=" not in word else ())]


def _of_engine(program: InnerProgram) -> InnerProgram:
    """Split the words of a container engine: mpigraft starts it by itself."""
    words = program.words
    if words[1:2] not in (("exec",), ("run",)) or words[0].rpartition("/")[2] not in ENGINES:
        return program
    rest = list(words[2:])
    dropped = list(program.dropped)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        dropped.append(option)
        if option in ENGINE_OPTIONS and rest:
            dropped.append(rest.pop(0))
    if len(rest) < 2 or UNKNOWN in rest[0]:
        return program
    return InnerProgram(program.options, tuple(rest[1:]), tuple(dropped), rest[0], exists=True)


def render_command(launch: InnerLaunch, verb: Sequence[str], options: Sequence[str]) -> str:
    """Give the command to type. `verb` begins it; `options` are those of the job, which come before
    the script's. Without options of a job (`check`, `plan`) those of the script are left out."""
    first, *others = launch.programs
    if not verb:
        return _joined(first.words)
    given = list(options)
    if tuple(verb) in PLACING:
        given += _without(("--image", first.image), options) if first.image else []
        given += _without(first.options, options)
        given += [word for one in launch.environment for word in ("--env", one)]
    groups = [f"{_joined([*verb, *given])} -- {_joined(first.words)}"]
    if tuple(verb) in PLACING:
        groups += [_joined([*_ranks(other), *other.words]) for other in others]
    command = " : ".join(groups)
    for operator, word in launch.redirects if tuple(verb) in PLACING else ():
        command = _redirected(command, operator, word)
    entered = launch.cwd and UNKNOWN not in launch.cwd
    return f"cd {shlex.quote(launch.cwd)} && {command}" if entered else command


def _redirected(command: str, operator: str, word: str) -> str:
    if operator == "|":
        return f"{MORE} | {command}"
    if operator == "<<":  # a here-document: one line of it shows nothing
        operator = "<"
    space = "" if operator.endswith("&") else " "
    return f"{command} {operator}{space}{_joined([word])}"


def _ranks(program: InnerProgram) -> list[str]:
    words = list(program.options)
    return words[:2] if words[:1] == ["-n"] else ["-n", "1"]


def _without(own: Sequence[str], given: Sequence[str]) -> list[str]:
    """Give the script's options, without those that the job has itself."""
    pairs = list(zip(own[::2], own[1::2], strict=True))
    flags = {word.partition("=")[0] if word.startswith("--") else word[:2] for word in given}
    flags.discard("--env")
    return [w for flag, value in pairs if flag not in flags for w in (flag, value)]


def _joined(words: Sequence[str]) -> str:
    return " ".join(MORE if UNKNOWN in word else shlex.quote(word) for word in words)
