"""Lanes of tests share modules: each runs in one lane, and none is left out."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.lanes import FIRST, PROJECT, SECOND, SHARED, Claims


def _items(*folders: str) -> list[Any]:
    """Two tests of each of three modules."""
    names = [f"{folder}/test_{name}.py" for folder in folders for name in "abc"]
    return [SimpleNamespace(path=PROJECT / name) for name in names for _ in range(2)]


def test_each_module_is_run_by_one_lane(tmp_path: Path) -> None:
    first: list[Path] = []
    second: list[Path] = []
    lanes = [
        (first, Claims(tmp_path)._mine(_items(*FIRST, *SHARED))),
        (second, Claims(tmp_path)._mine(_items(*SECOND, *SHARED))),
    ]
    while lanes:
        for ran, tests in list(lanes):  # by turns
            if item := next(tests, None):
                ran.append(item.path)
            else:
                lanes.remove((ran, tests))
    both = Counter([*first, *second])
    assert both == Counter(item.path for item in _items(*FIRST, *SECOND, *SHARED))
    assert not {*first} & {*second}


def test_every_folder_of_tests_is_in_a_lane() -> None:
    folders = {str(p.parent.relative_to(PROJECT)) for p in PROJECT.glob("tests/**/test_*.py")}
    lanes = (*FIRST, *SECOND, *SHARED)
    assert not {one for one in folders if not one.startswith(lanes)}


LANE = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path(sys.argv[1]).touch()
    sys.exit(7)
signal.signal(signal.SIGINT, end)
pathlib.Path(sys.argv[1] + "-up").touch()
time.sleep(60)
"""
LANES = """
import ast, sys
from tests.lanes import run_lanes
print(run_lanes(*map(ast.literal_eval, sys.argv[1:3]), sys.stderr.buffer))
"""


def test_lanes_that_are_asked_to_end_are_interrupted_and_waited_for(tmp_path: Path) -> None:
    words = [
        repr([sys.executable, "-c", LANE, str(tmp_path / name)]) for name in ("first", "second")
    ]
    argv = [sys.executable, "-c", LANES, *words]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as lanes:
        while not all((tmp_path / f"{name}-up").exists() for name in ("first", "second")):
            assert lanes.poll() is None
            time.sleep(0.01)
        lanes.send_signal(signal.SIGTERM)
        assert lanes.communicate(timeout=30)[0] == "[7, 7]\n"
    assert {path.name for path in tmp_path.iterdir()} >= {"first", "second"}
