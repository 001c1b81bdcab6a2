"""The hosts that each launcher is given, and the variables that tell ranks their numbers."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

import pytest

from mpigraft.cli.entry import SIZES
from mpigraft.core.model import Allocation, Layout
from mpigraft.graft.injection.plan import PASSED
from mpigraft.knowledge.fit.ranks import rank_header, rank_rows, rank_variables, task_in
from mpigraft.launch.launchers.registry import LAUNCHERS
from mpigraft.native.programs import SOURCES
from tests.builders.messages import shows
from tests.unit.launch.test_launchers import NAMED, NODES, SLURM, settings, words

PBS = Allocation(("n1", "n2", "n3"), "PBS job 7", "pbs", "7")


def test_an_allocation_is_left_to_the_launcher_and_a_part_of_it_is_named() -> None:
    whole, part = replace(NODES, nodes=3), NODES
    for kind in ("prrte", "orte", "intel", "pals"):
        assert "n1" not in words(kind, whole, allocation=SLURM)
    assert shows(words("hydra", whole, allocation=SLURM), "-hosts n1,n2,n3")  # reads no list
    assert "-hosts" not in words("hydra", whole, allocation=PBS)
    for kind in ("prrte", "orte"):
        assert shows(words(kind, part, allocation=SLURM), "--host n1:3,n2:3")
    for kind in ("hydra", "intel"):
        assert "-hosts n1,n2" in words(kind, part, allocation=SLURM)
    assert shows(words("pals", part, allocation=SLURM), "--hosts n1,n2")
    assert shows(words("flux", part, allocation=SLURM), "--requires=hosts:n1,n2")
    assert "--requires" not in words("flux", whole, allocation=SLURM)
    assert shows(words("srun", whole, allocation=SLURM), "--nodelist=n[1-3]")
    assert shows(words("intel", part, allocation=SLURM), "-launcher", "-hosts n1,n2")
    many = replace(SLURM, hosts=tuple(f"n{n}" for n in range(30000)))
    assert "-hosts" not in words("hydra", Layout(30000, 1), allocation=many)


def test_all_hosts_that_a_user_named_of_a_job_are_named() -> None:
    """The launcher would read those of the job, and take its first ones."""
    named = replace(SLURM, hosts=("n3",), granted=SLURM.hosts)
    for kind, option in (
        ("prrte", "--host n3:1"), ("orte", "--host n3:1"), ("hydra", "-hosts n3"),
        ("intel", "-hosts n3"), ("pals", "--hosts n3"), ("flux", "--requires=hosts:n3"),
        ("srun", "--nodelist=n3"),
    ):  # fmt: skip
        assert option in words(kind, Layout(1, 1), allocation=named)


def test_hosts_with_two_numbers_are_listed_as_every_launcher_reads_them() -> None:
    racks = replace(SLURM, hosts=tuple(f"rack{rack}node0{n}" for rack in (0, 1) for n in (1, 2, 3)))
    part = replace(racks, hosts=("rack1node01",), granted=racks.hosts)
    for kind in ("prrte", "orte", "hydra", "intel"):
        assert not [n for n in settings(kind, Layout(3, 1), allocation=SLURM) if "NODELIST" in n]
        for nodes, allocation in ((6, racks), (1, part)):
            told = settings(kind, Layout(nodes, 1), allocation=allocation)
            assert told["SLURM_JOB_NODELIST"] == "rack0node[01-03],rack1node[01-03]"
            assert told["SLURM_NODELIST"] == told["SLURM_JOB_NODELIST"]


def test_full_names_are_not_cut() -> None:
    """Two may share a first label, and a label alone may mean nothing to ssh."""
    for names in (("w.1.example", "w.2.example"), ("n1", "W.2.example")):
        hosts = Allocation(names, "--hosts")
        layout = Layout(2, 1)
        assert settings("prrte", layout, allocation=hosts)["PRTE_MCA_prte_keep_fqdn_hostnames"]
        assert settings("orte", layout, allocation=hosts)["OMPI_MCA_orte_keep_fqdn_hostnames"]
    for one in (Allocation(("n1", "N2", "10.0.0.1"), "--hosts"), NAMED):
        assert not any("fqdn" in name for name in settings("prrte", NODES, allocation=one))


# ------------------------------------------------------------------ variables of ranks


def test_each_launcher_has_its_rank_variables() -> None:
    """Hydra names the rank PMI_ID where ranks talk to it at a port, PMI_RANK where by a file."""
    assert {kind: bool(rank_variables(kind).node) for kind in LAUNCHERS} == {
        **dict.fromkeys(LAUNCHERS, True), "aprun": False,
    }  # fmt: skip
    assert rank_variables("hydra").world == ("PMI_RANK", "PMI_ID")


@pytest.mark.parametrize(
    ("environ", "task"),
    [
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}, ("srun", "1", "2")),
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}, None),  # a step that widens nothing
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),  # the batch step
        ({"PMI_RANK": "0", "PMI_SIZE": "4", "SLURM_PROCID": "0"}, ("hydra", "0", "4")),
        ({"PMI_SIZE": "many", "PMI_RANK": "0"}, None),
    ],
)
def test_a_task_of_several_is_known(
    environ: dict[str, str], task: tuple[str, str, str] | None
) -> None:
    assert task_in(environ) == task


def test_the_console_script_looks_at_each_launcher_s_number_of_tasks() -> None:
    assert {*SIZES} == {row.size for row in rank_rows() if row.size}


def test_ranks_in_a_guest_know_their_numbers() -> None:
    """podman and Charliecloud pass on no variable that is not listed."""
    names = [name for row in rank_rows() for name in (*row.world, *row.node)]
    assert not [n for n in names if not any(fnmatchcase(n, pattern) for pattern in PASSED)]


def test_c_programs_know_the_same_variables() -> None:
    header = (SOURCES / "common/rank_variables.h").read_text()
    assert header == rank_header(), "tools/write_ranks.py writes it"
