"""Asks foreign libraries who they are, each in a child with a time limit, and remembers."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft import cache, env
from mpigraft.jsonout import digest
from mpigraft.run import Completed, clean, run

CHILD = Path(__file__).with_name("child.py")
LIMIT_S = 20.0
KIND = "probe"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a library says of itself. `reason` is not empty when it could not be asked."""

    version: str = ""
    offers: tuple[str, ...] = ()
    mapped: tuple[Path, ...] = ()  # what the loader mapped with it
    reason: str = ""

    def library(self, name: str) -> Path | None:
        """The mapped file of a library, by the beginning of its name."""
        return next((p for p in self.mapped if p.name.startswith(name)), None)


def ask(
    question: str,
    library: Path,
    environment: Mapping[str, str],
    plugins: Sequence[Path | str] = (),
    devices: Sequence[str] = (),
) -> Answer:
    """Load `library` in a child as `child.py` does for `question`.

    An answer is kept under the content of the library, the environment and `devices`, and holds
    as long as every file that was mapped keeps its content. A failure is not kept: what is
    missing today may be installed tomorrow.
    """
    try:
        contents = (cache.file_digest(library), cache.file_digest(CHILD))
        where = (platform.node(), list(devices))
        key = digest([question, library, plugins, contents, dict(environment), where])
    except OSError as error:
        return Answer(reason=f"{library}: {error.strerror or error}")
    kept = cache.get(KIND, key)
    if kept and _holds(kept):
        return _answer(kept)
    answered, reason = _start(question, library, environment, plugins)
    if reason:
        return Answer(reason=reason)
    try:
        answered["digests"] = {file: cache.file_digest(file) for file in answered["mapped"]}
        cache.put(KIND, key, answered)
    except OSError:
        pass  # a library that went away while it was looked at: asked again next time
    return _answer(answered)


def tool(
    argv: Sequence[Path | str],
    environment: Mapping[str, str],
    plugins: Path | None = None,
    limit_s: float = LIMIT_S,
) -> str:
    """What a program says of itself (`--version`, `ompi_info`): kept by its content, and by the
    names of the `plugins` that it lists. One that hangs said that it gave no answer."""
    try:
        names = sorted(p.name for p in plugins.iterdir()) if plugins else []
        key = digest([argv, dict(environment), names, cache.file_digest(argv[0])])
    except OSError as error:
        return str(error)
    if isinstance(kept := cache.get("tool", key), str):
        return kept
    done = run(argv, env=environment, limit_s=limit_s, cwd=Path("/"))
    if done.timed_out:
        return f"no answer in {limit_s:.0f} s"
    if done.ok:
        cache.put("tool", key, done.text())
    return done.text()


def single_copy_permitted() -> Answer:
    """Whether processes may read each other's memory: `offers` is cma, cma-when-allowed or
    empty. Really tried, since a seccomp filter or a capability decides, not a file in /proc."""
    answered, reason = _start("cma", "", dict(os.environ), ())
    return Answer(reason=reason) if reason else _answer(answered)


def _start(
    question: str,
    library: Path | str,
    environment: Mapping[str, str],
    plugins: Sequence[Path | str],
) -> tuple[dict[str, Any], str]:
    argv = [sys.executable, "-I", "-S", CHILD, question, library, *plugins]
    done = run(argv, env=environment, limit_s=LIMIT_S, cwd=Path("/"))
    if done.code == 127 and b"shared libraries" in done.stderr:
        # This Python itself lives by LD_LIBRARY_PATH (a module's): the MPI's own folders first.
        paths = [environment.get("LD_LIBRARY_PATH", ""), os.environ.get("LD_LIBRARY_PATH", "")]
        wider = {**environment, "LD_LIBRARY_PATH": ":".join(p for p in paths if p)}
        done = run(argv, env=wider, limit_s=LIMIT_S, cwd=Path("/"))
    return _read(done)


def _read(done: Completed) -> tuple[dict[str, Any], str]:
    if done.timed_out:
        return {}, f"did not load within {LIMIT_S:.0f} s"
    try:
        answered = json.loads(done.stdout)
    except ValueError:
        answered = None
    if not isinstance(answered, dict):
        last = clean(done.stderr).strip().splitlines()[-1:] or ["no message"]
        how = f"signal {-done.code}" if done.code < 0 else f"exit {done.code}"
        return {}, f"ended its process while it was loaded ({how}: {env.redact(last[0])})"
    return answered, str(answered.get("error", ""))


def _holds(kept: dict[str, Any]) -> bool:
    try:
        return all(cache.file_digest(f) == d for f, d in kept["digests"].items())
    except (OSError, KeyError, AttributeError):
        return False


def _answer(document: dict[str, Any]) -> Answer:
    return Answer(
        version=str(document.get("version", "")),
        offers=tuple(map(str, document.get("offers", ()))),
        mapped=tuple(map(Path, document.get("mapped", ()))),
        reason="; ".join(document.get("troubles", ())) if "offers" in document else "",
    )
