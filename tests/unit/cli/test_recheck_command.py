"""`mpigraft recheck`: its reference, its rounds, its verdict and its exit code. The campaign that
it would measure is simulated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mpigraft.analysis.overtime.reference_state import last_good, recheck_rounds
from mpigraft.cli import bench, common, main
from mpigraft.cli.bench import Task
from mpigraft.core.errors import LaunchFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import Finding, Machine, Origin
from mpigraft.core.serialize import canonical
from mpigraft.report.overtime.junit import Case, junit
from mpigraft.store import Store
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches, shows
from tests.builders.overtime import MACHINE, OPENMPI, Level, campaign, identity, keep, same

LAUNCHES = campaign(1).launches
WISH = canonical({"wish": {"quick": True, "rounds": 8, "name": "night"}})


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str


@dataclass
class Site:
    """A store, and what the next recheck will measure."""

    store: Store
    run: Callable[..., Ended]
    level: Level = same
    changes: dict[str, object] | None = None
    tasks: list[Task] | None = None
    rounds: int = 8
    busy: bool = False  # whether others take the CPU all the time
    found: tuple[Finding, ...] = ()  # by its probes
    failure: MpigraftError | None = None  # that a campaign ends with
    machine: Machine = field(default_factory=a_machine)


@pytest.fixture
def site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Site:
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> Ended:
        with pytest.raises(SystemExit) as ended:
            main.main(["--store", str(tmp_path / "store"), *words])
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    site = Site(Store(tmp_path / "store"), run, tasks=[])

    def measure(store: Store, task: Task) -> str:
        assert site.tasks is not None
        site.tasks.append(task)
        number = 10 + len(site.tasks)
        made = campaign(number, level=site.level, name=task.spec.name, plan=WISH,
                        rounds=site.rounds, others=0.5 * site.busy,
                        **(site.changes or {}))  # type: ignore[arg-type]  # fmt: skip
        probes = tuple(replace(one, evidence=replace(one.evidence, findings=site.found))
                       for one in made.evidence)  # fmt: skip
        keep(store, replace(made, evidence=probes))
        if site.failure:
            raise site.failure
        return identity(number)

    monkeypatch.setattr(bench, "measure", measure)
    monkeypatch.setattr(common, "examine_machine", lambda: site.machine)
    return site


def test_the_first_recheck_needs_a_good_state(site: Site) -> None:
    keep(site.store, campaign(1, plan=WISH))
    ended = site.run("recheck")
    assert ended.code == 3
    assert "[good-none]" in ended.err
    assert site.tasks == []


def test_an_accepted_campaign_is_the_good_state_and_a_pass_is_not(site: Site) -> None:
    assert site.run("recheck", "--accept").code == 0
    assert [name for _, name in site.store.accepted()] == [identity(11)]
    ended = site.run("recheck")
    assert ended.code == 0
    assert shows(ended.out, "against recheck 00000011")
    assert [name for _, name in site.store.accepted()] == [identity(11)]
    assert site.tasks is not None
    assert site.tasks[1].repeats == identity(11)
    assert (site.tasks[1].spec.rounds, site.tasks[1].spec.looks) == (20, ())


def test_nodes_may_be_reached_by_an_agent(site: Site) -> None:
    site.run("recheck", "--accept", "--hosts", "n1,n2", "--ssh-command", "/bin/true")
    assert site.tasks
    assert site.tasks[0].part.nodes.hosts == ("n1", "n2")
    assert site.tasks[0].part.nodes.agent == "/bin/true"


def test_a_node_that_became_unlike_the_others_is_named(site: Site) -> None:
    """It may be what became slower; other findings of a probe belong to its own campaign."""
    site.run("recheck", "--accept")
    unlike = Finding.of("node-unlike", nodes="n2", others="n1", libraries="/dev/shm has 0 MiB")
    site.found = (unlike, Finding.of("lane-other", where="one-sided", lane="sm", requested="tcp"))
    said = " ".join(site.run("recheck").out.split())
    assert said.count("warning node-unlike: n2 is unlike n1: /dev/shm has 0 MiB") == 1
    assert "lane-other" not in said


def test_a_slower_night_ends_with_1_and_says_what_changed(site: Site) -> None:
    site.run("recheck", "--accept")
    site.level = lambda name, _: 1.3 if name == OPENMPI else 1.0
    site.changes = {"machine": {**MACHINE, "kernel": "6.12.1"}}
    ended = site.run("recheck")
    assert ended.code == 1
    assert "recheck-worse" in ended.err
    assert OPENMPI in ended.err
    assert matches(ended.err, "recheck-worse", changed="kernel 6.1.0-28-amd64 -> 6.12.1")
    site.level = lambda *_: 0.7
    assert site.run("recheck").code == 0  # faster is not worse


def test_what_is_gone_ends_with_1(site: Site) -> None:
    site.run("recheck", "--accept")
    site.changes = {"names": {"k0": "mpich@5.0.2/ucx"}}
    ended = site.run("recheck")
    assert ended.code == 1
    assert matches(ended.err, "recheck-worse", lines=f"{OPENMPI}: it has no value any more")


def test_a_change_that_has_to_be_is_accepted(site: Site) -> None:
    site.run("recheck", "--accept")
    site.level = lambda *_: 1.3
    assert site.run("recheck").code == 1
    assert site.run("recheck", "--accept").code == 0
    assert site.run("recheck").code == 0
    assert site.run("recheck", identity(11)).code == 1  # the first one, by its id


def test_json_and_junit_of_a_slower_night(site: Site, tmp_path: Path) -> None:
    site.run("recheck", "--accept")
    site.level = lambda name, _: 1.3 if name == OPENMPI else 1.0
    ended = site.run("recheck", "--json", "--junit", str(tmp_path / "recheck.xml"))
    assert ended.code == 1
    assert json.loads(ended.out)["level"] == 0.01
    suites = ElementTree.parse(tmp_path / "recheck.xml").getroot()
    assert suites.attrib == {"tests": "2", "failures": "1", "errors": "0", "skipped": "0"}
    (failed,) = suites.iter("failure")
    assert shows(failed.attrib["message"], "slower", "recheck 00000011")
    assert site.run("recheck", "--junit", str(tmp_path)).code == 2


def test_what_a_named_mpi_that_fails_leaves_is_compared_first(site: Site) -> None:
    site.run("recheck", "--accept")
    site.failure = LaunchFailed("it crashed")
    site.changes = {"names": {"k0": "mpich@5.0.2/ucx"}}
    site.level = lambda *_: 1.3
    ended = site.run("recheck")
    assert ended.code == 4
    assert shows(ended.out, "against recheck 00000011")
    assert matches(
        ended.err, "recheck-worse",
        lines=(f"{OPENMPI}: it has no value any more", "mpich@5.0.2/ucx on native:latency"),
    )  # fmt: skip
    assert ended.err.rstrip().endswith("it crashed")
    assert site.run("recheck", "--accept").code == 4  # what failed is no good state
    assert [name for _, name in site.store.accepted()] == [identity(11)]
    site.changes = {"names": {"k9": "intel@2021/shm"}}
    ended = site.run("recheck")  # nothing ran at all
    assert (ended.code, ended.out) == (4, "")


def test_a_night_without_any_verdict_is_no_pass(site: Site) -> None:
    site.run("recheck", "--accept")
    site.busy = True  # a daemon that never ends: every launch is disturbed
    ended = site.run("recheck")
    assert ended.code == 6
    assert "[nothing-judged]" in ended.err
    assert matches(
        ended.err, "nothing-judged",
        reasons=f"{OPENMPI} on native:latency (1x2): no verdict: other processes used the CPU",
    )  # fmt: skip


def test_too_few_rounds_are_no_pass_and_no_good_state(site: Site) -> None:
    site.rounds = 5
    ended = site.run("recheck", "--accept")
    assert ended.code == 6
    assert "recheck-unfinished" in ended.err
    assert site.store.accepted() == ()
    site.rounds = 6
    assert site.run("recheck", "--accept").code == 0
    site.rounds = 3
    ended = site.run("recheck")
    assert ended.code == 6
    assert matches(ended.err, "recheck-unfinished", least=6, rounds=3, campaign="00000013")
    assert site.run("recheck", "--accept").code == 6
    assert [name for _, name in site.store.accepted()] == [identity(12)]


def test_every_recheck_has_a_deadline_and_none_needs_a_baseline(site: Site) -> None:
    begun = time.monotonic()
    site.run("recheck", "--accept", "--minutes", "3")
    site.run("recheck", "--minutes", "2")
    assert site.tasks is not None
    first, second = site.tasks
    assert 170 < first.part.deadline - begun < 300
    assert 110 < second.part.deadline - begun < 240
    assert (first.spec.rounds, first.part.apart, second.part.apart) == (20, False, True)
    for minutes in ("0", "nan", "-1", "inf"):
        assert site.run("recheck", "--accept", "--minutes", minutes).code == 2


def test_an_mpi_that_is_gone_is_said_and_the_others_are_measured(site: Site) -> None:
    wish = {"wish": {"mpi": ["openmpi@5", "mpich"], "layout": ["1x2"]}, "layouts": ["1x2", "1x4"]}
    keep(site.store, campaign(1, plan=canonical(wish)))
    site.machine = a_machine(an_mpi("mpich@5.0.2"))
    ended = site.run("recheck", identity(1))
    assert shows(ended.err, "openmpi@5")
    assert site.tasks is not None
    assert (site.tasks[0].spec.mpi, site.tasks[0].spec.layout) == (("mpich",), ("1x2", "1x4"))
    site.machine = a_machine()
    ended = site.run("recheck", identity(1))
    assert ended.code == 3
    assert "mpi-missing" in ended.err
    assert len(site.tasks) == 1


def test_the_good_state_is_one_of_these_cpus() -> None:
    machine = a_machine()
    here = f"{machine.cpu.model}, {machine.cpu.architecture}, {machine.cpu.cores} cores"
    records = [
        replace(campaign(number).campaign, plan=canonical({"cpu": cpu}))
        for number, cpu in ((1, here), (2, here), (3, "another, x86_64, 4 cores"))
    ]
    marks = [("2026-01-04", identity(1)), ("2026-01-03", identity(2)), ("2026-01-05", identity(3))]
    good = last_good(records, [*marks, ("2026-01-09", "gone")], machine)
    assert good is not None
    assert good.id == identity(1)
    assert last_good(records, marks[2:], machine) is None
    imported = [replace(record, origin=Origin.IMPORT) for record in records]
    assert last_good(imported, marks, machine) is None  # nobody can repeat it


def test_a_damaged_mark_counts_for_nothing(tmp_path: Path) -> None:
    store = keep(Store(tmp_path / "store"), campaign(1))
    store.accept(identity(1))
    (tmp_path / "store" / "x.accepted").write_text('{"accepted": ')
    assert [name for _, name in store.accepted()] == [identity(1)]


def test_rounds_are_those_that_fit() -> None:
    launches = campaign(1).launches  # three launches of 1.5 s in each round
    assert recheck_rounds(launches, 2, "good") == 19
    assert recheck_rounds(launches, 10, "good") == 20
    with pytest.raises(UsageError) as error:
        recheck_rounds(launches, 0.5, "good")
    assert error.value.code == "recheck-too-short"
    assert "--minutes 1" in error.value.fix
    with pytest.raises(MissingError):
        recheck_rounds((), 10, "good")


@given(st.floats())
@example(1e307)
def test_no_number_of_minutes_breaks_the_plan(minutes: float) -> None:
    try:
        rounds = recheck_rounds(LAUNCHES, minutes, "good")
    except UsageError as error:
        rounds = 6 if error.code in ("minutes-invalid", "recheck-too-short") else 0
    assert 6 <= rounds <= 20


@given(st.text(), st.text())
def test_any_name_is_well_formed_xml(name: str, text: str) -> None:
    document = junit(name, [Case(text, name, "failure", text), Case(name, text)])
    assert ElementTree.fromstring(document).attrib["failures"] == "1"
