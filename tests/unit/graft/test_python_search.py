"""Where a Python of an image looks for modules, and what its command line names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.binary.image.bound import BoundRoot
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.graft.guest.python_search import Finder, Options, python_of
from mpigraft.graft.guest.python_words import entry_points, parse_words
from tests.builders.python_installs import MACHINE, SITE, TAG, parts, put, python, tree


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return parts(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def image(tmp_path: Path, built: Mapping[str, Path]) -> Path:
    return tree(tmp_path / "image", built)


OWN = "/usr/lib/python3.11"


def test_a_python_of_a_distribution(image: Path) -> None:
    found = python(image)
    assert found.version == "3.11"
    assert found.path == (OWN, f"/{SITE}")
    assert found.sites == (f"/{SITE}",)


def test_debians_own(image: Path) -> None:
    put(image, {"usr/lib/python3.11/site.py": "dist-packages",
                "usr/lib/python3/dist-packages/x.py": "",
                "usr/local/lib/python3.11/dist-packages/y.py": ""})  # fmt: skip
    own = ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages")
    assert python(image).sites == own


def test_a_python_of_its_own_prefix_has_not_the_distributions_packages(
    image: Path, built: Mapping[str, Path]
) -> None:
    """As in the `python` images of registries, which are Debian below."""
    site = "usr/local/lib/python3.12/site-packages"
    put(image, {"usr/local/bin/python3.12": "*program", "usr/local/lib/python3.12/os.py": "",
                "usr/lib/python3/dist-packages/x.py": "", f"{site}/y.py": ""}, built)  # fmt: skip
    found = python(image, "/usr/local/bin/python3.12")
    assert found.version == "3.12"
    assert found.sites == (f"/{site}",)


def test_a_conda_prefix_whose_program_has_no_number(image: Path, built: Mapping[str, Path]) -> None:
    site = "opt/conda/lib/python3.10/site-packages"
    put(image, {"opt/conda/bin/python": "*program", "opt/conda/lib/python3.10/os.py": "",
                f"{site}/y.py": ""}, built)  # fmt: skip
    found = python(image, "/opt/conda/bin/python")
    assert found.sites == (f"/{site}",)


@pytest.mark.parametrize("system", ["true", "false"])
def test_a_virtual_environment(image: Path, system: str) -> None:
    text = f"home = /usr/bin\ninclude-system-site-packages = {system}\nversion = 3.11.2\n"
    put(image, {"venv/pyvenv.cfg": text, "venv/lib/python3.11/site-packages/a.py": ""})
    (image / "venv/bin").mkdir()
    (image / "venv/bin/python").symlink_to("/usr/bin/python3.11")
    own = "/venv/lib/python3.11/site-packages"
    due = (own, f"/{SITE}") if system == "true" else (own,)
    assert python(image, "/venv/bin/python").sites == due


def test_paths_of_pth_files(image: Path) -> None:
    put(image, {
        f"{SITE}/a.pth": "# a word\n\n/opt/more\nbeside\n/nowhere\nimport sys; sys.x = 1\n",
        f"{SITE}/__editable__.own-1.pth": "import __editable___own_1_finder; x.install()",
        f"{SITE}/__editable___own_1_finder.py": "MAPPING: dict[str, str] = {'own': '/src/own'}\n",
        f"{SITE}/beside/x.py": "", "opt/more/y.py": "", "src/own/__init__.py": "",
    })  # fmt: skip
    found = python(image)
    assert found.path[-3:] == (f"/{SITE}", "/opt/more", f"/{SITE}/beside")
    assert found.hooks == (f"/{SITE}/a.pth",)
    assert found.mapped == (("own", "/src/own"),)


def test_what_the_environment_and_options_change(image: Path) -> None:
    put(image, {"opt/p/x.py": "", "srv/u/.local/lib/python3.11/site-packages/y.py": ""})
    env = {"PYTHONPATH": "/opt/p:/nowhere:rel", "HOME": "/srv/u"}
    user = "/srv/u/.local/lib/python3.11/site-packages"
    assert python(image, environment=env).path == ("/opt/p", OWN, user, f"/{SITE}")
    bare = python(image, options=Options(environment=False, user=False), environment=env)
    assert bare.path == (OWN, f"/{SITE}")
    assert python(image, options=Options(site=False)).path == (OWN,)
    unused = {**env, "PYTHONNOUSERSITE": "1"}
    assert user not in python(image, environment=unused).path


def test_what_is_no_python(image: Path) -> None:
    root = FolderRoot(image)
    for name in ("/usr/bin/env", "/usr/bin/none", "/usr/bin"):
        assert python_of(root, name, {}, Options()) is None
    (image / "usr/lib/python3.11/os.py").unlink()
    assert python_of(root, "/usr/bin/python3", {}, Options()) is None


def test_a_real_interpreter_has_the_same_path(tmp_path: Path) -> None:
    code = "import sys, json; print(json.dumps(sys.path))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, env={"HOME": str(tmp_path)}
    )
    real = [p for p in json.loads(done.stdout) if p and Path(p).exists()]
    found = python_of(FolderRoot(Path("/")), sys.executable, {"HOME": str(tmp_path)}, Options())
    assert found is not None
    hooked = [p for p in real if "__editable__" not in p]
    assert [str(Path(p).resolve()) for p in hooked] == list(found.path)


def test_which_file_a_module_is(image: Path, built: Mapping[str, Path]) -> None:
    put(image, {
        f"m/both.{TAG}": "*plain", "m/both.abi3.so": "*plain", "m/both.py": "", "m/pack.py": "",
        "m/pack/__init__.py": "", "m/space/x.py": "", "n/space/y.py": "", "m/old.pyc": b"",
        f"m/ab.mpich.{TAG}": "*mpi", f"m/ab.openmpi.{TAG}": "*mpi", "m/alien.cpython-27-x.so": "",
    }, built)  # fmt: skip
    finder = Finder(FolderRoot(image), "3.11", MACHINE)

    def of(name: str, path: tuple[str, ...] = ("/m", "/n")) -> tuple[str, tuple[str, ...]]:
        found = finder.find(name, path)
        return (found.kind, found.files or found.folders) if found else ("", ())

    assert of("both") == ("extension", (f"/m/both.{TAG}",))
    assert of("pack") == ("source", ("/m/pack/__init__.py",))
    assert of("space") == ("namespace", ("/m/space", "/n/space"))
    assert of("old") == ("other", ("/m/old.pyc",))
    assert of("ab") == ("extension", (f"/m/ab.mpich.{TAG}", f"/m/ab.openmpi.{TAG}"))
    assert of("alien") == ("", ())


@pytest.mark.parametrize(
    ("words", "kind", "value", "safe"),
    [
        ("script.py -m x", "script", "script.py", False),
        ("-u -B script.py", "script", "script.py", False),
        ("-uB -W ignore -Xdev script.py", "script", "script.py", False),
        ("-um mpi4py x.py", "module", "mpi4py", False),
        ("-mmpi4py.futures", "module", "mpi4py.futures", False),
        ("-Ic pass", "code", "pass", True),
        ("-- script.py", "script", "script.py", False),
        ("--check-hash-based-pycs always a.py", "script", "a.py", False),
        ("-", "", "", False),
        ("-i", "", "", False),
    ],
)
def test_words_of_a_command_line(words: str, kind: str, value: str, safe: bool) -> None:
    line = parse_words(words.split())
    assert (line.kind, line.value, line.safe) == (kind, value, safe)


def test_what_a_runner_is_to_run(image: Path) -> None:
    put(image, {"job/a.py": "x", "job/lib/real.py": "y"})
    (image / "job/link.py").symlink_to("lib/real.py")
    root = FolderRoot(image)

    def of(words: str) -> list[tuple[str, str, str]]:
        found, _ = entry_points(root, parse_words(words.split()), "/job")
        return [(one.name, one.folder, one.file) for one in found]

    script = ("__main__", "/job", "/job/a.py")
    assert of("-m mpi4py a.py") == [("mpi4py", "/job", ""), script]
    assert of("-m mpi4py -rc x=1 -m mod") == [("mpi4py", "/job", ""), ("mod", "/job", "")]
    assert of("-m coverage run a.py")[-1] == script
    assert of("link.py") == [("__main__", "/job/lib", "/job/lib/real.py")]
    assert of("-P a.py") == [("__main__", "", "/job/a.py")]
    assert of("lib") == [("__main__", "/job/lib", "")]
    assert of("none.py") == []


def test_folders_of_this_host_in_an_image(image: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    put(mine, {"a/b.py": "mine", "usr.py": "1"})
    (mine / "out").symlink_to("/usr/bin/env")
    put(image, {"deep/down/b.py": "theirs", "deep/down/c.py": "theirs"})
    root = BoundRoot(
        FolderRoot(image), {"/deep/down": mine, "/new/place": mine, "/x": tmp_path / "no"}
    )
    assert root.read("/deep/down/a/b.py", 9) == b"mine"
    assert root.find("/deep/down/c.py") is None
    assert root.names("/deep/down") == ("a", "out", "usr.py")
    entry = root.find("/new/place/a/b.py")
    assert entry is not None
    assert (entry.path, entry.source) == ("/new/place/a/b.py", mine / "a/b.py")
    assert "new" in root.names("/")
    assert root.find("/x") is None
    linked = root.find("/new/place/out")
    assert linked is not None
    assert linked.path == "/usr/bin/env"  # as in a container: the image's
    assert root.elf("/new/place/out").machine == MACHINE
