"""An MPI as two sets of modules bring it: one libmpi, two configurations, by real Lmod."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.discovery import modules
from mpigraft.discovery.sources.candidate import Host
from tests.unit.discovery.test_modules import LMOD, needs_lmod

pytestmark = [pytest.mark.mpi, needs_lmod]
VARIABLE = "MPIR_CVAR_CH4_NUM_VCIS"  # 1 by default
APART = "MPIR_CVAR_ODD_EVEN_CLIQUES"  # two ranks of a node take each other for two nodes
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def bench(fresh_home: Path, tmp_path: Path):  # type: ignore[no-untyped-def]
    """`mpigraft WORDS` where `module` knows MPICH plain, tuned, and a setting that is loaded."""
    mpich = next((fresh_home / "mpi").glob("mpich-5*"))
    files = {
        "plain": f'prepend_path("PATH", "{mpich}/bin")\n',
        "tuned": f'prepend_path("PATH", "{mpich}/bin")\nsetenv("{VARIABLE}", "1")\n',
        "odd": f'prepend_path("PATH", "{mpich}/bin")\nsetenv("{APART}", "1")\n',
        "site": 'setenv("MPIR_CVAR_SITE_SAYS", "slow")\n',
    }
    (tmp_path / "modulefiles").mkdir()
    for name, text in files.items():
        (tmp_path / "modulefiles" / f"{name}.lua").write_text(text)
    environ = os.environ | {
        "PATH": "/usr/bin:/bin",
        "MODULEPATH": str(tmp_path / "modulefiles"),
        "LMOD_CMD": str(LMOD),
        "MPIGRAFT_STORE": str(tmp_path / "store"),
    }
    environ = dict(
        modules.host_with_modules(("site",), Host(environ=environ)).environ
    )  # as a login shell

    def start(*words: str) -> Done:
        argv = [sys.executable, "-m", "mpigraft.cli.entry", *words]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=240)

    return start


SETS = ("--modules", "plain", "--modules", "tuned,-site")
WORDS = (
    "bench", *SETS, "--mpi", "mpich@5", "--transport", "shm-ofi-tcp", "--benchmark", "latency",
    "--layout", "1x2-none", "--rounds", "1", "--max", "8", "--ms-per-size", "2",
)  # fmt: skip


def test_what_modules_set_belongs_to_a_configuration(bench) -> None:  # type: ignore[no-untyped-def]
    shown = bench(*WORDS, "--dry-run", "--full")
    assert shown.returncode == 0, shown.stderr
    plain, tuned = (part.splitlines() for part in shown.stdout.split("configuration: ")[1:3])
    assert plain[0] == "mpich@5.0.2(plain)/shm-ofi-tcp"
    assert tuned[0] == "mpich@5.0.2(tuned)/shm-ofi-tcp"
    told = [line.strip() for line in tuned]
    assert f"rank: {VARIABLE}=1  [module]" in told
    assert "rank: MPIR_CVAR_SITE_SAYS=(dropped)  [module]" in told
    assert not any(VARIABLE in line or "SITE_SAYS" in line for line in plain)

    ended = bench(*WORDS)
    assert ended.returncode == 0, ended.stderr
    kept = json.loads(bench("results", "show", "--json").stdout)["configurations"]
    assert len({one["key"] for one in kept}) == 2
    seen = {one["id"]: one for one in kept}
    rows = seen["mpich@5.0.2(tuned)/shm-ofi-tcp"]["provenance"]["environment"]
    assert {"name": VARIABLE, "value": "1", "scope": "rank", "source": "module"} in rows


def test_what_modules_set_reaches_the_ranks(bench) -> None:  # type: ignore[no-untyped-def]
    """So that one which turns shared memory off is found out."""
    ended = bench(*WORDS[:1], "--modules", "plain", "--modules", "odd", *WORDS[5:])
    assert ended.returncode == 5, ended.stderr
    assert "proven: mpich@5.0.2(plain)/shm-ofi-tcp" in ended.stderr
    assert "FAILED: mpich@5.0.2(odd)/shm-ofi-tcp" in ended.stderr


def test_a_set_that_cannot_be_loaded_ends_with_its_own_words(bench) -> None:  # type: ignore[no-untyped-def]
    ended = bench(*WORDS[:1], "--modules", "nowhere", *WORDS[5:], "--dry-run")
    assert ended.returncode == 3
    assert "nowhere" in ended.stderr
