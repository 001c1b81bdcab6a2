"""Thousands of hosts in a few words, for people and for launchers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.hostlist import fold_hosts, slurm_hosts
from mpigraft.core.model import Allocation, Group, Layout, Order
from mpigraft.launch.hosts.allocation import expand
from mpigraft.launch.launchers.registry import LAUNCHERS
from tests.builders.messages import shows
from tests.builders.probes import install

HOST = st.from_regex(r"[a-c]{0,2}[0-9]{1,3}[a-z]{0,1}|login|x[0-9]c[0-9]{1,2}", fullmatch=True)
ROWS = st.builds(lambda name, first, n: [f"{name}{first + i}" for i in range(n)],
                 st.sampled_from(["n", "n0", "nid00", "a1-"]), st.integers(0, 1100),
                 st.integers(1, 9))  # fmt: skip


@given(st.lists(st.lists(HOST, max_size=4) | ROWS, min_size=1, max_size=5))
def test_hosts_fold_for_a_person_and_unfold_again(parts: list[list[str]]) -> None:
    hosts = tuple(host for part in parts for host in part)
    if hosts:
        assert expand(fold_hosts(hosts)) == hosts


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (["n1", "n2"], "n1,n2"),
        (["n1", "n2", "n3"], "n[1-3]"),
        ([f"nid{n:06}" for n in range(4096)], "nid[000000-004095]"),
        (["n9", "n10", "n11", "login", "n11"], "n[9-11],login,n11"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n8", "n09", "n10"], "n8,n09,n10"),
        (["a1.b", "a2.b", "a3.b", "a4.c"], "a[1-3].b,a4.c"),
        (["n3", "n2", "n1"], "n3,n2,n1"),
        (["n[1", "n[2", "n[3"], "n[1,n[2,n[3"),
        ([], ""),
    ],
)
def test_hosts_as_a_person_reads_them(hosts: list[str], told: str) -> None:
    assert fold_hosts(hosts) == told


def test_slurm_reads_no_name_that_goes_on_behind_a_bracket() -> None:
    assert slurm_hosts(["n1", "n2", "n3"]) == "n[1-3]"
    assert slurm_hosts(["n1.b", "n2.b", "n3.b"]) == "n1.b,n2.b,n3.b"
    assert slurm_hosts(["n1", "n2", "n3", "login"]) == "n1,n2,n3,login"


def test_a_long_list_of_hosts_says_how_many_it_leaves_out() -> None:
    assert shows(fold_hosts([f"n{n}" for n in range(0, 4096, 2)], 3), "n0,n2,n4", "2045 more")


def test_names_of_hosts_that_no_command_line_takes_are_refused_and_ranges_are_none() -> None:
    hosts = tuple(f"frontier{number:05}" for number in range(9408))  # of the machine of that name
    job = Allocation(hosts, "Slurm job 1", "slurm", "1")

    def words(kind: str, identity: str, allocation: Allocation) -> tuple[str, ...]:
        groups = (Group(8, ("prog",)),)
        mpi, layout = install(identity), Layout(len(hosts), 8)
        return LAUNCHERS[kind].command(Order(Path("/run"), mpi, layout, allocation, groups)).words

    for kind, identity in (("prrte", "openmpi@5.0.11"), ("hydra", "mpich@5.0.2")):
        with pytest.raises(UsageError, match="9408 hosts are 150528 bytes"):
            words(kind, identity, Allocation(hosts, "--hosts"))
        assert max(map(len, words(kind, identity, job))) < 100
    assert "--nodelist=frontier[00000-09407]" in words("srun", "openmpi@5.0.11", job)
