"""Each case file is a campaign file, and its figure of merit reads what such runs print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpigraft.bench.suites.app import read
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark
from mpigraft.knowledge import case_names, case_text, load_case
from mpigraft.request import CampaignSpec, read_spec
from tests.builders.messages import shows

NAMED = {"castep", "cp2k", "gromacs", "nemo", "opensbli", "vasp"}
ROUTINE = re.compile(r"[A-Z][a-z]+(_[a-z]+)*")


def spec_of(name: str, folder: Path) -> CampaignSpec:
    file = folder / f"{name}.toml"
    file.write_text(case_text(name), encoding="utf-8")
    return read_spec(file)


def test_the_codes_of_the_study_have_cases() -> None:
    assert set(case_names()) >= NAMED


@pytest.mark.parametrize("name", case_names())
def test_a_case_is_a_campaign_file_with_one_application(name: str, tmp_path: Path) -> None:
    spec = spec_of(name, tmp_path)
    assert [app.name for app in spec.app] == [name]
    assert spec.layout
    assert spec.app[0].folder == str(tmp_path)


@pytest.mark.parametrize("name", case_names())
def test_the_figure_of_merit_is_read_from_lines_of_a_run(name: str, tmp_path: Path) -> None:
    spec, case = spec_of(name, tmp_path), load_case(name)
    (app,) = spec.app
    parsed = read(Benchmark("app", name), case.sample.encode(), spec, name)
    assert [one.value for one in parsed.measurements] == [case.value], parsed.findings
    if app.success:
        assert re.search(app.success, case.sample, re.MULTILINE)


@pytest.mark.parametrize("name", case_names())
def test_a_figure_that_is_cut_short_or_missing_is_no_value(name: str, tmp_path: Path) -> None:
    spec, case = spec_of(name, tmp_path), load_case(name)
    for text in ("", re.sub(r"[0-9]", "*", case.sample)):
        assert not read(Benchmark("app", name), text.encode(), spec, name).measurements


@pytest.mark.parametrize("name", case_names())
def test_a_case_names_routines_and_where_it_is_from(name: str) -> None:
    case = load_case(name)
    assert all(ROUTINE.fullmatch(routine) for routine in case.routines)
    assert any("https://" in source for source in case.sources)
    assert shows(case_text(name), f"mpigraft bench {name}.toml")


@pytest.mark.parametrize("name", ["", "nothing", "../builds/plans", "castep.toml"])
def test_another_name_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(UsageError, match="there is no case") as caught:
        case_text(name)
    assert "castep" in str(caught.value.fix)


def test_what_a_file_is_about_changes_no_campaign(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    app = '[app.own]\ncommand = "./own"\nfigure = "t: (.+)"\nbetter = "lower"\n'
    file.write_text(app, encoding="utf-8")
    plain = read_spec(file)
    file.write_text(f'[case]\nwhat = "my own"\n{app}', encoding="utf-8")
    assert read_spec(file) == plain
