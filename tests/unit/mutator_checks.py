"""The tests of a module as calls that a mutant is tried against: each passes or raises."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
import tempfile
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Check = Callable[[], object]


def checks(tests: ModuleType, *, without: Collection[str] = ()) -> list[Check]:
    """The tests of a module that need neither many examples nor fixtures other than FIXTURES, one
    call for each set of parameters; `without` names slow ones that nothing hangs on."""
    assert set(without) <= set(vars(tests)), f"unknown among {without}"
    found: list[Check] = []
    for name, test in inspect.getmembers(tests, inspect.isfunction):
        own = test.__module__ == tests.__name__ and name.startswith("test_")
        if own and name not in without and not hasattr(test, "hypothesis"):
            found += [functools.partial(_call, test, given) for given in _parameters(test)]
    return found


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


FIXTURES: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
    "tmp_path": _folder, "monkeypatch": pytest.MonkeyPatch.context,
}  # fmt: skip


def _call(test: Callable[..., object], given: dict[str, object]) -> None:
    with contextlib.ExitStack() as stack:
        due = [name for name in inspect.signature(test).parameters if name not in given]
        test(**given, **{name: stack.enter_context(FIXTURES[name]()) for name in due})


def _parameters(test: Callable[..., object]) -> list[dict[str, object]]:
    """Arguments of each call beside FIXTURES: of several `parametrize` each with each of the
    others; none for a test of other fixtures, or one that may be left out."""
    marks = list(getattr(test, "pytestmark", ()))
    wanted = set(inspect.signature(test).parameters) - set(FIXTURES)
    if any(mark.name != "parametrize" for mark in marks):
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
