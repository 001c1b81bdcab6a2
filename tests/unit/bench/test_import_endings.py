"""Outputs of runs that died: their values are kept out of comparisons, and the rest is stored."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mpigraft.bench.suites import read_worlds
from mpigraft.core.model import LaunchState, Measurement
from mpigraft.knowledge.transports import ends_run
from mpigraft.store import Store
from tests.builders.commands import run_on_store

TITLE = "# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n# Datatype: MPI_CHAR.\n"
RECORDED = Path(__file__).parents[2] / "data/causes.toml"

ENDINGS = """\
slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***
slurmstepd-n1: error: *** JOB 31580279 ON anode150 CANCELLED AT 2020-07-29T18:45:16 DUE TO NODE \
FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***
slurmstepd: error: *** STEP 12.0 ON n1 FAILED (non-zero exit code or other failure mode) ***
slurmstepd: error: Detected 1 oom_kill event in StepId=12.0. Some of the step tasks have been OOM \
Killed.
slurmstepd: error: Detected 2 oom-kill event(s) in step 7.batch cgroup.
[2026-09-14T17:14:38.784] error: Detected 1 oom_kill event in StepId=22035606.1. Some of the step
slurmstepd: error: Exceeded job memory limit
slurmstepd: error: Job 41176 exceeded memory limit (3940736 > 2068480), being killed
srun: error: n1: task 0: Out Of Memory
srun: error: comput126: tasks 0-35: Killed
srun: Job step aborted: Waiting up to 32 seconds for job step to finish.
srun: forcing job termination
salloc: Job allocation 12 has been revoked.
=>> PBS: job killed: walltime 613 exceeded limit 600
=>> PBS: job killed: mem 12kb exceeded limit 11kb
TERM_RUNLIMIT: job killed after reaching LSF run time limit.
Exited with exit code 140.
mpirun noticed that process rank 1 with PID 0 on node n2 exited on signal 9 (Killed).
prterun noticed that process rank 1 with PID 77 on node n2 exited on
prterun detected that one or more processes exited with non-zero status,
Primary job  terminated normally, but 1 process returned
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
[n1:23465] *** Process received signal ***
[n1:23465] *** An error occurred in MPI_Recv
PRTE has lost communication with a remote daemon.
ORTE has lost communication with a remote daemon.
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   KILLED BY SIGNAL: 9 (Killed)
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
APPLICATION TIMED OUT, TIMEOUT = 600s
Abort(740365582) on node 1 (rank 1 in comm 0): Fatal error in PMPI_Barrier: Other MPI error
Fatal error in PMPI_Init_thread: Other MPI error, error stack:
application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0
[mpiexec@n1] HYDT_bscu_wait_for_completion (tools/bootstrap/utils/bscu_wait.c:76): one of the \
processes terminated badly; aborting
[n1:mpi_rank_0][error_sighandler] Caught error: Segmentation fault (signal 11)
MPICH ERROR [Rank 616] [job id e893] [Fri Dec 12 23:04:41 2025] [nidd1411] - Abort(-1)
Application 23764253 exit signals: Killed
Application 9226246 exit codes: 127
[NID 04371] 2016-10-19 22:21:28 Apid 23764253: OOM killer terminated this process.
_pmiu_daemon(SIGCHLD): [NID 06768] [c7-2c0s12n0] [Mon Jun  5 15:41:51 2023] PE RANK 342 exit signal
x3006c0s19b1n0.hsn.cm.polaris.alcf.anl.gov: rank 0 died from signal 6 and dumped core
x4406c6s7b0n0: shepherd died from signal 9
[n1:3639441:0:3639441] Caught signal 11 (Segmentation fault: address not mapped to object at 0x8)
[cn0001:3639441:0:3639441] ib_mlx5_log.c:171  Transport retry count exceeded on mlx5_0:1/IB
Your job will now abort.
double free or corruption (!prev)
malloc(): corrupted top size
*** stack smashing detected ***: terminated
terminate called after throwing an instance of 'std::bad_alloc'
forrtl: severe (174): SIGSEGV, segmentation fault occurred
osu_latency: util.c:12: fill: Assertion `buffer' failed.
/var/spool/job12/script: line 7: 12345 Killed                  mpirun ./osu_latency
Segmentation fault (core dumped)
0: slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO TIME LIMIT ***
[1,0]<stderr>:Your job will now abort.
64   slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2024-01-01T00:00:00 ***
[2025-12-17T12:59:34.342] error: *** STEP 2243671.21 ON nid006549 CANCELLED AT \
2025-12-17T12:59:34 DUE TO TASK FAILURE ***
[2025-12-17T12:59:34.342] error: Detected 1 oom_kill event in StepId=22.1. Some of the step tasks \
have been OOM Killed.
slurmstepd: error: *** JOB 12 ON n1 CANCELLED AT 2024-01-01T00:00:00 DUE TO PREEMPTION ***
slurmstepd: error: *** JOB 12 ON n1 UNCORRECTABLE MEMORY ERROR AT 2024-01-01T00:00:00 ***
slurmstepd: error: *** JOB 12 STEPD TERMINATED ON n1 AT x DUE TO JOB NOT ENDING WITH SIGNALS ***
slurmd[borg01w065]: *** STEP 2347743.3 KILLED AT 2014-08-31T09:24:17 WITH SIGNAL 9 ***
slurmstepd: error: StepId=12.0 exceeded memory limit (3940736 > 2068480), being killed
srun: Force Terminated StepId=120.0
srun: launch/slurm: _step_signal: Terminating StepId=1882409.5
salloc: Job 12 has exceeded its time limit and its allocation has been revoked.
TERM_OWNER: job killed by owner.
mpirun.openmpi has exited due to process rank 1 with PID 0 on
WARNING: mpirun has exited before it received notification that all
Abort is in progress...hit ctrl-c again to forcibly terminate
mpirun: Forwarding signal 15 to job
While the primary job 12 terminated normally, 1 process returned
[n1:00000] *** MPI_ERRORS_ABORT (processes in this communicator will now abort,
allowed itself to be used.  Your MPI job will now abort.
The user-provided time limit for job execution has been reached:
[mpiexec@n1] APPLICATION TIMED OUT, TIMEOUT = 4s
I_MPI_JOB_TIMEOUT = 4 second(s): job ending due to application timeout
[mpiexec@n1] wait_proxies_to_terminate (intel/i_mpiexec.c:558): downstream from host n2 was killed \
by signal 9 (Killed)
[18:cu40] unexpected DAPL event 0x4008
[gcn-14-82:mpispawn_0][readline] Unexpected End-Of-File on file descriptor 6. MPI process died?
[gcn-14-82:mpispawn_0][child_handler] MPI process (rank: 0, pid: 15024) exited with status 252
rank 1 in job 2  n1_42982   caused collective abort of all ranks
aprun: Apid 24358787: Exiting due to errors. Application aborted
aprun: Unexpected close of the apsys control connection
ping failed on x4304c1s6b0n0: No reply from x4307c2s6b0n0.hostmgmt2307 after 87s
ib_mlx5_log.c:179  Remote access on mlx5_0:1/IB (synd 0x13 vend 0x88 hw_synd 0/0)
job.sh: line 1: 28860 Floating point exception./osu_latency
job.sh: line 1: 28877 CPU time limit exceeded mpirun ./osu_latency
job.sh: line 1: 28883 Segmentation fault      mpirun ./osu_latency
File size limit exceeded
Fortran runtime error: Allocation would exceed memory limit
./osu_latency: /lib/libfabric.so.1: version `FABRIC_1.9' not found (required by /opt/libmpi.so.12)
flux-job: task(s) Killed
261.446s: job.exception type=exec severity=0 rank 102 on host n1 exited
0.377s: flux-shell[0]: FATAL: shell_init
[ERR.] PLE 0080 plexec PMIx service error occurred.(nid=0x1)
""".splitlines()
NEAR_MISSES = """\
Unloading module: openmpi/5.0.11
The following modules were not unloaded:
Lmod is automatically replacing "gcc/12.2.0" with "gcc/13.2.0".
Lmod has detected the following error: the module "abort/1.0" is unknown
Job 12 finished: State: COMPLETED (exit code 0)
State: COMPLETED (exit code 0)
Exit_status=0
Exit Status: 0 (killed processes: 0)
resources_used.walltime=00:10:01, resources_used.mem=12kb, limit exceeded: none
Application 23764253 resources: utime ~0s, stime ~68s, Rss ~4848, inblocks ~4163, outblocks ~166
Application 23764253 exit codes: 0
Slurm Job_id=12 Name=osu Ended, Run time 00:01:12, COMPLETED, ExitCode 0
slurmstepd: info: task 0 ended normally
srun: job 12 has been allocated resources
salloc: Relinquishing job allocation 12
Successfully completed.
real 0m12.345s
JobID           JobName  Partition    State ExitCode
12.0         osu_latency           COMPLETED      0:0
Job epilogue: removing /tmp/12, no process had to be killed
If the job was aborted, see the page on error messages.
TACC:  Shutdown complete. Exiting.
TACC:  MPI job exited with code: 0
cp: cannot stat 'core.*': No such file or directory
n1: rank 0 exited with code 0
slurmstepd: error: Exceeded step memory limit at some point.
slurmstepd: error: Step 12.0 hit memory limit at least once during execution. This may or may not \
result in some failure.
error: Failed to destroy CXI Service ID 5 (cxi2): Device or resource busy
libfabric:16642:1701636928::cxi:core:cxip_cq_eq_progress():531<warn> n1: Cassini Event Queue \
overflow detected.
PMIX ERROR: PMIX_ERR_NOT_FOUND in file dstore_base.c at line 1567
mpirun: Forwarding signal 18 to job
At line 12 of file bench.f90
Fortran runtime warning: An array temporary was created
Subject: Job 11: <osu> in cluster <dcc> Done
    Max Processes :                              4
The output (if any) is above this job summary.
CPU Efficiency: 95.00% of 00:01:00 core-walltime
Memory Efficiency: 0.50% of 4.00 GB
On a segmentation fault, raise the limit of the stack first.
mpirun was unable to cleanly terminate the daemons on the nodes shown
""".splitlines()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def latency(last: int = 256, *, scale: float = 1.0) -> str:
    """A table of 0 and the powers of two up to `last`."""
    sizes = [0, *(2**n for n in range(last.bit_length()))]
    return TITLE + "".join(f"{size:<24}{scale * (1 + size / 1000):.2f}\n" for size in sizes)


def bring(store: Path, *files: object, name: str = "c") -> int:
    words = ("--configuration", name, "--machine", "m", "--nodes", 1, "--ranks-per-node", 2)
    return run_on_store(store, "import", *files, *words)


def stored(folder: Path) -> tuple[list[tuple[int, float]], list[LaunchState]]:
    """The values that may be compared, and how the launches ended."""
    store = Store(folder)
    campaign = store.campaign("m").id
    values = [(v.round, v.value) for v in store.values(campaign)]
    return values, sorted(launch.state for launch in store.launches(campaign))


@pytest.mark.parametrize("line", ENDINGS)
def test_a_line_that_ends_a_run_is_known(line: str) -> None:
    assert ends_run(line)


@pytest.mark.parametrize("line", [*NEAR_MISSES, *latency().splitlines(), "1024  1 2 3.00"])
def test_epilogues_accounts_and_rows_end_no_run(line: str) -> None:
    assert not ends_run(line)


def test_recorded_failures_of_launches_are_endings_too() -> None:
    cases = tomllib.loads(RECORDED.read_text())["case"]
    due = [case for case in cases if case["causes"] and case["code"]]
    texts = {case["name"]: case.get("stdout", "") + case.get("stderr", "") for case in due}
    assert len(texts) > 5
    assert [n for n, text in texts.items() if not any(map(ends_run, text.splitlines()))] == []


def test_a_dead_run_is_stored_as_failed_without_its_values(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dead.out").write_text(latency(8) + ENDINGS[0] + "\n")
    (tmp_path / "full.out").write_text(latency() + "\n".join(NEAR_MISSES) + "\n")
    assert bring(store, tmp_path / "dead.out", tmp_path / "full.out", "--json") == 2
    shown = capsys.readouterr()
    files = json.loads(shown.out)["files"]
    assert [(f["state"], f["values"], f["left_out"]) for f in files] == [
        ("failed", 0, 5),
        ("stored", 10, 0),
    ]
    assert [f["code"] for f in files[0]["findings"]] == ["program-failed"]
    assert "1 of 2 files with the output of a run that died [import-failed]" in shown.err
    values, states = stored(store)
    assert len(values) == 10
    assert states == [LaunchState.FAILED, LaunchState.OK]
    assert bring(store, tmp_path / "dead.out") == 2  # again: no second launch
    assert len(stored(store)[1]) == 2


@pytest.mark.parametrize("between", ["", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT x ***\n"])
def test_of_two_runs_in_a_row_the_dead_one_is_left_out(
    store: Path, tmp_path: Path, between: str
) -> None:
    half = "" if between else "16                      1."  # SIGKILL: the next title follows
    packed = gzip.compress((latency(8, scale=9) + half + between + latency()).encode())
    (tmp_path / "job.out.gz").write_bytes(packed)
    assert bring(store, tmp_path / "job.out.gz") == 2
    values, states = stored(store)
    assert values[0] == (0, 1.0)
    assert len(values) == 10
    assert states == [LaunchState.FAILED, LaunchState.OK]


@pytest.mark.parametrize("row", ["16", "16   1.", "16   1.0\n", "16\n"])
def test_half_a_row_at_the_end_is_of_a_dead_run(store: Path, tmp_path: Path, row: str) -> None:
    (tmp_path / "a.out").write_text(latency(8) + row)
    assert bring(store, tmp_path / "a.out") == 2
    assert stored(store) == ([], [LaunchState.FAILED])


@pytest.mark.parametrize("row", ["16   -nan\n", "16   inf\n", "16   1,024.00\n", "16   1.02\n"])
def test_a_whole_row_at_the_end_is_of_no_dead_run(store: Path, tmp_path: Path, row: str) -> None:
    (tmp_path / "a.out").write_text(latency(8) + row)
    assert bring(store, tmp_path / "a.out") == 0
    assert stored(store)[1] == [LaunchState.OK]


def test_last_words_that_nobody_knows_end_a_table_that_is_short(
    store: Path, tmp_path: Path
) -> None:
    for name, last in (("a", 256), ("b", 256), ("c", 8)):
        (tmp_path / f"{name}.out").write_text(
            latency(last, scale=ord(name)) + "zsh: the node is on fire\n"
        )
    assert bring(store, *sorted(tmp_path.glob("*.out"))) == 2
    values, states = stored(store)
    assert len(values) == 20
    assert states == [LaunchState.FAILED, LaunchState.OK, LaunchState.OK]


def test_a_short_table_is_in_no_claim_on_a_whole_curve(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n, off in enumerate((3, 0, 6, 1, 7, 2, 5, 4)):
        for name, scale in (("slow", 2.0), ("fast", 1.0)):
            last = 8 if (n, name) == (3, "slow") else 256
            path = tmp_path / f"{name}-{n}.out"
            path.write_text(latency(last, scale=scale + off / 50))
    for name in ("fast", "slow"):
        words = ("--pattern", f"{name}-{{round}}.out", "--machine", name, "--configuration", "c")
        assert run_on_store(store, "import", *tmp_path.glob(f"{name}*"), *words) == 0
    assert "  shorter than most, and perhaps cut: slow-3.out\n" in capsys.readouterr().out
    kept = Store(store)
    assert len(kept.values(kept.campaign("slow").id)) == 7 * 10 + 5
    verdicts = []
    for more in ([], ["--partial"]):
        assert run_on_store(store, "compare", "fast", "slow", "--json", *more) == 0
        document = json.loads(capsys.readouterr().out)
        codes = {finding["code"] for finding in document["findings"]}
        (curve,) = {group["curve"] for group in document["comparisons"]}
        verdicts.append((curve, "curve-maybe-cut" in codes))
    assert verdicts == [("inconclusive", True), ("slower", False)]


def test_a_dead_job_may_come_from_a_pipe(tmp_path: Path) -> None:
    words = ("--store", tmp_path / "s", "import", "-", "--configuration", "c", "--json")
    main = "from mpigraft.cli.main import main; import sys; main(sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", main, *map(str, words)],
        input=latency(8) + ENDINGS[0] + "\n" + latency(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2, ran.stderr
    (file,) = json.loads(ran.stdout)["files"]
    assert (file["file"], file["state"], file["values"]) == ("stdin", "failed", 10)


FULL = """\
# OSU MPI Allreduce Latency Test v7.3
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.16              1.90              2.50        1000
1024                   12.34             11.00             13.75         100
"""


@pytest.mark.parametrize(
    ("suite", "text"),
    [
        ("osu", latency(8)),
        ("osu", FULL),
        ("imb", (RECORDED.parent / "imb/p2p.out").read_text()),
        (
            "osu",
            "# MPI Latency Test\n# Size [B]  Latency [us]\n     1      0.91\n    16     12.34\n",
        ),
    ],
)
def test_wherever_a_last_row_is_cut_no_part_of_it_counts(suite: str, text: str) -> None:
    def counted(data: bytes) -> set[Measurement]:
        (world,), _ = read_worlds(suite, data, source="a.out")
        lost = {n for s in world.parsed.tables if s.died for n in range(s.start, s.stop)}
        return {m for n, m in enumerate(world.parsed.measurements) if n not in lost}

    data = text.encode()
    rows = re.findall(rb"(?m)^ *\d.*\n", data)
    end = data.rindex(rows[-1]) + len(rows[-1])
    whole = counted(data)
    assert len(whole) > 1
    for cut in range(end - len(rows[-1]), end):
        assert counted(data[:cut]) <= whole, data[:cut][-40:]
