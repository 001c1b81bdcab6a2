"""A host MPI under a stack that has a loader, an MPI and search paths of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.core.model import Family
from testbed import someone
from testbed.engines import USER, Engines
from testbed.stacks import Stack, files_of

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

SCHEMAS = Path(mpigraft.__file__).parent / "report/schemas"
COMMAND = [sys.executable, "-m", "mpigraft.cli.main"]
WAITS = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char **argv) {
    char line[4096];
    puts("mapped");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 2;
    MPI_Init(&argc, &argv);
    fflush(stdout);
    if (system("env")) return 3;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (strchr(line, '/')) fputs(strchr(line, '/'), stdout);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture
def host(mpis: Mapping[Family, Path]) -> Path:
    return mpis[Family.OPENMPI]


def do(*words: str | Path, code: int = 0) -> str:
    """Run mpigraft; what it wrote, on both streams where it failed as it should."""
    done = subprocess.run([*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stdout + done.stderr


def heat(stack: Stack, host: Path) -> str:
    """Run a program of the stack on two ranks by the host's launcher, as a user does."""
    words = [str(host / "bin/mpirun"), "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    done = subprocess.run(
        [*words, str(stack.heat), "64", "20"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "ranks 2" in done.stdout
    return done.stdout


def slot(stack: Stack) -> Path:
    return stack.overrides()[0].parent


def test_an_mpi_that_a_path_names_is_proven_where_it_was(
    stack: Stack, host: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`discover` does not know it, and the proof said that it is not on this machine any more."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path))
    do("inject", stack.software, "--mpi", host)
    proof = json.loads(do("inject", stack.software, "--verify", "--json"))
    assert proof["proof"]["mpi"].startswith("openmpi@5.0.11+")


def test_programs_run_on_the_injected_mpi_and_on_their_own_again(stack: Stack, host: Path) -> None:
    before = list(files_of(stack.root))
    mpi = f"openmpi@{host.name.rpartition('-')[2]}"
    planned = json.loads(do("inject", stack.software, "--mpi", mpi, "--dry-run", "--json"))
    jsonschema.validate(planned, json.loads((SCHEMAS / "inject.json").read_text()))
    assert planned["overrides"][0]["slot"]["path"] == str(slot(stack))
    assert not list(stack.host_injections.iterdir())
    assert "generation 1 is on" in do("inject", stack.software, "--mpi", mpi)
    version = host.name.rpartition("-")[2]
    assert f"library Open MPI v{version}" in heat(stack, host)
    proof = json.loads(do("inject", stack.software, "--verify", "--transport", "ofi-lnx", "--json"))
    jsonschema.validate(proof, json.loads((SCHEMAS / "inject.json").read_text()))
    assert "lnx" in proof["proof"]["transport"]
    assert "/.mpigraft-system/generations/1/lib/libmpi.so.40" in proof["proof"]["libmpi"]
    assert not proof["drift"]
    assert "was on already" in do("inject", stack.software, "--mpi", mpi)
    undone = json.loads(do("undo", stack.software, "--json"))
    jsonschema.validate(undone, json.loads((SCHEMAS / "undo.json").read_text()))
    assert undone["current"] == 0
    own = subprocess.run(
        [stack.mpi / "bin/mpirun", "--allow-run-as-root", "-n", "1", stack.heat, "64", "20"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "library Open MPI v4.1.8" in own.stdout
    do("undo", stack.software, "--prune")
    assert not list(stack.host_injections.iterdir())  # nor the folders that inject made
    assert list(files_of(stack.root)) == before


def test_nothing_of_the_stacks_own_is_replaced_but_its_mpi(stack: Stack, host: Path) -> None:
    """By the stack's own loader: what it maps besides MPI is what it mapped."""

    def mapped() -> dict[str, str]:
        done = subprocess.run(
            [stack.heat], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True
        )
        rows = [line.split(" => ") for line in done.stdout.splitlines() if " => /" in line]
        return {name.strip(): path.split(" (")[0] for name, path in rows}

    before = mapped()
    do("inject", stack.software, "--mpi", "openmpi@5")
    after = mapped()
    generation = str(slot(stack).parent / ".mpigraft-system/generations/1")
    assert after["libmpi.so.40"] == str(slot(stack) / "lib/libmpi.so.40")
    ours = {name for name, path in after.items() if path.startswith((generation, str(slot(stack))))}
    assert {name for name in ours if not name.startswith(("mpigraft-", "libmpigraft-"))} == {
        "libmpi.so.40"
    }
    for name in before.keys() & after.keys() - ours:
        assert before[name] == after[name]


def test_a_program_that_runs_across_a_switch_keeps_its_generation(
    stack: Stack, host: Path, tmp_path: Path
) -> None:
    do("inject", stack.software, "--mpi", "openmpi@5")
    program = waiting_program(stack, host, tmp_path)
    with subprocess.Popen(program, stdin=-1, stdout=-1, text=True) as running:
        assert running.stdin
        assert running.stdout
        assert running.stdout.readline() == "mapped\n"
        do("undo", stack.software)
        assert "removed generations: none" in do("undo", stack.software, "--prune")
        output, _ = running.communicate("go on\n", timeout=60)
    assert running.returncode == 0
    store = str(slot(stack).parent.resolve() / ".mpigraft-system/generations")
    names = {line.strip().removeprefix(store) for line in output.splitlines() if store in line}
    assert {name.split("/")[1] for name in names} == {"1"}
    assert any("/ucx/" in name or "/libfabric/" in name for name in names)  # opened after it
    inherited = {line.partition("=")[0] for line in output.splitlines() if "=" in line}
    assert "PATH" in inherited
    assert not inherited & {"OPAL_PREFIX", "PMIX_PREFIX", "UCX_MODULE_DIR"} - os.environ.keys()
    assert "removed generations: 1" in do("undo", stack.software, "--prune")


@pytest.mark.long
def test_the_commands_make_what_inject_makes(stack: Stack, host: Path, tmp_path: Path) -> None:
    """But for the list of digests, which only exist once it is made."""
    text = do("inject", stack.software, "--mpi", "openmpi@5", "--as", "commands")
    script = tmp_path / "inject.sh"
    script.write_text(text)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    for _ in range(2):
        done = subprocess.run(["sh", script], env={"PATH": path}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    store = slot(stack).parent / ".mpigraft-system/generations"
    made = {row[0].removeprefix(f"{store}/1"): row[3] for row in files_of(store / "1")}
    assert "hello" not in heat(stack, host)
    do("undo", stack.software)
    do("undo", stack.software, "--prune")
    do("inject", stack.software, "--mpi", "openmpi@5")
    due = {row[0].removeprefix(f"{store}/1"): row[3] for row in files_of(store / "1")}
    assert {name for name in made if made[name] != due.get(name)} == {"/plan.json"}
    assert made.keys() == due.keys()


@pytest.mark.root
@pytest.mark.parametrize(
    ("mount", "code", "words"),
    [
        ("mount --bind {site} {site}; mount -o remount,ro,bind {site}", 3, "read-only file system"),
        ("mount -t tmpfs -o size=4m none {site}", 3, "MiB free"),
    ],
    ids=["read-only", "full"],
)
def test_a_target_that_cannot_take_it_is_refused_in_words(
    stack: Stack, host: Path, mount: str, code: int, words: str
) -> None:
    site = stack.host_injections.resolve()
    script = f"set -e; mount --make-rprivate /; {mount.format(site=site)}; set +e; " + (
        '"$@"; code=$?; ls -A ' + f"{site}; exit $code"
    )
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", script, "bash", *COMMAND, "inject", stack.software,
         "--mpi", "openmpi@5"], capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert words in done.stderr
    assert "what to do" in done.stderr
    assert not done.stdout


def test_an_update_of_the_host_is_told(stack: Stack, host: Path, tmp_path: Path) -> None:
    do("inject", stack.software, "--mpi", "openmpi@5")
    plan = slot(stack) / "plan.json"
    document = json.loads(plan.read_text())
    changed = document["generation"]["sources"][3]
    changed["digest"] = "0" * 64
    plan.write_text(json.dumps(document))
    text = do("inject", stack.software, "--verify", code=1)
    assert changed["path"] in text
    assert "the host was updated" in text


@pytest.fixture
def updated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache_folder: Path) -> Path:
    """The prefix of a host's Open MPI 4.1.8, which a test may update."""
    home = tmp_path / "home"
    prefix = home / "mpi/openmpi-site"
    shutil.copytree(cache_folder / "home-openmpi-4/mpi/openmpi-4.1.8", prefix, symlinks=True)
    monkeypatch.setenv("MPIGRAFT_HOME", str(home))
    return prefix


@pytest.mark.long
def test_updates_of_the_host_drift_and_are_injected_anew(
    stack: Stack, host: Path, updated: Path
) -> None:
    """A plugin comes, then goes; then the whole MPI is another version in the same place."""

    def inject(spec: str) -> str:
        return do("inject", stack.software, "--mpi", spec).partition(":")[0]

    def drift() -> list[str]:
        words = ("inject", stack.software, "--verify", "--json")
        text = do(*words, code=1)
        value = json.loads(text[text.index("{") : text.rindex("}") + 1])
        jsonschema.validate(value, json.loads((SCHEMAS / "inject.json").read_text()))
        return [finding["code"] for finding in value["drift"]]

    plugin = next((updated / "lib/openmpi/ucx").glob("libuct_cma.so*"))
    taken = plugin.read_bytes()
    plugin.unlink()
    assert inject("openmpi@4.1.8") == "generation 1 is on"
    plugin.write_bytes(taken)
    assert drift() == ["drift-plan"]
    assert inject("openmpi@4.1.8") == "generation 2 is on"
    plugin.unlink()
    assert drift() == ["drift-gone"]
    assert inject("openmpi@4.1.8") == "generation 3 is on"
    shutil.rmtree(updated)
    shutil.copytree(host, updated, symlinks=True)
    assert set(drift()) == {"drift-sources", "drift-gone"}
    text = do("inject", stack.software, "--verify", code=1)
    assert "not proven: openmpi@4.1.8" in text
    assert "libmpi.so.40" in text
    assert inject("openmpi@5") == "generation 4 is on"
    assert "openmpi@5.0.11, generation 4" in do("inject", stack.software, "--verify")


def test_somebodys_data_is_refused(stack: Stack, host: Path) -> None:
    (slot(stack) / "lib").mkdir(parents=True)
    mine = slot(stack) / "lib/libmpi.so.40"
    shutil.copy("/bin/true", mine)
    before = list(files_of(stack.host_injections.resolve()))
    assert "override-foreign" in do("inject", stack.software, "--mpi", "openmpi@5", code=1)
    assert list(files_of(stack.host_injections.resolve())) == before


def waiting_program(stack: Stack, host: Path, folder: Path) -> Path:
    """A program of the stack's that has mapped its MPI and waits for a line."""
    program, source = folder / "waits", folder / "waits.c"
    source.write_text(WAITS)
    lib, search = stack.mpi / "lib", ":".join(map(str, (*stack.overrides(), stack.mpi / "lib")))
    subprocess.run(
        ["gcc", source, f"-I{host / 'include'}", lib / "libmpi.so.40", "-o", program,
         f"-Wl,--disable-new-dtags,-rpath,{search},--dynamic-linker={stack.loader}",
         "-Wl,--allow-shlib-undefined"], check=True,
    )  # fmt: skip
    return program


@pytest.mark.root
def test_what_anothers_job_runs_on_is_not_pruned(
    stack: Stack, host: Path, engines: Engines, cache_folder: Path, tmp_path: Path
) -> None:
    """The override is an ordinary user's, who may read nothing of the job, which is root's."""
    do("inject", stack.software, "--mpi", "openmpi@5")
    home, site = someone.new_home(engines, [host], "prune"), stack.host_injections.resolve()
    subprocess.run(["chown", "-hR", f"{USER}:{USER}", site], check=True)

    def by_owner(*more: str) -> str:
        words = (*COMMAND, "undo", str(stack.software), *more)
        done = engines.run(someone.words(engines, home, cache_folder, *words), limit_s=120)
        assert done.ok, done.text()
        return done.text()

    program = waiting_program(stack, host, tmp_path)
    words = [*COMMAND, "run", "--stack", str(stack.software), "-n", "1", "--", str(program)]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as job:
        assert job.stdout
        assert job.stdout.readline() == "mapped\n"
        assert "the stack's own MPI" in by_owner()
        kept = by_owner("--prune", "--keep", "0")
        assert "generation 1 is kept: process" in kept
        assert "of root on" in kept
        job.kill()
    kept = by_owner("--prune")
    assert "generation 1 is kept: it was switched off 0 days ago" in kept
    left = by_owner("--prune", "--keep", "0")
    assert "may not be read; generations 1 are removed all the same" in left
    assert "removed generations: 1" in left
