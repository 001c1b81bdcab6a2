"""How an MPI was built, as its prefix says, whatever somebody wrote there."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.build import easybuild
from mpigraft.build.folders import BuildFolders
from mpigraft.discovery.sources.provenance import provenance_of
from tests.builders.easybuilds import a_plan, stand_in
from tests.builders.messages import shows

MPI = "OpenMPI/5.0.8-gnu"


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildFolders:
    """A prefix with what a plan built."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    folders = BuildFolders(tmp_path / "prefix")
    easybuild.build(a_plan(), folders, stand_in(tmp_path / "home"), lambda _: None)
    return folders


def test_a_build_of_ours_has_compiler_options_and_all_sources(folders: BuildFolders) -> None:
    plan = a_plan()
    facts = dict(provenance_of(folders.prefix / "software" / MPI))
    assert shows(facts["built"], "plan openmpi", "EasyBuild 5.4.1")
    assert facts["compiler"].startswith("gcc")
    assert "--with-ofi=" in facts["options"]
    for step, module in zip(plan.steps, ("libfabric/2.1.0-gnu", MPI), strict=True):
        assert step.archive.sha256 in facts[f"source of {module}"]
    link = folders.prefix.with_name("link")
    link.symlink_to(folders.prefix)
    assert dict(provenance_of(link / "software" / MPI)) == facts


def test_of_another_easybuild_its_easyconfig_is_named(folders: BuildFolders) -> None:
    (folders.records / "OpenMPI-5.0.8-gnu.json").unlink()
    facts = dict(provenance_of(folders.prefix / "software" / MPI))
    assert shows(facts["built"], "EasyBuild", "OpenMPI-5.0.8-gnu.eb")
    assert len(facts["recipe"]) == 64


def test_a_build_that_was_cut_off_has_none(folders: BuildFolders) -> None:
    path = folders.records / "OpenMPI-5.0.8-gnu.json"
    path.write_text(path.read_text().replace('"built"', '"begun"'))
    assert "compiler" not in dict(provenance_of(folders.prefix / "software" / MPI))


def test_a_prefix_without_records_has_none(tmp_path: Path) -> None:
    assert provenance_of(tmp_path) == provenance_of(Path("/")) == ()
    (tmp_path / "loop").symlink_to("loop")
    assert provenance_of(tmp_path / "loop/software/OpenMPI/5") == ()


json_values = st.recursive(
    st.none() | st.booleans() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
)
keys = st.sampled_from(["state", "source", "needs", "parameters", "plan", "compiler"])


@given(st.dictionaries(keys, json_values) | json_values)
def test_any_record_is_read(tmp_path_factory: pytest.TempPathFactory, record: object) -> None:
    top = tmp_path_factory.getbasetemp() / "any"
    (top / "mpigraft").mkdir(parents=True, exist_ok=True)
    if isinstance(record, dict):
        record |= {"state": "built"}
    (top / "mpigraft/OpenMPI-5.json").write_text(json.dumps(record))
    pairs = provenance_of(top / "software/OpenMPI/5")
    assert all(isinstance(word, str) for pair in pairs for word in pair)
