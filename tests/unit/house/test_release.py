"""`make dist`: mpigraft.pyz starts anywhere or says why not; archives have the same bytes twice."""

from __future__ import annotations

import io
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from mpigraft import __version__
from mpigraft.cli.common import program
from mpigraft.cli.main import COMMANDS, load
from mpigraft.core.cache import folders
from tests.builders import wheels
from tests.builders.messages import shows
from tools.release import make, manual, sbom

OWN = "mpigraft-0.1.0"
TARGET = f"{sys.version_info[0]}.{sys.version_info[1]}-{os.uname().machine}"
ENTRY = b"""
import os, sys
def main():
    print(os.path.abspath(sys.path[0]), *sys.argv[1:])
    sys.exit(7)
"""
METADATA = "Metadata-Version: 2.4\nName: {}\nVersion: 0.1.0\nLicense-Expression: {}\n"
FILES = {
    "mpigraft/cli/entry.py": ENTRY,
    "mpigraft/cli/__init__.py": b"",
    "mpigraft/__init__.py": b"",
    "mpigraft/same.py": b"",
    f"{OWN}.data/scripts/patchelf": b"#!/bin/sh\n",
    f"{OWN}.dist-info/METADATA": METADATA.format("mpigraft", "Apache-2.0").encode(),
}


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return wheels.make(tmp_path / f"{OWN}-py3-none-any.whl", FILES, top=OWN)


@pytest.fixture
def pyz(tmp_path: Path, wheel: Path) -> Path:
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    make.write_pyz(folder / "mpigraft.pyz", {TARGET: [wheel]})
    return folder / "mpigraft.pyz"


def start(
    pyz: Path, home: Path, *prefix: str, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Start the file; with `before`, after these Python statements."""
    code = f"import sys, runpy; {before}; sys.argv[:] = sys.argv[1:]; runpy.run_path(sys.argv[0])"
    how = ["-c", code] if before else []
    environment = {**os.environ, "MPIGRAFT_HOME": str(home)}
    return subprocess.run(
        [*prefix, sys.executable, *how, pyz, "one word"],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def unpacked(home: Path) -> list[Path]:
    return sorted((home / "cache/pyz").iterdir())


def test_the_file_unpacks_once_and_gives_the_programs_exit_code(pyz: Path, tmp_path: Path) -> None:
    home = tmp_path / "empty home"
    first = start(pyz, home)
    (folder,) = unpacked(home)
    assert (first.returncode, first.stdout) == (7, f"{folder} one word\n"), first.stderr
    assert os.access(folder / "bin/patchelf", os.X_OK)
    assert not os.access(folder / "mpigraft/same.py", os.X_OK)
    (folder / "mpigraft/cli/entry.py").write_text("def main(): print('kept')")
    assert start(pyz, home).stdout == "kept\n"


def test_it_starts_as_a_program_of_its_own(pyz: Path, tmp_path: Path) -> None:
    done = subprocess.run([pyz], env={**os.environ, "MPIGRAFT_HOME": str(tmp_path / "home")})
    assert done.returncode == 7


def test_two_that_unpack_at_once_leave_one_folder(pyz: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    argv: list[str | Path] = [sys.executable, pyz]
    environment = {**os.environ, "MPIGRAFT_HOME": str(home)}
    both = [subprocess.Popen(argv, env=environment, stdout=subprocess.PIPE) for _ in range(4)]
    assert {(one.communicate()[0], one.returncode) for one in both} == {
        (f"{unpacked(home)[0]}\n".encode(), 7)
    }
    assert len(unpacked(home)) == 1


LAZY = b"""
def main():
    print("started", flush=True)
    input()
    from mpigraft import lazy
    print(lazy.VERSION)
"""


def test_an_upgrade_leaves_the_files_of_a_command_that_runs(tmp_path: Path) -> None:
    pyz = tmp_path / "mpigraft.pyz"
    environment = {**os.environ, "MPIGRAFT_HOME": str(tmp_path / "home")}
    running = []
    for version in ("old", "new"):
        files = {
            **FILES,
            "mpigraft/cli/entry.py": LAZY,
            "mpigraft/lazy.py": f"VERSION = '{version}'".encode(),
        }
        wheel = wheels.make(tmp_path / f"{OWN}-py3-none-any.whl", files, top=OWN)
        make.write_pyz(tmp_path / version, {TARGET: [wheel]})
        (tmp_path / version).replace(pyz)
        job = subprocess.Popen(
            [sys.executable, pyz],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert job.stdout is not None
        assert job.stdout.readline() == "started\n"
        running.append(job)
    assert [job.communicate("\n")[0].strip() for job in running] == ["old", "new"]
    assert len(unpacked(tmp_path / "home")) == 2


def test_what_a_killed_process_left_is_removed_when_it_is_old(pyz: Path, tmp_path: Path) -> None:
    old, new = (tmp_path / f"cache/pyz/.{name}.part" for name in ("old", "new"))
    for part in (old, new):
        part.mkdir(parents=True)
    os.utime(old, (0, 0))
    assert start(pyz, tmp_path).returncode == 7
    assert (old.exists(), new.exists()) == (False, True)


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("sys.version_info = (3, 6, 8)", "mpigraft needs Python 3.11 or newer, and this is 3.6:"),
        ("sys.version_info = (3, 10)", "then type, for example, python3.11 "),
        ("sys.version_info = (3, 99)", "has no compiled packages for cpython399-"),
        ("sys.implementation.name = 'pypy'", f"start it with one of: {make.tag_of(TARGET)};"),
        ("import os; os.confstr = lambda _: 'glibc 2.17'", "need glibc 2.28 or newer"),
        ("import os; os.confstr = lambda _: None", "need glibc 2.28 or newer"),
    ],
)
def test_what_cannot_start_it_is_named(pyz: Path, tmp_path: Path, before: str, words: str) -> None:
    done = start(pyz, tmp_path / "home", before=before)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_an_older_python_gets_one_sentence(pyz: Path, tmp_path: Path) -> None:
    done = start(pyz, tmp_path, before="sys.version_info = (2, 7, 18)")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("minor", [3, 6, 10])
def test_older_pythons_can_read_the_start(minor: int) -> None:
    import ast

    ast.parse((make.HERE / "boot.py").read_text(), feature_version=(3, minor))


def test_a_home_that_cannot_be_written_is_named(pyz: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = start(pyz, tmp_path / "file")
    assert done.returncode == 3
    assert shows(done.stderr, "Not a directory", "MPIGRAFT_HOME")


@pytest.mark.root
@pytest.mark.parametrize(
    ("options", "words"), [("noexec", "mounted noexec"), ("ro", "Read-only file system")]
)
def test_a_mount_of_no_use_is_named(pyz: Path, tmp_path: Path, options: str, words: str) -> None:
    (tmp_path / "home").mkdir()
    mounted = f'mount -t tmpfs -o {options} none {shlex.quote(f"{tmp_path}/home")}; exec "$@"'
    done = start(pyz, tmp_path / "home", "unshare", "-m", "sh", "-c", mounted, "sh")
    assert done.returncode == 3, done
    assert shows(done.stderr, words, "MPIGRAFT_HOME")


def test_a_folder_that_lost_files_is_named(pyz: Path, tmp_path: Path) -> None:
    start(pyz, tmp_path)
    (unpacked(tmp_path)[0] / "bin/patchelf").unlink()
    done = start(pyz, tmp_path)
    assert done.returncode == 3
    assert shows(done.stderr, unpacked(tmp_path)[0], "not whole", "remove it")


@pytest.mark.parametrize(
    "variables",
    [
        {"MPIGRAFT_HOME": "/a"},
        {"MPIGRAFT_HOME": "a", "XDG_CACHE_HOME": "/b"},
        {"XDG_CACHE_HOME": "/b"},
        {"XDG_CACHE_HOME": "b"},
        {},
    ],
)
def test_it_uses_the_cache_folder_of_mpigraft(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    monkeypatch.setitem(sys.modules, "contents", type(sys)("contents"))
    sys.modules["contents"].__dict__.update(DIGESTS={}, GLIBC=(2, 28))
    from tools.release import unpack

    for name in ("MPIGRAFT_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert unpack.cache_folder() == str(folders().cache)


@pytest.mark.parametrize(
    ("started", "words"),
    [
        ("bin/mpigraft", ["{folder}/bin/mpigraft"]),
        ("mpigraft.pyz", [sys.executable, "{folder}/mpigraft.pyz"]),
        ("main.py", [sys.executable, "-m", "mpigraft.cli.main"]),
    ],
)
def test_jobs_start_mpigraft_as_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, words: list[str]
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mpigraft").touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [started])
    assert program() == tuple(word.format(folder=tmp_path) for word in words)


# ------------------------------------------------------------------ archives


def test_archives_have_the_same_bytes_at_another_time_and_umask(
    tmp_path: Path, wheel: Path
) -> None:
    made = []
    for umask in (0o022, 0o077):
        folder = tmp_path / str(umask)
        previous = os.umask(umask)
        try:
            folder.mkdir()
            os.utime(wheel, (umask, umask))
            wheel.chmod(0o644 & ~umask)
            make.write_tar(folder / "a.tar", [make.normalise(wheel, folder)])
            make.write_pyz(folder / "a.pyz", {TARGET: [wheel]})
        finally:
            os.umask(previous)
        made.append([path.read_bytes() for path in sorted(folder.iterdir())])
    assert made[0] == made[1]
    with tarfile.open(tmp_path / "18" / "a.tar") as archive:
        (entry,) = archive.getmembers()
    assert (entry.name, entry.mtime, entry.uid, entry.uname) == (
        f"a/{wheel.name}", 1700000000, 0, "",
    )  # fmt: skip


def test_what_two_pythons_share_is_kept_once(tmp_path: Path, wheel: Path) -> None:
    inner, digests = make.payload({"3.12-x86_64": [wheel], "3.13-aarch64": [wheel]})
    assert len(digests) == 2
    names = zipfile.ZipFile(io.BytesIO(inner)).namelist()
    assert len(names) == len(set(names))
    assert len(names) == 2 + len({*FILES.values()}) + 1  # and the wheel's RECORD


@pytest.mark.parametrize(
    ("python", "has", "lacks"),
    [
        ("3.11", ["numpy==2.4", "backports"], ["numpy==2.5"]),
        ("3.12", ["numpy==2.5", "backports"], ["numpy==2.4"]),
        ("3.14", ["numpy==2.5"], ["backports"]),
    ],
)
def test_requirements_are_those_of_the_python(
    python: str, has: list[str], lacks: list[str]
) -> None:
    text = make.REQUIREMENTS.read_text()
    lines = list(make.requirement_lines(text, python, "aarch64"))
    assert all("--hash=" in line for line in lines)
    assert not any(line.startswith("colorama") for line in lines)
    found = "\n".join(lines)
    assert [word for word in has if word not in found] == []
    assert [word for word in lacks if word in found] == []


@pytest.mark.parametrize("name", make.TEMPLATES)
def test_templates_are_filled(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.tar").write_bytes(b"")
    make.write_templates(tmp_path, tmp_path / "a.tar")
    text = (tmp_path / name.replace("mpigraft.", f"mpigraft-{__version__}.")).read_text()
    assert __version__ in text
    assert "@" not in text.replace('"$@"', "")
    with pytest.raises(KeyError, match="NOT_KNOWN"):
        make.fill("@NOT_KNOWN@", {})


def test_the_manual_has_a_page_for_each_command(tmp_path: Path) -> None:
    make.write_share(tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, filter="data")
    pages = {name: tmp_path / f"share/man/man1/mpigraft-{name}.1" for name in COMMANDS}
    assert len(names) == len(pages) + 2
    app: Any = get_command(load(COMMANDS))
    for name, page in pages.items():
        text = page.read_text().replace("\\-", "-")
        options = [one for one in app.commands[name].params if one.param_type_name == "option"]
        assert [word for one in options for word in one.opts if word not in text] == []
    first = (tmp_path / "a.tar").read_bytes()
    make.write_share(tmp_path / "a.tar")
    assert (tmp_path / "a.tar").read_bytes() == first


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_groff_reads_every_page_without_a_warning(tmp_path: Path) -> None:
    for name, text in manual.share().items():
        if name.endswith(".1"):
            argv = ["groff", "-man", "-Tutf8", "-ww", "-z"]
            done = subprocess.run(argv, input=text, capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), name


@pytest.mark.parametrize(
    ("text", "safe"), [(".so a", "\\&.so a"), ("a\n'b", "a\n\\&'b"), ("\\c -d", "\\ec \\-d")]
)
def test_groff_takes_no_text_for_a_request(text: str, safe: str) -> None:
    assert manual._escaped(text) == safe


# ------------------------------------------------------------------ the bill of materials


@pytest.mark.parametrize(
    ("lines", "expression"),
    [
        ("License-Expression: MIT AND 0BSD", "MIT AND 0BSD"),
        ("License: GPL-3.0-or-later", "GPL-3.0-or-later"),
        ("License: ISC License\nClassifier: License :: OSI Approved :: ISC License (ISCL)", "ISC"),
        ("Classifier: License :: OSI Approved :: MIT License", "MIT"),
        ("License: as you like", ""),
        ("Name: a", ""),
    ],
)
def test_licences_are_those_that_wheels_state(lines: str, expression: str) -> None:
    message: Message = Parser().parsestr(f"{lines}\n\n")
    assert sbom.licence(message) == expression


def test_the_bill_lists_files_and_what_they_carry(wheel: Path) -> None:
    bill = sbom.bill([wheel], 1700000000)
    own = bill["metadata"]["component"]
    assert own["licenses"] == [{"expression": "Apache-2.0"}]
    assert own["components"][0]["name"] == wheel.name
    assert {*sbom.CARRIED["mpigraft"]} <= {c["name"] for c in own["components"]}
    assert bill["dependencies"] == [{"ref": own["purl"], "dependsOn": []}]
    assert bill == json.loads(json.dumps(sbom.bill([wheel], 1700000000)))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a-1.dist-info/METADATA": METADATA.format("a", "None").encode()}, "states no licence"),
        (
            {
                "a.libs/b.so": b"",
                "a-1.dist-info/METADATA": METADATA.format("a", "MIT").encode(),
            },
            "carries libraries",
        ),
    ],
)
def test_what_nobody_lists_ends_the_make(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    made = wheels.make(tmp_path / "a-1-py3-none-any.whl", files, top="a-1")
    with pytest.raises(SystemExit, match=words):
        sbom.bill([made], 0)
