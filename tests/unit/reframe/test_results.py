"""What a comparison means for ReFrame, without ReFrame; and what is said where it is missing."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft import reframe
from mpigraft.core.errors import MissingError
from mpigraft.reframe.results import (
    SCALES,
    layout_of,
    performance_variables,
    read_document,
    read_error,
    slower_curves,
    variable_name,
)
from mpigraft.report.json import render_json
from tests.builders.reports import single_data, small_data


def test_scales_are_those_of_eessi() -> None:
    assert layout_of("1_core", 128) == (1, 1)
    assert layout_of("4_cores", 128) == (1, 4)
    assert layout_of("1cpn_4nodes", 128) == (4, 1)
    assert layout_of("1_8_node", 128) == (1, 16)
    assert layout_of("16_nodes", 128) == (16, 128)
    assert layout_of("4_cores", 2) == (1, 0)  # such a node is too small
    assert layout_of("1_8_node", 4) == (1, 0)
    with pytest.raises(KeyError):
        layout_of("half", 4)


@given(st.sampled_from(sorted(SCALES)), st.integers(1, 512))
def test_a_scale_never_takes_more_than_there_is(scale: str, cores: int) -> None:
    nodes, ranks = layout_of(scale, cores)
    assert nodes == SCALES[scale]["num_nodes"]
    assert 0 <= ranks <= cores


def test_figures_are_medians_ratios_and_verdicts() -> None:
    document = json.loads(render_json(small_data()))
    figures = performance_variables(document)
    row = document["comparisons"][0]
    head = variable_name(row["configuration"], row["benchmark"], row["metric"])
    first, last = row["cells"][0], row["cells"][-1]
    assert figures[f"{head}_{first['size']}"] == (first["value"], row["unit"])
    assert figures[f"{head}_{last['size']}"] == (last["value"], row["unit"])
    assert figures[f"{head}_ratio"] == (row["pooled"], "x")
    assert figures[f"{head}_verdict"][0] in (-1.0, 0.0, 1.0)
    assert all(math.isfinite(value) for value, _ in figures.values())
    assert all(name.isidentifier() for name in figures)
    slower = [r for r in document["comparisons"] if r["curve"] == "slower"]
    assert len(slower_curves(document)) == len(slower)


def test_a_campaign_of_one_configuration_has_its_medians() -> None:
    document = json.loads(render_json(single_data()))
    assert document["comparisons"] == []
    assert performance_variables(document)


def test_names_are_letters_digits_and_underscores() -> None:
    name = variable_name("openmpi@5.0.11/ob1-sm", "native:latency", "latency")
    assert name == "openmpi_5_0_11_ob1_sm_latency_latency"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"comparisons": 3}'])
def test_what_is_no_document_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "compare.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"compare\.json|Expecting"):
        read_document(path)
    with pytest.raises(ValueError, match="No such file"):
        read_document(tmp_path / "gone")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round 1\nmpigraft: no {x} here\nwhat to do: y\n", "mpigraft: no {{x}} here"),
        ("Killed\n", "Killed"),
        ("", "see err"),
    ],
)
def test_why_a_campaign_ended_is_its_message(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "err").write_text(text)
    assert read_error(tmp_path / "err") == message


def test_without_reframe_the_error_says_what_to_install() -> None:
    """The tests' own environment has no ReFrame."""
    with pytest.raises(MissingError) as error:
        reframe.MpigraftCheck  # noqa: B018
    assert error.value.code == "reframe-missing"
    assert "ReFrame-HPC" in error.value.fix
    with pytest.raises(AttributeError):
        reframe.nothing  # noqa: B018
