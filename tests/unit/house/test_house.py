"""The rules of the house that no linter knows: one door each, small files, no machine's paths."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src/mpigraft"
FILE_LINES = 400
ONE_IDEA = {
    "src/mpigraft/binary/elf/reader.py": "what the loader reads of a file",
    "src/mpigraft/graft/injection/fixpoint.py": "one state of a graft and its steps",
    "src/mpigraft/run/plan.py": "the plan of one job, read from top to bottom",
}
ONE_IDEA_LINES = 600
FUNCTION_LINES = 60
CACHES = {".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis", "__pycache__"}

# Spelled in pieces, or this file would break its own rule.
REGISTRY_HOSTS = re.compile(
    r"\b(" + "|".join(rf"{name}\.{end}" for name, end in (
        ("pypi", "org"), ("pythonhosted", "org"), ("debian", "org"), ("npmjs", "org"),
        ("crates", "io"), ("golang", "org"), ("maven", "org"), ("apache", r"org/maven"),
        ("ubuntu", "com"), ("anaconda", "org"), ("anaconda", "com"),
    )) + r")\b"
)  # fmt: skip
MACHINE_PATHS = re.compile(r"(?<![\w.])/(work|root|tmp/w|home/\w+)/")


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def tracked() -> list[Path]:
    """Every text file that is part of the project; without git, all but what `make` made."""
    if (ROOT / ".git").exists():
        listing = subprocess.run(
            ["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True
        ).stdout.decode()
        paths = [ROOT / name for name in listing.split("\0") if name]
    else:
        made = {".venv", "build", "dist", "prebuilt", "results", "report.html"}
        paths = [p for p in ROOT.rglob("*") if not (made | CACHES) & set(p.relative_to(ROOT).parts)]
    return [p for p in paths if p.is_file() and b"\0" not in p.read_bytes()[:4096]]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def inside(path: Path, *rooms: str) -> bool:
    return any(path.is_relative_to(SOURCE / room) for room in rooms)


@cache
def calls(path: Path) -> tuple[tuple[str, int], ...]:
    """(dotted name, line) of each call."""
    nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
    return tuple((ast.unparse(node.func), node.lineno) for node in nodes)


def imports(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """(module, line) of each import, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.lineno


def importers(module: str) -> set[str]:
    return {
        name(path)
        for path in modules()
        for found, _ in imports(parsed(path))
        if found.split(".")[0] == module
    }


STARTS_A_PROCESS = re.compile(
    r"os\.(system|popen|fork|forkpty|spawn\w+|posix_spawnp?|exec[lv]\w*)|pty\.\w+|ctypes.*\.system"
)


# The doors: one captures, the other gives a job this process's own streams and terminal.
DOORS = [SOURCE / f"core/process/{name}.py" for name in ("command", "stdin")] + [
    SOURCE / "run/foreground.py"
]
# Programs of their own, which core/process starts with a time limit.
PROGRAMS = [SOURCE / "discovery/sources/child.py"]


def test_a_program_of_its_own_imports_nothing_of_the_package() -> None:
    for path in PROGRAMS:
        ours = [i for i in imports(parsed(path)) if i[0].startswith("mpigraft")]
        assert not ours, f"{name(path)} is no program of its own: {ours}"


def test_only_core_process_and_the_foreground_start_processes() -> None:
    assert importers("subprocess") <= {"src/mpigraft/core/process/command.py"}
    assert not importers("multiprocessing")
    for path in modules():
        if path not in DOORS and path not in PROGRAMS:
            found = [c for c in calls(path) if STARTS_A_PROCESS.match(c[0])]
            assert not found, f"{name(path)} starts a process: {found}"


# `core.write` is the door to files: it follows no link of another user, leaves no half file and
# nothing after a kill, and lets no umask open them to all. What else makes one, and how often:
WRITERS = {
    "binary/image/layers.py": 1,  # without a name
    "build/easybuild.py": 1,  # a folder for what EasyBuild leaves
    "cli/help.py": 1,  # no file: a text of help
    "cli/profile.py": 1,  # without a name: whether there is room
    "cli/streams.py": 3,  # the streams of this process
    "core/lease.py": 1,  # exclusive; the quick way of `run` has no time for pathlib
    "core/listing.py": 1,  # exclusive
    "core/lock.py": 1,  # the door to locks
    "core/storage.py": 1,  # without a name: whether there is room
    "core/write.py": 6,
    "discovery/install/fetch.py": 4,  # the rest: in a folder that is named when it is whole
    "discovery/install/wheel.py": 3,
    "discovery/sources/install.py": 1,
    "evidence/runner.py": 2,
    "graft/folder/library_copy.py": 2,
    "graft/folder/folders.py": 2,
    "graft/folder/shared_copies.py": 5,
    "graft/stack/generations/switching.py": 7,
    "native/programs.py": 2,
    "run/cached/start.py": 1,
    "run/injection/alone.py": 2,
    "run/scratch.py": 2,
    "store/file.py": 3,  # SQLite's, exclusive; a copy to read
}
MAKES = {
    "write_text", "write_bytes", "touch", "mkdir", "symlink_to", "hardlink_to", "mkstemp",
    "mkdtemp", "NamedTemporaryFile", "TemporaryFile", "TemporaryDirectory",
}  # fmt: skip
MAKES_BY_NAME = re.compile(
    r"os\.(link|symlink|makedirs|mkfifo|truncate)|shutil\.(copy(2|file|tree)?|move)"
)
TO_WRITE = re.compile(r"\bO_(CREAT|TMPFILE|WRONLY|RDWR|TRUNC)\b|'[rb]*[wax+][b+]*'")


def makes_files(call: ast.Call) -> bool:
    dotted = ast.unparse(call.func)
    last = dotted.rpartition(".")[2]
    given = [*call.args, *(word.value for word in call.keywords)]
    opens = last == "open" and TO_WRITE.search(" ".join(map(ast.unparse, given)))
    return (
        bool(last in MAKES or MAKES_BY_NAME.fullmatch(dotted) or opens) and "tarfile" not in dotted
    )


def test_only_core_write_makes_files_where_others_find_them() -> None:
    found = {}
    for path in modules():
        nodes = ast.walk(parsed(path))
        if count := sum(isinstance(node, ast.Call) and makes_files(node) for node in nodes):
            found[str(path.relative_to(SOURCE))] = count
    assert found == WRITERS, "write by core.write, or say here why not"


def test_only_core_parsers_parses_python_and_toml_of_others() -> None:
    """Our own TOML is read where its rows are."""
    found = {
        str(path.relative_to(SOURCE))
        for path in modules()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"ast.parse", "tomllib.loads"}
    }
    own = {"core/messages.py", "knowledge/reader.py"}
    assert found == {"core/parsers.py", *own}


def test_only_the_store_speaks_to_the_database() -> None:
    assert importers("sqlite3") <= {name(p) for p in (SOURCE / "store").glob("*.py")}


def test_only_what_is_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = (re.split(r"[^\w-]", wish)[0] for wish in project["dependencies"])
    declared = {name.replace("-", "_") for name in names}
    extras = {  # which say how to install it
        SOURCE / "bench/exchange/parquet.py": {"pyarrow"},
        SOURCE / "bench/matrix/partition.py": {"pymetis"},
        SOURCE / "reframe/checks.py": {"reframe"},
        SOURCE / "report/paper/drawing.py": {"matplotlib"},
    }
    for path in modules():
        for module, line in imports(parsed(path)):
            top = module.split(".")[0]
            known = top in sys.stdlib_module_names or top == "mpigraft" or top in declared
            known = known or top in extras.get(path, ())
            assert known, f"{name(path)}:{line} imports {top}, which an install need not bring"


def test_third_parties_are_named() -> None:
    notices = (ROOT / "THIRD-PARTY-NOTICES.md").read_text().lower()
    locked = re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert "numpy" in locked
    missing = [package for package in locked if package not in notices]
    assert not missing, f"THIRD-PARTY-NOTICES.md says nothing of {missing}"


def test_requirements_are_hashed_and_name_no_place() -> None:
    for path in ROOT.glob("requirements*.txt"):
        text = path.read_text()
        assert not re.search(r"https?:|--(index|extra|find)|file:", text), name(path)
        for block in re.findall(r"^\w.*(?:\n    .*)*", text, re.MULTILINE):
            assert "--hash=sha256:" in block, f"{name(path)}: {block}"


def test_only_cli_and_report_print() -> None:
    for path in modules():
        if inside(path, "cli", "report"):
            continue
        tree = parsed(path)
        printed = [
            c for c in calls(path) if c[0] == "print" or re.match(r"sys\.std(out|err)", c[0])
        ]
        assert not printed, f"{name(path)} prints: {printed}"
        drawn = [i for i in imports(tree) if i[0].split(".")[0] in {"rich", "typer", "click"}]
        assert not drawn, f"{name(path)} draws: {drawn}"


def test_heavy_imports_are_lazy() -> None:
    heavy = ("numpy", "rich", "sqlite3")
    listed = subprocess.run(
        [sys.executable, "-c", "import mpigraft.cli.main, sys; print(*sys.modules)"],
        check=True,
        capture_output=True,
    ).stdout.decode()
    loaded = set(listed.split())
    assert "mpigraft.cli.main" in loaded
    assert not loaded & set(heavy)


def test_files_are_small() -> None:
    code = [p for p in tracked() if p.suffix in {".py", ".c", ".h", ".sh"} or p.name == "Makefile"]
    lines = {name(path): len(path.read_text().splitlines()) for path in code}
    many = {path: n for path, n in lines.items() if n >= FILE_LINES}
    assert many.keys() == ONE_IDEA.keys(), "cut a file, or list the one idea that it holds"
    assert max(many.values()) < ONE_IDEA_LINES


def length(function: ast.FunctionDef | ast.AsyncFunctionDef, path: Path) -> int:
    """Lines of a function; of a command without its signature, which is its table of options."""
    first = function.body[0] if inside(path, "cli") else function
    return (function.end_lineno or 0) - first.lineno + 1


def test_functions_are_small() -> None:
    lines = {
        f"{name(path)}:{node.lineno} {node.name}": length(node, path)
        for path in {*modules(), *(p for p in tracked() if p.suffix == ".py")}
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert not {function: n for function, n in lines.items() if n >= FUNCTION_LINES}


def test_no_registry_host_and_no_path_of_one_machine() -> None:
    for path in tracked():
        text = path.read_text(errors="replace")
        assert not REGISTRY_HOSTS.search(text), f"{name(path)} names a registry's host"
        found = MACHINE_PATHS.search(text)
        assert not found, f"{name(path)} names a path of one machine: {found and found[0]}"


def test_links_between_documents_lead_somewhere() -> None:
    for path in tracked():
        if path.suffix == ".md":
            for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", path.read_text()):
                assert (path.parent / target).exists(), f"{name(path)} links to {target}"


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


def test_links_lead_to_headings() -> None:
    for path in tracked():
        if path.suffix == ".md":
            for target, heading in re.findall(r"\]\(([^)#:\s]*)#([^)\s]+)\)", path.read_text()):
                page = path.parent / target if target else path
                assert heading in anchors(page), f"{name(path)} links to {target}#{heading}"


def test_readme_is_short_and_the_index_has_every_page() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120
    index = (ROOT / "docs/README.md").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").glob("*/*.md")}
    assert pages <= set(re.findall(r"\]\(([^)#:]+)\)", index))


OF_OTHERS = {  # programs, on the page of troubleshooting
    "version `GLIBC_2.34' not found", "Read-only file system", "Bus error",
}  # fmt: skip


def printed_texts() -> Iterator[str]:
    """The texts of the sources, with `{}` for values, and of findings: no docstring is printed."""
    for tree in map(parsed, modules()):
        nodes = list(ast.walk(tree))
        alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            match node:
                case ast.Constant(value=str(text)) if id(node) not in alone:
                    yield text
                case ast.JoinedStr(values=values):
                    yield "".join(
                        str(one.value) if isinstance(one, ast.Constant) else "{}" for one in values
                    )
    for file in (SOURCE / "knowledge/findings").glob("*.toml"):
        for row in tomllib.loads(file.read_text()).values():
            yield from (str(text) for text in row.values())


def quoted(page: str) -> set[str]:
    """What a page quotes, apart from its commands."""
    return set(re.findall(r'"([^"\n]+)"', re.sub(r"^    .*$|`[^`\n]+`", "", page, flags=re.M)))


def stale(quotes: set[str], texts: str) -> set[str]:
    """Those that nothing prints: `...` and numbers are values, which differ."""
    parts = {one: re.split(r"\.\.\.|\d+", one) for one in quotes}
    return {
        one
        for one, fixed in parts.items()
        if not re.search("[^\n]*?".join(map(re.escape, fixed)), texts)
    }


def test_troubleshooting_quotes_what_is_printed() -> None:
    """It quotes messages, with `...` for what differs; some are of other programs."""
    page = (ROOT / "docs/howto/troubleshoot.md").read_text()
    codes = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", page))
    assert codes <= anchors(ROOT / "docs/reference/findings.md")
    texts = "\n".join(" ".join(text.split()) for text in printed_texts())
    assert len(quoted(page)) >= 30
    assert stale(quoted(page), texts) == OF_OTHERS
    was = "the interval of its ratio is neither beyond nor within the margin"
    assert stale({was, "Bus error", "wide intervals"}, texts) == {was, "Bus error"}


def test_nothing_is_left_to_do() -> None:
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
    for path in tracked():
        if path.suffix in {".py", ".c", ".h", ".toml"}:
            assert not marks.search(path.read_text()), f"{name(path)} has a stub or a note to self"
