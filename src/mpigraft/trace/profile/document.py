"""A profile as a document, and read back."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, TypedDict

from mpigraft.core.errors import UsageError
from mpigraft.core.serialize import READABLE, document, revive
from mpigraft.core.text import printable_document
from mpigraft.trace.profile.values import Profile

KIND = "profile"  # the key of a document that has one


class ProfileDocument(TypedDict):
    """Where the MPI time of one run went. Times are seconds, sizes bytes; null: not measured."""

    profile: Profile


def render_profile(profile: Profile) -> str:
    """Make the document: --json, and -o of `mpigraft profile`."""
    return document(**ProfileDocument(profile=profile))


def parse_profile(text: str, path: Path) -> Profile:
    """Read a document. Raises UsageError for one that is damaged or another's."""
    try:
        value: Any = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise _refused(path, line, f"no JSON: {getattr(error, 'msg', error)}") from error
    if not isinstance(value, dict) or not isinstance(value.get(KIND), dict):
        raise _refused(path, 1, "a JSON document without a profile")
    if value.get("schema") not in READABLE:
        raise _refused(path, 1, f"schema {value.get('schema')!r} is not known")
    try:
        profile = revive(Profile, printable_document(value[KIND]))
        check_profile(profile)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _refused(path, 1, str(error)[:120]) from error
    assert isinstance(profile, Profile)
    return profile


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no figure")


def _refused(path: Path, line: int, reason: str) -> UsageError:
    return UsageError.of("profile-damaged", path=path, line=line, reason=reason)


def check_profile(profile: Profile) -> None:
    """Raise ValueError for a figure that can be none."""
    figures = [profile.run_s, profile.total_s, profile.mpi_s]
    for one in profile.routines:
        figures += [one.time_s, one.calls, one.bytes, one.waited_s, one.longest_s, one.errors]
        figures += [one.spread.low, one.spread.mean, one.spread.high] if one.spread else []
        figures += [x for size in one.sizes for x in (size.least, size.calls, size.bytes)]
    figures += [x for one in profile.each for x in (one.run_s, one.mpi_s, one.inside_s, one.rank)]
    figures += [x for one in profile.sites for x in (one.calls, one.time_s, one.bytes)]
    for other in profile.others:
        check_profile(other)
    for peer in profile.peers:
        figures += [peer.source, peer.target, peer.messages, peer.bytes]
    for figure in figures:
        if figure is not None and not (math.isfinite(figure) and figure >= 0):
            raise ValueError(f"{figure} is no time, size or count")
