"""What the launches of a campaign use, so that all of its rounds use the same.

Programs, libraries and configuration files are fingerprinted when a campaign begins or goes on.
Before each launch their stamps are looked at, and contents where a stamp moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Configuration
from mpigraft.core.text import join_some
from mpigraft.evidence import (
    Fingerprint,
    changed_files,
    fingerprint_files,
    mpi_config_files,
    used_files,
)
from mpigraft.native import Natives

FEW = 4  # files that a message names


def launch_files(
    configuration: Configuration, natives: Natives, programs: Sequence[Path] = ()
) -> Fingerprint:
    """Return the files of a configuration's launches as they are now; `programs` are those of
    suites, with what they map and read."""
    used = fingerprint_files(dict.fromkeys((*used_files(configuration, natives), *programs)))
    return replace(used, config=mpi_config_files(configuration).digests())


def refuse_changed_files(configuration: Configuration, before: Fingerprint) -> None:
    """Raise UsageError when programs, libraries or configuration files are not what they were
    when the campaign looked at them."""
    if files := changed_files(before):
        raise UsageError.of("program-changed", id=configuration.id, files=_few(files))
    now = mpi_config_files(configuration).digests()
    if now != before.config:
        files = tuple(dict.fromkeys(path for path, _ in sorted({*now} ^ {*before.config})))
        raise UsageError.of("settings-changed", id=configuration.id, files=_few(files))


def refuse_other_files(name: str, began: object, now: Fingerprint) -> None:
    """Raise UsageError when a campaign that goes on would use other files than those it began
    with. `began` is the earlier `named`; an older version stored none of them."""
    if not isinstance(began, list):
        return
    then = {(str(row[0]), str(row[1])) for row in began}
    other = {name for name, _ in then ^ {*now.named}}
    if other:
        raise UsageError.of("resume-other-files", name=name, files=_few(sorted(other)))


def _few(files: Sequence[str]) -> str:
    return join_some(files, FEW, ", ")
