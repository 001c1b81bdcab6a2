"""The second refusal of a job: what the first one said, as long as all that it was made from is as
it was.

Only what the check of a pair refuses is kept. It was made from files, which are noted while they
are read (`reads`); a refusal that rests on a scheduler, a device or a registry is decided anew.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from mpigraft.core import file_dependencies
from mpigraft.run.cached import start
from mpigraft.run.cached.world import MAX_DOCUMENT, UNREADABLE, listed, unlink_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mpigraft.core.errors import MpigraftError
    from mpigraft.request import RunSpec

REFUSED = ".refusal"  # ends the names of documents
ANSWER = 1  # exit code of a check that says no
MOST_AGE_S = 3600.0  # somebody is at work on the reason
MOST = 64  # that are kept; each has the names of some thousand files


def keep_refusal(
    key: str,
    spec: RunSpec,
    error: MpigraftError,
    noted: file_dependencies.Reads,
    environ: Mapping[str, str],
) -> None:
    """Keep a refusal's text, unless there is any doubt that it holds next time."""
    elsewhere = spec.stack or spec.transport or spec.launcher
    named = spec.image and not os.path.exists(spec.image)  # noqa: PTH110  an engine knows it
    if error.exit_code != ANSWER or elsewhere or named:
        return
    if (document := noted.document()) is None:
        return
    what = {"key": key, "at": time.time(), "text": str(error), "name": error.code}
    start.keep_start({**what, "reads": document}, environ, REFUSED)
    place = start.folder(environ)
    names = listed(place, "", REFUSED)
    if len(names) > MOST:
        unlink_all(f"{place}/{name}" for name in names if name != f"{key}{REFUSED}")


def kept_refusal(words: Sequence[str], environ: Mapping[str, str]) -> tuple[str, str, int] | None:
    """(text, its row's code, exit code) of an earlier run of the same words, if all that it was
    made from is as it was."""
    try:
        name = start.start_key(words, environ)
        path = f"{start.folder(environ)}/{name}{REFUSED}"
        document: Any = start.read_private(path, MAX_DOCUMENT)
        young = 0 <= time.time() - document["at"] < MOST_AGE_S
        if (
            not young
            or document["key"] != name
            or not file_dependencies.unchanged(document["reads"])
        ):
            return None
        return str(document["text"]), str(document["name"]), ANSWER
    except (OSError, *UNREADABLE):  # None, where there is no document, too
        return None
