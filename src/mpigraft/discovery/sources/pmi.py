"""Which of the PMI plugins that `srun --mpi=list` names can be loaded.

srun lists the files in its plugin folder. Those of PMIx open libpmix only when a step begins.
Without libpmix the step ends, or each rank is a world of one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpigraft.binary import ElfError, closure
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Host

PLUGIN_FOLDER = re.compile(r"^\s*PluginDir\s*=\s*(\S+)", re.IGNORECASE | re.MULTILINE)
# Slurm's pmix plugins open PLACE/libpmix.so, PLACE being where it was when they were built
# (src/plugins/mpi/pmix/mpi_pmix.c: _libpmix_open, PMIXP_LIBPATH); without one, the loader searches.
LIBPMIX_PATHS = re.compile(rb"(?<=\0)/[\x21-\x24\x26-\x7e]+(?=\0)")
OPENED = "libpmix.so"
MAX_PLUGIN = 1 << 24  # bytes; they have some hundred thousand


def loadable(srun: Path, names: Iterable[str], host: Host) -> tuple[tuple[str, ...], str]:
    """Give the names that can be loaded, and why others cannot.

    A name whose plugin file is not found stays in the list: it may still work.
    """
    folders = tuple(_folders(srun, host))
    kept, reasons = [], []
    for name in names:
        plugin = next((f for d in folders if files.is_file(f := d / f"mpi_{name}.so")), None)
        problem = _problem(plugin) if plugin else ""
        if problem:
            reasons.append(f"{name} is listed, but cannot load: {problem}")
        else:
            kept.append(name)
    return tuple(kept), "; ".join(reasons)


def _folders(srun: Path, host: Host) -> Iterator[Path]:
    """Yield the folders of its plugins: as its settings say, then beside its library."""
    settings = host.environ.get("SLURM_CONF") or str(host.path("/etc/slurm/slurm.conf"))
    for place in PLUGIN_FOLDER.findall(files.text(Path(settings))):
        yield from (Path(part) for part in place.split(":"))
    with contextlib.suppress(ElfError, OSError):
        for library in closure(srun, environment=host.environ):
            if library.path and re.match(r"libslurm(full)?\.so", library.name):
                yield from (library.path.parent, library.path.parent / "slurm")


def _problem(plugin: Path) -> str:
    """Say why a plugin cannot be loaded here; empty where no reason is known."""
    with contextlib.suppress(ElfError, OSError):
        with plugin.open("rb") as file:
            data = file.read(MAX_PLUGIN)
        if OPENED.encode() in data:
            return _unopened_libpmix(
                plugin, [Path(p.decode()) for p in LIBPMIX_PATHS.findall(data)]
            )
        return _missing_libraries(plugin)
    return ""


def _unopened_libpmix(plugin: Path, places: list[Path]) -> str:
    candidates = [place for place in places if "pmix" in str(place) or "lib" in place.parts]
    paths = [place if place.name == OPENED else place / OPENED for place in candidates]
    for library in paths:
        if files.exists(library):
            return _missing_libraries(library)
    if paths:
        return f"{plugin.name} opens {' or '.join(map(str, paths))}, which does not exist"
    rows = closure(plugin, environment={}, opened={plugin.name: (OPENED,)})
    missing = next((row for row in rows if row.name == OPENED and row.elf is None), None)
    return f"{plugin.name} opens {OPENED}, which is not found" if missing else ""


def _missing_libraries(library: Path) -> str:
    missing = [row.name for row in closure(library, environment={}) if row.path is None]
    return f"{library} needs {', '.join(missing)}, which is not found" if missing else ""
