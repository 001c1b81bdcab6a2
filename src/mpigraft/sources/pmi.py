"""The PMI plugins of a Slurm: those that can be loaded, of those that `srun --mpi=list` names.

srun lists the files in its plugin folder. Those of PMIx open libpmix only when a step begins, and
where that is not there the step ends, or each rank is alone.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpigraft.elf import ElfError
from mpigraft.resolve import closure
from mpigraft.sources import look
from mpigraft.sources.candidate import Here

PLUGIN_FOLDER = re.compile(r"^\s*PluginDir\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
# Slurm's pmix plugins open PLACE/libpmix.so, PLACE being where it was when they were built
# (src/plugins/mpi/pmix/mpi_pmix.c: _libpmix_open, PMIXP_LIBPATH); without a place, the loader's.
PLACES = re.compile(rb"(?<=\0)/[\x21-\x24\x26-\x7e]+(?=\0)")
OPENED = "libpmix.so"
MAX_PLUGIN = 1 << 24  # bytes; they have some hundred thousand


def loadable(srun: Path, names: Iterable[str], here: Here) -> tuple[tuple[str, ...], str]:
    """The names that can be offered, and why others cannot. A name whose plugin is not found
    stays: nothing is known against it."""
    folders = tuple(_folders(srun, here))
    kept, reasons = [], []
    for name in names:
        plugin = next((f for d in folders if look.is_file(f := d / f"mpi_{name}.so")), None)
        problem = _problem(plugin) if plugin else ""
        if problem:
            reasons.append(f"{name} is listed, but cannot load: {problem}")
        else:
            kept.append(name)
    return tuple(kept), "; ".join(reasons)


def _folders(srun: Path, here: Here) -> Iterator[Path]:
    """Where its plugins lie: as its settings say, else beside its library."""
    settings = here.environ.get("SLURM_CONF") or str(here.at("/etc/slurm/slurm.conf"))
    for place in PLUGIN_FOLDER.findall(look.text(Path(settings))):
        yield from (Path(part) for part in place.split(":"))
    with contextlib.suppress(ElfError, OSError):
        for one in closure(srun, environment=here.environ):
            if one.path and re.match(r"libslurm(full)?\.so", one.name):
                yield from (one.path.parent, one.path.parent / "slurm")


def _problem(plugin: Path) -> str:
    """Why a plugin cannot work here; empty where nothing is known against it."""
    with contextlib.suppress(ElfError, OSError):
        with plugin.open("rb") as file:
            data = file.read(MAX_PLUGIN)
        if OPENED.encode() in data:
            return _closed(plugin, [Path(p.decode()) for p in PLACES.findall(data)])
        return _lacks(plugin)
    return ""


def _closed(plugin: Path, places: list[Path]) -> str:
    likely = [place for place in places if "pmix" in str(place) or "lib" in place.parts]
    named = [place if place.name == OPENED else place / OPENED for place in likely]
    for library in named:
        if look.exists(library):
            return _lacks(library)
    if named:
        return f"{plugin.name} opens {' or '.join(map(str, named))}, which is not there"
    rows = closure(plugin, environment={}, opened={plugin.name: (OPENED,)})
    missing = next((row for row in rows if row.name == OPENED and row.elf is None), None)
    return f"{plugin.name} opens {OPENED}, which is not found" if missing else ""


def _lacks(library: Path) -> str:
    missing = [one.name for one in closure(library, environment={}) if one.path is None]
    return f"{library} needs {', '.join(missing)}, which is not found" if missing else ""
