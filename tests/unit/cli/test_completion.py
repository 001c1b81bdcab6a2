"""A shell completes commands, options and values, in a real bash; nothing it asks is loud."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.cli import complete
from mpigraft.cli.main import COMMANDS
from mpigraft.core import cache
from mpigraft.native import benchmarks
from tests.builders.commands import Run
from tests.builders.messages import matches
from tests.builders.overtime import campaign, keep

BREAKS = " \t\n\"'@><=;|&(:"  # bash's own
PROMPT = "ready> "
Found = Callable[[str], list[str]]


@pytest.fixture
def found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Found:
    """The answer to a line: the candidates for the shell's own word."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(complete.BREAKS, BREAKS)

    def answer(line: str) -> list[str]:
        monkeypatch.setenv(complete.VARIABLE, line)
        complete.answer()
        return capsys.readouterr().out.split()

    return answer


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("mpigraft ", {*COMMANDS}),
        ("mpigraft be", {"bench"}),
        ("mpigraft --store /x be", {"bench"}),
        ("mpigraft bench --trans", {"--transport"}),
        ("mpigraft results show --js", {"--json"}),
        ("mpigraft results s", {"show"}),
        ("mpigraft bench --transport ofi-l", {"ofi-lnx"}),
        ("mpigraft bench --transport=ofi-l", {"ofi-lnx"}),
        ("mpigraft bench --benchmark ", {*benchmarks(), "osu:latency", "mini:dirac"}),
        ("mpigraft bench --benchmark latency,osu:allgatherv", {"allgatherv"}),
        ("mpigraft bench --transport ob1-sm,ofi-l", {"ob1-sm,ofi-lnx"}),
        ("mpigraft bench --layout 1x2,2x1:n", {"numa", "node"}),
        ("mpigraft bench --layout 2x1:n", {"numa", "node"}),
        ("mpigraft run --engine b", {"bwrap"}),
        ("mpigraft run --env FI_PRO", {"FI_PROVIDER="}),
        ("mpigraft run --bind-to s", {"socket"}),
        ("mpigraft run --launcher o", {"own", "orte"}),
        ("mpigraft check --mpi in", {"intel"}),
        ("mpigraft get ", {"openmpi", "mpich", "intel"}),
        ("mpigraft case grom", {"gromacs"}),
        ("mpigraft completion ", {"bash", "zsh", "fish"}),
        ("mpigraft build ", {"openmpi", "mpich"}),
        ("mpigraft build openmpi --with libf", {"libfabric"}),
        ("mpigraft build openmpi --compiler ll", {"llvm"}),
        ("mpigraft build openmpi --use cu", {"cuda="}),
        ("mpigraft build openmpi --as ", {"easyconfigs", "spack"}),
        ("mpigraft plan --as c", {"command", "cdi"}),
        ("mpigraft inject x --as t", {"text", "tcl"}),
        ("mpigraft compare --fail-on s", {"slower", "slower-cell"}),
        ("mpigraft export --format ", {"csv", "json", "parquet"}),
        ("mpigraft bench --guest n", {"native"}),
        ("mpigraft run --stdin a", {"all"}),
        ("mpigraft bench --map-by numa,s", {"numa,socket"}),
        ("mpigraft layout 2x8 --bind-to s", {"socket"}),
        ("mpigraft inject x --replace u", {"ucx"}),
        ("mpigraft run --replace n", {"nothing"}),
        ("mpigraft --store results ben", {"bench"}),
        ("mpigraft --store bench results ", {"list", "show"}),
    ],
)
def test_values_of_every_kind_complete(found: Found, line: str, some: set[str]) -> None:
    answered = found(line)
    assert some <= {*answered}
    assert found(line) == answered  # from the cache


@pytest.mark.parametrize(
    "line",
    ["mpigraft run -- be", "mpigraft nosuch --x", "mpigraft bench --name n", "mpigraft 'zz",
     "mpigraft compare --store /dev/null x", "mpigraft bench --minutes ",
     "mpigraft plan --replace n"],
)  # fmt: skip
def test_nothing_is_said_where_nothing_is_known(found: Found, line: str) -> None:
    assert found(line) == []


def test_settings_of_the_site_complete(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site.toml").write_text('[setting.big]\nenv = ["A=1"]\n')
    monkeypatch.setenv("MPIGRAFT_SITE", str(tmp_path / "site.toml"))
    assert found("mpigraft run --setting b") == ["big"]


def test_campaigns_and_mpis_of_this_user_complete(found: Found, tmp_path: Path) -> None:
    from mpigraft.store import Store

    store = Store(tmp_path / "store")
    keep(store, campaign(1, rounds=6, name="night"))
    one = store.campaigns()[0]
    for command in ("compare", "diagnose", "report", "results show", "status", "history --accept",
                    "bundle --with"):  # fmt: skip
        assert found(f"mpigraft --store {store.folder} {command} ") == ["night", one.id[:8]]
    ids = [made.id for made in store.configurations(one.id)]
    for command in ("compare", "report night", f"compare {one.id[:8]}"):
        assert found(f"mpigraft --store {store.folder} {command} --baseline=") == ids
    assert {*ids, "openmpi"} <= {*found(f"mpigraft --store {store.folder} bench --baseline=")}
    cache.put("mpis", os.uname().nodename, ["openmpi@5.0.7"])
    assert found("mpigraft bench --mpi openmpi@5") == ["@5.0.7"]


@pytest.mark.parametrize("variables", [{"MPIGRAFT_HOME": "/dev/null"}, {"HOME": "", "LANG": "C"}])
def test_an_answer_is_never_loud(variables: dict[str, str]) -> None:
    for line in ("mpigraft compare ", "mpigraft bench --mpi ", "mpigraft run --env F"):
        done = subprocess.run(
            [sys.executable, "-m", "mpigraft"],
            env={**os.environ, **variables, complete.VARIABLE: line},
            capture_output=True,
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_values_need_no_heavy_import() -> None:
    code = "from mpigraft.cli.complete import answer; import sys; answer(); print(*sys.modules)"
    for line in ("mpigraft bench --layout ", "mpigraft bench --transport o"):
        environ = {**os.environ, complete.VARIABLE: line}
        done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True)
        loaded = {*done.stdout.decode().splitlines()[-1].split()}
        assert not {"rich", "numpy", "sqlite3", "mpigraft.discovery.inventory"} & loaded


def test_an_unknown_shell_is_named(run: Run) -> None:
    ended = run("completion", "bsh")
    assert ended.code == 2
    assert matches(ended.err, "word-unknown")
    assert run("completion", "bash").out == complete.BASH


# ------------------------------------------------------------------ a real shell


class Bash:
    """A bash on a terminal of its own, with mpigraft's completion."""

    def __init__(self, folder: Path) -> None:
        program = folder / "mpigraft"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mpigraft "$@"\n')
        program.chmod(0o755)
        environ = {
            **os.environ, "PS1": PROMPT, "TERM": "dumb", "COLUMNS": "200",
            "MPIGRAFT_HOME": str(folder / "home"), "PATH": f"{folder}:{os.environ['PATH']}",
        }  # fmt: skip
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], environ)
        self.until(PROMPT)

    def until(self, text: str) -> str:
        """What it prints until a text comes."""
        printed, end = "", time.monotonic() + 60
        while text not in printed:
            assert time.monotonic() < end, printed
            if select.select([self.terminal], [], [], 1)[0]:
                printed += os.read(self.terminal, 65536).decode()
        return printed

    def type(self, words: str) -> list[str]:
        """The words of a line after a tab, which printf then prints between brackets."""
        os.write(self.terminal, f"{words}\t".encode())
        time.sleep(0.2)
        os.write(self.terminal, b"\x01printf '[%s]' \x05 end\n")
        printed = self.until("[end]").rpartition("[mpigraft]")[2].partition("[end]")[0]
        return re.findall(r"\[(.*?)\]", printed)

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish")
def test_a_real_fish_completes(tmp_path: Path) -> None:
    """As it asks for what it would show behind a tab."""
    program = tmp_path / "mpigraft"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m mpigraft "$@"\n')
    program.chmod(0o755)
    environ = {**os.environ, "HOME": str(tmp_path), "MPIGRAFT_HOME": str(tmp_path / "home"),
               "PATH": f"{tmp_path}:{os.environ['PATH']}"}  # fmt: skip
    (tmp_path / "a file").touch()
    for typed, words in {
        "mpigraft benc": ["bench"], "mpigraft build openm": ["openmpi"],
        "mpigraft bench --transport ob1-t": ["ob1-tcp"], "~/mpigraft benc": ["bench"],
        "mpigraft bench --transport=ob1-t": ["--transport=ob1-tcp"],
        "mpigraft report --figure-width ": ["column", "page"],  # and no file
        "mpigraft report -o a\\ f": ["a file"], "mpigraft run -- ./a\\ f": ["./a file"],
    }.items():  # fmt: skip
        code = f"mpigraft completion fish | source; complete -C '{typed}'"
        done = subprocess.run(["fish", "-c", code], env=environ, cwd=tmp_path,
                              capture_output=True, text=True)  # fmt: skip
        assert done.stdout.splitlines() == words, done.stderr


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_a_real_bash_completes(tmp_path: Path) -> None:
    bash = Bash(tmp_path)
    try:
        os.write(bash.terminal, b"source <(mpigraft completion bash)\n")
        bash.until(PROMPT)
        cache_of = {**os.environ, "MPIGRAFT_HOME": str(tmp_path / "home")}
        code = (
            "import os; from mpigraft.core import cache; cache.put('mpis', os.uname()[1], ['m@1'])"
        )
        subprocess.run([sys.executable, "-c", code], env=cache_of, check=True)
        for typed, words in {
            "benc": "bench",
            "bench --transport ob1-t": "bench --transport ob1-tcp",
            "bench --mpi m@": "bench --mpi m@1",
            "bench --benchmark latency,osu:allgatherv": "bench --benchmark latency,osu:allgatherv",
            "layout 1x2:l3": "layout 1x2:l3cache",
            "run --env FI_TCP": "run --env FI_TCP_IFACE=",
        }.items():
            assert bash.type(f"mpigraft {typed}") == words.split()
    finally:
        bash.close()
