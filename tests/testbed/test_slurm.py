"""Slurm over the test clusters, and real MPIs over both: what other tests take for given.

These test the test bed alone, so they are long: they run when it changed.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import mpigraft
from mpigraft.core.model import Family
from testbed import cpusets
from testbed.cluster import HOST, Cluster, until
from testbed.slurm import Slurm

pytestmark = [pytest.mark.root, pytest.mark.long]
Clusters = Callable[..., Cluster]
Mpis = Mapping[Family, Path]
Words = list[str | Path]
PROGRAMS = Path(mpigraft.__file__).parent / "native/prebuilt" / platform.machine()
LATENCY = ("--benchmark", "latency", "--min", "8", "--max", "8", "--iterations", "50",
           "--format", "osu")  # fmt: skip
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


@pytest.mark.covering
def test_a_job_has_all_nodes_from_anywhere(slurm: Slurm) -> None:
    """From the host with the environment of the fixture, in a node without any."""
    done = slurm.ask("srun", "-N2", "hostname")
    assert sorted(done.text().split()) == ["n1", "n2"]
    for node in slurm.cluster.nodes:
        line = ["env", "-i", "PATH=/usr/bin:/bin", "srun", "-N2", "hostname"]
        assert sorted(slurm.cluster.said(node, *line).split()) == ["n1", "n2"]
    many = slurm.ask("srun", "-N2", "--ntasks-per-node=3", "hostname").text().split()
    assert sorted(many) == ["n1"] * 3 + ["n2"] * 3


def test_batch_job_starts_steps_and_is_noted(slurm: Slurm) -> None:
    shared = slurm.cluster.shared
    script = shared / "job.sh"
    script.write_text("#!/bin/sh\nhostname\nsrun -N2 sh -c 'echo step $(hostname)'\nexit 3\n")
    done = slurm.ask("sbatch", "-N2", "--wait", f"--output={shared / 'job.out'}", str(script))
    assert done.code == 3, done.text()
    lines = (shared / "job.out").read_text().splitlines()
    assert (lines[0], sorted(lines[1:])) == ("n1", ["step n1", "step n2"])
    until(lambda: "Name=job.sh JobState=FAILED" in slurm.jobs_ended(), "the controller's note")


def test_cancelled_job_leaves_no_process(slurm: Slurm) -> None:
    submitted = slurm.ask("sbatch", "-N2", "--parsable", "--output=/dev/null",
                          "--wrap=srun sleep 611")  # fmt: skip
    job = submitted.text().strip()
    for node in slurm.cluster.nodes:
        until(lambda node=node: any("611" in p for p in slurm.cluster.processes(node)), node)  # type: ignore[misc]
    assert slurm.ask("scancel", job).ok
    slurm.idle()
    for node in slurm.cluster.nodes:
        until(lambda node=node: not any("611" in p for p in slurm.cluster.processes(node)), node)  # type: ignore[misc]


def test_restarted_controller_knows_its_jobs(slurm: Slurm) -> None:
    ended = slurm.cluster.shared / "ended"
    wrap = f"--wrap=while [ ! -e {ended}.now ]; do sleep 0.1; done; touch {ended}"
    job = slurm.ask("sbatch", "--parsable", "--output=/dev/null", wrap).text().strip()
    state = ("squeue", "--noheader", "--format=%T", f"--jobs={job}")
    until(lambda: slurm.ask(*state).text().strip() == "RUNNING", "the job's start")
    slurm.restart_controller()
    until(lambda: slurm.ask(*state).text().strip() == "RUNNING", "the controller's answer")
    Path(f"{ended}.now").touch()
    until(ended.exists, "the job's end")
    slurm.idle()
    assert slurm.ask("srun", "-N2", "hostname").ok


@pytest.mark.usefixtures("slurms_here")
def test_killed_node_is_down_and_the_others_go_on(clusters: Clusters) -> None:
    with clusters(3) as cluster, Slurm(cluster, node_timeout_s=2) as slurm:
        slurm.kill_node("n3")
        until(lambda: slurm.states().get("n3", "").startswith("down"), "n3 down")
        assert sorted(slurm.ask("srun", "-N2", "hostname").text().split()) == ["n1", "n2"]


@pytest.mark.usefixtures("slurms_here")
def test_several_at_once_with_partitions_and_limits(clusters: Clusters) -> None:
    parts = (("small", "n1"), ("large", "n[1-2]"))
    with (
        clusters(2) as one, Slurm(one, partitions=parts, max_time="00:05:00", cpus=2) as first,
        clusters(1) as other, Slurm(other) as second,
    ):  # fmt: skip
        assert first.ask("srun", "hostname").text() == "n1\n"
        assert first.ask("srun", "-psmall", "-N2", "hostname").code != 0
        assert sorted(first.ask("srun", "-plarge", "-N2", "hostname").text().split()) == [
            "n1",
            "n2",
        ]
        assert second.ask("srun", "hostname").text() == "n1\n"
        told = first.ask("sinfo", "--noheader", "--format=%P %l %c").text().splitlines()
        assert sorted(line.split() for line in told) == [
            ["large", "5:00", "2"],
            ["small*", "5:00", "2"],
        ]


# ------------------------------------------------------------------ real MPIs, two nodes


def ran(cluster: Cluster, argv: Words, env: Mapping[str, str] | None = None) -> None:
    """The benchmark wants two ranks of one world, so that it ran says enough."""
    done = cluster.run("n1", argv, env={**cluster.environ, **AS_ROOT, **(env or {})})
    assert done.returncode == 0, done.stderr
    assert "Pass" in done.stdout, done.stdout


@pytest.mark.mpi
def test_open_mpi_over_the_stand_in(cluster: Cluster, mpis: Mpis) -> None:
    program = PROGRAMS / "ompi/mpigraft-bench"
    words: Words = [
        mpis[Family.OPENMPI] / "bin/mpirun", "--prtemca", "prte_if_include", cluster.subnet,
        "-H", "n1:1,n2:1", "-n", "2",
    ]  # fmt: skip
    for agent in ((), ("--prtemca", "plm_ssh_agent", cluster.remote)):
        ran(cluster, [*words, *agent, program, *LATENCY])


@pytest.mark.mpi
@pytest.mark.skipif(not cpusets.cpus(), reason="cpusets cannot be written here")
def test_open_mpi_binds_each_rank_to_its_nodes_processor(cluster: Cluster, mpis: Mpis) -> None:
    """Without processors of their own all nodes' first ranks are bound to this machine's first,
    and wait for each other for milliseconds. PRRTE takes nodes of one shape for equal, numbers of
    processors and all, unless it is told that they are not."""
    see = "echo $(hostname) $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status)"
    words: Words = [
        mpis[Family.OPENMPI] / "bin/mpirun", "--prtemca", "prte_if_include", cluster.subnet,
        "--prtemca", "prte_hetero_nodes", "1", "-H", "n1:1,n2:1", "-n", "2",
        "--bind-to", "core", "sh", "-c", see,
    ]  # fmt: skip
    done = cluster.run("n1", words, env={**cluster.environ, **AS_ROOT})
    own = cpusets.cpus()
    assert sorted(done.stdout.splitlines()) == [
        f"{node} {own[index % len(own)]}" for index, node in enumerate(cluster.nodes)
    ], done.stderr
    # hwloc sees one core, so two ranks do not fit.
    words[words.index("n1:1,n2:1")] = "n1:2"
    refused = cluster.run("n1", words, env={**cluster.environ, **AS_ROOT})
    assert refused.returncode != 0
    assert "more cpus than" in refused.stderr or "overload" in refused.stderr


@pytest.mark.mpi
def test_mpich_and_intel_over_the_stand_in(cluster: Cluster, mpis: Mpis) -> None:
    program = PROGRAMS / "mpich/mpigraft-bench"
    words: Words = ["-launcher", "ssh", "-launcher-exec", cluster.remote, "-hosts", "n1,n2",
             "-iface", cluster.device, "-ppn", "1", "-n", "2", program, *LATENCY]  # fmt: skip
    mpich, intel = mpis[Family.MPICH], mpis[Family.INTEL]
    ran(cluster, [mpich / "bin/mpiexec", *words], {"LD_LIBRARY_PATH": str(mpich / "lib")})
    own = {"I_MPI_ROOT": intel, "LD_LIBRARY_PATH": intel / "lib", "I_MPI_FABRICS": "shm:ofi",
           "FI_PROVIDER_PATH": intel / "lib", "FI_PROVIDER": "tcp"}  # fmt: skip
    ran(cluster, [intel / "bin/mpiexec.hydra", *words], {k: str(v) for k, v in own.items()})


@pytest.mark.covering
@pytest.mark.mpi
def test_steps_of_slurm_are_one_world(slurm: Slurm, mpis: Mpis) -> None:
    openmpi, mpich = mpis[Family.OPENMPI], mpis[Family.MPICH]
    assert {"pmix", "pmi2"} <= {*slurm.ask("srun", "--mpi=list").text().split()}
    by: Words = ["srun", "-N2", "-n2"]
    env = {**slurm.environ, "LD_LIBRARY_PATH": str(openmpi / "lib"), "OPAL_PREFIX": str(openmpi)}
    ran(slurm.cluster, [*by, "--mpi=pmix", PROGRAMS / "ompi/mpigraft-bench", *LATENCY], env)
    env = {**slurm.environ, "LD_LIBRARY_PATH": str(mpich / "lib")}
    ran(slurm.cluster, [*by, "--mpi=pmi2", PROGRAMS / "mpich/mpigraft-bench", *LATENCY], env)


@pytest.mark.mpi
def test_mpirun_in_an_allocation_takes_its_nodes(slurm: Slurm, mpis: Mpis) -> None:
    """mpirun starts its daemons by srun then; from the host too, which is no node."""
    line: Words = [
        mpis[Family.OPENMPI] / "bin/mpirun",
        "-n",
        "2",
        "--map-by",
        "ppr:1:node",
        "hostname",
    ]
    env = {**slurm.environ, **AS_ROOT}
    for origin in ("n2", HOST):
        done = slurm.cluster.run(origin, ["salloc", "-N2", "--quiet", *line], env=env)
        assert sorted(done.stdout.split()) == ["n1", "n2"], done.stderr
