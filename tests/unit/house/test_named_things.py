"""Names between backticks, in docstrings, comments and pages for developers, exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src/mpigraft"
PAGES = tuple(
    ROOT / f"{page}.md"
    for page in (
        "CONTRIBUTING",
        "docs/explanation/architecture",
        "docs/howto/add-a-benchmark",
        "docs/howto/add-a-fabric",
        "docs/howto/add-an-engine",
        "docs/howto/change-a-verdict",
    )
)
NAME = re.compile(r"[A-Za-z_]\w*")
QUOTED = re.compile(r"(?<!`)`([A-Za-z_][\w.]*)(?:\([\w, ]*\))?`(?!`)")
FOREIGN = {
    "_dl_map_object", "_dl_map_object_deps",  # glibc's
    "bunch", "plm_slurm_args",  # of launchers
    "fuZZybuNNy",  # a job of Flux
    "installer", "sstrip", "proot", "usnic_verbs",  # programs and providers
    "latency_ref", "latency_unit", "latency_value",  # columns of ReFrame
    "openat2",  # a system call
    "openmpi_5_0_11_ob1_sm_latency_latency",  # an example of a metric of ReFrame
    "CHANGELOG.md", "CITATION.cff",
    "both_ways",  # the example of add-a-benchmark.md
    "test_cma_follows_ptrace_permission",  # the example of CONTRIBUTING.md
}  # fmt: skip


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def prose_and_code(text: str) -> tuple[str, str]:
    """A module's docstrings and comments, and the rest of it."""
    prose = {(doc.lineno, doc.col_offset): str(doc.value) for doc in docstrings(ast.parse(text))}
    comments, code = [], []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments.append(token.string)
        elif token.start not in prose:
            code.append(token.string)
    return "\n".join([*prose.values(), *comments]), " ".join(code)


def missing(prose: str, known: set[str]) -> set[str]:
    """Names that the prose quotes and nothing has."""
    quoted = {match[1] for match in QUOTED.finditer(prose)} - FOREIGN
    return {one for one in quoted if not set(NAME.findall(one)) <= known}


def test_quoted_names_exist() -> None:
    prose = {page.name: page.read_text() for page in PAGES}
    known: set[str] = set()
    for path in sorted(SOURCE.rglob("*")):
        known |= {path.stem, path.name}
        if path.suffix == ".py":
            prose[str(path.relative_to(SOURCE))], code = prose_and_code(path.read_text())
            known |= set(NAME.findall(code))
        elif path.suffix in {".c", ".h", ".toml", ".js"}:
            known |= set(NAME.findall(path.read_text()))
    for path in (ROOT / "Makefile", ROOT / "pyproject.toml", *(ROOT / "tools").iterdir()):
        known |= {path.stem, *(NAME.findall(path.read_text()) if path.is_file() else ())}
    for path in (ROOT / "tests").rglob("*.py"):
        known |= {
            path.stem,
            *path.parts,
            *re.findall(r"^\s*def (\w+)", path.read_text(), re.MULTILINE),
        }
    stale = {file: names for file, text in prose.items() if (names := missing(text, known))}
    assert not stale


def test_a_stale_name_is_noticed() -> None:
    prose, code = prose_and_code(
        '''"""Makes what `gone.it` takes, as `here`."""\nhere = 1  # `old()`\n'''
    )
    assert missing(prose, set(NAME.findall(code))) == {"gone.it", "old"}
