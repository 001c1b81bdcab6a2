"""Submissions: what is handed in, how far it is, and the chains of jobs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mpigraft
from mpigraft.bench import submission
from mpigraft.bench.submission import parse_duration, plan_submission, submission_status
from mpigraft.cli.main import run_command
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    Allocation,
    AllocationRecord,
    JobRecord,
    JobRequest,
    JobState,
    JobStatus,
    LaunchState,
    Scheduler,
    Shard,
    SubmissionRecord,
)
from mpigraft.core.serialize import plain
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.report import submission_lines
from mpigraft.request.spec import CampaignSpec
from mpigraft.store import Store, Writer
from tests.builders.configuration import a_machine
from tests.builders.messages import matches, shows
from tests.builders.records import CAMPAIGN, launch, measured

RECORD = SubmissionRecord(
    CAMPAIGN.id, "nightly", "2026-01-02T00:00:00+00:00", "slurm", "{}", 2, 600, 2
)
SCHEMA = json.loads((Path(mpigraft.__file__).parent / "report/schemas/status.json").read_text())
RUNS = JobStatus(JobState.RUNNING, "RUNNING")


@given(st.integers(60, 10**7))
def test_a_time_reads_the_same_in_every_form(limit: int) -> None:
    hours, minutes, rest = limit // 3600, limit // 60 % 60, limit % 60
    assert parse_duration(f"{limit}s") == limit
    if hours < 100_000:
        assert parse_duration(f"{hours}:{minutes:02}:{rest:02}") == limit
        assert parse_duration(f"{hours}h{minutes}m{rest}s") == limit
    assert parse_duration(f"{limit // 86400}-{hours % 24}:{minutes:02}:{rest:02}") == limit
    assert parse_duration(str(limit // 60)) == limit // 60 * 60


@pytest.mark.parametrize("text", ["", "0", "59s", "1:30", "x", "-5", "1.5h", "h", "m30", "1h 2m"])
def test_a_time_that_may_mean_two_things_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--time"):
        parse_duration(text)


@given(st.text(max_size=12))
def test_any_time_is_a_minute_or_more_or_refused(text: str) -> None:
    try:
        assert parse_duration(text) >= 60
    except UsageError:
        return


def test_what_all_jobs_must_agree_on_is_settled_before_any_starts() -> None:
    record = plan_submission(CampaignSpec(quick=True), 2, 600, 3, "slurm")
    spec = json.loads(record.wish)
    assert (spec["rounds"], record.name, record.shares) == (6, "quick", 3)
    assert spec["seed"] > 0
    assert spec["limit_s"] > 0


def test_what_no_allocation_can_meet_is_refused_before_it_waits_in_a_queue() -> None:
    for spec, jobs, said in (
        (CampaignSpec(rounds=3), 4, "4 allocations for 3 rounds"),
        (CampaignSpec(layout=("4x2",)), 1, "asks for 4 nodes"),
        (CampaignSpec(benchmark=("no-such",)), 1, "no benchmark"),
    ):
        with pytest.raises(UsageError, match=said):
            plan_submission(spec, 2, 600, jobs, "slurm")


def test_a_job_names_its_share_and_its_own_file() -> None:
    base = JobRequest(folder="/proj", extra=("-A", "p"))
    found = submission.share_job(
        replace(RECORD, name="a b;c"), 2, ("mpigraft",), Path("/proj/store"), base
    )
    assert found.command[-4:] == ("--resume", CAMPAIGN.id, "--share", "2/2")
    logs = f"/proj/store/logs/{CAMPAIGN.id[:8]}"
    assert found.output == f"{logs}-2"
    again = submission.share_job(RECORD, 2, ("mpigraft",), Path("/proj/store"), base, 3)
    assert again.output == f"{logs}-2.3"
    assert found.name.removeprefix("mpigraft-") == "a_b_c"
    assert (found.nodes, found.extra) == (2, base.extra)


# ------------------------------------------------------------------ how far it is


def kept(folder: Path, *allocations: AllocationRecord) -> Store:
    store = Store(folder)
    with store.writer() as writer:
        writer.add_submission(RECORD)
        for share, job in ((1, "41"), (2, "42")):
            writer.add_job(JobRecord(CAMPAIGN.id, share, job, f"2026-01-02T00:0{share}", "#!"))
        for allocation in allocations:
            writer.add_allocation(allocation)
    return store


def on(job: str, share: str, **more: object) -> AllocationRecord:
    record = AllocationRecord(f"a{job}", CAMPAIGN.id, f"2026-01-02T01:{job}", f"n{job}", "{}",
                              (f"n{job}", "n9"), job, share, 4)  # fmt: skip
    return replace(record, **more)  # type: ignore[arg-type]


def test_each_share_says_where_it_is_and_how_much_is_left(tmp_path: Path) -> None:
    store = kept(tmp_path, on("41", "1/2"), on("42", "2/2", ended="2026-01-02T02:00"))
    with store.writer() as writer:
        writer.add_launch(launch(0, allocation="a41", wall_s=3.0), measured(1.0), {})
        writer.add_launch(launch(1, allocation="a42", state=LaunchState.FAILED), measured(1.0), {})
    found = submission_status(
        store, RECORD, {"41": RUNS, "42": JobStatus(JobState.ENDED, "COMPLETED")}
    )
    jsonschema.validate(
        plain({"schema": 2, "submission": found, "scheduler_silent": "", "findings": []}), SCHEMA
    )
    first, second = found.shares
    assert (first.nodes, first.launches, first.left, first.left_s) == ("n41,n9", 1, 3, 9.0)
    assert (second.done, second.left, second.left_s) == (True, 0, None)
    assert found.open == ()
    assert found.findings == ()  # an unbound rank is no failure
    assert not found.planned


def test_a_share_on_thousands_of_nodes_takes_one_line(tmp_path: Path) -> None:
    hosts = tuple(f"nid{number:06}" for number in range(4096))
    store = kept(tmp_path, on("41", "1/2", hosts=hosts), on("42", "2/2", hosts=hosts[::2]))
    told = list(submission_lines(submission_status(store, RECORD, {})))
    assert shows(told, "on nid[000000-004095]")
    assert any(shows(t, "on nid000000,nid000002,") and shows(t, "and 2043 more") for t in told)


def test_a_share_whose_job_ended_early_is_open_until_it_has_another(tmp_path: Path) -> None:
    store = kept(tmp_path, on("41", "1/2"))
    late = {"41": JobStatus(JobState.ENDED, "TIMEOUT"), "42": JobStatus(JobState.PENDING)}
    assert submission_status(store, RECORD, late).open == (1,)
    with store.writer() as writer:
        writer.add_job(JobRecord(CAMPAIGN.id, 1, "50", "2026-01-02T00:30", "#!"))
    assert submission_status(store, RECORD, {**late, "50": JobStatus(JobState.PENDING)}).open == ()
    assert submission_status(store, RECORD, {}).open == (1, 2)  # forgotten by the scheduler


def test_a_job_that_waits_again_is_not_taken_for_one_that_never_ran(tmp_path: Path) -> None:
    """Preempted and requeued, it has the same id; its next in the chain has another."""
    store = kept(tmp_path, on("41", "1/2"))
    waits = JobStatus(JobState.PENDING, "PENDING", "BeginTime")
    status = submission_status(store, RECORD, {"41": waits, "42": waits})
    assert [share.requeued for share in status.shares] == [True, False]
    again, first = list(submission_lines(status))[2:4]
    assert shows(again, "job 41 pending", "BeginTime")
    assert shows(first, "job 42 pending", "BeginTime")
    ended = {"41": JobStatus(JobState.ENDED, "PREEMPTED"), "42": RUNS}
    assert not any(x.requeued for x in submission_status(store, RECORD, ended).shares)


@given(st.permutations(["pending", "pending", "running", "ended", "gone"]))
def test_of_a_chain_the_job_that_is_at_it_is_shown_and_who_waits(words: list[str]) -> None:
    jobs = {str(n): JobStatus(JobState(word)) for n, word in enumerate(words)}
    job, behind = submission._turn(jobs)
    assert jobs[job].state is JobState.RUNNING
    assert [jobs[other].state for other in behind] == [JobState.PENDING] * 2
    assert list(behind) == sorted(behind)
    over = {n: JobStatus(JobState.ENDED) for n in jobs}
    assert submission._turn(over) == ("4", ())
    assert submission._turn({}) == ("", ())


def test_a_chain_goes_on_by_itself_and_its_share_is_no_one_elses(tmp_path: Path) -> None:
    store = kept(tmp_path, on("41", "1/2"), on("42", "2/2", ended="2026-01-02T02:00"))
    with store.writer() as writer:
        for share, job in ((1, "9"), (2, "43"), (1, "100")):  # as ids of a chain may sort
            writer.add_job(JobRecord(CAMPAIGN.id, share, job, f"2026-01-02T00:1{len(job)}", "#!"))
    waits, ran = JobStatus(JobState.PENDING, "PENDING", "Dependency"), JobStatus(JobState.ENDED)
    states = {"41": RUNS, "9": waits, "100": waits, "42": ran, "43": waits}
    first, second = submission_status(store, RECORD, states).shares
    assert (first.job, first.behind) == ("41", ("9", "100"))
    assert (second.job, second.behind, second.done) == ("43", (), True)
    late = submission_status(store, RECORD, {**states, "41": JobStatus(JobState.ENDED, "TIMEOUT")})
    assert (late.shares[0].job, late.shares[0].behind) == ("9", ("100",))
    assert late.open == ()
    told = "\n".join(submission_lines(submission_status(store, RECORD, states)))
    assert shows(told, "job 41 running", "n41,n9", "0 launches", "4 left", "9", "100")
    assert shows(told, "done", "0 launches", "n42,n9", "nothing left", 43)


def test_a_share_is_done_when_one_of_its_jobs_came_to_its_end(tmp_path: Path) -> None:
    store = kept(tmp_path, on("41", "1/2"), on("42", "2/2", ended="2026-01-02T02:00"))
    assert not submission.share_done(store, CAMPAIGN.id, Shard(1, 2))
    assert submission.share_done(store, CAMPAIGN.id, Shard(2, 2))
    assert not submission.share_done(store, CAMPAIGN.id, Shard(2, 3))
    assert not submission.share_done(store, "another", Shard(2, 2))


# ------------------------------------------------------------------ where it may run


def test_the_shell_of_salloc_is_no_node_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    from mpigraft.cli.bench import _refuse_login_node

    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    job = Allocation(("n1.site", "n2"), "Slurm job 7", "slurm", "7")
    inside = replace(a_machine(), scheduler=Scheduler("slurm", "22.05", True, "7"))
    for name in ("n1", "n2.other"):
        _refuse_login_node(replace(inside, hostname=name), job, here=False)
    login = replace(inside, hostname="login1")
    with pytest.raises(UsageError, match="login1 is not one of the nodes of Slurm job 7"):
        _refuse_login_node(login, job, here=False)
    _refuse_login_node(login, job, here=True)
    monkeypatch.setenv("SLURMD_NODENAME", "n1")  # a node that Slurm calls otherwise
    _refuse_login_node(login, job, here=False)
    outside = replace(login, scheduler=Scheduler("slurm", "22.05", False))
    with pytest.raises(UsageError, match="none of its allocations"):
        _refuse_login_node(outside, THIS_HOST, here=False)


# ------------------------------------------------------------------ the commands


def said(capsys: pytest.CaptureFixture[str], site: Path, *words: object, code: int = 0) -> str:
    got = run_command(["--store", str(site / "store"), *map(str, words)])
    out, err = capsys.readouterr()
    assert got == code, out + err
    return out + err


def test_a_campaign_is_handed_in_followed_and_handed_in_again(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(
        capsys, site, "submit", site / "night.toml", "--nodes", 2, "--dry-run", "--", "-Ap"
    )
    assert shows(shown, "#SBATCH --network=single_node_vni,job_vni", "#SBATCH -Ap")
    assert not (site / "store").exists()
    words = ("submit", site / "night.toml", "--allocations", 2, "--time", "30m")
    assert shows(said(capsys, site, *words), "slurm job 1, 2")
    scripts = (site / "scripts").read_text()
    assert scripts.count("--network=single_node_vni\n") == 2
    assert "--share 1/2" in scripts
    assert "--share 2/2" in scripts
    told = said(capsys, site, "status")
    assert "night" in told
    assert shows(told, "job 1 ended", "TIMEOUT", "0 launches")
    assert shows(told, "job 2 pending", "Priority")
    assert shows(told, "not planned")
    wrong = (("--nodes", 2, 1), ("--allocations", 3, 2), ("--scheduler", "pbs", "slurm"))
    for flag, other, own in wrong:
        refused = said(capsys, site, "submit", "--resume", "night", flag, other, code=2)
        assert f"{flag} {own}, not" in refused
    again = ("submit", "--resume", "night", "--time", "2h")
    assert "slurm job 3" in said(capsys, site, *again)
    scripts = (site / "scripts").read_text()
    assert scripts.count("--share 1/2") == 2
    assert scripts.count("--time=00:30:00\n") == 2
    assert scripts.count("--time=02:00:00\n") == 1
    assert "-1.2-%j.out" in scripts
    assert matches(said(capsys, site, "submit", "--resume", "night", code=2), "submission-done")
    document = json.loads(said(capsys, site, "status", "night", "--json"))
    assert [s["job"] for s in document["submission"]["shares"]] == ["3", "2"]
    jsonschema.validate(document, SCHEMA)


def test_each_job_of_a_chain_waits_for_the_one_before_of_its_share(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("submit", site / "night.toml", "--allocations", 2, "--chain", 3)
    shown = said(capsys, site, *words, "--dry-run")
    assert "afterany" not in shown
    assert shows(shown, "1 more")
    assert shows(shown, "then 2 for each")
    assert shows(shown, "6 jobs of 1 node", "at most 6 node-hours")
    mine = ("--", "--dependency=afterok:7")
    assert shows(said(capsys, site, *words, *mine), "slurm job 1, 2", "3, 4", "5, 6")
    scripts = (site / "scripts").read_text().split("#!/bin/sh\n")[1:]
    waits = [re.findall(r"^#SBATCH (?:--dependency=)(\S+)$", s, re.MULTILINE) for s in scripts]
    assert waits == [["afterok:7"]] * 2 + [["afterok:7", f"afterany:{n}"] for n in (1, 2, 3, 4)]
    shares = [re.findall(r"--share (\S+)", script) for script in scripts]
    assert shares == [["1/2"], ["2/2"]] * 3
    files = [re.findall(r"--output=\S+/\w+-(\S+)", script)[0] for script in scripts]
    assert files == ["1-%j.out", "2-%j.out", "1.2-%j.out", "2.2-%j.out", "1.3-%j.out", "2.3-%j.out"]
    assert "has a job" in said(capsys, site, "submit", "--resume", "night", code=2)


def test_a_site_that_takes_no_more_jobs_leaves_chains_of_one_length(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "sbatch").write_text(
        f"#!/bin/sh\nif [ $(wc -l < {site}/n) -ge 3 ]; then\n"
        "echo QOSMaxSubmitJobPerUserLimit >&2; exit 1; fi\n"
        f"cat > /dev/null; echo x >> {site}/n; wc -l < {site}/n\n"
    )
    (site / "n").touch()
    words = ("submit", site / "night.toml", "--allocations", 2, "--chain", 3)
    told = said(capsys, site, *words, code=4)
    assert matches(told, "job-refused", output="QOSMaxSubmitJobPerUserLimit")
    assert matches(told, "jobs-refused-later", listed="1, 2, 3")
    store = Store(site / "store")
    record = store.submissions()[0]
    assert [(job.job, job.share) for job in store.jobs(record.campaign)] == [
        ("1", 1), ("2", 2), ("3", 1),
    ]  # fmt: skip
    assert matches(told, "jobs-refused-later", short=record.campaign[:8])


def test_a_job_whose_share_is_done_ends_at_once_and_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "mpigraft.discovery.inventory.discover_machine", lambda: pytest.fail("looked at the node")
    )
    monkeypatch.setenv("FLUX_URI", "local:///nowhere")
    kept(tmp_path / "store", on("42", "2/2", ended="2026-01-02T02:00"))
    words = ("bench", "--resume", CAMPAIGN.id, "--share", "2/2")
    assert shows(said(capsys, tmp_path, *words), "nothing to do")


def test_status_without_a_scheduler_shows_the_store(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, site, "submit", site / "night.toml")
    (site / "squeue").write_text("#!/bin/sh\necho 'Unable to contact' >&2; exit 1\n")
    told = said(capsys, site, "status")
    assert matches(told, "scheduler-silent", output="Unable to contact")
    assert shows(told, "state", "not known")
    assert "--resume" not in told


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (("submit", "gone.toml"), "gone.toml", 2),
        (("submit", "--resume", "gone"), "no campaign was submitted from", 3),
        (("status", "gone"), "no campaign was submitted from", 3),
        (("status",), "no campaign was submitted from", 3),
        (("bench", "--share", "1/2"), "--share needs --resume", 2),
    ],
)
def test_what_is_not_there_is_named(
    site: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str, code: int
) -> None:
    assert message in said(capsys, site, *words, code=code)


def test_a_word_that_no_script_can_hold_leaves_nothing(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("submit", site / "night.toml", "--", "--comment=a\nb")
    assert "not one line" in said(capsys, site, *words, code=2)
    assert not (site / "store").exists()


def test_a_refused_job_leaves_those_before_it_known(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (site / "sbatch").write_text(
        f"#!/bin/sh\n[ -e {site}/once ] && exit 1; cat > {site}/once; echo 7\n"
    )
    said(capsys, site, "submit", site / "night.toml", "--allocations", 3, code=4)
    record = Store(site / "store").submissions()[0]
    assert [job.job for job in Store(site / "store").jobs(record.campaign)] == ["7"]


def test_a_job_that_the_store_has_no_room_for_is_named(
    site: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise MissingError("the disk is full", fix="make room")

    (site / "sbatch").write_text("#!/bin/sh\ncat >/dev/null; echo 7\n")
    monkeypatch.setattr(Writer, "add_job", full)
    text = said(capsys, site, "submit", site / "night.toml", code=3)
    assert matches(" ".join(text.split()), "job-not-recorded", job=7, scheduler="slurm")
    assert "cancel job 7" in " ".join(text.split())
