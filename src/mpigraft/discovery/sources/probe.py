"""Query foreign libraries, each in a child with a time limit, and cache the answers."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.core import cache, env, file_dependencies
from mpigraft.core.process import Completed, clean, run_command
from mpigraft.core.serialize import digest

CHILD = Path(__file__).with_name("child.py")
LIMIT_S = 20.0
KIND = "probe"


@dataclass(frozen=True, slots=True)
class LibraryAnswer:
    """What a library reports of itself. `reason` says why the query failed."""

    version: str = ""
    offers: tuple[str, ...] = ()
    mapped: tuple[Path, ...] = ()  # what the loader mapped with it
    reason: str = ""

    def library(self, name: str) -> Path | None:
        """Find a mapped library by the beginning of its file name."""
        return next((p for p in self.mapped if p.name.startswith(name)), None)


def query_library(
    kind: str,
    library: Path,
    environment: Mapping[str, str],
    plugins: Sequence[Path | str] = (),
    devices: Sequence[str] = (),
) -> LibraryAnswer:
    """Load `library` in a child as `child.py` does for `question`.

    The answer is cached under the content of the library, the environment and `devices`. It is
    valid as long as every file that was mapped keeps its content. A failure is not cached: what is
    missing today may be installed tomorrow.
    """
    try:
        contents = (cache.file_digest(library), cache.file_digest(CHILD))
        where = (platform.node(), list(devices))
        key = digest([kind, library, plugins, contents, dict(environment), where])
    except OSError as error:
        return LibraryAnswer(reason=f"{library}: {error.strerror or error}")
    kept = cache.get(KIND, key)
    if kept and _still_valid(kept):
        return _library_answer(kept)
    answer, reason = _run_child(kind, library, environment, plugins)
    if reason:
        return LibraryAnswer(reason=reason)
    try:
        answer["digests"] = {file: cache.file_digest(file) for file in answer["mapped"]}
        cache.put(KIND, key, answer)
    except OSError:
        pass  # a library was removed during the query: the next call queries again
    return _library_answer(answer)


def tool_output(
    argv: Sequence[Path | str],
    environment: Mapping[str, str],
    plugins: Path | None = None,
    limit_s: float = LIMIT_S,
) -> str:
    """Give the output of a program that describes itself (`--version`, `ompi_info`).

    It is cached by the program's content and the names of the `plugins` that it lists. For a
    program that hangs the text says so.
    """
    if plugins:
        file_dependencies.folder(plugins)
    try:
        names = sorted(p.name for p in plugins.iterdir()) if plugins else []
        key = digest([argv, dict(environment), names, cache.file_digest(argv[0])])
    except OSError as error:
        return str(error)
    if isinstance(kept := cache.get("tool", key), str):
        return kept
    done = run_command(argv, env=environment, limit_s=limit_s, cwd=Path("/"))
    if done.timed_out:
        return f"no answer in {limit_s:.0f} s"
    if done.ok:
        cache.put("tool", key, done.text())
    return done.text()


def single_copy_permitted() -> LibraryAnswer:
    """Try whether processes may read each other's memory: `offers` is cma, cma-when-allowed or
    empty. No file in /proc tells: a seccomp filter or a capability decides."""
    answer, reason = _run_child("cma", "", dict(os.environ), ())
    return LibraryAnswer(reason=reason) if reason else _library_answer(answer)


def _run_child(
    kind: str,
    library: Path | str,
    environment: Mapping[str, str],
    plugins: Sequence[Path | str],
) -> tuple[dict[str, Any], str]:
    argv = [sys.executable, "-I", "-S", CHILD, kind, library, *plugins]
    done = run_command(argv, env=environment, limit_s=LIMIT_S, cwd=Path("/"))
    if done.code == 127 and b"shared libraries" in done.stderr:
        # This Python needs a module's LD_LIBRARY_PATH: add it, behind the MPI's own folders.
        paths = [environment.get("LD_LIBRARY_PATH", ""), os.environ.get("LD_LIBRARY_PATH", "")]
        wider = {**environment, "LD_LIBRARY_PATH": ":".join(p for p in paths if p)}
        done = run_command(argv, env=wider, limit_s=LIMIT_S, cwd=Path("/"))
    return _parse_answer(done)


def _parse_answer(done: Completed) -> tuple[dict[str, Any], str]:
    if done.timed_out:
        return {}, f"did not load within {LIMIT_S:.0f} s"
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        last = clean(done.stderr).strip().splitlines()[-1:] or ["no message"]
        how = f"signal {-done.code}" if done.code < 0 else f"exit {done.code}"
        return {}, f"crashed while it was loaded ({how}: {env.redact(last[0])})"
    return answer, str(answer.get("error", ""))


def _still_valid(kept: dict[str, Any]) -> bool:
    try:
        return all(cache.file_digest(f) == d for f, d in kept["digests"].items())
    except (OSError, KeyError, AttributeError):
        return False


def _library_answer(document: dict[str, Any]) -> LibraryAnswer:
    return LibraryAnswer(
        version=str(document.get("version", "")),
        offers=tuple(map(str, document.get("offers", ()))),
        mapped=tuple(map(Path, document.get("mapped", ()))),
        reason="; ".join(document.get("troubles", ())) if "offers" in document else "",
    )
