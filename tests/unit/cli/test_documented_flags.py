"""Every command line in the documentation uses commands and flags that exist, and every code block
is run by a test or says why it is not."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from mpigraft.cli.main import COMMANDS, load
from mpigraft.core.model import SubmissionRecord
from mpigraft.knowledge import read_rows
from mpigraft.knowledge.transports.fabrics import Fabric
from mpigraft.request.site import read_site
from mpigraft.request.spec import read_spec
from mpigraft.store import Store
from tests.builders.code_blocks import MARK, PAGES, ROOT, Block, blocks
from tests.builders.commands import Run
from tests.builders.overtime import campaign, identity, keep
from tools import document_transports

APP = get_command(load(COMMANDS))
NAMES = ("before", "after", "night", "later")


def flags_of(command: object) -> set[str]:
    """Every spelling of a command's options, and of those of its subcommands."""
    found = {"--help"}
    for parameter in getattr(command, "params", ()):
        found.update((*parameter.opts, *parameter.secondary_opts))
    for below in getattr(command, "commands", {}).values():
        found |= flags_of(below)
    return found


KNOWN = {name: flags_of(command) for name, command in APP.commands.items()}  # type: ignore[attr-defined]


def unknown_flags(text: str) -> Iterator[str]:
    """Flags behind `mpigraft COMMAND`, up to a comment or the program, that it does not have."""
    joined = text.replace("\\\n", " ")
    for command, words in re.findall(r"mpigraft ([a-z]+)([^`|#\n]*)", joined):
        for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", words.split(" -- ")[0]):
            if flag not in KNOWN.get(command, {flag}):
                yield f"{command} {flag}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_documented_flags_exist(page: Path) -> None:
    assert not list(unknown_flags(page.read_text(encoding="utf-8")))


def test_unknown_flag_is_noticed() -> None:
    assert KNOWN.keys() == COMMANDS.keys()
    line = "mpigraft run --image a.sif --sett A=1 \\\n    --explain -- app --sett\nmpigraft get --x"
    assert list(unknown_flags(line)) == ["run --sett", "get --x"]


@pytest.mark.parametrize("name", APP.commands)  # type: ignore[attr-defined]
def test_a_flag_is_not_taken_for_the_default_of_another(name: str) -> None:
    """`--except` stood where help shows a default, and the option was called `--exceptions`."""
    for parameter in APP.commands[name].params:  # type: ignore[attr-defined]
        assert not str(getattr(parameter, "show_default", "")).startswith("-"), parameter.opts


# ------------------------------------------------------------------ code blocks

WRITTEN = "transports.md"  # by tools/document_transports.py, each block from a row

FILES = {
    "OFI": "archer2/OFI", "UCX": "archer2/UCX", "results": "archer2",
    "cray/latency.txt": "olivia/2026-cray-mpich-9.1.0.latency.txt",
    "eessi/latency.txt": "olivia/2026-eessi-2025.06-openmpi-5.0.3.latency.txt",
    "vendor.txt": "olivia/2025-cray-mpich-8.1.32.latency.txt",
    "mine.txt": "olivia/2025-eessi-2023.06-openmpi-4.1.6.latency.txt",
    "perflogs/eessi.log": "reframe/eessi.log", "app.8.253.1.mpiP": "profiles/driver.mpiP",
    "slurm-4711.out": "profiles/craypat_lite.txt",
}  # fmt: skip


BLOCKS = [block for page in PAGES for block in blocks(page)]
HERE = [block for block in BLOCKS if not block.mark and block.page.name != WRITTEN]


def test_each_code_block_is_run_or_says_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    """A block without a mark is run by the next test; the test of a mark reads its page's block,
    or runs its commands."""
    marks = [mark for block in BLOCKS if (mark := MARK.fullmatch(block.mark))]
    assert len(marks) == sum(bool(block.mark) for block in BLOCKS)
    tests = {name for mark in marks for name in re.findall(r"tests/\S+\.py", mark[0])}
    assert not [test for test in tests if not (ROOT / test).is_file()]
    assert document_transports.page() == document_transports.PAGE.read_text(encoding="utf-8")
    others = sum(bool(mark["test"]) for mark in marks)
    rows, why = sum(block.page.name == WRITTEN for block in BLOCKS), len(marks) - others
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(BLOCKS)} code blocks: {len(HERE)} run here, {others} by other tests, {rows} "
            f"written from rows, {why} with a reason why not\n"
        )
    assert len(HERE) >= 8


def read_file(text: str, folder: Path) -> object:
    """Read a TOML file of a page as what it is: rows of fabrics, a site's profile, a campaign."""
    path = folder / "file.toml"
    path.write_text(text)
    if text.startswith("[[fabric]]"):
        return read_rows(Fabric, "fabric", tomllib.loads(text), path.name)
    return read_site({"MPIGRAFT_SITE": str(path)}) if "[run]" in text else read_spec(path)


def expanded(word: str) -> list[str]:
    """The files that a shell makes of a word."""
    return sorted(map(str, Path().glob(word))) if "*" in word else [word]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = Store(tmp_path_factory.mktemp("nights"))
    keep(store, *(campaign(n, rounds=6, name=name) for n, name in enumerate(NAMES, 1)))
    with store.writer() as writer:
        when = "2026-11-20T00:00:00+00:00"
        writer.add_submission(SubmissionRecord("5" * 32, "night", when, "slurm", "{}", 1, 60, 1))
    return store.folder


@pytest.mark.parametrize("block", HERE, ids=lambda b: f"{b.page.name}:{b.line}")
def test_a_block_without_a_mark_runs(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nights: Path, block: Block
) -> None:
    """On a store of a few nights, of which one begins with the id that the pages have, beside
    files of the names that the pages have."""
    monkeypatch.chdir(tmp_path)
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / "tests/data" / data)
    if block.text.startswith("```toml"):
        assert read_file("\n".join(block.text.splitlines()[1:-1]), tmp_path)
        return
    shutil.copytree(nights, tmp_path / "store")
    for line in filter(None, block.text.replace("\\\n", " ").splitlines()):
        command, _, filters = line.partition("#")[0].partition("|")
        words, target = shlex.split(command.partition(" > ")[0]), command.partition(" > ")[2]
        assert words[0] == "mpigraft", line
        files = [one for word in words[1:] for one in expanded(word)]
        ended = run(*(identity(3) if word == "1f2e3d4c" else word for word in files))
        assert ended.code == 0, ended.err
        if target:
            Path(target.strip()).write_text(ended.out)
        elif filters and shutil.which("jq"):
            done = subprocess.run(shlex.split(filters), input=ended.out, text=True, check=True)
            assert done.returncode == 0
