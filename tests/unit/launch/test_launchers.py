"""The words of each launcher, and what each sets in its own environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.cpuset import format_cpus, ranges
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Allocation, Command, Group, Layout, Order, Scope
from mpigraft.launch.launchers.hardware import in_order
from mpigraft.launch.launchers.parts import hexadecimal
from mpigraft.launch.launchers.registry import LAUNCHERS
from tests.builders.probes import install

RUN = Path("/opt/mpi/bin/run")
MPI = {
    "prrte": install("openmpi@5.0.11"),
    "orte": install("openmpi@4.1.8"),
    "hydra": install("mpich@5.0.2"),
    "intel": install("intel@2021.18.1"),
    "srun": install("openmpi@5.0.11"),
    "flux": install("openmpi@5.0.11"),
    "pals": install("openmpi@5.0.11"),
    "aprun": install("openmpi@4.1.8"),
}
KINDS = tuple(MPI)
HERE = Allocation(("n1",), "this host", here=True)
NAMED = Allocation(("n1", "n2", "n3"), "--hosts")
SLURM = Allocation(("n1", "n2", "n3"), "Slurm job 7", "slurm", "7")
PAIR, FREE, WIDE, NODES = Layout(), Layout(bind="none"), Layout(threads=4), Layout(2, 3)
MASKS = ((0, 1), (2, 3, 8))


def order(kind: str, layout: Layout = PAIR, **changes: Any) -> Order:
    """An order with one program, on this host if it holds the layout."""
    values: dict[str, Any] = {
        "allocation": HERE if layout.nodes == 1 else NAMED,
        "groups": (Group(layout.ranks_per_node, ("prog",)),),
        "folder": Path("/f"),
    }
    return Order(RUN, MPI[kind], layout, **{**values, **changes})


def named(kind: str) -> str:
    return kind if kind in LAUNCHERS else MPI[kind].launcher_kind


def command(kind: str, *arguments: Any, **changes: Any) -> Command:
    return LAUNCHERS[named(kind)].command(order(kind, *arguments, **changes))


def words(kind: str, *arguments: Any, **changes: Any) -> str:
    """The command line without the launcher and without the programs."""
    found = command(kind, *arguments, **changes)
    assert found.words[0] == str(RUN)
    return " ".join(word for word in found.words[1:] if word != "prog")


def settings(kind: str, *arguments: Any, **changes: Any) -> dict[str, str | None]:
    found = LAUNCHERS[named(kind)].rows(order(kind, *arguments, **changes))
    assert {row.scope for row in found} <= {Scope.LAUNCHER, Scope.RANK}
    return {row.name: row.value for row in found}


# ------------------------------------------------------------------ words


CROWDED: dict[str, Any] = {"crowded": True}
PMIX: dict[str, Any] = {"pmi": "pmix"}
MASKED: dict[str, Any] = {"masks": MASKS}


@pytest.mark.parametrize(
    ("kind", "layout", "changes", "due"),
    [
        ("prrte", PAIR, {}, "-n 2 --map-by ppr:2:node --bind-to core"),
        ("prrte", FREE, {}, "-n 2 --map-by ppr:2:node --bind-to none"),
        ("prrte", WIDE, {}, "-n 2 --map-by ppr:2:node:PE=4 --bind-to core"),
        ("prrte", PAIR, CROWDED, "-n 2 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none"),
        ("prrte", WIDE, CROWDED, "-n 2 --map-by ppr:2:node:OVERSUBSCRIBE --bind-to none"),
        ("prrte", NODES, {}, "--host n1:3,n2:3 -n 6 --map-by ppr:3:node --bind-to core"),
        ("orte", PAIR, {}, "-n 2 --map-by ppr:2:node --bind-to core"),
        ("orte", FREE, {}, "-n 2 --map-by ppr:2:node --bind-to none"),
        ("orte", WIDE, {}, "-n 2 --map-by ppr:2:node:PE=4 --bind-to core"),
        ("orte", PAIR, CROWDED, "-n 2 --map-by ppr:2:node --bind-to none --oversubscribe"),
        ("hydra", PAIR, {}, "-ppn 2 -n 2"),
        ("hydra", FREE, {}, "-ppn 2 -n 2"),
        ("hydra", WIDE, {}, "-ppn 2 -n 2"),
        ("hydra", PAIR, CROWDED, "-ppn 2 -n 2"),
        ("hydra", NODES, {}, "-hosts n1,n2 -ppn 3 -bind-to core -n 6"),
        ("intel", PAIR, {}, "-ppn 2 -n 2"),
        ("intel", PAIR, CROWDED, "-ppn 2 -n 2"),
        ("hydra", PAIR, {"keeps": False}, "-ppn 2 -pmi-port -n 2"),
        (
            "flux", WIDE, PMIX,
            "run --nodes=1 --tasks-per-node=2 --exclusive -o exit-on-error -o pmi=pmix"
            " -o cpu-affinity=per-task",
        ),
        (
            "flux", FREE, {},
            "run --nodes=1 --tasks-per-node=2 --exclusive -o exit-on-error -o cpu-affinity=off",
        ),
        ("pals", WIDE, PMIX, "-n 2 --ppn 2 --pmi=pmix --depth 4 --cpu-bind depth"),
        ("pals", FREE, {"slingshot": True}, "-n 2 --ppn 2 --single-node-vni --cpu-bind none"),
        ("aprun", WIDE, {}, "-n 2 -N 2 -d 4 -cc cpu"),
        ("aprun", FREE, {}, "-n 2 -N 2 -d 1 -cc none"),
        (
            "prrte", PAIR, MASKED,
            "-n 2 --map-by rankfile:FILE=/f/ranks:HWTCPUS --bind-to hwthread:overload-allowed",
        ),
        (
            "orte", PAIR, MASKED,
            "-n 2 --rankfile /f/ranks --mca rmaps_rank_file_physical 1 "
            "--bind-to core:overload-allowed",
        ),
        ("hydra", PAIR, MASKED, "-ppn 2 -n 2"),
        ("intel", PAIR, MASKED, "-ppn 2 -n 2"),
        (
            "flux", PAIR, MASKED,
            "run --nodes=1 --tasks-per-node=2 --exclusive -o exit-on-error"
            " -o cpu-affinity=map:0x3;0x10c",
        ),
        ("pals", PAIR, MASKED, "-n 2 --ppn 2 --cpu-bind list:0-1:2-3,8"),
        ("aprun", PAIR, MASKED, "-n 2 -N 2 -d 1 -cc 0-1:2-3,8"),
    ],
)  # fmt: skip
def test_words(kind: str, layout: Layout, changes: dict[str, Any], due: str) -> None:
    assert words(kind, layout, **changes) == due


STEP = "--ntasks=2 --ntasks-per-node=2 --distribution=block"
ENDS = "--kill-on-bad-exit=1 --input=none"


@pytest.mark.parametrize(
    ("layout", "changes", "due"),
    [
        (
            NODES, {"allocation": SLURM, "pmi": "pmix", "version": "22.05.8"},
            "--mpi=pmix --nodes=2 --ntasks=6 --ntasks-per-node=3 --distribution=block:block "
            f"--cpus-per-task=1 --threads-per-core=1 {ENDS} --nodelist=n1,n2 --overlap "
            "--cpu-bind=cores",
        ),
        (
            WIDE, {},
            f"--mpi=none --nodes=1 {STEP}:block --cpus-per-task=4 --threads-per-core=1 {ENDS} "
            "--overlap --cpu-bind=cores",
        ),
        (FREE, {}, f"--mpi=none --nodes=1 {STEP} {ENDS} --overlap --cpu-bind=none"),
        (
            WIDE, CROWDED,
            f"--mpi=none --nodes=1 {STEP} {ENDS} --overlap --overcommit --cpu-bind=none",
        ),
        (
            PAIR, MASKED,
            f"--mpi=none --nodes=1 {STEP} {ENDS} --overlap --cpu-bind=mask_cpu:0x3,0x10c",
        ),
        (
            FREE, {"version": "20.02.3"},  # an unknown version is a new one
            f"--mpi=none --nodes=1 {STEP} {ENDS} --cpu-bind=none",
        ),
    ],
)  # fmt: skip
def test_srun_names_the_pmi_the_nodes_and_the_binding(
    layout: Layout, changes: dict[str, Any], due: str
) -> None:
    assert words("srun", layout, **changes) == due


@pytest.mark.parametrize(
    ("layout", "changes", "due"),
    [
        (PAIR, {}, "core"),
        (FREE, {}, "none"),
        (WIDE, {}, "core:4"),
        (PAIR, {"crowded": True}, "none"),
        (PAIR, {"masks": MASKS}, "user:0+1,2+3+8"),
    ],
)
def test_mpich_binds_by_environment(layout: Layout, changes: dict[str, Any], due: str) -> None:
    """With -bind-to its ranks cannot spawn others. Neither ssh nor every srun passes the
    environment on."""
    assert settings("hydra", layout, **changes) == {"HYDRA_BINDING": due}
    assert "-bind-to" not in words("hydra", layout, **changes)
    for other in (Allocation(("n2",), "--hosts"), SLURM):
        there = {"allocation": other, **changes}
        assert settings("hydra", layout, **there).keys().isdisjoint(settings("hydra", layout))
        assert f"-bind-to {due} " in words("hydra", layout, **there)


def test_a_step_of_one_node_over_slingshot_asks_for_a_vni() -> None:
    vni = "--network=single_node_vni"
    assert vni in words("srun", PAIR, slingshot=True)
    assert vni not in words("srun", PAIR)
    assert vni not in words("srun", NODES, slingshot=True)


def test_masks_of_intel() -> None:
    assert settings("intel", PAIR, masks=MASKS) == {
        "I_MPI_PIN": "on", "I_MPI_PIN_DOMAIN": "[0x3,0x10c]",
    }  # fmt: skip


def test_a_rankfile_names_the_host_and_the_cpus_of_each_rank() -> None:
    layout = Layout(2, 2)
    text = "rank 0=n1 slot=0-1\nrank 1=n1 slot=2-3,8\nrank 2=n2 slot=0-1\nrank 3=n2 slot=2-3,8\n"
    for kind in ("prrte", "orte"):
        assert command(kind, layout, masks=MASKS).files == ((Path("/f/ranks"), text),)
    numbers = (0, 2, 1, 3, 8)  # the hardware's order, which PRRTE counts in and ORTE does not
    for kind, slots in (("prrte", ["0,2", "1,3-4"]), ("orte", ["0-1", "2-3,8"])):
        told = command(kind, PAIR, masks=MASKS, numbers=numbers).files[0][1]
        assert told == "".join(f"rank {n}=n1 slot={slot}\n" for n, slot in enumerate(slots))


def test_crowded_and_free_ranks_get_no_masks() -> None:
    for kind in KINDS:
        for layout, crowded in ((FREE, False), (PAIR, True)):
            found = command(kind, layout, masks=MASKS, crowded=crowded)
            assert not found.files
            assert not {"mask_cpu", "user:", "list:", "map:0x"} & set(" ".join(found.words))
            assert "0x3" not in f"{found.words}{settings(kind, layout, crowded=crowded)}"


def test_what_cannot_be_bound_is_refused() -> None:
    for kind in KINDS:
        bind: Callable[..., object] = settings if kind in ("hydra", "intel") else command
        if kind != "intel":
            with pytest.raises(UsageError, match="needs this machine's list of CPUs"):
                bind(kind, Layout(bind="numa"))
        with pytest.raises(UsageError, match="1 masks for 2 ranks"):
            bind(kind, PAIR, masks=MASKS[:1])


def test_a_rankfile_has_a_path_that_the_launcher_accepts() -> None:
    for folder in ("/a b", "/a,b", "/a:b", "/a'b", "/a%b"):
        with pytest.raises(UsageError, match="cannot read a file whose path"):
            command("prrte", PAIR, masks=MASKS, folder=Path(folder))


# ------------------------------------------------------------------ nodes


def test_aprun_knows_nodes_by_number() -> None:
    crays = Allocation(("nid00012", "nid00140"), "PBS job 7", "pbs", "7")
    assert "-L 12 " in words("aprun", PAIR, allocation=crays)
    assert "-L" not in words("aprun", Layout(2, 2), allocation=crays)
    with pytest.raises(UsageError, match="names nodes by number"):
        words("aprun", PAIR, allocation=NAMED)


def test_more_nodes_than_there_are_is_refused() -> None:
    for kind in KINDS:
        with pytest.raises(UsageError, match="needs 4 nodes; --hosts has 3"):
            command(kind, Layout(4, 1), allocation=NAMED)


def test_a_stand_in_for_ssh_is_reported_in_each_ones_words() -> None:
    asked = replace(NAMED, agent="/x/ssh")
    reached = "-launcher ssh -launcher-exec /x/ssh -hosts n1,n2"
    due = {
        "prrte": "--prtemca plm_ssh_agent /x/ssh", "orte": "--mca plm_rsh_agent /x/ssh",
        "hydra": reached, "intel": reached,
    }  # fmt: skip
    for kind, told in due.items():
        assert told in words(kind, NODES, allocation=asked)


# ------------------------------------------------------------------ environment


@pytest.mark.parametrize("kind", ["prrte", "orte"])
def test_open_mpi_is_let_run_as_root_by_root_only(kind: str) -> None:
    assert settings(kind, PAIR) == {}
    assert settings(kind, PAIR, root=True) == {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }


def test_nodes_with_other_cpus_each_are_described_one_by_one() -> None:
    told = {"prrte": "PRTE_MCA_prte_hetero_nodes", "orte": "OMPI_MCA_orte_hetero_nodes"}
    for kind, name in told.items():
        assert settings(kind, NODES, uneven=True)[name] == "1"
        assert name not in settings(kind, NODES)


def test_intel_pins_by_environment() -> None:
    core = {"I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": "core"}
    assert settings("intel", PAIR) == {"I_MPI_PIN": "on", **core}
    assert settings("intel", WIDE)["I_MPI_PIN_DOMAIN"] == "4:compact"
    assert settings("intel", FREE) == {"I_MPI_PIN": "off"}
    assert settings("intel", PAIR, crowded=True) == {"I_MPI_PIN": "off"}


def test_daemons_in_a_job_of_slurm_do_not_wait_and_see_all_its_cpus() -> None:
    for kind in ("prrte", "orte", "hydra", "intel"):
        for allocation, value in ((SLURM, "1"), (HERE, None)):
            assert settings(kind, PAIR, allocation=allocation).get("SLURM_OVERLAP") == value
    whole = "ras_slurm_use_entire_allocation"
    assert settings("prrte", PAIR, allocation=SLURM)[f"PRTE_MCA_{whole}"] == "1"
    assert settings("orte", PAIR, allocation=SLURM)[f"OMPI_MCA_{whole}"] == "1"
    assert f"PRTE_MCA_{whole}" not in settings("orte", PAIR, allocation=SLURM)


def test_a_step_is_not_changed_by_what_the_jobs_script_set() -> None:
    found = settings("srun", PAIR, pmi="pmix")
    assert found["SLURM_CPUS_PER_TASK"] is None
    assert found["PMIX_MCA_psec"] == "native"
    assert settings("srun", PAIR, pmi="pmi2").keys() == found.keys() - {"PMIX_MCA_psec"}


def test_a_pmi_that_is_an_open_file_has_to_reach_the_ranks() -> None:
    for kind, pmi in (("srun", "pmi2"), ("flux", "simple")):
        with pytest.raises(UsageError, match=f"offers {pmi} through an open file"):
            command(kind, PAIR, pmi=pmi, keeps=False)
        assert command(kind, PAIR, pmi="pmix", keeps=False).words
        assert command(kind, PAIR, pmi=pmi).words


# ------------------------------------------------------------------ numbers

CPUS = st.sets(st.integers(0, 300), min_size=1, max_size=40)


@given(CPUS)
def test_lists_and_masks_of_cpus_say_the_same(cpus: set[int]) -> None:
    assert set(ranges(format_cpus(cpus))) == cpus
    assert {n for n in range(301) if int(hexadecimal(cpus), 16) >> n & 1} == cpus
    assert not any(f"{n},{n + 1}," in f"{format_cpus(cpus)}," for n in range(300))


@given(st.text(alphabet="0123456789-, \nx", max_size=9))
def test_lists_of_cpus_are_read_or_refused(text: str) -> None:
    try:
        found = list(ranges(text))
    except ValueError:
        return
    assert set(ranges(format_cpus(found))) == set(found)


def machine(system: Path, cores: dict[tuple[int, ...], str], domains: tuple[str, ...]) -> None:
    """/sys of a machine: hardware threads of each core, the CPUs of its package, of each domain."""
    for threads, package in cores.items():
        for cpu in threads:
            folder = system / f"cpu/cpu{cpu}"
            (folder / "topology").mkdir(parents=True)
            (folder / "topology/core_cpus_list").write_text(",".join(map(str, threads)) + "\n")
            (folder / "topology/package_cpus_list").write_text(f"{package}\n")
    for number, cpus in enumerate(domains):
        (system / f"node/node{number}").mkdir(parents=True)
        (system / f"node/node{number}/cpulist").write_text(f"{cpus}\n")


def test_the_hardwares_order_is_not_that_of_numbers(tmp_path: Path) -> None:
    machine(tmp_path, {(0, 4): "0-7", (1, 5): "0-7", (2, 6): "0-7", (3, 7): "0-7"}, ("0-7",))
    assert in_order(range(8), tmp_path) == (0, 4, 1, 5, 2, 6, 3, 7)
    assert in_order((5, 1, 3), tmp_path) == (1, 5, 3)


def test_sockets_whose_cpus_are_numbered_in_turn(tmp_path: Path) -> None:
    cores: dict[tuple[int, ...], str] = {
        (cpu,): ("0,2,4,6", "1,3,5,7")[cpu % 2] for cpu in range(8)
    }
    machine(tmp_path, cores, ("0,4", "2,6", "1,3,5,7"))
    assert in_order(range(8), tmp_path) == (0, 4, 2, 6, 1, 3, 5, 7)


def test_where_nothing_is_reported_numbers_are_the_order(tmp_path: Path) -> None:
    assert in_order((3, 1, 2), tmp_path) == (1, 2, 3)
