"""The command that measures a benchmark again, from what the store kept of the request."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from mpigraft.bench import benchmark_command
from mpigraft.core.model import Origin
from mpigraft.report.contents import ReportData
from mpigraft.report.scaling import Card, cards
from mpigraft.request.options import COMMAND_LINE
from mpigraft.request.spec import spec_from, stored_spec
from tests.builders.html import body_of
from tests.builders.messages import shows
from tests.builders.reports import small_data


def planned(wish: Any, origin: Origin = Origin.RUN) -> ReportData:
    data = small_data()
    plan = json.dumps({"wish": wish})
    return replace(data, campaign=replace(data.campaign, plan=plan, origin=origin))


def command(data: ReportData, card: Card) -> str:
    layouts = [section.layout for section in card.sections]
    return benchmark_command(data.campaign, card.benchmark, layouts)


def again(data: ReportData) -> list[str]:
    return shlex.split(command(data, cards(data.comparison)[0]))


def test_what_was_requested_is_said_and_defaults_are_not() -> None:
    wish = {
        "name": "night", "mpi": ["openmpi", "mpich"], "transport": [], "benchmark": ["bw"],
        "rounds": 20, "seed": 7, "env": ["FI_TCP_IFACE=a b"], "validate": False,
        "budget_ms": 12.5, "nodes": [2], "min_size": 1, "max_size": 1024,
    }  # fmt: skip
    due = (
        "mpigraft bench --benchmark latency --layout 1x2 --mpi openmpi --mpi mpich "
        "--env 'FI_TCP_IFACE=a b' --rounds 20 --max 1024 --ms-per-size 12.5 --no-validate"
    )
    assert again(planned(wish)) == shlex.split(due)


def test_an_application_is_named_as_bench_reads_it() -> None:
    apps = [
        {
            "name": "md",
            "command": ["./m d", "-x"],
            "figure": r"t: ([\d.]+) \"ü\"",
            "better": "lower",
        },
        {"name": "other", "command": ["./o"], "json": "a.0", "better": "higher"},
    ]
    data = planned({"app": apps})
    (card, *_) = cards(data.comparison)
    words = shlex.split(command(data, replace(card, benchmark="app:md")))
    assert words[-2] == "--app"
    typed = spec_from({"app": [words[-1]]}, COMMAND_LINE)
    assert typed.app == stored_spec({"app": apps}, "plan").app[:1]
    assert "--app" not in again(data)


def test_limits_and_a_matrix_are_of_the_benchmarks_that_use_them() -> None:
    """`bench` refuses them beside others."""
    both = {"benchmark": ["latency,mini:dirac"], "matrix": "/m.mtx"}
    data = planned(both | {"limits": ["mini=9", "native=7"]})
    (card, *_) = cards(data.comparison)
    assert "native=7" in again(data)[-1]
    mini = shlex.split(command(data, replace(card, benchmark="mini:dirac")))
    assert [mini[-3], mini[-1]] == ["/m.mtx", "mini=9"]


@pytest.mark.parametrize("wish", [None, [], {"unheard": 1}, {"rounds": "many"}, {"mpi": 3}])
def test_a_plan_that_says_nothing_gives_no_command(wish: Any) -> None:
    assert again(planned(wish)) == []


def test_an_import_gives_no_command() -> None:
    assert again(planned({"mpi": ["openmpi"]}, Origin.IMPORT)) == []


def test_the_page_has_it_with_a_button_that_needs_scripts() -> None:
    text = body_of(planned({"mpi": ["<b>"]}))
    assert shows(unescape(text), "mpigraft bench", "latency", "--mpi '<b>'")
    assert text.count('data-copy="again-b-native-latency-1x2-host-latency" hidden>') == 1
