"""The shell function that starts ranks in a bundle's scripts, by the launcher of then.

These are the words of `launch.launchers` for whole cores in their order. A layout with another
mapping or binding needs the CPUs of the reader's nodes, which nobody knows here: a comment says so.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from mpigraft.core.model import Layout

ROOT = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")


def launch_lines(provenance: dict[str, Any], layout: Layout) -> Iterator[str]:
    """Yield lines of a function `launch`, which starts its words as ranks; `$MPIEXEC` replaces the
    launcher and its options."""
    by = [str(word) for word in provenance.get("launcher") or () if word is not None]
    kind, pmi = (by + [""] * 3)[0], (by + [""] * 3)[2]
    bound = layout.bind != "none"
    if layout.nodes > 1:
        yield f"# Start it in an allocation of {layout.nodes} nodes."
    if not layout.plain:
        yield f"# Ranks were mapped by {layout.map_by} and bound to {layout.bind}: here to cores."
    if kind in ("prrte", "orte"):
        yield f'[ "$(id -u)" != 0 ] || export {" ".join(f"{name}=1" for name in ROOT)}'
    if provenance.get("family") == "intel":
        domain = "core" if layout.threads == 1 else f"{layout.threads}:compact"
        pins = f"I_MPI_PIN=on I_MPI_PIN_CELL=core I_MPI_PIN_DOMAIN={domain}"
        yield f"export {pins}" if bound else "export I_MPI_PIN=off"
    yield "launch() {"
    yield '  if [ -n "${MPIEXEC:-}" ]; then'
    yield '    $MPIEXEC "$@"'
    yield "  else"
    words = _words(kind, str(provenance.get("family") or ""), layout, pmi)
    own = [shlex.quote(str(w)) for w in (provenance.get("setting") or {}).get("launcher") or ()]
    first = next((n for n, word in enumerate(words) if word.startswith("-")), len(words))
    words = (*words[:first], *own, *words[first:])
    yield f'    {" ".join(words)} "$@"'
    yield "  fi"
    yield "}"


def _words(kind: str, family: str, layout: Layout, pmi: str) -> tuple[str, ...]:
    ranks, each, threads = str(layout.ranks), str(layout.ranks_per_node), layout.threads
    bound = layout.bind != "none"
    match kind:
        case "srun":
            bind = "--cpu-bind=cores" if bound else "--cpu-bind=none"
            own = (f"--mpi={pmi}",) if pmi.replace("_", "").isalnum() else ()
            return ("srun", *own, "-N", str(layout.nodes), "-n", ranks, f"--ntasks-per-node={each}",
                    "-c", str(threads), bind)  # fmt: skip
        case "prrte" | "orte":
            mapping = f"ppr:{each}:node"
            crowded: tuple[str, ...] = ()
            if bound and threads > 1:
                mapping += f":PE={threads}"
            elif not bound and kind == "prrte":
                mapping += ":OVERSUBSCRIBE"
            elif not bound:
                crowded = ("--oversubscribe",)
            return ('"$MPI_PREFIX/bin/mpirun"', "-n", ranks, "--map-by", mapping, "--bind-to",
                    "core" if bound else "none", *crowded)  # fmt: skip
        case "hydra":
            first = ('"$MPI_PREFIX/bin/mpiexec"', "-n", ranks, "-ppn", each)
            core = "core" if threads == 1 else f"core:{threads}"
            return first if family == "intel" else (*first, "-bind-to", core if bound else "none")
        case "aprun":
            return ("aprun", "-n", ranks, "-N", each, "-d", str(threads))
        case "pals":
            return ("mpiexec", "-n", ranks, "--ppn", each, "--depth", str(threads),
                    "--cpu-bind", "depth" if bound else "none")  # fmt: skip
        case "flux":
            return ("flux", "run", f"--nodes={layout.nodes}", f"--tasks-per-node={each}",
                    "--exclusive")  # fmt: skip
        case _:
            return ("mpiexec", "-n", ranks)
