"""Commands have the options of a request, and get the request that was typed."""

from __future__ import annotations

import inspect

import pytest
from typer.main import get_command

from mpigraft.cli.main import load, run_command
from mpigraft.cli.options import takes_request
from mpigraft.cli.record import budget_mib
from mpigraft.core.errors import UsageError
from mpigraft.request import Asked, CampaignSpec, JobPlacement, RunSpec, asked_campaign, asked_for
from mpigraft.request.options import option_words, options_of, with_options
from tests.builders.messages import matches

JOB_COMMANDS = {
    "run": set(),
    "profile": set(),
    "record": set(),
    "replay": {
        "image", "stack", "programs", "ranks", "engine", "engine_option", "replace", "bind",
        "stdin",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", JOB_COMMANDS)
def test_a_command_has_the_options_of_a_job_in_their_order(name: str) -> None:
    command = get_command(load([name])).commands[name]  # type: ignore[attr-defined]
    keys = [key for key in options_of(RunSpec) if key not in JOB_COMMANDS[name]]
    assert [one.name for one in command.params if one.name in keys] == keys
    for one in command.params:
        if one.name in keys:
            assert options_of(RunSpec)[one.name].rules.help == one.help


def test_bench_has_the_options_of_a_campaign_with_those_of_nodes_between() -> None:
    command = get_command(load(["bench"])).commands["bench"]  # type: ignore[attr-defined]
    names = [one.name for one in command.params]
    at = names.index("launcher") + 1
    assert names[at : at + 3] == ["hosts", "hostfile", "ssh_command"]
    assert [one for one in names if one in options_of(CampaignSpec)] == [*options_of(CampaignSpec)]


def test_a_request_of_words_is_read() -> None:
    @takes_request(read=asked_campaign)
    def command(*, asked: Asked[CampaignSpec]) -> Asked[CampaignSpec]:
        return asked

    none = dict.fromkeys(options_of(CampaignSpec))
    typed = {"stop_early_at": ["9,14"], "max": "4KiB", "threads": [2], "validate": False}
    spec = CampaignSpec(looks=(9, 14), max_size=4096, threads=(2,), validate=False)
    assert command(**none | typed) == Asked(spec, frozenset(typed))
    with pytest.raises(UsageError, match="--stop-early-at"):
        command(**none | {"stop_early_at": ["9;14"]})
    flag = options_of(CampaignSpec)["stop_early_at"].flag
    assert [*option_words(spec, ["max", "threads", "validate"])] == [flag, "9", flag, "14"]


def test_a_command_gets_the_request_that_was_typed() -> None:
    @takes_request("image")
    def command(*, loud: bool = False, asked: Asked[RunSpec]) -> tuple[bool, Asked[RunSpec]]:
        return loud, asked

    none = {key: None for key in options_of(RunSpec) if key != "image"}
    assert command(loud=True, **none) == (True, Asked(RunSpec(), frozenset()))
    typed = {"mpi": "mpich", "bind": ["/a"], "ranks": 2, "gpus": True, "proof": True, "env": []}
    spec = RunSpec(mpi="mpich", binds=("/a",), where=JobPlacement(ranks=2, gpus=True))
    given = frozenset({"mpi", "bind", "ranks", "gpus", "proof"})
    assert command(loud=False, **none | typed) == (False, Asked(spec, given))


def test_what_is_no_proof_was_typed_and_a_flag_that_is_off_was_not() -> None:
    @takes_request()
    def command(*, asked: Asked[RunSpec]) -> Asked[RunSpec]:
        return asked

    none = dict.fromkeys(options_of(RunSpec))
    asked = command(**none | {"proof": False, "gpus": False})
    assert asked == Asked(RunSpec(proof=False), frozenset({"proof"}))


def test_a_command_without_a_request_is_refused() -> None:
    with pytest.raises(TypeError, match="takes no request"):

        @takes_request()
        def command(*, loud: bool = False) -> bool:
            return loud


def test_a_request_takes_more_and_its_parts_too() -> None:
    asked = asked_for(RunSpec, {"mpi": "mpich"}).also(ranks=3, stdin="none")
    spec = RunSpec(mpi="mpich", stdin="none", where=JobPlacement(ranks=3))
    assert asked == Asked(spec, frozenset({"mpi", "ranks", "stdin"}))
    assert with_options(spec, {"ranks": 4}).where.ranks == 4


def test_a_command_takes_some_options_and_shows_another_default() -> None:
    usual, texts = {"nodes": "1"}, {"threads": "Cores."}

    @takes_request(only=("threads", "nodes"), usual=usual, texts=texts)
    def command(*, asked: Asked[JobPlacement]) -> Asked[JobPlacement]:
        return asked

    rules = {key: one.rules for key, one in options_of(JobPlacement).items()}
    threads, nodes = inspect.signature(command).parameters.values()
    rows = [one.annotation.__metadata__[0] for one in (threads, nodes)]
    assert [row.help for row in rows] == [texts["threads"], rules["nodes"].help]
    assert [row.show_default for row in rows] == [rules["threads"].usual, usual["nodes"]]
    assert command(threads=None, nodes=3) == Asked(JobPlacement(nodes=3), frozenset({"nodes"}))


@pytest.mark.parametrize(
    "words",
    [
        "check x --machine=", "plan x --mpi y -o=", "run --hostfile= -- x", "bench --matrix=",
        "run --image= -- x", "plan x --mpi=", "run --engine= -- x", "bench --mpi=x --mpi=",
        "bench --stop-early-at=", "inject x --transport=", "layout --hosts=",
    ],
)  # fmt: skip
def test_an_empty_value_is_refused(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As of a variable of the shell that is not set: what it should name would be another."""
    assert run_command(words.replace("-o=", "-o ").split(" ")) == 2
    assert matches(capsys.readouterr().err, "value-empty")


@pytest.mark.parametrize(
    ("text", "mib"), [("64MiB", 64), ("1M", 1), ("1500K", 2), ("4GB", 4096), ("2097152", 2)]
)
def test_memory_for_a_record_is_a_size(text: str, mib: int) -> None:
    assert budget_mib(text) == mib


@pytest.mark.parametrize(("text", "code"), [("8", "value-range"), ("5G", "value-range"),
                                            ("", "value-type"), ("8X", "value-type")])  # fmt: skip
def test_a_record_is_given_between_1_mib_and_4_gib(text: str, code: str) -> None:
    """What is below is a number of MiB, as a rule, and no rank takes more."""
    with pytest.raises(UsageError, match="--budget") as caught:
        budget_mib(text)
    assert caught.value.code == code
