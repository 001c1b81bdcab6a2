"""A name that is misspelt is answered with the nearest ones, of every kind of name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.cli.main import run_command
from mpigraft.core.errors import MpigraftError
from mpigraft.knowledge import Facts, resolve_transport
from mpigraft.request import read_spec
from mpigraft.selection import choose_baseline, select_mpis
from tests.builders.configuration import a_configuration, a_machine, an_mpi
from tests.builders.messages import matches

MOST = 240  # characters of an answer: a list of all benchmarks has 1,130
MPI = an_mpi("openmpi@5.0.11")


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("benhc", "bench"), ("disover", "discover"), ("results sho", "show"),
        ("bench --round 3", "--rounds"),
        ("bench --benchmark latancy", "latency"), ("bench --benchmark allredcue", "allreduce"),
        ("bench --benchmark pingpong", "imb:PingPong"),
        ("bench --benchmark osu:latancy", "osu:latency"),
        ("bench --benchmark mini:driac", "mini:dirac"),
        ("bench --benchmark oso:latency", "osu"),
        ("get openmp", "openmpi"), ("case gromcas", "gromacs"),
    ],
)  # fmt: skip
def test_a_misspelt_word_of_a_command_line(
    words: str, near: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(words.split()) == 2
    text = capsys.readouterr().err
    assert near in text
    assert len(text) < MOST


def _transport() -> object:
    return resolve_transport("ob1-ms", MPI, Facts.of(a_machine(MPI)))


def _baseline() -> object:
    return choose_baseline([a_configuration(MPI), a_configuration(MPI, "ucx")], "openmp@5/ucx")


@pytest.mark.parametrize(
    ("lookup", "code", "near"),
    [
        (lambda: select_mpis(["opnmpi"], [MPI]), "mpi-missing", MPI.id),
        (_transport, "transport-unknown", "ob1-sm"),
        (_baseline, "baseline-not-one", "openmpi@5.0.11/ucx"),
    ],
)
def test_a_misspelt_mpi_transport_or_configuration(
    lookup: Callable[[], object], code: str, near: str
) -> None:
    with pytest.raises(MpigraftError) as caught:
        lookup()
    assert caught.value.code == code
    assert near in caught.value.fix.partition("?")[0]


def test_a_misspelt_key_of_a_campaign_file(tmp_path: Path) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text("stop_ealry_at = 9\n")
    with pytest.raises(MpigraftError) as caught:
        read_spec(file)
    assert matches(caught.value, "option-unknown-key", near="stop_early_at")
