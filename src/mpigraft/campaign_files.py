"""What the launches of a campaign use, so that all of its rounds use the same.

Programs, libraries and configuration files are fingerprinted when a campaign begins or goes on.
Before each launch their stamps are looked at, and contents where a stamp moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.config_files import config_files
from mpigraft.errors import UsageError
from mpigraft.model import Configuration
from mpigraft.natives import Natives
from mpigraft.used_files import Fingerprint, changed, fingerprint, named_digests, used_files

FEW = 4  # files that a message names


@dataclass(frozen=True, slots=True)
class LaunchFiles:
    """Of one configuration: what it runs, and (path, SHA-256) of what its libraries read."""

    used: Fingerprint
    config: tuple[tuple[str, str], ...]

    @property
    def recorded(self) -> list[list[str]]:
        """[file name, SHA-256] of all, as the store keeps it."""
        named = {*named_digests([self.used]), *((Path(p).name, sum_) for p, sum_ in self.config)}
        return [[name, sum_] for name, sum_ in sorted(named)]


def launch_files(configuration: Configuration, natives: Natives) -> LaunchFiles:
    """The files of a configuration's launches as they are now."""
    used = fingerprint(used_files(configuration, natives))
    return LaunchFiles(used, config_files(configuration).digests())


def refuse_changed(configuration: Configuration, before: LaunchFiles) -> None:
    """Raise UsageError when programs, libraries or configuration files are not what they were
    when the campaign looked at them."""
    if files := changed(before.used):
        raise UsageError(
            f"what {configuration.id} runs was replaced during the campaign: {_few(files)}",
            why="its rounds would be of different programs or MPIs under one name",
            mend="start a new campaign",
        )
    now = config_files(configuration).digests()
    if now != before.config:
        files = tuple(dict.fromkeys(path for path, _ in sorted({*now} ^ {*before.config})))
        raise UsageError(
            f"configuration files of {configuration.id} changed during the campaign: {_few(files)}",
            why="its rounds would run with different settings, perhaps over another transport",
            mend="start a new campaign",
        )


def refuse_other(name: str, began: object, now: LaunchFiles) -> None:
    """Raise UsageError when a campaign that goes on would use other files than those it began
    with. `began` is `recorded` of then; what an older version stored says nothing of them."""
    if not isinstance(began, list):
        return
    then = {(str(row[0]), str(row[1])) for row in began}
    other = {name for name, _ in then ^ {(row[0], row[1]) for row in now.recorded}}
    if other:
        raise UsageError(
            f"cannot resume: {name} was measured with other files: {_few(sorted(other))}",
            why="old and new rounds would be mixed",
            mend="start a new campaign",
        )


def _few(files: Sequence[str]) -> str:
    more = len(files) - FEW
    return ", ".join(files[:FEW]) + (f" and {more} more" if more > 0 else "")
