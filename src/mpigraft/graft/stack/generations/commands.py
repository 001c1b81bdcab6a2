"""Write an injection as commands, for users who may write where mpigraft may not."""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Iterator
from dataclasses import replace

from mpigraft.core.lease import LEASES
from mpigraft.core.model import Copy
from mpigraft.core.serialize import document
from mpigraft.graft.folder.library_copy import edit_words, symbol_lines
from mpigraft.graft.stack.generations.reading import (
    GENERATIONS,
    PLAN,
    InstalledOverride,
)
from mpigraft.graft.stack.generations.switching import LOCK, NEW, OFF
from mpigraft.graft.stack.override.content import (
    ENVIRONMENT_FILE,
    GENERATION,
    OverridePlan,
    SourceFile,
)

END = "END OF FILE"
NAMES = "$names"  # the file of new names of symbols
START = """\
#!/bin/sh
# {mpi} into {link}, written by mpigraft.
# It needs patchelf 0.18. If it stops, start it again: it goes on, or begins anew.
set -eu
umask 022
stop() {{ echo "$*; nothing was switched" >&2; exit 1; }}
record() {{
cat <<'{end}'
{record}
{end}
}}
command -v patchelf >/dev/null || stop "this script needs patchelf"
link={link}
store={store}
final=$store/generations/{number}
new=$store/.new-{number}
names=$new/.names
on=$(readlink "$link" || :)
case "$on" in
    {before} | {target}) ;;
    *) stop "$link was switched since this script was written: write a new one" ;;
esac
"""
MAKE = """\
    sha256sum --check --quiet <<'{end}' || stop "a file of the MPI changed: write a new script"
{digests}
{end}
    rm -rf "$new"
    mkdir "$new"
"""
SWITCH = """\
if [ "$on" != {target} ]; then
    {note}
    ln -sfn {target} "$store/.new-link"
    mv -T "$store/.new-link" "$link"
fi
echo "generation {number} is on: {mpi} in $link"
"""


def render_commands(plan: OverridePlan, override: InstalledOverride) -> str:
    """Give a shell script that makes a generation and switches it on, as `switch_on` does: nothing
    of an old generation changes, and the switch is one rename. Stopped at any point, it can be
    started again."""
    number = max((r.number for r in override.generations), default=0) + 1
    record = override.record(number, plan, "by commands", _planned_files(plan))
    targets = f"{override.store.name}/{GENERATIONS}/"
    words = {
        "mpi": plan.mpi,
        "number": number,
        "end": END,
        "record": document(generation=record).rstrip("\n"),
        "link": shlex.quote(str(override.link)),
        "store": shlex.quote(str(override.store)),
        "before": shlex.quote(f"{targets}{override.current}" if override.current else ""),
        "target": shlex.quote(f"{targets}{number}"),
        "digests": "\n".join(f"{source.digest}  {source.path}" for source in plan.sources),
        "note": f'touch "$store/{OFF}{override.current}"' if override.current else ":",
    }
    lines = [
        START.format_map(words).rstrip("\n"),
        *FOREIGN,
        *_folders(),
        'if [ -e "$final" ]; then',
        '    record | cmp -s - "$final/plan.json" || stop "$final is of another script"',
        "else",
        MAKE.format_map(words).rstrip("\n"),
        *_made(plan, str(override.folder(number)), f"{override.store}/{NEW}{number}"),
        f'    record >"$new/{PLAN}"',
        '    rm -f "$names"',
        '    mv -T "$new" "$final"',
        "fi",
        SWITCH.format_map(words).rstrip("\n"),
    ]
    return "\n".join(lines) + "\n"


# Stop at somebody's data, and remove a site's empty folders.
FOREIGN = (
    'if [ -d "$link" ] && [ ! -L "$link" ]; then find "$link" -depth -type d -empty -delete; fi',
    'if [ -e "$link" ] && [ ! -L "$link" ]; then stop "$link is not empty"; fi',
)


def _folders() -> Iterator[str]:
    """Make the store, hold its lock, and let every user's job leave a lease."""
    yield f'mkdir -p "$store/{GENERATIONS}"'
    yield f'exec 9>>"$store/{LOCK}"'
    yield 'flock -n 9 || stop "another mpigraft is at work on $link"'
    yield f'if [ ! -d "$store/{LEASES}" ]; then mkdir -m 1777 "$store/{LEASES}"; fi'


def _made(plan: OverridePlan, final: str, new: str) -> Iterator[str]:
    """Make the files of a generation."""
    folders = {posixpath.dirname(name) for name in _names(plan)} - {""}
    yield shlex.join(["mkdir", "-p", *(f"{new}/{folder}" for folder in sorted(folders))])
    twins = plan.twins
    for copy in plan.copies:
        if copy.name in twins:
            to = posixpath.relpath(twins[copy.name], posixpath.dirname(copy.name) or ".")
            yield shlex.join(["ln", "-s", to, f"{new}/{copy.name}"])
            continue
        own = replace(copy, rpath=copy.rpath.replace(GENERATION, final))
        yield from _copied(own, f"{new}/{copy.name}")
    yield from (shlex.join(["ln", "-s", to, f"{new}/{name}"]) for name, to in plan.links)
    settings = [
        name if value is None else f"{name}={value.replace(GENERATION, final)}"
        for name, value in plan.environment
    ]
    yield from _file(f"{new}/{ENVIRONMENT_FILE}", settings)
    for name, text in plan.scripts:
        yield from _file(f"{new}/{name}", text.splitlines())
        yield shlex.join(["chmod", "755", f"{new}/{name}"])


def _planned_files(plan: OverridePlan) -> Iterator[SourceFile]:
    """List the files of a generation as its record does. Of what commands write or edit, nobody
    knows the digest before."""
    digests = {copy.name: "" if copy.edit else copy.digest for copy in plan.copies}
    linked = {*plan.twins, *(name for name, _ in plan.links)}
    for name in sorted({*_names(plan)} - linked):
        yield SourceFile(name, digests.get(name, ""))


def _names(plan: OverridePlan) -> list[str]:
    others = (name for name, _ in (*plan.links, *plan.scripts))
    return [*(copy.name for copy in plan.copies), *others, ENVIRONMENT_FILE]


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
