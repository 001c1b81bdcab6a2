"""Job scripts, and what schedulers say of jobs: words only, no scheduler runs here."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import LaunchFailed, MissingError, UsageError
from mpigraft.core.model import JobState, JobStatus
from mpigraft.launch.schedulers import flux, pbs, registry, slurm
from mpigraft.launch.schedulers.registry import SCHEDULERS
from tests.builders.configuration import a_job_request
from tests.builders.messages import shows
from tests.builders.outputs import assert_output

REQUEST = a_job_request()


def option(script: str, name: str) -> str:
    """What a word of one of sbatch's lines gives this option."""
    lines = [line for line in script.splitlines() if line.startswith("#SBATCH")]
    words = (word for line in lines for word in shlex.split(line.removeprefix("#SBATCH")))
    return next(w.partition("=")[2] for w in words if w.startswith(f"--{name}="))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("slurm", {"partition": "small", "network": "single_node_vni,job_vni"}),
        ("pbs", {"partition": "workq"}),  # --account wins over those above, and over a -l below
        ("flux", {"partition": "pdebug"}),
    ],
)
def test_each_script_is_in_its_schedulers_words(name: str, changes: dict[str, Any]) -> None:
    assert_output(f"scripts/{name}", SCHEDULERS[name].script(replace(REQUEST, **changes)))


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("slurm", "#SBATCH --dependency=afterany:41"),
        ("pbs", "#PBS -W depend=afterany:41"),
        ("flux", "#flux: --dependency=afterany:41"),
    ],
)
def test_a_job_of_a_chain_waits_whatever_the_user_says_of_waiting(name: str, word: str) -> None:
    script = SCHEDULERS[name].script(replace(REQUEST, after="41"))
    assert script.index("--account=p") < script.index(word) < script.index("cd ")


def test_a_percent_in_a_path_is_no_pattern_of_slurms() -> None:
    script = slurm.script(replace(REQUEST, output="/proj/50%j/x"))
    assert option(script, "output") == "/proj/50%%j/x-%j.out"


def test_a_backslash_is_one_of_sbatchs_within_quotes_too() -> None:
    with pytest.raises(UsageError, match="backslash"):
        slurm.script(replace(REQUEST, output=r"/a\b"))
    script = slurm.script(replace(REQUEST, extra=(r"--comment=it's \d",)))
    assert option(script, "comment") == r"it's \\d"


def test_a_name_is_cut_and_filled_as_pbs_takes_it() -> None:
    name = re.search(r"-N (\S+)\n", pbs.script(replace(REQUEST, name="a b/name_of_fifteen")))
    assert name
    assert name[1] == "a_b_name_of_fif"


@pytest.mark.parametrize("name", SCHEDULERS)
@given(words=st.lists(st.text(st.characters(codec="ascii", exclude_characters="\0")), min_size=1))
def test_a_shell_gets_the_words_as_they_were(name: str, words: list[str]) -> None:
    printf = ("printf", r"%s\0", *words)
    script = SCHEDULERS[name].script(replace(REQUEST, folder="/", command=printf, extra=()))
    said = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True)
    assert said.stdout == "".join(f"{word}\0" for word in words).encode()


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_environment_is_set_and_the_shell_is_gone(name: str) -> None:
    command = ("sh", "-c", 'echo "$MPIGRAFT_HOME $PPID"')
    script = SCHEDULERS[name].script(replace(REQUEST, folder="/", command=command))
    child = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True)
    home, parent = child.stdout.decode().split()
    assert home == "/proj/$HOME"
    assert script.splitlines()[-1].startswith("exec "), parent


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_folder_that_is_gone_ends_the_job(name: str, tmp_path: Path) -> None:
    script = SCHEDULERS[name].script(replace(REQUEST, folder=str(tmp_path / "gone")))
    assert subprocess.run(
        ["sh"], input=script.encode(), check=False, capture_output=True
    ).returncode


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("word", ["a\nb", "a\rb", "\x1b[2J"])
def test_a_word_of_several_lines_cannot_smuggle_a_directive_in(name: str, word: str) -> None:
    with pytest.raises(UsageError, match="not one line"):
        SCHEDULERS[name].script(replace(REQUEST, extra=(word,)))


def test_only_slurm_is_requested_a_vni() -> None:
    for kind in (pbs, flux):
        with pytest.raises(UsageError, match="option of Slurm"):
            kind.script(replace(REQUEST, network="job_vni"))


def test_a_short_job_is_warned_with_a_quarter_of_its_time_left() -> None:
    assert "TERM@15\n" in slurm.script(replace(REQUEST, limit_s=60))


PRINTED = {  # of each scheduler, the id of a job by what it prints
    "slurm": {
        "42\n": "42",
        "sbatch: lua: your project has 3 h left\n42;cluster\n": "42",
        "Submitted batch\n": "",
    },
    "pbs": {
        "4732778.pbs-server.example\n": "4732778.pbs-server.example",
        "qsub: note\n17\n": "17",
        "qsub: Unauthorized Request\n": "",
    },
    "flux": {
        "ƒuZZybuNNy\n": "6731191091817518",
        "fxyzzy\n": "633528662",
        "flux-batch: ERROR\n": "",
        "": "",
    },
}


@pytest.mark.parametrize(
    ("name", "printed"), [(name, text) for name, texts in PRINTED.items() for text in texts]
)
def test_the_id_of_a_job(name: str, printed: str) -> None:
    assert SCHEDULERS[name].job_id(printed) == PRINTED[name][printed]


def test_flux_ids_of_its_rfc() -> None:
    """The pairs that flux-core's own test of fluids has (src/common/libutil/test/fluid.c)."""
    for name, number in (("ƒ1", 0), ("ƒLUv", 65535), ("ƒjpXCZedGfVP", 18446744073709551614)):
        assert flux.decimal_id(name) == str(number)


def test_what_slurm_says_of_jobs() -> None:
    said = "1|RUNNING|None\n2|PENDING|Priority\n 3|TIMEOUT|TimeLimit\n4|CANCELLED by 1000|\n\nx|y\n"
    assert slurm.parse_states(said) == {
        "1": JobStatus(JobState.RUNNING, "RUNNING"),
        "2": JobStatus(JobState.PENDING, "PENDING", "Priority"),
        "3": JobStatus(JobState.ENDED, "TIMEOUT", "TimeLimit"),
        "4": JobStatus(JobState.ENDED, "CANCELLED"),
    }


def test_what_pbs_says_of_jobs() -> None:
    """Shape of OpenPBS 2022's answer, as psij-python's documentation shows it."""
    said = """{"pbs_version":"2022.0.0.20211103141832","Jobs":{
        "2154.pbs":{"job_state":"F","comment":"Job run at Mon Jan 24 and finished",
                    "Exit_status":0},
        "2155.pbs":{"job_state":"Q","comment":"Not Running: no nodes"},
        "2156.pbs":{"job_state":"R","comment":"Job run at Mon"},
        "2157.pbs":{"job_state":"F","Exit_status":-29}}}"""
    found = pbs.parse_states(said)
    assert [found[f"215{n}.pbs"].state for n in (4, 5, 6, 7)] == [
        JobState.ENDED, JobState.PENDING, JobState.RUNNING, JobState.ENDED,
    ]  # fmt: skip
    assert shows(said, found["2155.pbs"].reason)
    assert shows(found["2157.pbs"].word, "walltime")


def test_what_flux_says_of_jobs() -> None:
    said = "12|SCHED||\n13|RUN||\n14|INACTIVE|TIMEOUT|resource allocation expired\n"
    assert flux.parse_states(said) == {
        "12": JobStatus(JobState.PENDING, "SCHED"),
        "13": JobStatus(JobState.RUNNING, "RUN"),
        "14": JobStatus(JobState.ENDED, "TIMEOUT", "resource allocation expired"),
    }


@pytest.mark.parametrize("name", SCHEDULERS)
@given(said=st.one_of(st.text(), st.text(alphabet='{}[]":,|\n0RUNJobs ')))
def test_any_answer_is_states_or_none(name: str, said: str) -> None:
    found = SCHEDULERS[name].parse_states(said)
    assert all(isinstance(status, JobStatus) for status in found.values())
    SCHEDULERS[name].job_id(said)


# ------------------------------------------------------------------ the doors


def tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    for name in ("SLURM_JOB_ID", "SBATCH_ACCOUNT"):
        monkeypatch.setenv(name, "of another job")
    return tmp_path


def test_a_script_is_handed_in_outside_of_the_job_that_one_is_in(tools: Path) -> None:
    tool(tools, "sbatch", f'cat > {tools}/script; echo "42${{SLURM_JOB_ID}}${{SBATCH_ACCOUNT}}"')
    assert registry.find_scheduler() == "slurm"
    assert registry.submit_script("slurm", "#!/bin/sh\n") == "42"
    assert (tools / "script").read_text() == "#!/bin/sh\n"


def test_a_refusal_is_reported_in_the_schedulers_words(tools: Path) -> None:
    tool(tools, "sbatch", "echo 'sbatch: error: invalid account' >&2; exit 1")
    with pytest.raises(LaunchFailed, match="invalid account"):
        registry.submit_script("slurm", "")


def test_accounting_is_requested_what_the_controller_forgot(tools: Path) -> None:
    tool(tools, "squeue", "echo '7|RUNNING|None'")
    tool(tools, "sacct", "echo '8|TIMEOUT|None'; echo '7|COMPLETED|None'")
    found = registry.job_states("slurm", ["7", "8", "9"])
    assert [found[job].state for job in ("7", "8", "9")] == [
        JobState.RUNNING, JobState.ENDED, JobState.GONE,
    ]  # fmt: skip
    tool(tools, "squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    tool(tools, "sacct", "echo 'Slurm accounting storage is disabled' >&2; exit 1")
    assert registry.job_states("slurm", ["7"])["7"].state is JobState.GONE
    assert registry.job_states("slurm", []) == {}


def test_a_controller_that_is_away_is_no_end_of_a_job(tools: Path) -> None:
    tool(tools, "squeue", "echo 'Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(MissingError, match="Unable to contact"):
        registry.job_states("slurm", ["7"])


def test_no_scheduler_is_reported_with_the_tools_that_were_looked_for(
    tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tools))
    with pytest.raises(MissingError, match="sbatch, qsub, flux"):
        registry.find_scheduler()
    tool(tools, "qsub", "")
    assert registry.find_scheduler() == "pbs"
    with pytest.raises(MissingError, match="sbatch is not"):
        registry.find_scheduler("slurm")
    with pytest.raises(UsageError, match="lsf"):
        registry.find_scheduler("lsf")


def test_a_command_through_nodes_prints_what_it_printed(tools: Path) -> None:
    tool(tools, "salloc", 'for n in 0 1; do echo "$n: $*"; done')
    request = replace(REQUEST, command=("look",), extra=(), limit_s=60)
    assert registry.run_on_nodes("slurm", request).stdout.decode().split("\n")[0].startswith("0: ")
    assert slurm.node_command(request)[-2:] == ("--mpi=none", "look")
    tool(tools, "salloc", "echo 'salloc: error: invalid partition' >&2; exit 1")
    with pytest.raises(LaunchFailed, match="invalid partition"):
        registry.run_on_nodes("slurm", request)
    with pytest.raises(UsageError, match="qsub -I"):
        registry.run_on_nodes("pbs", request)
