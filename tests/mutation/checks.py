"""The tests of a module as calls that a mutant is tried against: each passes or raises."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Check = Callable[[], object]


def checks(tests: ModuleType, *, without: Collection[str] = ()) -> list[Check]:
    """The tests of a module that need neither many examples nor fixtures other than FIXTURES and
    what is made of these, one call for each set of parameters; `without` names slow ones that
    nothing hangs on."""
    assert set(without) <= set(vars(tests)), f"unknown among {without}"
    found: list[Check] = []
    for name, test in inspect.getmembers(tests, inspect.isfunction):
        own = test.__module__ == tests.__name__ and name.startswith("test_")
        if own and name not in without and not hasattr(test, "hypothesis"):
            calls = _parameters(test, tests)
            found += [functools.partial(_call, test, tests, given) for given in calls]
    return found


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


FIXTURES: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "tmp_path": _folder, "monkeypatch": pytest.MonkeyPatch.context,
}  # fmt: skip


def _made(name: str, tests: ModuleType) -> Callable[..., object] | None:
    """The function of a fixture of a test module or its folder that needs FIXTURES alone."""
    conftest = f"{tests.__name__.rpartition('.')[0]}.conftest"
    for module in (tests, sys.modules.get(conftest)):
        if fixture := getattr(module, name, None):
            function: Callable[..., object] = inspect.unwrap(fixture)
            plain = not inspect.isgeneratorfunction(function)
            return function if plain and {*_names(function)} <= {*FIXTURES} else None
    return None


def _names(function: Callable[..., object]) -> Collection[str]:
    return inspect.signature(function).parameters


def _call(test: Callable[..., object], tests: ModuleType, given: dict[str, object]) -> None:
    """Call a test; what it and its fixtures have in common is made once."""
    with contextlib.ExitStack() as stack:
        values = dict(given)

        def value(name: str) -> object:
            if name not in values:
                if name in FIXTURES:
                    values[name] = stack.enter_context(FIXTURES[name]())
                elif made := _made(name, tests):
                    values[name] = made(**{due: value(due) for due in _names(made)})
            return values[name]

        for mark in _marks(test, "usefixtures"):
            for name in mark.args:
                value(name)
        test(**{name: value(name) for name in _names(test)})


def _marks(test: Callable[..., object], *names: str) -> list[pytest.Mark]:
    return [mark for mark in getattr(test, "pytestmark", ()) if mark.name in names]


def _parameters(test: Callable[..., object], tests: ModuleType) -> list[dict[str, object]]:
    """Arguments of each call beside fixtures: of several `parametrize` each with each of the
    others; none for a test of other fixtures, or one that may be left out."""
    marks = _marks(test, "parametrize")
    used = {name for mark in _marks(test, "usefixtures") for name in mark.args}
    known = {name for name in {*_names(test), *used} if name in FIXTURES or _made(name, tests)}
    wanted = {*_names(test)} - known
    if not used <= known or len(_marks(test, "parametrize", "usefixtures")) < len(
        getattr(test, "pytestmark", ())
    ):
        return []
    calls = [
        {name: value for row in rows for name, value in row.items()}
        for rows in itertools.product(*(_rows(*mark.args[:2]) for mark in marks))
    ]
    return [given for given in calls if set(given) == wanted]


def _rows(names: str | Collection[str], rows: Collection[Any]) -> list[dict[str, object]]:
    """The arguments that one `parametrize` gives."""
    names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    values = [
        row.values if hasattr(row, "marks") else row if len(names) > 1 else (row,) for row in rows
    ]
    return [dict(zip(names, row, strict=True)) for row in values]
