"""Write an injection as commands, for who may write where mpigraft may not."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterator
from dataclasses import replace

from mpigraft.core.model import Copy
from mpigraft.core.serialize import document
from mpigraft.graft.copies import edit_words, symbol_lines
from mpigraft.graft.stack.generations.reading import GENERATIONS, PLAN, GenerationRecord, Override
from mpigraft.graft.stack.override import ENVIRONMENT_FILE, GENERATION, OverridePlan

END = "END OF NAMES"
NAMES = "$names"  # the file of new names of symbols


def render_commands(plan: OverridePlan, override: Override) -> str:
    """Give a shell script that makes a generation and switches it on, as `switch_on` does: nothing
    of an old generation changes, and the switch is one rename."""
    number = max((r.number for r in override.generations), default=0) + 1
    final = str(override.folder(number))
    new = str(override.store / f".new-{number}")
    lines = [
        "#!/bin/sh",
        f"# {plan.mpi} into {override.link}, written by mpigraft. It needs patchelf 0.18.",
        "set -eu",
        "umask 022",
        "names=$(mktemp)",
        *_foreign(override),
        shlex.join(["mkdir", "-p", str(override.store / GENERATIONS)]),
        shlex.join(["mkdir", new]),
    ]
    folders = {posixpath.dirname(name) for name in _names(plan)} - {""}
    lines += [shlex.join(["mkdir", "-p", *(f"{new}/{f}" for f in sorted(folders))])]
    twins = plan.twins
    for copy in plan.copies:
        if copy.name in twins:
            to = posixpath.relpath(twins[copy.name], posixpath.dirname(copy.name) or ".")
            lines.append(shlex.join(["ln", "-s", to, f"{new}/{copy.name}"]))
            continue
        own = replace(copy, rpath=copy.rpath.replace(GENERATION, final))
        lines += _copied(own, f"{new}/{copy.name}")
    lines += [shlex.join(["ln", "-s", to, f"{new}/{name}"]) for name, to in plan.links]
    settings = [
        name if value is None else f"{name}={value.replace(GENERATION, final)}"
        for name, value in plan.environment
    ]
    lines += _file(f"{new}/{ENVIRONMENT_FILE}", settings)
    record = GenerationRecord(
        number=number,
        previous=override.current,
        key=plan.key,
        mpi=plan.mpi,
        made="by commands",
        bindings=plan.bindings,
        sources=plan.sources,
        files=(),
    )
    lines += _file(f"{new}/{PLAN}", [document(generation=record)])
    link, fresh = str(override.link), str(override.store / ".new-link")
    target = f"{override.store.name}/{GENERATIONS}/{number}"
    lines += [
        shlex.join(["mv", "-T", new, final]),
        shlex.join(["ln", "-s", target, fresh]),
        shlex.join(["mv", "-T", fresh, link]),
        'rm -f "$names"',
    ]
    return "\n".join(lines) + "\n"


def _foreign(override: Override) -> Iterator[str]:
    """Stop at somebody's data, and remove a site's empty folders."""
    link = shlex.quote(str(override.link))
    yield f"if [ -d {link} ] && [ ! -L {link} ]; then find {link} -depth -type d -empty -delete; fi"
    yield f"if [ -e {link} ] && [ ! -L {link} ]; then echo {link} is not empty >&2; exit 1; fi"


def _names(plan: OverridePlan) -> list[str]:
    return [*(c.name for c in plan.copies), *(n for n, _ in plan.links), ENVIRONMENT_FILE]


def _copied(copy: Copy, target: str) -> Iterator[str]:
    mode = "755" if os.access(copy.source, os.X_OK) else "644"
    yield shlex.join(["install", "-m", mode, copy.source, target])
    if copy.edit:
        if copy.symbols:
            yield f"cat >\"$names\" <<'{END}'"
            yield symbol_lines(copy).rstrip("\n")
            yield END
        words = shlex.join(["patchelf", *edit_words(copy, NAMES), target])
        yield words.replace(shlex.quote(NAMES), '"$names"')


def _file(path: str, lines: list[str]) -> Iterator[str]:
    yield f"cat >{shlex.quote(path)} <<'{END}'"
    yield from lines
    yield END
