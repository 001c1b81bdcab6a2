"""What a script of Python imports, read and not run: of trees made by hand, and a real Python."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.graft.guest import python_imports
from mpigraft.graft.guest.python_imports import EntryPoint
from mpigraft.graft.guest.python_search import Options, python_of
from mpigraft.graft.guest.python_source import read_source, skim_source
from mpigraft.graft.guest.scripts.python import python_calls
from tests.builders.messages import shows
from tests.builders.python_installs import MACHINE, SITE, TAG, imports, parts, put, tree
from tests.hang import no_hang

MPI4PY = {
    f"{SITE}/mpi4py/__init__.py": "__all__ = ['MPI']\n",
    f"{SITE}/mpi4py/MPI.{TAG}": "*mpi",
}
MPI = f"/{SITE}/mpi4py/MPI.{TAG}"
PETSC = {
    f"{SITE}/petsc4py/__init__.py": "def init(): pass\n",
    f"{SITE}/petsc4py/PETSc.py": "from petsc4py.lib import load\nload('x')\n",
    f"{SITE}/petsc4py/lib/__init__.py": (
        "import importlib\ndef load(arch):\n    importlib.import_module('petsc4py.lib.' + arch)\n"
    ),
    f"{SITE}/petsc4py/lib/real/PETSc.{TAG}": "*mpi",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return parts(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def image(tmp_path: Path, built: Mapping[str, Path]) -> Path:
    return tree(tmp_path / "image", built, {**MPI4PY, **PETSC})


@pytest.mark.parametrize(
    "script",
    [
        "from mpi4py import MPI",
        "import mpi4py.MPI as M",
        "from mpi4py import *",
        "import os; from mpi4py import MPI",
        "class A:\n    from mpi4py import MPI",
        "if __name__ == '__main__':\n    import mpi4py.MPI",
        "with open('x') as f:\n    from mpi4py import MPI",
        "try:\n    from mpi4py import MPI\nfinally:\n    pass",
        "try:\n    from mpi4py import MPI\nexcept KeyError:\n    pass",
        "__import__('mpi4py.MPI')",
        "import helper",
        "import package.inner",
        "from package import inner",
        b"# -*- coding: latin-1 -*-\n# \xe9\nfrom mpi4py import MPI",
        "\ufefffrom mpi4py import MPI",
    ],
)
def test_what_is_imported_in_any_case(image: Path, script: str | bytes) -> None:
    put(image, {
        "job/helper.py": "import mpi4py\nfrom mpi4py.MPI import COMM_WORLD\n",
        "job/package/__init__.py": "",
        "job/package/inner.py": "from . import other\n",
        "job/package/other.py": "from ..package.deep import x\n",
        "job/package/deep/__init__.py": "from mpi4py import MPI\nx = 1\n",
    })  # fmt: skip
    found = imports(image, script)
    assert (found.certain, found.possible, found.unknown) == ((MPI,), (), ())


@pytest.mark.parametrize(
    "script",
    [
        "try:\n    from mpi4py import MPI\nexcept ImportError:\n    MPI = None",
        "try:\n    from mpi4py import MPI\nexcept:\n    MPI = None",
        "try:\n    import nothing\nexcept (ImportError, KeyError):\n    from mpi4py import MPI",
        "def main():\n    from mpi4py import MPI\nmain()",
        "import sys\nif len(sys.argv) > 1:\n    import mpi4py.MPI",
        "import importlib\nimportlib.import_module('mpi4py.MPI')",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import mpi4py.MPI",
        "for _ in ():\n    import mpi4py.MPI",
        "x = lambda: __import__('mpi4py.MPI')",
    ],
)
def test_what_is_imported_on_a_condition(image: Path, script: str) -> None:
    found = imports(image, script)
    assert (found.certain, found.possible) == ((), (MPI,))


@pytest.mark.parametrize(
    "script",
    [
        "import os, sys",
        "import mpi4py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from mpi4py import MPI",
        "'''\nfrom mpi4py import MPI\n'''",
        "import aside",
        "from .mpi4py import MPI",
        "from mpi4py import rc",
    ],
)
def test_what_is_not_imported(image: Path, script: str) -> None:
    put(image, {"job/aside.py": "if __name__ == '__main__':\n    from mpi4py import MPI\n"})
    found = imports(image, script)
    assert (found.certain, found.possible, found.unknown, found.beyond) == ((), (), (), ())


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("import importlib\nimportlib.import_module(name)", "line 2: import_module"),
        ("__import__(name)", "line 1: __import__"),
        ("import ctypes\nctypes.CDLL('libmpi.so.40')", "line 2: CDLL"),
        ("from ctypes import cdll\nx = cdll.LoadLibrary('libmpi.so')", "line 2: LoadLibrary"),
        ("exec(open('x').read())", "line 1: exec"),
        ("print 'Python 2'\nfrom mpi4py import MPI", "cannot be parsed"),
        ("x = [" * 400, "cannot be parsed"),
        ("a\0b", "cannot be parsed"),
        (b"# coding: no-such-thing\n", "cannot be parsed"),
    ],
)
def test_imports_that_cannot_be_followed_are_reported(
    image: Path, script: str | bytes, told: str
) -> None:
    found = imports(image, script)
    assert told in found.unknown[0]
    assert found.certain == ()


def test_lines_of_a_syntax_that_is_not_known_count_as_possible(image: Path) -> None:
    assert imports(image, "print 'Python 2'\nfrom mpi4py import MPI").possible == (MPI,)


def test_modules_that_nobody_names_play_no_part(image: Path) -> None:
    """A pure mpi4py script was refused because petsc4py was installed beside."""
    assert imports(image, "from mpi4py import MPI").certain == (MPI,)
    found = imports(image, "from petsc4py import PETSc")
    assert found.possible == (f"/{SITE}/petsc4py/lib/real/PETSc.{TAG}",)
    assert found.certain == ()


def test_variants_for_the_abis_of_mpi(image: Path, built: Mapping[str, Path]) -> None:
    (image / MPI.lstrip("/")).unlink()
    names = [f"{SITE}/mpi4py/MPI.{abi}.{TAG}" for abi in ("mpich", "openmpi")]
    put(image, dict.fromkeys(names, "*mpi"), built)
    assert imports(image, "from mpi4py import MPI").certain == tuple(f"/{n}" for n in names)


def test_a_compiled_module_that_names_mpi4py(image: Path, built: Mapping[str, Path]) -> None:
    put(image, {f"{SITE}/solver.abi3.so": "*mpi"}, built)
    with (image / SITE / "solver.abi3.so").open("ab") as file:
        file.write(b"\0mpi4py.MPI\0")
    found = imports(image, "import solver")
    assert (found.certain, found.possible) == ((f"/{SITE}/solver.abi3.so",), (MPI,))


def test_the_own_folder_hides_packages_and_the_standard_library(image: Path) -> None:
    put(image, {"job/random.py": "from mpi4py import MPI\n", "usr/lib/python3.11/random.py": ""})
    assert imports(image, "import random").certain == (MPI,)
    put(image, {"job/mpi4py.py": ""})
    assert imports(image, "import mpi4py").certain == ()


def test_cycles_and_many_modules(image: Path) -> None:
    many = {f"job/m{n}.py": f"import m{(n + 1) % 3000}\n" for n in range(3000)}
    put(image, {**many, "job/m1500.py": "import m1501, m0\nfrom mpi4py import MPI\n"})
    assert imports(image, "import m0").certain == (MPI,)


def test_star_imports_among_packages_are_followed_once(image: Path) -> None:
    """Each imports all others: a path through them is one of 40 factorial."""
    count = 40
    stars = "".join(f"from p{n} import *\n" for n in range(count))
    put(image, {f"job/p{n}/__init__.py": stars for n in range(count)})
    put(image, {"job/p0/lib.py": "import mpi4py.MPI"})
    assert imports(image, "from p0 import lib").certain == (MPI,)
    put(image, {f"job/p{n}/__init__.py": f"from p{n + 1} import *\n" for n in range(1200)})
    assert imports(image, "from p0 import lib").certain == (MPI,)


@pytest.mark.parametrize(
    "script",
    [
        b"x = " + b"a + " * 900 + b"a",
        b"if a:\n  pass\n" + b"elif a:\n  pass\n" * 900,
        b"a" + b".a()" * 900,
        b"import a" + b".a" * 400_000,
    ],
    ids=range(4),
)
def test_deep_scripts_start_what_stands_above(script: bytes) -> None:
    calls = python_calls(b"import os\nos.system('mpirun x')\n" + script, ())
    assert [call.text for call in calls] == ["mpirun x"] * (b"import a" not in script)


DEEP = "a" + ".a" * 400_000


@pytest.mark.parametrize(
    "script",
    [
        f"with {'a+' * 900}a:\n    from mpi4py import MPI",
        f"import {DEEP}\nfrom mpi4py import MPI",
        f"from {DEEP} import *\nfrom mpi4py import MPI",
        f"from star import *\nfrom mpi4py import MPI\n__all__ = ['{DEEP}']",
    ],
)
def test_long_expressions_and_names_stop_nothing(image: Path, script: str) -> None:
    put(image, {"job/star/__init__.py": f"from {DEEP} import *\n__all__ = ['{DEEP}', 'x']",
                "job/star/x.py": ""})  # fmt: skip
    found = imports(image, script)
    assert (*found.certain, *found.possible) == (MPI,)


@pytest.mark.parametrize(
    "text",
    [
        b"from " + b"." * 300_000,
        b"from " + b" " * 300_000,
        b"from a " + b" " * 300_000,
        b"from a import" + b" " * 300_000,
        b"import" + b" " * 300_000,
        b" " * 300_000,
        b"from a import (\n" * 20_000,
    ],
    ids=range(7),
)
def test_lines_are_skimmed_in_proportion_to_their_length(text: bytes) -> None:
    """A square of this length takes minutes."""
    with no_hang():
        skim_source(text)


def test_links_that_lead_nowhere_and_folders_in_themselves(image: Path) -> None:
    (image / "job").mkdir()
    (image / "job/loop").symlink_to("loop")
    (image / "job/here").symlink_to(".")
    (image / "job/out").symlink_to("/etc")
    found = imports(image, "import loop, out\nimport here.here.here.here.x\nimport mpi4py.MPI")
    assert found.certain == (MPI,)


def test_a_fifo_is_not_waited_for(image: Path) -> None:
    (image / "job").mkdir()
    os.mkfifo(image / "job/pipe.py")
    assert shows(imports(image, "import pipe").unknown[0], "cannot be parsed")


def test_an_archive_on_the_path(image: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("inside/__init__.py", "from . import deep")
        archive.writestr("inside/deep.py", "from mpi4py import MPI")
    put(image, {"opt/a.zip": data.getvalue(), "opt/bad.zip": b"PK\x03\x04 no archive"})
    found = imports(image, "import inside", PYTHONPATH="/opt/bad.zip:/opt/a.zip")
    assert found.certain == (MPI,)


@given(st.text("\n\t :.,()[]'\"#=abfimoprtxy*@", max_size=80))
def test_no_source_stops_a_reader(text: str) -> None:
    read_source(text.encode())
    skim_source(text.encode())


@given(st.binary(max_size=60))
def test_no_bytes_stop_a_reader(data: bytes) -> None:
    read_source(data)
    skim_source(data)


NAMES = ("a", "b", "c", "d")
LINES = st.sampled_from([
    *(f"import {n}" for n in NAMES), *(f"import p.{n}" for n in NAMES),
    *(f"from p import {n}" for n in NAMES), "from p import *", "from . import a",
    "from .b import x",
    *(f"try:\n    import {n}\nexcept ImportError:\n    import p" for n in NAMES),
    *(f"def f():\n    import {n}" for n in NAMES), "from p.q import a", "import p.q.b", "x = 1",
])  # fmt: skip
FILES = (*(f"{n}.py" for n in NAMES), *(f"p/{n}.py" for n in NAMES),
         "p/__init__.py", "p/q/__init__.py", "p/q/a.py", "p/q/b.py")  # fmt: skip
EMPTY: dict[str, str | bytes] = dict.fromkeys(FILES, "x = 1\n")
TREES = st.dictionaries(st.sampled_from(FILES), st.lists(LINES, max_size=3), max_size=8)


@given(TREES, st.lists(LINES, min_size=1, max_size=4))
@example(
    {"p/__init__.py": ["try:\n    import d\nexcept ImportError:\n    d = 1"]}, ["from p import d"]
)
@example({"p/q/__init__.py": ["from p import *"]}, ["import p.a", "from p.q import a"])
@settings(max_examples=20)
def test_a_real_python_imports_what_was_found(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, list[str]], script: list[str]
) -> None:
    """What a script that ends well has imported is what was reached, and all that is certain."""
    top = tmp_path_factory.mktemp("oracle")
    body = "\n".join(script)
    given_files = {name: "\n".join(["x = 1", *lines]) for name, lines in files.items()}
    put(top, {**EMPTY, **given_files, "main.py": body})
    told = "\nimport sys; print(*[n for n, m in sys.modules.items() if DIR in repr(m)])"
    (top / "main.py").write_text(body + told.replace("DIR", repr(f"{top}/")))
    done = subprocess.run(
        [sys.executable, "-S", "-B", "main.py"], cwd=top, capture_output=True, text=True
    )
    host = FolderRoot(Path("/"))
    interpreter = python_of(host, sys.executable, {}, Options(site=False))
    assert interpreter is not None
    entered = EntryPoint("__main__", str(top), body.encode(), str(top / "main.py"))
    follower = python_imports._walked(host, interpreter, [entered], MACHINE)
    ours = {n for n, m in follower.modules.items() if m and m.kind != "namespace"}
    reached = {name: sure for name, sure in follower.reached.items() if name in ours}
    if done.returncode:
        return  # a module that is not there: what was imported until then is not told
    loaded = set(done.stdout.split()) - {"__main__"}
    spaces = {n for n, m in follower.modules.items() if m and m.kind == "namespace"}
    assert loaded - spaces <= set(reached)
    local = {n for n, m in follower.modules.items() if m and str(top) in str(m.files)}
    assert {name for name, sure in reached.items() if sure} & local <= loaded
