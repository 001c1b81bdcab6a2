"""The launcher of an injected MPI, by modules of both tools and by its path."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.discovery.inventory import discover_machine
from mpigraft.graft.stack.override.launcher import launcher_scripts
from testbed.easybuild import LMOD, environment_modules
from testbed.stacks import Stack
from tests.testbed.test_inject import do, slot

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

JOB = r"""
{init}
module use {folder}
env | sort >before
module load launcher/1
env | sort >after
command -v mpirun
mpirun --oversubscribe -n 2 {heat} 64 20
"{true}"
module purge
command -v mpirun
"""
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
OWN = (
    "LOADEDMODULES",
    "_LMFILES_",
    "LMOD",
    "_LM",
    "_ModuleTable",
    "MODULES_",
    "__MODULES",
    "PATH=",
    "__LMOD",
)


def run(script: str, folder: Path, **environ: str) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", script], env={**AS_ROOT, **environ}, cwd=folder, text=True, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


@pytest.fixture
def injected(stack: Stack, mpis: Mapping[Family, Path]) -> Stack:
    assert mpis[Family.OPENMPI]
    do("inject", stack.software, "--mpi", "openmpi@5")
    return stack


@pytest.mark.parametrize("tool", ["lmod", "environment modules"])
def test_a_module_brings_the_launcher_and_no_library(
    injected: Stack, cache_folder: Path, tmp_path: Path, tool: str
) -> None:
    """A job script loads it; programs find in the environment what they found before."""
    form, ending = ("module", ".lua") if tool == "lmod" else ("tcl", "")
    init = f". {LMOD.parent.parent}/init/bash" if ending else environment_modules(cache_folder)
    file = tmp_path / "modulefiles/launcher" / f"1{ending}"
    file.parent.mkdir(parents=True)
    file.write_text(do("inject", injected.software, "--mpi", "openmpi@5", "--as", form))
    own = f"{injected.mpi}/bin"
    words = {"init": init, "folder": tmp_path / "modulefiles", "heat": injected.heat}
    script = JOB.format_map({**words, "true": injected.hello})
    out = run(script, tmp_path, PATH=f"{own}:/usr/bin:/bin", HOME=str(tmp_path))
    assert out[0] == f"{slot(injected)}/bin/mpirun"
    assert "library Open MPI v5.0.11" in "\n".join(out)
    assert out[-2:] == ["hello", f"{own}/mpirun"]
    before, after = (set((tmp_path / n).read_text().splitlines()) for n in ("before", "after"))
    assert {line for line in after - before if not line.startswith(OWN)} == set()


def test_the_launcher_needs_no_module_and_follows_what_is_on(
    injected: Stack, tmp_path: Path
) -> None:
    """As in cron, and in `env -i`; and where the stack's own module leads elsewhere."""
    mpirun, heat = f"{slot(injected)}/bin/mpirun", f"{injected.heat} 64 20"
    words = f"{mpirun} --oversubscribe -n 2 {heat}"
    for lead in (f"env -i {' '.join(f'{n}=1' for n in AS_ROOT)}", f"OPAL_PREFIX={injected.mpi}"):
        out = "\n".join(run(f"{lead} {words}", tmp_path, PATH=os.defpath, HOME="/root"))
        assert "ranks 2" in out
        assert "library Open MPI v5.0.11" in out
    do("undo", injected.software)
    assert not Path(mpirun).exists()


@pytest.mark.parametrize("own", ["", "/own/lib:/more"])
def test_no_launcher_gives_programs_a_search_path(tmp_path: Path, own: str) -> None:
    """Open MPI's own mpirun does, of its folders: with a loader of its own, a program of a stack
    would take the host's C library there, and scripts the host's programs."""
    tool = tmp_path / "own/uname"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nexec env\n")
    tool.chmod(0o755)
    for mpi in (m for m in discover_machine().mpis if m.usable):
        for name, text in launcher_scripts(mpi):
            script = tmp_path / mpi.id / name
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(text)
            script.chmod(0o755)
        given = {"LD_LIBRARY_PATH": own} if own else {}
        words = f"{tmp_path / mpi.id}/bin/mpirun -n 1 uname"
        out = run(words, tmp_path, PATH=f"{tool.parent}:{os.defpath}", HOME="/root", **given)
        assert len(out) > 1, mpi.id
        paths = [line for line in out if line.startswith("LD_LIBRARY_PATH=")]
        assert paths == ([f"LD_LIBRARY_PATH={own}"] if own else []), mpi.id


def test_the_hook_of_the_page_brings_the_launcher_with_each_open_mpi(tmp_path: Path) -> None:
    """And takes it away again: a hook of Lmod's is no part of the module."""
    page = (ROOT / "docs/howto/inject-into-a-stack.md").read_text()
    hook = re.findall(r"```lua\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "site").mkdir()
    (tmp_path / "site/SitePackage.lua").write_text(hook)
    for name in ("OpenMPI/4.1.6", "foo/1"):
        file = tmp_path / "modulefiles" / f"{name}.lua"
        file.parent.mkdir(parents=True)
        file.write_text(f'prepend_path("PATH", "/own/{name}")\n')
    show = 'echo "${PATH%%:/usr*}"'
    steps = ("load foo", "load OpenMPI", "unload OpenMPI", "load OpenMPI", "purge")
    lines = [f". {LMOD.parent.parent}/init/bash", f"module use {tmp_path / 'modulefiles'}"]
    lines += [f"module {step}; {show}" for step in steps]
    site = str(tmp_path / "site")
    out = run("\n".join(lines), tmp_path, PATH="/usr/bin:/bin", LMOD_PACKAGE_PATH=site)
    launchers = re.findall(r'launchers = "(.*)"', hook)[0]
    loaded = f"{launchers}:/own/OpenMPI/4.1.6:/own/foo/1"
    assert out == ["/own/foo/1", loaded, "/own/foo/1", loaded, "/usr/bin:/bin"]
