"""A stack as guest of `run` and `bench`: its programs on its own MPI and on an injected one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family, Machine, Replace
from mpigraft.discovery import discover_machine
from mpigraft.graft import GraftOptions, examine_stack, plan_stack, stack_install, stack_of_program
from mpigraft.knowledge import Facts, transport_offers
from mpigraft.selection import mpi_for_guest
from mpigraft.store import Store
from testbed.easybuild import make_user
from testbed.engines import PATH, USER
from testbed.someone import ROOT, opened
from testbed.stacks import ACCELERATOR, Stack, files_of

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

OWN, INJECTED = "library Open MPI v4.1.8", "library Open MPI v5.0.11"


def mpigraft(
    *words: object, cwd: Path | None = None, text: str = ""
) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=120, cwd=cwd, input=text or None
    )


def heat(stack: Stack, *words: object, program: Path | None = None) -> tuple[int, str, str]:
    """Exit code, output and errors of two ranks of a program of the stack."""
    ended = mpigraft(
        "run", "--stack", stack.software, *words, "-n", "2", "--", program or stack.heat, 64, 20
    )
    return ended.returncode, ended.stdout, ended.stderr


def test_before_an_injection_the_stack_runs_on_its_own_mpi_alone(
    stack: Stack, fresh_home: Path
) -> None:
    code, _, errors = heat(stack, "--mpi", "openmpi@5")
    assert code == 1
    assert "nothing is injected" in errors
    assert f"mpigraft inject {stack.software} --mpi openmpi@5.0.11" in errors
    code, output, errors = heat(stack, "--replace", "nothing")
    assert (code, OWN in output) == (0, True), errors


def inject(stack: Stack, mpi: str = "openmpi@5") -> None:
    ended = mpigraft("inject", stack.software, "--mpi", mpi)
    assert ended.returncode == 0, ended.stderr


def test_the_same_program_before_and_after_an_injection_over_the_transport_that_was_named(
    stack: Stack, fresh_home: Path
) -> None:
    before = list(files_of(stack.root))
    inject(stack)
    for _ in range(2):  # planned, then kept
        code, output, errors = heat(stack, "--mpi", "openmpi@5", "--transport", "ofi-lnx")
        assert (code, INJECTED in output) == (0, True), errors
    code, output, errors = heat(stack, "--replace", "nothing")
    assert (code, OWN in output) == (0, True), errors
    assert list(files_of(stack.root)) == before
    code, _, errors = heat(stack, "--mpi", "mpich")
    assert code == 1
    assert "openmpi@5.0.11 is injected" in errors
    assert mpigraft("undo", stack.software).returncode == 0
    code, _, errors = heat(stack)
    assert (code, "nothing is injected" in errors) == (1, True), errors


@pytest.mark.parametrize(
    "words",
    [("--mpi", "openmpi@5"), pytest.param(("--replace", "nothing"), marks=pytest.mark.long)],
)
def test_what_ranks_spawn_is_on_their_mpi(
    stack: Stack, fresh_home: Path, words: tuple[str, ...]
) -> None:
    """Whatever else is injected: with the stack's own MPI, its children are on that too."""
    prefix, ranks = stack.prefix("Spawn/1.0-gompi-2022b"), 1 if (os.cpu_count() or 1) > 2 else 3
    spawn = stack.compile(prefix / "bin/mpigraft-spawn")
    inject(stack)
    start = ("run", "--stack", stack.software, *words, "--env", "MPIGRAFT_MARK=1", "-n", ranks)
    try:
        ended = mpigraft(*start, "--", spawn, "multiple")
        assert ended.returncode == 0, ended.stderr
    finally:
        shutil.rmtree(prefix.parent)
    found = json.loads(ended.stdout.splitlines()[-1])
    injected, own = f"{stack.site}/", f"{stack.mpi}/"
    assert found["libmpi"].startswith(own if "nothing" in words else injected)
    assert (found["children"], found["marked"]) == (2, 2)


def test_a_job_of_an_ordinary_user(
    stack: Stack, fresh_home: Path, mpis: Mapping[Family, Path], cache_folder: Path, tmp_path: Path
) -> None:
    """Who may not write to the overrides, and has a home of its own."""
    inject(stack)
    make_user()
    own = Path(tempfile.mkdtemp(prefix="mpigraft-user-"))
    try:
        (own / "mpi").mkdir()
        (own / "mpi" / mpis[Family.OPENMPI].name).symlink_to(mpis[Family.OPENMPI].resolve())
        shutil.chown(own, USER, USER)
        needed = (Path(sys.base_prefix), Path(sys.prefix), ROOT, cache_folder)
        script = "; ".join(["set -e", "mount --make-rshared /", *opened(needed), 'exec "$@"'])
        drop = ["setpriv", "--reuid", USER, "--regid", USER, "--init-groups", "--inh-caps=-all"]
        clean = ["env", "-i", f"PATH={PATH}", f"HOME={own}", f"MPIGRAFT_HOME={own}"]
        entry = [sys.executable, "-m", "mpigraft.cli.entry", "run", "--stack", stack.software]
        job = [*clean, *entry, "--mpi", "openmpi@5", "-n", "2", "--", stack.heat, "64", "20"]
        words = ["unshare", "-m", "bash", "-c", script, "bash", *drop, *map(str, job)]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=120, cwd=own)
        assert (ended.returncode, INJECTED in ended.stdout) == (0, True), ended.stderr
    finally:
        shutil.rmtree(own)


def test_an_injection_that_goes_away_is_noticed_by_a_kept_start(
    stack: Stack, fresh_home: Path, mpis: Mapping[Family, Path]
) -> None:
    stack.inject_by_hand(mpis[Family.OPENMPI])
    assert heat(stack)[0] == 0
    stack.empty_site()
    assert heat(stack)[0] == 1


def test_a_program_that_maps_another_libmpi_ends_with_5(
    stack: Stack, fresh_home: Path, mpis: Mapping[Family, Path], tmp_path: Path
) -> None:
    """Nobody can tell from a script what it sets; the witness sees what its ranks mapped."""
    stack.inject_by_hand(mpis[Family.OPENMPI])
    other = tmp_path / "lib/libmpi.so.40"
    shutil.copytree(mpis[Family.OPENMPI] / "lib", other.parent, symlinks=True)
    script = tmp_path / "job.sh"
    launch = f"exec env LD_PRELOAD=$LD_PRELOAD:{other} {stack.heat} 64 20"
    script.write_text(f"#!/bin/sh\n{launch}\n")
    script.chmod(0o755)
    ended = mpigraft("run", "--stack", stack.software, "-n", "1", "--", script)
    assert ended.returncode == 5, ended.stderr
    assert str(other) in ended.stderr


def test_a_program_of_the_accelerator_s_subtree_has_an_override_of_its_own(
    stack: Stack, fresh_home: Path, mpis: Mapping[Family, Path]
) -> None:
    stack.inject_by_hand(mpis[Family.OPENMPI], ACCELERATOR)
    code, output, errors = heat(stack, program=stack.heat_accelerated)
    assert (code, INJECTED in output) == (0, True), errors
    code, _, errors = heat(stack)
    assert (code, "nothing is injected" in errors) == (1, True), errors


def test_a_generation_s_number_and_place_are_not_in_the_key(
    stack: Stack, fresh_home: Path, machine: Machine
) -> None:
    def digest() -> tuple[str, str]:
        plan = mpi_for_guest("", machine, examine_stack(stack.software), GraftOptions()).plan
        assert plan is not None
        return plan.guest.digest, plan.libmpi

    inject(stack)
    first = digest()
    library = stack.overrides()[0] / "libmpi.so.40"
    library.unlink()
    library.write_bytes(b"damaged")
    inject(stack)
    second = digest()
    assert first[0] == second[0]
    assert first[1].replace("/1/", "/2/") == second[1] != first[1]


@pytest.fixture(scope="module")
def machine() -> Machine:
    return discover_machine()


def test_the_same_mpi_is_chosen_and_planned_for_a_stack_and_for_one_of_its_programs(
    stack: Stack, machine: Machine, mpis: Mapping[Family, Path]
) -> None:
    stack.inject_by_hand(mpis[Family.OPENMPI])
    options = GraftOptions()
    whole = mpi_for_guest("", machine, examine_stack(stack.software), options)
    one = mpi_for_guest("", machine, stack_of_program(stack.software, stack.heat), options)
    assert whole.mpi == one.mpi
    assert whole.plan is not None
    assert one.plan is not None
    assert whole.plan.guest.digest == one.plan.guest.digest
    assert whole.plan.libmpi == one.plan.libmpi
    assert (whole.plan.replace, whole.plan.engine) == (Replace.MPI, "none")


def test_the_stack_s_own_mpi_has_a_libfabric_and_its_transports(
    stack: Stack, machine: Machine, mpis: Mapping[Family, Path]
) -> None:
    """Whatever is injected, its own are meant."""
    stack.inject_by_hand(mpis[Family.OPENMPI])
    own = stack_install(examine_stack(stack.software))
    assert own.libfabric is not None
    assert own.ucx is not None
    assert (own.libfabric.path or Path()).is_relative_to(stack.mpi)
    assert "tcp" in own.libfabric.offers
    assert (own.libfabric.version, own.ucx.version) != (None, None)
    usable = [o.name for o in transport_offers(own, Facts.of(machine)) if o.usable]
    assert "ofi-tcp" in usable


def test_a_digest_is_of_the_mpi_that_ranks_run_on(
    stack: Stack, mpis: Mapping[Family, Path], machine: Machine
) -> None:
    options, before = GraftOptions(), examine_stack(stack.software)
    own = plan_stack(before, stack_install(before), options, machine)
    stack.inject_by_hand(mpis[Family.OPENMPI])
    after = examine_stack(stack.software)
    injected = mpi_for_guest("openmpi@5", machine, after, options).plan
    again = plan_stack(after, stack_install(after), options, machine)
    assert injected is not None
    assert injected.guest.digest != own.guest.digest
    assert again.guest.digest == own.guest.digest
    assert again.libmpi == own.libmpi
    assert [row.value for row in again.environment if row.name == "LD_PRELOAD"] == [own.libmpi]


def test_native_own_and_injected_side_by_side(
    stack: Stack, fresh_home: Path, store_folder: Path, mpis: Mapping[Family, Path]
) -> None:
    """Our benchmark in the stack, and a program of the stack itself: each rank's libmpi proven."""
    stack.inject_by_hand(mpis[Family.OPENMPI])
    figure = r'figure="time: (.+) s", unit="s", better="lower"'
    command = shlex.join(map(str, (stack.heat, 64, 20)))
    ended = mpigraft(
        "--store", store_folder, "bench", "--stack", stack.software, "--mpi", "openmpi@5",
        "--transport", "ob1-sm", "--benchmark", "latency,app:heat", "--rounds", "1", "--max", "64",
        "--quick", "--app", f'heat={{command="{command}", {figure}}}', cwd=stack.root.parent,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    store = Store(store_folder)
    (campaign,) = store.campaigns()
    proven = {row.configuration: row.evidence.ok for row in store.evidence(campaign.id)}
    names = {row.id for row in store.configurations(campaign.id)}
    name = "2023.06-generic"
    assert {"openmpi@5.0.11/ob1-sm", f"openmpi@5.0.11/ob1-sm@{name}"} < names
    assert f"{name}:openmpi@4.1.8/ob1-sm" in names
    assert list(proven.values()) == [True] * 3


def test_a_script_of_a_user_runs_on_either_mpi(
    stack: Stack, fresh_home: Path, mpis: Mapping[Family, Path], tmp_path: Path
) -> None:
    """With the stack named by a link with a blank, from another folder, and input."""
    stack.inject_by_hand(mpis[Family.OPENMPI])
    link, script = tmp_path / "my stack", tmp_path / "a job.sh"
    link.symlink_to(stack.software)
    script.write_text(f"#!/bin/sh\nread line; echo $line\nexec {stack.heat} 64 20\n")
    script.chmod(0o755)
    for words, library in ((), INJECTED), (("--replace", "nothing"), OWN):
        job = ("run", "--stack", link.name, *words, "-n", "2", "--", script)
        ended = mpigraft(*job, cwd=tmp_path, text="a:b\n")
        assert (ended.returncode, library in ended.stdout) == (0, True), ended.stderr
        assert "a:b" in ended.stdout


def test_a_home_with_a_blank_is_refused_in_words(
    stack: Stack, mpis: Mapping[Family, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LD_PRELOAD takes no such path, so no rank could say what it mapped."""
    stack.inject_by_hand(mpis[Family.OPENMPI])
    home = tmp_path / "a home"
    home.mkdir()
    (home / "mpi").symlink_to(mpis[Family.OPENMPI].parent)
    monkeypatch.setenv("MPIGRAFT_HOME", str(home))
    code, output, errors = heat(stack)
    assert (code, output) == (3, ""), errors
    assert "witness-not-preloadable" in errors


def test_a_stack_that_is_not_there_is_refused_whatever_the_program(
    stack: Stack, fresh_home: Path
) -> None:
    missing = stack.root / "no stack"
    ended = mpigraft("run", "--stack", missing, "-n", "2", "--", stack.heat)
    assert ended.returncode == 2, ended.stderr
    assert f"{missing}: No such file" in ended.stderr


def test_two_guests_are_refused(stack: Stack, fresh_home: Path) -> None:
    for command in ("run", "bench"):
        program = ["true"] if command == "run" else []
        ended = mpigraft(command, "--stack", stack.root, "--image", stack.root, *program)
        assert ended.returncode == 2, ended.stderr
        assert "two guests" in ended.stderr
