"""One launch as plain data: its layers, and who sees which variable."""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.env import ENV
from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    Allocation,
    Configuration,
    EnvRow,
    Launch,
    LaunchedBy,
    Layout,
    Scope,
    Setting,
    SettingFile,
)
from mpigraft.launch.command import _own_cores, _uneven, prepare_launch
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.launch.launch_request import LaunchRequest
from mpigraft.native.programs import Natives
from tests.builders.probes import configuration, install, with_transport

NATIVES = Natives(Path("/n/bench"), Path("/n/witness.so"), Path("/n/guard"), "digest")
ENVIRON = {"PATH": "/usr/bin", "HOME": "/home/u", "OMPI_MCA_pml": "stray", "SITE_TOKEN": "planted"}


def launch(asked: Configuration, layout: Layout | None = None, **changes: Any) -> Launch:
    options: dict[str, Any] = {
        "natives": NATIVES,
        "witness": Path("/w"),
        "limit_s": 30.0,
        "cwd": Path("/c"),
        "root": False,
        "cores": 64,
        "environ": ENVIRON,
        "parent": 7,
    }
    program = changes.pop("program", PROBE)
    options |= changes
    return prepare_launch(LaunchRequest(asked, layout or Layout(), program, **options))


PROBE = ("/n/mpigraft-probe", "--buffers")


def words_of(found: Launch, program: str = PROBE[0]) -> tuple[list[str], list[str], list[str]]:
    """(guard and launcher, env and its rows, program)"""
    argv = list(found.argv)
    inner, at = argv.index(ENV), argv.index(program)
    return argv[:inner], argv[inner:at], argv[at:]


def of_ranks(found: Launch, program: str = PROBE[0]) -> dict[str, str]:
    """The variables that ranks alone are given."""
    rows = (word.partition("=") for word in words_of(found, program)[1])
    return {name: value for name, equals, value in rows if equals}


LNX = configuration("openmpi@5.0.11", "ofi-lnx")


def test_what_ranks_spawn_gets_their_variables() -> None:
    made = launch(LNX, program=("/x/app",))
    ((path, text),) = made.children
    given = of_ranks(made, "/x/app")
    assert given["MPIGRAFT_SPAWN"] == str(path)
    assert path.parent == made.witness
    assert [row for row in given.items() if f"'{'='.join(row)}'" not in text] == []


def test_our_benchmarks_spawn_nothing() -> None:
    made = launch(LNX)
    assert not made.children
    assert not [name for name in of_ranks(made) if "SPAWN" in name]


def test_the_layers_stand_in_order() -> None:
    outer, inner, program = words_of(launch(LNX))
    guard = "/n/guard --limit 30 --grace 2 --stdin /dev/null --parent 7 --"
    launcher = "/opt/mpi/bin/mpirun -n 2 --map-by ppr:2:node --bind-to core"
    assert outer == [*guard.split(), *launcher.split()]
    assert inner[0] == ENV
    assert program == [*PROBE]


def test_the_guard_is_reported_who_starts_it() -> None:
    own = launch(LNX, parent=None).argv
    assert own[own.index("--parent") + 1] == str(os.getpid())


def test_rank_variables_go_in_innermost_and_nowhere_else() -> None:
    found = launch(LNX)
    given = of_ranks(found)
    assert (
        given.items()
        >= {
            "OMPI_MCA_pml": "cm",
            "FI_LNX_PROV_LINKS": "shm+tcp:eth0",
            "MPIGRAFT_WITNESS": "/w",
            "OMP_NUM_THREADS": "1",
            "LD_PRELOAD": str(NATIVES.witness),
        }.items()
    )
    assert not {"-x", "-genv", "--export"} & set(found.argv)
    assert dict(found.env) == {"HOME": "/home/u", "PATH": "/usr/bin"}


def test_the_environment_starts_from_an_allow_list() -> None:
    """A stray OMPI_MCA_pml would be another transport; a token would end in a result."""
    found = launch(LNX)
    assert "stray" not in str(found)
    assert "planted" not in str(found)


def test_a_launcher_has_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `env -i` Open MPI ended in MPI_Init."""
    monkeypatch.delenv("HOME")
    home = pwd.getpwuid(os.getuid()).pw_dir
    assert dict(launch(LNX, inherited={"PATH": "/usr/bin"}).env)["HOME"] == home
    assert dict(launch(LNX, inherited={"HOME": "/h"}).env)["HOME"] == "/h"


def test_launcher_variables_stay_with_the_launcher() -> None:
    rows = (
        EnvRow("LD_LIBRARY_PATH", "/opt/mpi/lib", Scope.LAUNCHER, "mpi"),
        EnvRow("PRTE_MCA_x", "1", Scope.DAEMON, "transport"),
        EnvRow("HOME", None, Scope.LAUNCHER, "mpi"),
    )
    asked = replace(LNX, mpi=install("openmpi@5.0.11", environment=rows))
    found = launch(asked)
    assert dict(found.env) == {
        "LD_LIBRARY_PATH": "/opt/mpi/lib", "PATH": "/usr/bin", "PRTE_MCA_x": "1",
    }  # fmt: skip
    assert not any(rows[0].name in word for word in found.argv)


@pytest.mark.parametrize(
    ("kind", "due"),
    [("prrte", "PRTE_MCA_ras_x"), ("orte", "OMPI_MCA_ras_x"), ("hydra", ""), ("srun", "")],
)
def test_settings_of_open_mpis_launcher_follow_its_version(kind: str, due: str) -> None:
    """4.x ignores PRTE_MCA_*; no other launcher reads either."""
    rows = (
        EnvRow("PRTE_MCA_ras_x", "1", Scope.LAUNCHER, "transport"),
        EnvRow("PRTE_MCA_rank", "1", Scope.RANK, "transport"),
        EnvRow("UCX_x", "1", Scope.LAUNCHER, "transport"),
    )
    mine = install("openmpi@5.0.11", launcher_kind=kind)
    found = launch(with_transport(replace(LNX, mpi=mine), env=rows))
    names = {name for name, _ in found.env}
    assert {name for name in names if "MCA" in name} == ({due} if due else set())
    assert "UCX_x" in names
    assert of_ranks(found)["PRTE_MCA_rank"] == "1"


def test_another_launcher_starts_the_same_ranks() -> None:
    by = LaunchedBy("srun", Path("/usr/bin/srun"), "22.05.8", "pmix")
    step = launch(replace(LNX, launcher=by))
    outer, _, program = words_of(step)
    assert outer[10:12] == [str(by.path), f"--mpi={by.pmi}"]
    assert "--overlap" in outer
    assert not [word for word in outer if "network" in word]
    assert of_ranks(step)["PMIX_MCA_psec"] == "native"
    assert program == [*PROBE]
    slingshot = (EnvRow("FI_LNX_PROV_LINKS", "shm+cxi", Scope.RANK, "transport"),)
    over = launch(with_transport(replace(LNX, launcher=by), env=slingshot))
    assert [word for word in over.argv if "single_node_vni" in word]


def test_the_probe_is_loud_and_a_measurement_is_not() -> None:
    loud = {"OMPI_MCA_opal_common_ofi_verbose=1", "OMPI_MCA_ompi_display_comm=mpi_init"}
    assert loud <= set(launch(LNX, probe=True).argv)
    assert not loud & set(launch(LNX).argv)
    assert of_ranks(launch(LNX))["OMPI_MCA_pml"] == "cm"  # forced in both


def test_the_last_row_of_a_name_wins_and_a_dropped_one_is_dropped() -> None:
    user = (
        EnvRow("OMPI_MCA_pml", "ob1", Scope.RANK, "user"),
        EnvRow("OMP_NUM_THREADS", "3", Scope.RANK, "user"),
        EnvRow("OMPI_MCA_mtl", None, Scope.RANK, "user"),
    )
    found = launch(replace(LNX, environment=user))
    _, inner, _ = words_of(found)
    assert [word for word in inner if "_pml=" in word] == ["OMPI_MCA_pml=ob1"]
    assert of_ranks(found)["OMP_NUM_THREADS"] == "3"
    assert inner[1:3] == ["-u", "OMPI_MCA_mtl"]


SETTING = Setting(
    "big",
    (EnvRow("A", "2", Scope.RANK, "setting big"), EnvRow("B", None, Scope.RANK, "setting big")),
    (SettingFile("RULES", "/srv/ring.rules", "1\n"),),
    ("--mca", "plm", "ssh"),
)


def test_a_setting_wins_over_the_user_and_brings_its_files_and_launcher_options() -> None:
    user = (EnvRow("A", "1", Scope.RANK, "user"), EnvRow("B", "1", Scope.RANK, "user"))
    found = launch(replace(LNX, environment=user, setting=SETTING))
    outer, inner, _ = words_of(found)
    assert of_ranks(found)["A"] == "2"
    assert inner[1:3] == ["-u", "B"]
    assert (Path(of_ranks(found)["RULES"]), "1\n") in found.files
    at = outer.index("plm")
    assert outer[at - 2 : at + 2] == [str(LNX.mpi and LNX.mpi.launcher), *SETTING.launcher]


def test_a_setting_s_options_follow_the_word_that_makes_flux_run() -> None:
    by = LaunchedBy("flux", Path("/usr/bin/flux"), "0.71", "pmi2")
    setting = replace(SETTING, files=(), launcher=("-o", "verbose"))
    outer, _, _ = words_of(launch(replace(LNX, launcher=by, setting=setting)))
    at = outer.index("verbose")
    assert outer[at - 3 : at + 1] == [str(by.path), "run", "-o", "verbose"]


def test_the_witness_is_preloaded_before_what_the_mpi_preloads() -> None:
    rows = (EnvRow("LD_PRELOAD", "/site/lib.so", Scope.RANK, "module"),)
    asked = replace(LNX, mpi=install("openmpi@5.0.11", environment=rows))
    assert of_ranks(launch(asked))["LD_PRELOAD"] == f"{NATIVES.witness}:/site/lib.so"
    dropped = (*rows, EnvRow("LD_PRELOAD", None, Scope.RANK, "user"))
    asked = replace(LNX, mpi=install("openmpi@5.0.11", environment=dropped))
    assert of_ranks(launch(asked))["LD_PRELOAD"] == str(NATIVES.witness)


def test_what_traces_is_preloaded_before_the_witness_and_writes_beside_it() -> None:
    rows = (EnvRow("LD_PRELOAD", "/site/lib.so", Scope.RANK, "module"),)
    asked = replace(LNX, mpi=install("openmpi@5.0.11", environment=rows))
    natives = replace(NATIVES, trace=Path("/n/trace.so"))
    given = of_ranks(launch(asked, tracing=("waits", "sites"), natives=natives))
    first = f"{natives.trace}:{natives.witness}"
    assert given["LD_PRELOAD"] == f"{first}:/site/lib.so"
    assert (given["MPIGRAFT_TRACE"], given["MPIGRAFT_TRACE_OPTIONS"]) == ("/w", "waits,sites")
    assert not [word for word in launch(asked, natives=natives).argv if "trace" in word]
    with pytest.raises(MissingError) as told:
        launch(asked, tracing=())
    assert told.value.code == "trace-not-built"


def test_more_ranks_than_cores_are_let_on_and_not_bound() -> None:
    layout = Layout(ranks_per_node=4)

    def mapped(found: Launch) -> tuple[str, ...]:
        """PPR:N:NODE and what is added to it, and the binding."""
        at = found.argv.index("--map-by")
        return (*found.argv[at + 1].split(":")[1:], found.argv[at + 3])

    assert mapped(launch(LNX, layout, cores=4)) == ("4", "node", "core")
    crowded = launch(LNX, layout, cores=3)
    assert mapped(crowded) == ("4", "node", "OVERSUBSCRIBE", "none")
    threads = launch(LNX, Layout(ranks_per_node=2, threads=2), cores=3)
    assert mapped(threads) == ("2", "node", "OVERSUBSCRIBE", "none")
    assert of_ranks(threads)["OMP_NUM_THREADS"] == "2"
    few = Allocation(("n1", "n2"), "Slurm job 1", "slurm", "1", (4, 3))
    for nodes, bound in ((1, True), (2, False)):
        argv = launch(LNX, Layout(nodes, 4), cores=64, allocation=few).argv
        assert ("core" in argv) is bound


def test_root_is_reported_for_root_only() -> None:
    for root in (False, True):
        env = dict(launch(LNX, root=root).env)
        assert env.get("OMPI_ALLOW_RUN_AS_ROOT") == ("1" if root else None)


def test_intel_is_pinned_by_the_launchers_environment() -> None:
    found = launch(configuration("intel@2021.18.1", "shm"))
    assert dict(found.env)["I_MPI_PIN_DOMAIN"] == "core"
    assert of_ranks(found)["I_MPI_FABRICS"] == "shm"


def test_the_same_request_makes_the_same_launch() -> None:
    assert launch(LNX) == launch(LNX)
    assert launch(LNX).witness == Path("/w")
    assert launch(LNX).cwd == Path("/c")
    assert launch(LNX, limit_s=0.5).argv[2] == "0.5"


def test_without_a_transport_the_mpi_chooses_and_settings_stay() -> None:
    user = (EnvRow("FI_LOG_LEVEL", "warn", Scope.RANK, "user"),)
    given = of_ranks(launch(replace(LNX, transport=None, environment=user), probe=True))
    assert given["FI_LOG_LEVEL"] == "warn"
    assert not any(name.startswith("OMPI_MCA_") for name in given)


def test_what_cannot_be_launched_says_why() -> None:
    for asked, says in (
        (replace(LNX, mpi=None), "was imported"),
        (replace(LNX, mpi=install("openmpi@5.0.11", launcher=None)), "has no launcher"),
        (
            replace(LNX, mpi=install("openmpi@5.0.11", launcher_kind="yod")),
            "unknown launcher 'yod'",
        ),
    ):
        with pytest.raises(MissingError, match=says):
            launch(asked)


def test_two_hardware_threads_are_one_core(tmp_path: Path) -> None:
    for cpu, siblings in ((0, "0,2"), (1, "1,3"), (2, "0,2")):
        folder = tmp_path / f"cpu{cpu}" / "topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(siblings + "\n")
    assert _own_cores((0, 1, 2), tmp_path) == 2
    assert _own_cores((0, 1, 2, 9), tmp_path) == 3  # 9 is hidden: a core of its own


@pytest.mark.parametrize(
    ("hosts", "cpus", "due"),
    [(2, (), True), (2, (1, 1), True), (2, (999, 999), False), (1, (), True), (0, (), False)],
    ids=["unknown", "parts", "whole", "another", "here"],
)
def test_nodes_are_alike_only_where_a_job_has_all_their_cpus(
    hosts: int, cpus: tuple[int, ...], due: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One host is another than this one too, where a job is started from a login node."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    held = Allocation(("n1", "n2")[:hosts], "Slurm job 1", "slurm", "1", cpus)
    assert _uneven(held if hosts else THIS_HOST) is due
