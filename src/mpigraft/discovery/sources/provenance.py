"""How an MPI was built, where its prefix says so.

A record is somebody's file: what is not as it should be counts as absent.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpigraft.core.cache import file_digest
from mpigraft.discovery.sources import files

Pair = tuple[str, str]  # (what, its value), as text
MOST = 100  # packages in a chain


def provenance_of(prefix: Path) -> tuple[Pair, ...]:
    """Read what an MPI was built of by the first reader that knows; empty where none does."""
    for read in READERS.values():
        with contextlib.suppress(OSError, RuntimeError):  # the latter of a loop of symlinks
            if pairs := tuple(read(prefix)):
                return pairs
    return ()


def mpigrafts_record(prefix: Path) -> Iterator[Pair]:
    """Yield the record that `mpigraft build` wrote beside the packages, and those of what it
    needs."""
    place = prefix.resolve()
    top = place.parents[2] if len(place.parents) > 3 else place
    module = f"{place.parent.name}/{place.name}"
    if top / "software" / module != place:
        return
    record = _record(top, module)
    if record.get("state") != "built":
        return
    name, easybuild = (_text(record.get(key)) for key in ("plan", "easybuild"))
    yield "built", f"mpigraft's plan {name}, by EasyBuild {easybuild}, {_text(record.get('when'))}"
    yield "compiler", _text(record.get("compiler"))
    yield "recipe", _text(record.get("recipe"))
    yield "options", _text(record.get("options"))
    pending, known = [module], {module}
    while pending and len(known) < MOST:
        record = _record(top, module := pending.pop(0))
        source = _object(record.get("source"))
        file, by, digest = (_text(source.get(key)) for key in ("file", "by", "sha256"))
        proof = f"SHA-256 {digest}" if digest else "packed from git"
        yield f"source of {module}", f"{file} ({by}), {proof}"
        needs = [need for need in _list(record.get("needs")) if isinstance(need, str)]
        pending += [need for need in needs if need not in known]
        known |= set(needs)


def easybuilds_copy(prefix: Path) -> Iterator[Pair]:
    """Yield the easyconfig that EasyBuild copies into each prefix."""
    for path in files.entries(prefix / "easybuild"):
        if path.suffix == ".eb" and files.is_file(path):
            yield "built", f"by EasyBuild from {path.name}"
            yield "recipe", file_digest(path)
            return


READERS: dict[str, Callable[[Path], Iterator[Pair]]] = {
    "mpigraft": mpigrafts_record,
    "easybuild": easybuilds_copy,
}


def _record(top: Path, module: str) -> dict[str, Any]:
    try:
        return _object(
            json.loads(files.text(top / "mpigraft" / f"{module.replace('/', '-')}.json"))
        )
    except (ValueError, RecursionError):
        return {}


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else "not known"
