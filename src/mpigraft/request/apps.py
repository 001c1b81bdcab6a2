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
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Better, metric_key
from mpigraft.knowledge import Given
from mpigraft.request.limits import MOST_LIMIT_S
from mpigraft.request.named_tables import NamedTables, table_word
from mpigraft.request.options import option, read_settings

PRELOADS = ("LD_PRELOAD", "LD_AUDIT")
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
        """Return what follows `--app`."""
        return table_word(self)

    def within(self, folder: Path) -> App:
        """Return the same, started in a folder that is relative to this one."""
        return replace(self, folder=str((folder / self.folder).absolute()))


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


def _refuse(app: App, place: str) -> None:
    for problem in _problems(app):
        raise UsageError.of("app-incomplete", place=place, problem=problem)


APPS = NamedTables("app", App, _refuse)
