"""Applications as benchmarks: a command, its figure of merit, and which way is better.

[app.solver]
command = "./solver -in {ranks}.cfg"
figure = 'Performance: ([\\d.]+) ns/day'
unit = "ns/day"
better = "higher"
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from json import dumps
from pathlib import Path
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Better, metric_key
from mpigraft.core.parsers import parse_toml
from mpigraft.knowledge import Given
from mpigraft.request.limits import MOST_LIMIT_S
from mpigraft.request.options import (
    by_key,
    line_of,
    option,
    options_of,
    read_option,
    read_settings,
    with_options,
)

PRELOADS = ("LD_PRELOAD", "LD_AUDIT")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
TAKES = ("one", "first", "last", "sum", "median")  # of several figures; one refuses them


def _command(given: Given) -> tuple[str, ...]:
    """Return words, or a text that is split as a shell splits it: no shell is started."""
    if isinstance(given.value, str):
        try:
            return tuple(shlex.split(given.value))
        except ValueError as error:
            raise UsageError.of("value-invalid", place=given.place, error=error) from None
    return given.several(str)


@dataclass(frozen=True, slots=True)
class App:
    """An application and its figure of merit. `figure` or `json` says where that is."""

    command: tuple[str, ...] = option((), '"./solver -in small.cfg"', read=_command)
    figure: str = option("", r"'Performance: ([\d.]+)'")  # a regular expression with one group
    json: str = option("", '"results.0.performance"')  # keys and places in a JSON document
    output: str = option("", '"log.json"')  # a file that has the figure; empty: standard output
    success: str = option("", r"'^Finished normally'")  # what a run that counts has printed
    take: str = option("one", '"last"', words=TAKES)
    metric: str = option("figure", '"performance"')
    unit: str = option("", '"ns/day"')
    better: str = option("", '"higher"', words=tuple(Better))
    folder: str = option("", '"/scratch/case"')  # where its ranks start
    files: tuple[str, ...] = option((), '["small.cfg"]')  # inputs that must not change
    env: tuple[str, ...] = option((), '["OMP_PLACES=cores"]', read=read_settings)  # of its ranks
    modules: tuple[str, ...] = option((), '["GROMACS/2024.4"]')  # loaded for its ranks
    limit_s: float = option(0.0, "600", key="limit", most=MOST_LIMIT_S)  # of one launch
    name: str = option("", '"solver"')

    @property
    def metric_key(self) -> str:
        return metric_key(self.metric, self.unit, Better(self.better))

    def __str__(self) -> str:
        """Return what follows `--app`: TOML's strings and lists are written as JSON's."""
        usual = App()
        values = ((key, one.value(self), one.value(usual)) for key, one in OPTIONS.items())
        table = (
            f"{key}={dumps(value, ensure_ascii=False)}"
            for key, value, default in values
            if value != default and key != "name"
        )
        return f"{self.name}={{{', '.join(table)}}}"

    def within(self, folder: Path) -> App:
        """Return the same, started in a folder that is relative to this one."""
        return replace(self, folder=str((folder / self.folder).absolute()))


def read_apps(given: Given) -> tuple[App, ...]:
    """Read a table of applications by name; of the command line NAME={KEY = VALUE, ...} words; of
    a stored plan a list. Raises UsageError."""
    value = given.value
    if isinstance(value, dict):
        return tuple(
            read_app(name, table, f"{given.place}.{name}") for name, table in value.items()
        )
    if not isinstance(value, (list, tuple)):
        raise given.unfit("a table of applications")
    return tuple(_one(each, given) for each in value)


def _one(value: Any, given: Given) -> App:
    if isinstance(value, App):
        return value
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        table = {key: one for key, one in by_key(App, value) if one not in ("", 0.0, [], ())}
        return read_app(value["name"], table, given.place)
    if not isinstance(value, str):
        raise given.unfit("NAME={command = ..., figure = ...}")
    name, _, text = value.partition("=")
    try:
        table = parse_toml(f"app = {text}")["app"]
    except ValueError as error:
        raise UsageError.of("app-not-toml", place=given.place, text=value, error=error) from None
    return read_app(name.strip(), table, f"{given.place} {name.strip()}")


def read_app(name: str, table: Any, place: str) -> App:
    """Read one table. Raises UsageError, which names `place`."""
    if not NAME.fullmatch(name):
        raise UsageError.of("app-name-invalid", place=place, name=name)
    if not isinstance(table, Mapping):
        raise UsageError.of("app-not-table", place=place)
    values = {key: read_option(OPTIONS, key, value, place) for key, value in table.items()}
    app = with_options(App(), {**values, "name": name})
    for problem in _problems(app):
        raise UsageError.of("app-incomplete", place=place, problem=problem)
    return app


def _problems(app: App) -> list[str]:
    """Return what keeps an application from being a benchmark."""
    problems = []
    if not app.command:
        problems.append("it has no command")
    if bool(app.figure) == bool(app.json):
        problems.append("it has to have either figure or json, which say where its figure is")
    if not app.better:
        problems.append('better has to be "higher" or "lower"')
        return problems
    try:
        if app.figure and re.compile(app.figure).groups != 1:
            problems.append(f"figure = {app.figure!r} has to have one group: ([\\d.]+)")
    except re.error as error:
        problems.append(f"figure = {app.figure!r} is no regular expression: {error}")
    try:
        re.compile(app.success)
    except re.error as error:
        problems.append(f"success = {app.success!r} is no regular expression: {error}")
    problems += _env_problems(app)
    try:
        app.metric_key  # noqa: B018  raises for what is no name or unit
    except ValueError:
        problems.append("metric has to be a-z, 0-9 and _, and unit a word without brackets")
    return problems


def _env_problems(app: App) -> Iterator[str]:
    from mpigraft.core.env import SECRET_NAME
    from mpigraft.request.environment import ANOTHER_PLACE, STEERING

    for word in app.env:
        name, equals, _ = word.partition("=")
        if not equals or not name.isidentifier():
            yield f"env has {word!r}, which is not NAME=VALUE"
        elif SECRET_NAME.search(name):
            yield f"env has {name}, which looks like a secret: results are stored and published"
        elif STEERING.match(name) or ANOTHER_PLACE.match(name) or name in PRELOADS:
            yield (
                f"env has {name}, which can change the transport that is proven; set it for the "
                f"whole campaign: --env {word}"
            )


def read_app_lines(tables: Mapping[str, Any], text: str, path: Path, after: int) -> None:
    """Raise UsageError with the file and line of a key that cannot be used."""
    for name, table in tables.items():
        line = line_of(name, text, "app", after)
        for key, value in table.items() if isinstance(table, dict) else ():
            below = line_of(key, text, after=line)
            read_option(OPTIONS, key, value, f"{path}:{below}")
        read_app(name, table, f"{path}:{line}: app.{name}")


OPTIONS = options_of(App)
