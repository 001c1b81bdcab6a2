"""A name that is misspelt is answered with the nearest ones, of every kind of name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.bench.schedule.benchmarks import requested_benchmarks
from mpigraft.bench.schedule.times import refuse_idle_limits
from mpigraft.cli.main import run_command
from mpigraft.core.errors import MpigraftError
from mpigraft.core.model import Benchmark
from mpigraft.knowledge import Facts, resolve_transport
from mpigraft.launch import find_scheduler
from mpigraft.request import CampaignSpec, read_site, read_spec
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
        ("layout 2x8:l3cach", "l3cache"), ("layout 2x8-scoket+gpus", "socket"),
        ("layout 2x8+gpu", "2x8+gpus"), ("layout 2*8", "2x8"), ("layout 2X8:numa", "2x8:numa"),
        ("layout --ranks-per-node 2 --map-by numma", "numa"),
        ("layout 1x2 --launcher srnu", "srun"), ("bench --launcher srnu --dry-run", "srun"),
        ("export --format csvv", "csv"),
        ("bench --layout 1x2:l3cach", "l3cache"), ("bench --guest natve", "native"),
        ("bench --engine apptaner", "apptainer"), ("run --engine apptaner -- ls", "apptainer"),
        ("bench --timing osuu", "osu"), ("bench --buffers cudda", "cuda"),
        ("bench --native-build mpic", "mpicc"), ("bench --map-by numma", "numa"),
        ("compare --fail-on slowr-cell", "slower-cell"), ("history --fail-on slowr", "slower"),
        ("run --stdin nonne -- ls", "none"), ("run --replace libfabrc -- ls", "libfabric"),
        ("plan --as shel -- ls", "shell"), ("build openmpi --compiler gnuu", "gnu"),
    ],
)  # fmt: skip
def test_a_misspelt_word_of_a_command_line(
    words: str, near: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(words.split()) == 2
    text = capsys.readouterr().err
    asked = re.search(r"did you mean (.+?)\?|\(Possible options: (.+?)\)", text, re.IGNORECASE)
    assert asked
    assert near in re.split(r", | or ", (asked[1] or asked[2]).strip("'"))
    assert len(text) < MOST


def _transport() -> object:
    return resolve_transport("ob1-ms", MPI, Facts.of(a_machine(MPI)))


def _limits() -> None:
    spec = CampaignSpec(limits=("oso=9",))
    refuse_idle_limits(spec, [Benchmark.parse("osu:latency")])


def _options(key: str) -> Callable[[], object]:
    return lambda: requested_benchmarks(CampaignSpec(benchmark=(key,)))


def _baseline() -> object:
    return choose_baseline([a_configuration(MPI), a_configuration(MPI, "ucx")], "openmp@5/ucx")


@pytest.mark.parametrize(
    ("lookup", "code", "near"),
    [
        (lambda: select_mpis(["opnmpi"], [MPI]), "mpi-missing", MPI.id),
        (_transport, "transport-unknown", "ob1-sm"),
        (_baseline, "baseline-unknown", "openmpi@5.0.11/ucx"),
        (lambda: find_scheduler("slrum"), "word-unknown", "slurm"),
        (_limits, "limit-idle", "osu"),
        (_options("latency,lik=osu"), "benchmark-option-unknown", "like"),
        (_options("latency,like=ous"), "benchmark-option-unknown", "osu"),
        (_options("osu:latency,datatyp=MPI_INT"), "benchmark-option-unknown", "datatype"),
        (_options("mini:dirac,sed=3"), "benchmark-option-unknown", "seed"),
    ],
)
def test_a_misspelt_name_of_a_campaign(lookup: Callable[[], object], code: str, near: str) -> None:
    with pytest.raises(MpigraftError) as caught:
        lookup()
    assert caught.value.code == code
    asked, mark, _ = caught.value.fix.partition("?")
    assert mark
    assert near in asked


@pytest.mark.parametrize(
    ("line", "code", "near"),
    [
        ("stop_ealry_at = 9", "option-unknown-key", "stop_early_at"),
        ("timing = 'osuu'", "word-unknown", "osu"),
        ("guest = ['natve']", "word-unknown", "native"),
    ],
)
def test_a_misspelt_word_of_a_campaign_file(
    line: str, code: str, near: str, tmp_path: Path
) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(f"{line}\n")
    with pytest.raises(MpigraftError) as caught:
        read_spec(file)
    assert matches(caught.value, code, near=near)


@pytest.mark.parametrize(
    ("lines", "code", "near"),
    [
        ("[rnu]\nranks = 2", "site-key-unknown", "run"),
        ("[policy]\nfixed = ['engin']", "site-fixed-unknown", "engine"),
        ("[run]\nengine_option = { apptaner = ['-v'] }", "word-unknown", "apptainer"),
    ],
)
def test_a_misspelt_word_of_a_sites_profile(
    lines: str, code: str, near: str, tmp_path: Path
) -> None:
    file = tmp_path / "site.toml"
    file.write_text(f"{lines}\n")
    with pytest.raises(MpigraftError) as caught:
        read_site({"MPIGRAFT_SITE": str(file)})
    assert matches(caught.value, code, near=near)
