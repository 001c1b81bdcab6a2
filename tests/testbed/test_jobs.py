"""Campaigns as jobs of a real Slurm: they share rounds, are cut off, go on, and lose nothing."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpigraft.bench import submission as jobs
from mpigraft.bench.measurement import place
from mpigraft.core.clock import utc_now
from mpigraft.core.model import JobRecord, JobRequest, JobState, LaunchState
from mpigraft.launch.schedulers import registry
from mpigraft.request.spec import CampaignSpec
from mpigraft.store import Store
from testbed.cluster import HOST, Cluster
from testbed.slurm import Slurm
from tests.builders.comparisons import compare

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

PATIENCE_S = 180.0
CAMPAIGN = """
name = "night"
mpi = ["openmpi@5"]
transport = ["ob1-sm"]
benchmark = ["latency"]
layout = ["1x2"]
max = 8
ms_per_size = 1
seed = 3
"""
A_ROUND = 2  # launches: the baseline, which is all there is, is launched twice


class Site:
    """A user of a cluster: `mpigraft` on the machine that the controller runs on."""

    def __init__(self, slurm: Slurm, home: Path, store: Path) -> None:
        self.slurm, self.folder = slurm, store
        self.store = Store(store)
        self.environ = {
            **slurm.environ,
            "MPIGRAFT_HOME": str(home),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }

    def mpigraft(self, *words: object, code: int = 0) -> str:
        argv = [sys.executable, "-m", "mpigraft.cli.main", "--store", str(self.folder)]
        done = subprocess.run(
            [*argv, *map(str, words)],
            env=self.environ, cwd=self.slurm.cluster.shared, capture_output=True, text=True,
            timeout=PATIENCE_S,
        )  # fmt: skip
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    def submit(self, *words: object, rounds: int = 4) -> str:
        file = self.folder.parent / "campaign.toml"
        file.write_text(f"{CAMPAIGN}rounds = {rounds}\n")
        self.mpigraft("submit", file, *words)
        return self.store.submissions()[-1].campaign

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.mpigraft("status", "--json"))["submission"]
        return found

    def queued(self) -> bool:
        """Whether a job waits or runs, as far as Slurm says; yes while it does not answer."""
        done = self.slurm.ask("squeue", "--noheader", "--me", "--format=%i")
        return not done.ok or bool(done.text().strip())

    def until(self, true: Callable[[], Any], what: str) -> None:
        """Wait for what jobs are to do; when none is left that could, nor did, it never comes."""
        deadline = time.monotonic() + PATIENCE_S
        while not true():
            late = time.monotonic() > deadline
            if late or (not self.queued() and not true()):
                why = "it took too long" if late else "every job has ended"
                pytest.fail(f"{what}: {why}\n{self.logs()}\n{self.slurm.logs()}")
            time.sleep(0.1)

    def measuring(self, identity: str, launches: int = 1) -> None:
        self.until(lambda: len(self.store.launches(identity)) >= launches, f"{launches} launches")

    def ended(self) -> None:
        """Wait for the end of every job, which `mpigraft status` then agrees with."""
        self.until(lambda: not self.queued(), "ends")
        states = {JobState.PENDING, JobState.RUNNING}
        assert not states & {share["status"]["state"] for share in self.status()["shares"]}

    def logs(self) -> str:
        return "\n".join(f"== {p.name}\n{p.read_text()}" for p in self.folder.glob("logs/*"))


@pytest.fixture
def site(slurm: Slurm, fresh_home: Path, store_folder: Path) -> Site:
    return Site(slurm, fresh_home, store_folder)


def whole(site: Site, identity: str, rounds: int) -> None:
    """Every launch of the campaign once and well, and all of them compared."""
    launches = site.store.launches(identity)
    places = Counter(place(launch) for launch in launches)
    assert len(places) == rounds * A_ROUND, site.logs()
    assert set(places.values()) == {1}
    assert {launch.state for launch in launches} == {LaunchState.OK}
    assert site.store.findings == ()


def test_jobs_that_start_at_once_plan_one_campaign_and_share_its_rounds(site: Site) -> None:
    identity = site.submit("--allocations", 2, "--chain", 2, "--time", "10m", rounds=4)
    site.ended()
    whole(site, identity, 4)
    ours = {f"JobId={job.job}" for job in site.store.jobs(identity)}
    ends = [line.split() for line in site.slurm.jobs_ended().splitlines()]
    assert Counter("JobState=COMPLETED" in end for end in ends if ours & {*end}) == {True: 4}
    assert site.logs().count("this job has nothing to do") == 2
    allocations = site.store.allocations(identity)
    assert {a.hosts for a in allocations} == {("n1",), ("n2",)}
    assert len({a.job for a in allocations}) == 2
    owner = {a.id: a.hosts for a in allocations}
    by_round = {(x.round, owner[x.allocation]) for x in site.store.launches(identity)}
    assert len(by_round) == 4  # no round on two nodes
    assert {r % 2 for r, hosts in by_round if hosts == ("n1",)} != {0, 1}
    campaigns = site.store.campaigns()
    assert [c.id for c in campaigns] == [identity]
    said = compare(
        campaigns[0],
        site.store.configurations(identity),
        site.store.values(identity),
        allocations=allocations,
    )
    assert said.rounds == 4
    assert {e.allocation for e in site.store.evidence(identity, every=True)} == {
        a.id for a in allocations
    }
    status = site.status()
    assert [share["done"] for share in status["shares"]] == [True, True]
    assert "compare" in site.mpigraft("status", "night")


@pytest.mark.long
@pytest.mark.covering
def test_a_time_limit_ends_a_job_in_order_and_the_next_of_its_chain_goes_on(site: Site) -> None:
    # Slurm tells a job up to half a minute early, since it looks every 30 s: some of the jobs may
    # be told before their first launch.
    identity = site.submit("--time", "1m", "--chain", 8, "--", "--nodelist=n1", rounds=200)
    chain = [job.job for job in site.store.jobs(identity)]
    share = site.status()["shares"][0]
    assert [share["job"], *share["behind"]] == chain

    def makers() -> list[str]:
        """The allocations that made launches, in order."""
        return list(dict.fromkeys(x.allocation for x in site.store.launches(identity)))

    site.until(lambda: len(makers()) > 1, "launches of a later job")
    known = {a.id: a for a in site.store.allocations(identity)}
    first, other = (known[one] for one in makers()[:2])
    assert chain.index(first.job) < chain.index(other.job), site.logs()
    assert (first.ended, first.hosts) == ("", other.hosts)
    kept = sum(x.allocation == first.id for x in site.store.launches(identity))
    assert first.steps - other.steps == kept > 0, site.logs()
    over = [end for end in site.slurm.jobs_ended().splitlines() if f"JobId={first.job} " in end]
    assert "JobState=TIMEOUT" in over[0] or "JobState=FAILED" in over[0], over
    places = Counter(place(launch) for launch in site.store.launches(identity))
    assert set(places.values()) == {1}  # on the same node the round goes on where it stopped


def test_a_cancelled_job_is_told_and_goes_on_elsewhere_with_whole_rounds(site: Site) -> None:
    identity = site.submit("--time", "10m", "--", "--nodelist=n1", rounds=3)
    site.measuring(identity, A_ROUND + 1)
    site.slurm.ask("scancel", "--me")
    site.ended()
    assert site.status()["shares"][0]["status"]["word"] == "CANCELLED"
    before = site.store.launches(identity)
    site.mpigraft("submit", "--resume", identity, "--", "--nodelist=n2")
    site.ended()
    hosts = {a.id: a.host for a in site.store.allocations(identity)}
    for number in range(3):
        on = Counter(
            hosts[x.allocation] for x in site.store.launches(identity) if x.round == number
        )
        assert A_ROUND in on.values(), f"round {number} is whole on no node: {on}\n{site.logs()}"
    assert before == tuple(x for x in site.store.launches(identity) if hosts[x.allocation] == "n1")
    assert site.status()["shares"][0]["done"]
    assert "nothing of night remains" in site.mpigraft("submit", "--resume", identity, code=2)


@pytest.mark.long
@pytest.mark.parametrize(("mode", "own"), [("CANCEL", ()), ("REQUEUE", ("--", "--requeue"))])
def test_a_preempted_job_is_named_and_its_campaign_goes_on(
    clusters: Callable[..., Cluster], slurms_here: None, fresh_home: Path, store_folder: Path,
    mode: str, own: tuple[str, ...],
) -> None:  # fmt: skip
    """Slurm cancels it, since a share is submitted with --no-requeue, or starts it again where the
    user wants that."""
    parts = (("low", "ALL"), ("high", "ALL"))
    with clusters(2) as nodes, Slurm(nodes, partitions=parts, preempt=mode) as slurm:
        site = Site(slurm, fresh_home, store_folder)
        identity = site.submit("--time", "10m", *own, rounds=6)
        site.measuring(identity, A_ROUND)
        urgent = ("--partition=high", "--nodes=2", "--exclusive", "--output=/dev/null")
        free = nodes.shared / "free"
        wrap = f"--wrap=while [ ! -e {free} ]; do sleep 0.1; done"
        assert slurm.ask("sbatch", *urgent, wrap).ok
        word = "ended (PREEMPTED)" if mode == "CANCEL" else "pending again after it ran"
        site.until(lambda: word in site.mpigraft("status"), word)
        free.touch()
        if mode == "CANCEL":
            site.ended()
            assert "submits what was cut off" in site.mpigraft("status")
            site.mpigraft("submit", "--resume", identity)
        site.ended()
        assert site.status()["shares"][0]["done"], site.logs()
        launches = site.store.launches(identity)
        assert {launch.round for launch in launches} == {*range(6)}
        assert "DUE TO PREEMPTION" in site.logs()


@pytest.mark.long
def test_a_login_node_plans_follows_and_cancels(site: Site) -> None:
    site.submit("--chain", 2, "--time", "10m", "--", "--begin=now+1hour")
    file = site.folder.parent / "campaign.toml"
    refused = site.mpigraft("submit", file, "--partition", "gone", code=4)
    assert "invalid partition" in refused
    text = site.mpigraft("status")
    assert "pending, BeginTime: its earliest start time is not reached" in text
    assert "cancelled pending 2 jobs: " in site.mpigraft("status", "--cancel")
    assert not site.queued()
    assert "no job of night waits or runs" in site.mpigraft("status", "--cancel")
    assert "[login-node]" in site.mpigraft("bench", file, code=2)
    shown = site.mpigraft("bench", file, "--dry-run")
    assert "jobs plan on their own nodes" in shown
    assert "8 launches: " in shown
    assert ", 4 rounds." in shown
    _name_components(site)


def _name_components(site: Site) -> None:
    """Of a heterogeneous job, in its script and in a step of each component."""
    text = site.slurm.cluster.shared / "components"
    command = f"{sys.executable} -m mpigraft.cli.main layout 1x1 --launcher srun"
    steps = [f"srun --overlap {group} {command}" for group in ("", "--het-group=1")]
    head = f"#!/bin/sh\n#SBATCH -N1 -o {text}\n#SBATCH hetjob\n#SBATCH -N1\n"
    subprocess.run(
        ["sbatch", "--wait"], input=head + "\n".join([command, *steps]) + "\n",
        env=site.environ, text=True, check=True, capture_output=True,
    )  # fmt: skip
    told = [line for line in text.read_text().splitlines() if "heterogeneous" in line]
    assert [line.partition("heterogeneous: ")[2] for line in told] == [
        "component 0 of 2 is used, n1", "component 0 of 2 is used, n1",
        "component 1 of 2 is used, n2",
    ]  # fmt: skip


def test_sbatch_reads_a_word_as_it_was_written(site: Site) -> None:
    word = r"""a'b"c\d #e \' $HOME"""
    file = word.replace("\\", "")
    wish = JobRequest("/", limit_s=60, output=str(site.slurm.cluster.shared / file),
                   command=("true",), extra=("--hold", f"--comment={word}"))  # fmt: skip
    done = subprocess.run(
        ["sbatch", "--parsable"], input=registry.SCHEDULERS["slurm"].script(wish).encode(),
        env=site.environ, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    said = site.slurm.ask("scontrol", "show", "job", done.stdout.decode().strip()).text()
    assert f"Comment={word}" in {line.strip() for line in said.splitlines()}
    assert f"/{file}-" in said


def test_jobs_outlive_a_restart_of_the_controller(site: Site) -> None:
    identity = site.submit("--allocations", 2, "--time", "10m", rounds=4)
    site.measuring(identity)
    site.slurm.daemons.pop("slurmctld").stop()
    try:
        told = site.mpigraft("status")
    finally:
        site.slurm._start(HOST, "slurmctld", "-D")
    assert "does not answer" in told
    assert "state not known" in told or "done" in told
    site.ended()
    whole(site, identity, 4)
    assert all(share["done"] for share in site.status()["shares"])


@pytest.mark.long
def test_clocks_that_differ_between_nodes_lose_nothing(site: Site) -> None:
    faketime = shutil.which("faketime")
    if not faketime:
        pytest.skip("the package faketime is not installed")
    record = jobs.plan_submission(
        CampaignSpec(name="skewed", mpi=("openmpi@5",), transport=("ob1-sm",),
             benchmark=("latency",), layout=("1x2",), max_size=8, budget_ms=1.0, rounds=4, seed=3),
        1, 600, 2, "slurm",
    )  # fmt: skip
    own = (sys.executable, "-m", "mpigraft.cli.main")
    with site.store.writer() as writer:
        writer.add_submission(record)
        for share, skew in ((1, "-3h"), (2, "+2d")):
            wish = jobs.share_job(
                record, share, (faketime, "-f", skew, *own), site.folder,
                JobRequest(str(site.folder.parent), environment=(
                    ("MPIGRAFT_HOME", site.environ["MPIGRAFT_HOME"]),)),
            )  # fmt: skip
            site.store.logs()
            script = registry.SCHEDULERS["slurm"].script(wish)
            done = subprocess.run(
                ["sbatch", "--parsable"], input=script.encode(), env=site.environ,
                capture_output=True, check=True,
            )  # fmt: skip
            job = registry.SCHEDULERS["slurm"].job_id(done.stdout.decode())
            writer.add_job(JobRecord(record.campaign, share, job, utc_now(), script))
    site.ended()
    launches = site.store.launches(record.campaign)
    assert len(launches) == 4 * 2
    began = sorted(launch.started for launch in launches)
    assert began[0][:10] != began[-1][:10], "the clocks were not skewed"
    said = compare(
        site.store.campaign(record.campaign),
        site.store.configurations(record.campaign),
        site.store.values(record.campaign),
        allocations=site.store.allocations(record.campaign),
    )
    assert said.rounds == 4
    assert all(share["done"] for share in site.status()["shares"])


def fill(path: Path) -> None:
    """Write to a file until the disk is full."""
    with path.open("wb") as file, contextlib.suppress(OSError):
        while True:
            os.write(file.fileno(), b"\0" * 4096)
    assert shutil.disk_usage(path).free < 4096


def test_a_full_shared_folder_ends_the_jobs_with_a_message_and_keeps_the_rest(
    clusters: Callable[..., Cluster], slurms_here: None, fresh_home: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        with clusters(2, binds=[small]) as nodes, Slurm(nodes) as slurm:
            site = Site(slurm, fresh_home, small / "store")
            identity = site.submit("--allocations", 2, "--time", "10m", rounds=400)
            site.measuring(identity, 4)
            fill(small / "full")
            site.ended()
            launches = site.store.launches(identity)
            assert len(launches) >= 4
            assert site.store.findings == ()
            assert len(site.store.values(identity)) == 4 * len(launches)  # 1, 2, 4, 8 B
            (small / "full").unlink()
            assert not any(share["done"] for share in site.status()["shares"])
            site.mpigraft("submit", "--resume", identity)
            site.measuring(identity, len(launches) + 2)
    finally:
        subprocess.run(["umount", "-l", small], check=False)
