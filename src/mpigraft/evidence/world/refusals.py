"""Calls of MPI_Comm_spawn that the witness refused, by its notes (native/witness/spawning.h)."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from mpigraft.core.model import Finding

SUFFIX = ".refused"
MOST = 65536  # bytes of a note


def refused_spawns(folder: Path) -> tuple[Finding, ...]:
    """Report each refused call, by the notes in a folder of records; a note that cannot be read is
    left out."""
    findings = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            with path.open("rb") as file:
                note = json.loads(file.read(MOST))
            what = str(note["what"])
            match note["code"]:
                case "spawn-equals":
                    findings.append(Finding.of("spawn-equals", what=what))
                case "spawn-no-folder":
                    findings.append(Finding.of("spawn-no-folder", what=what))
                case "spawn-no-program":
                    findings.append(Finding.of("spawn-no-program", what=what))
                case "spawn-other-mpi":
                    findings.append(Finding.of("spawn-other-mpi", what=what))
    return tuple(dict.fromkeys(findings))
