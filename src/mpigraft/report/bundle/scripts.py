"""Job scripts that measure the same again without mpigraft: a shell, the MPI and its compiler.

A script builds our benchmarks from the C sources of the bundle with the MPI's own wrapper, takes
the programs of other suites where the reader has them, sets what the configuration set, and starts
the ranks with the launcher of then, one launch after the other. It proves nothing: which transport
really ran is in the evidence of the bundle.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mpigraft.bench import native_launches
from mpigraft.core.errors import UsageError
from mpigraft.core.model import ConfigurationRecord, Layout, Measured, parse_layout
from mpigraft.core.serialize import parse_object
from mpigraft.native import sources
from mpigraft.report.bundle.archive import safe_name
from mpigraft.report.bundle.launchers import launch_lines

BUILD = "-std=c11 -D_GNU_SOURCE -O2 -fPIC -pthread"
OWN = "native:"
NAME = re.compile(r"[A-Za-z_]\w*")
UNKNOWN_CORES = 10**6  # of a machine that was not recorded: nothing is crowded on it
FIND = r"""# The program of that name below $PROGRAMS, else where it was, else in PATH
program() {
  found=
  [ -z "${PROGRAMS:-}" ] || found=$(find "$PROGRAMS" -type f -name "${1##*/}" | head -n 1)
  [ -n "$found" ] || [ ! -f "$1" ] || found=$1
  [ -n "$found" ] || found=$(command -v "${1##*/}") || {
    echo "no ${1##*/} here: set PROGRAMS to a folder that has it" >&2
    exit 2
  }
  printf '%s\n' "$found"
}"""


def scripts(side: Measured) -> dict[str, bytes]:
    """List a script for each configuration and layout that was measured here."""
    try:
        plan = json.loads(side.campaign.plan)
        own = native_launches(plan)
    except (ValueError, KeyError, TypeError):
        return {}  # an import
    native = [key for key in plan.get("benchmarks", ()) if key.startswith(OWN)]
    files = {}
    for number, record in enumerate(side.configurations, 1):
        for key in plan.get("layouts", ()):
            layout = _layout(str(key), _cores(side))
            provenance = parse_object(record.provenance)
            starts = [row for row in provenance.get("starts") or () if key in row["words"]]
            if layout is None or not (native or starts):
                continue
            name = f"{number:02}-{safe_name(record.id)}-{safe_name(key)}.sh"
            runs = (*_own_runs(own), *_suite_runs(starts, key, _prefix(provenance)))
            head = _head(side, record, provenance, key)
            copies = _setting_files(number, provenance)
            lines = [*head, *_preparation(provenance, layout, bool(native), starts, copies), *runs]
            files[name] = ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape")
            files |= {name: text.encode("utf-8", "surrogateescape") for _, name, text in copies}
    return files


def _setting_files(number: int, provenance: dict[str, Any]) -> list[tuple[str, str, str]]:
    """List (variable, name in the bundle, text) of the files of a configuration's setting."""
    rows = (provenance.get("setting") or {}).get("files") or ()
    named = ((str(variable), str(text)) for variable, _, text in rows)
    return [(v, f"{number:02}-{safe_name(v)}.txt", text) for v, text in named if NAME.fullmatch(v)]


def _layout(key: str, cores: int) -> Layout | None:
    try:
        return parse_layout(key, cores)
    except UsageError:  # another program wrote this store
        return None


def _cores(side: Measured) -> int:
    """Cores of the smallest node; ranks that are more than those were bound to none."""
    documents = (parse_object(allocation.machine) for allocation in side.allocations)
    every = [(document.get("cpu") or {}).get("cores") for document in documents]
    return min((n for n in every if isinstance(n, int) and n > 0), default=UNKNOWN_CORES)


def _head(
    side: Measured, record: ConfigurationRecord, provenance: dict[str, Any], layout: str
) -> Iterator[str]:
    guest = provenance.get("guest")
    yield "#!/bin/sh"
    yield _comment(f"{record.id} on {layout}, as campaign {side.title} measured it")
    yield _comment(f"MPI: {provenance.get('library_version') or provenance.get('mpi', '')}")
    if isinstance(guest, dict):
        yield _comment(f"It ran in a container, {guest.get('name')}: start this script in it.")
    yield _comment("MPI_PREFIX: that MPI's folder. MPIEXEC: launcher and options to use instead.")


def _preparation(
    provenance: dict[str, Any],
    layout: Layout,
    native: bool,
    starts: list[dict[str, Any]],
    copies: list[tuple[str, str, str]],
) -> Iterator[str]:
    yield "set -eu"
    yield 'if [ -z "${MPI_PREFIX:-}" ]; then'
    yield '  echo "set MPI_PREFIX to the folder of that MPI" >&2'
    yield "  exit 2"
    yield "fi"
    if native or copies:
        yield 'here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)'
    if native:
        yield _comment("In a folder that every node sees. BENCH: one that is built already.")
        yield "bench=${BENCH:-$PWD/mpigraft-bench-$$}"
        yield '[ -n "${BENCH:-}" ] || trap \'rm -f "$bench"\' EXIT'
        yield '[ -x "$bench" ] || "${MPICC:-$MPI_PREFIX/bin/mpicc}" \\'
        yield f"  {BUILD} \\"
        yield from (f'  "$here/programs/{name}" \\' for name in sources("mpigraft-bench"))
        yield '  -o "$bench"'
    if starts:
        yield FIND
    ranks, launcher = _environment(provenance.get("environment") or (), _prefix(provenance))
    yield from (f"export {name}={value}" for name, value in launcher.items())
    yield from launch_lines(provenance, layout)
    words = _rank_words(ranks, provenance.get("setting") or {}, copies)
    yield "measure() {"
    yield f'  launch env {words} "$@"' if words else '  launch "$@"'
    yield "}"


def _rank_words(
    ranks: dict[str, str], setting: dict[str, Any], copies: list[tuple[str, str, str]]
) -> str:
    """Write the words of `env` for ranks: those of a setting come before all others."""
    own = [(str(n), v) for n, v in setting.get("variables") or () if NAME.fullmatch(str(n))]
    ranks = {name: value for name, value in ranks.items() if name not in dict(own)}
    ranks |= {name: shlex.quote(str(value)) for name, value in own if value is not None}
    ranks |= {name: f'"$here/scripts/{file}"' for name, file, _ in copies}
    unset = (f"-u {name}" for name, value in own if value is None)
    return " ".join([*unset, *(f"{name}={value}" for name, value in ranks.items())])


def _comment(text: str) -> str:
    """Write a line that nothing in `text` can end."""
    return "# " + " ".join(text.split())


def _prefix(provenance: dict[str, Any]) -> str:
    return str(Path(str(provenance.get("libmpi") or "")).parent.parent)


def _environment(
    rows: Iterable[dict[str, Any]], prefix: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Describe what was set for ranks, and for the launcher, in words of a shell; paths of the
    MPI begin with the reader's own."""
    ranks: dict[str, str] = {}
    launcher: dict[str, str] = {}
    for row in rows:
        name, value = str(row.get("name", "")), str(row.get("value", ""))
        if NAME.fullmatch(name):
            scope = ranks if row.get("scope") == "rank" else launcher
            scope[name] = _with_prefix(value, prefix)
    return ranks, launcher


def _with_prefix(value: str, prefix: str) -> str:
    parts = value.split(prefix) if len(prefix) > 1 else [value]
    return '"$MPI_PREFIX"'.join(shlex.quote(part) if part else "" for part in parts) or "''"


def _own_runs(launches: Iterable[Iterable[str]]) -> Iterator[str]:
    for words in launches:
        yield f'measure "$bench" {shlex.join(words)} --format "${{FORMAT:-json}}"'


def _suite_runs(starts: Iterable[dict[str, Any]], layout: str, prefix: str) -> Iterator[str]:
    """Yield programs of other suites: each in a shell of its own, in its folder."""
    for row in starts:
        words = [str(word) for word in row["words"][layout]]
        count = int(row.get("program") or 1)
        ranks, launcher = _environment(row.get("environment") or (), prefix)
        yield _comment(str(row.get("benchmark", "")))
        yield "("
        yield from (f"export {name}={value}" for name, value in launcher.items())
        folder = row.get("folder")
        if folder:
            yield f'cd "${{FOLDER:-{_in_quotes(str(folder))}}}"'
        # A path among the program's own words is looked for; words of options are as they are.
        names = []
        for place, word in enumerate(words[:count]):
            if word.startswith("/"):
                yield f"p{place}=$(program {shlex.quote(word)})"
                names.append(f'"$p{place}"')
            else:
                names.append(shlex.quote(word))
        own = " ".join(f"{name}={value}" for name, value in ranks.items())
        setting = f"env {own} " if own else ""
        yield f"measure {setting}{' '.join([*names, *map(shlex.quote, words[count:])])}"
        if output := row.get("output"):
            name = str(output).removeprefix(f"{folder}/") if folder else str(output)
            yield f"cat -- {shlex.quote(name)}"
        yield ")"


def _in_quotes(text: str) -> str:
    """Return text within double quotes and `${...}` of a shell."""
    return re.sub(r'([\\"$`}])', r"\\\1", text.replace("\n", " "))
