"""Which nodes launches may use, and how lists of hosts are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Allocation
from mpigraft.launch.hosts import allocation
from mpigraft.launch.hosts.allocation import (
    THIS_HOST,
    cpu_counts,
    expand,
    find_allocation,
    read_hostfile,
)
from tests.builders.messages import shows

NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,8}[a-z_-]", fullmatch=True)
RANGES = st.tuples(st.integers(0, 3), st.integers(0, 1200), st.integers(0, 40))
SLURM = {
    "SLURM_JOB_ID": "42",
    "SLURM_JOB_NODELIST": "n[1-2],m07",
    "SLURM_JOB_CPUS_PER_NODE": "72(x2),36",
}


@given(st.lists(st.tuples(NAMES, st.lists(RANGES, max_size=4), st.sampled_from(("", "-ib"))),
                min_size=1, max_size=5))  # fmt: skip
def test_what_is_folded_unfolds_to_the_same_hosts(
    parts: list[tuple[str, list[tuple[int, int, int]], str]],
) -> None:
    written, hosts = [], []
    for name, ranges, tail in parts:
        if not ranges:
            written.append(name + tail)
            hosts.append(name + tail)
            continue
        inner = []
        for zeros, first, more in ranges:
            width = len(str(first)) + zeros
            low, high = (str(n).zfill(width) for n in (first, first + more))
            inner.append(low if more == 0 else f"{low}-{high}")
            hosts += [f"{name}{str(n).zfill(width)}{tail}" for n in range(first, first + more + 1)]
        written.append(f"{name}[{','.join(inner)}]{tail}")
    assert expand(",".join(written)) == tuple(hosts)


@given(st.text(alphabet="n0159[]-,: x\n", max_size=24))
def test_any_text_is_hosts_or_a_usage_error(text: str) -> None:
    try:
        hosts = expand(text)
    except UsageError:
        return
    assert hosts
    patterns = (allocation.NAME, allocation.ADDRESS_6)
    assert all(any(p.fullmatch(host) for p in patterns) for host in hosts)


def test_brackets_as_slurm_writes_them() -> None:
    assert expand("n[1-3,07-09]x,login") == ("n1x", "n2x", "n3x", "n07x", "n08x", "n09x", "login")
    assert expand("n[9-11]") == ("n9", "n10", "n11")
    assert expand("n[098-101]") == ("n098", "n099", "n100", "n101")
    assert expand("r[0-1]c[1,3]") == ("r0c1", "r0c3", "r1c1", "r1c3")
    assert expand(" nid001001,nid001003 ") == ("nid001001", "nid001003")


@pytest.mark.parametrize(
    "text",
    ["", ",", "a,,b", "n[", "n[1", "n]1[", "n[]", "n[1-]", "n[3-1]", "n[[1]]", "-n1", "n1;reboot",
     "n1 n2", "n:4", "1:", ":", "dead:4", "n[0-999][0-999]",
     "n[0-99999999999999999]", "n[-1]", "n[1--2]", "n\n1"],
)  # fmt: skip
def test_what_is_no_list_of_hosts_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="here"):
        expand(text, "here")


@given(st.lists(st.tuples(st.integers(1, 256), st.integers(1, 9)), min_size=1, max_size=6))
def test_cpu_counts_unfold(runs: list[tuple[int, int]]) -> None:
    text = ",".join(f"{cpus}(x{times})" if times > 1 else str(cpus) for cpus, times in runs)
    assert cpu_counts(text) == tuple(cpus for cpus, times in runs for _ in range(times))


@pytest.mark.parametrize("text", ["", "x", "4(x)", "4(2)", "-4", "4,,4", "4(x999999999)"])
def test_cpu_counts_that_cannot_be_read_are_none(text: str) -> None:
    assert cpu_counts(text) == ()


def test_the_scheduler_is_asked_only_when_nobody_named_hosts(tmp_path: Path) -> None:
    assert find_allocation({}) == THIS_HOST
    mine = find_allocation(SLURM)
    assert mine == Allocation(("n1", "n2", "m07"), "Slurm job 42", "slurm", "42", (72, 72, 36))
    hosts = tmp_path / "hosts"
    hosts.write_text("# mine\nn9 slots=4 # and more\n\nn[3-4]:2\nn9\n")
    assert find_allocation({}, hostfile=str(hosts)).hosts == ("n9", "n3", "n4")
    assert find_allocation(SLURM, hosts="n[7-8],n7").hosts == ("n7", "n8")
    assert find_allocation(SLURM, hosts="n7").scheduler == ""
    part = find_allocation(SLURM, hosts="m07,n2")
    assert (part.hosts, part.job, part.cpus) == (("m07", "n2"), "42", (36, 72))
    with pytest.raises(UsageError, match="cannot be combined"):
        find_allocation(SLURM, hosts="n1", hostfile=str(hosts))


OWN = os.uname().nodename
NAMES_OF_THIS_HOST = ("localhost", "LocalHost", OWN, OWN.upper(), "127.0.0.1", "127.3.2.1", "::1")


@pytest.mark.parametrize("name", NAMES_OF_THIS_HOST)
def test_this_host_is_known_by_any_of_its_names_and_addresses(name: str, tmp_path: Path) -> None:
    """By another name than its node name it got the CPUs, and Open MPI an unknown host: VM."""
    hosts = tmp_path / "hosts"
    hosts.write_text(f"{name}\n{OWN}:2\n")
    for found in (
        find_allocation({}, hosts=name),
        find_allocation({}, hosts=f"{OWN},{name},localhost"),
        find_allocation({}, hostfile=str(hosts)),
    ):
        assert (found.hosts, found.here) == ((OWN,), True)
    mixed = find_allocation({}, hosts=f"elsewhere,{name}")
    assert (mixed.hosts, mixed.here) == (("elsewhere", OWN), False)


@pytest.mark.parametrize("name", [*NAMES_OF_THIS_HOST, f"{OWN}.example"])
def test_a_node_of_a_job_is_known_by_any_of_its_names(name: str) -> None:
    """Ranks on it were started outside of the job."""
    job = {"SLURM_JOB_ID": "42", "SLURM_JOB_NODELIST": f"{OWN},n2"}
    found = find_allocation(job, hosts=name)
    assert (found.hosts, found.job, found.granted) == ((OWN,), "42", (OWN, "n2"))
    assert find_allocation(job, hosts="N2.example").hosts == ("n2",)


@pytest.mark.parametrize("name", ["192.0.2.77", f"{OWN}.elsewhere.invalid", f"{OWN}x", "0.0.0.0"])
def test_another_host_keeps_its_name(name: str) -> None:
    found = find_allocation({}, hosts=name)
    assert (found.hosts, found.here) == ((name,), False)


def test_an_address_that_no_launcher_takes_is_refused() -> None:
    with pytest.raises(UsageError, match="IPv6"):
        find_allocation({}, hosts="2001:db8::77")


def test_an_agent_is_a_program_and_is_reported_even_for_one_host(tmp_path: Path) -> None:
    agent = tmp_path / "enter"
    agent.write_text("#!/bin/sh\n")
    with pytest.raises(MissingError, match="--ssh-command"):
        find_allocation({}, ssh_command=str(agent))
    agent.chmod(0o755)
    found = find_allocation({"PATH": str(tmp_path)}, ssh_command="enter", hosts="n1")
    assert (found.agent, found.here) == (str(agent), False)


def test_a_heterogeneous_job_is_reported() -> None:
    lists = {f"SLURM_JOB_NODELIST_HET_GROUP_{n}": name for n, name in enumerate(("n1", "n2"))}
    job = {"SLURM_JOB_ID": "3", "SLURM_HET_SIZE": "2", **lists}  # as Slurm 22.05 sets them
    for nodes, part in (("n1", "component 0 of 2"), ("n2", "component 1 of 2"), ("n[1-2]", "")):
        assert find_allocation({**job, "SLURM_JOB_NODELIST": nodes}).component == part
    assert shows(find_allocation({**SLURM, "SLURM_HET_SIZE": "2"}).component, "one of 2")
    assert find_allocation({**SLURM, "SLURM_HET_SIZE": "1"}).component == ""


def test_cpus_that_do_not_match_the_hosts_are_not_known() -> None:
    assert find_allocation({**SLURM, "SLURM_JOB_CPUS_PER_NODE": "72(x2)"}).cpus == ()


@pytest.mark.parametrize("environ", [{"SLURM_JOB_ID": "1"}, {"PBS_JOBID": "1.server"}])
def test_a_job_that_names_no_nodes_is_not_taken_for_this_host(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="does not say which nodes"):
        find_allocation(environ)


def test_pbs_names_a_host_for_each_process(tmp_path: Path) -> None:
    nodes = tmp_path / "nodes"
    nodes.write_text("x1\nx1\nx2.site\nx2.site\n")
    found = find_allocation({"PBS_JOBID": "7.pbs", "PBS_NODEFILE": str(nodes)})
    assert found == Allocation(("x1", "x2.site"), "PBS job 7.pbs", "pbs", "7.pbs")
    with pytest.raises(UsageError, match="gone: No such file"):
        find_allocation({"PBS_JOBID": "7", "PBS_NODEFILE": str(tmp_path / "gone")})


def test_flux_is_requested_its_nodes(tmp_path: Path) -> None:
    tool = tmp_path / "flux"
    tool.write_text(
        '#!/bin/sh\ncase "$*" in\n"getattr hostlist") echo "tioga[10-11]" ;;\n'
        '"jobs -n --format={nodelist} ƒ3") echo tioga11 ;;\n*) exit 1\nesac\n'
    )
    tool.chmod(0o755)
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin", "FLUX_URI": "local:///x"}
    found = find_allocation({**environ, "FLUX_ENCLOSING_ID": "f2"})
    assert found == Allocation(("tioga10", "tioga11"), "Flux job f2", "flux", "1")
    task = find_allocation({**environ, "FLUX_ENCLOSING_ID": "f2", "FLUX_JOB_ID": "ƒ3"})
    assert task == Allocation(("tioga11",), "Flux job ƒ3", "flux", "2")
    tool.write_text("#!/bin/sh\necho broker gone >&2; exit 1\n")
    with pytest.raises(MissingError, match="broker gone"):
        find_allocation(environ)


def test_a_hostfile_without_hosts_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("# nothing\n")
    with pytest.raises(UsageError, match="names no host"):
        read_hostfile(tmp_path / "none")
    (tmp_path / "odd").write_bytes(b"n1\n\xff\xfe\n")
    with pytest.raises(UsageError, match=r"odd:2"):
        read_hostfile(tmp_path / "odd")
