"""How tests launch the C programs, compile others and read what rank 0 printed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.core import env
from mpigraft.core.model import Abi, Family
from mpigraft.core.process.command import Completed, run_command
from mpigraft.native.programs import BENCH, PROBE
from mpigraft.native.programs import programs as our_programs

C = Path(__file__).parent / "c"
LIMIT_S = 240.0
SHORT = ("--budget", "2", "--samples", "4", "--warmup", "2")


def abi_of(family: Family) -> Abi:
    return Abi.OMPI if family is Family.OPENMPI else Abi.MPICH


@dataclass(frozen=True, slots=True)
class World:
    """Starts programs under the launchers of the real MPIs."""

    mpis: Mapping[Family, Path]
    programs: Path  # the prebuilt ones of this architecture

    def launch(
        self,
        family: Family,
        *words: str | Path,
        ranks: int = 2,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run `words` on each rank, with `env` for the ranks only, as launches have it."""
        rows = [f"{k}={v}" for k, v in {**turns(family, ranks), **(env or {})}.items()]
        argv = [*self.launcher(family, ranks), "env", *rows, *words]
        return run_command(argv, env=self.environment(family), limit_s=LIMIT_S)

    def bench(
        self,
        family: Family,
        *words: str,
        abi: Abi | None = None,
        ranks: int = 2,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """mpigraft-bench with a short budget; a later option overrides an earlier one."""
        program = self.programs / (abi or abi_of(family)) / BENCH
        return self.launch(family, program, *SHORT, *words, ranks=ranks, env=env)

    def probe(
        self, family: Family, ranks: int = 2, env: Mapping[str, str] | None = None
    ) -> Completed:
        return self.launch(family, self.programs / abi_of(family) / PROBE, ranks=ranks, env=env)

    def launcher(self, family: Family, ranks: int) -> list[str | Path]:
        prefix = self.mpis[family]
        match family:
            case Family.OPENMPI:
                words = ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none", "--mca", "pml", "ob1"]
                return [prefix / "bin/mpirun", *words, "-n", str(ranks)]
            case Family.INTEL:
                return [prefix / "bin/mpiexec.hydra", "-n", str(ranks)]
            case _:
                return [prefix / "bin/mpiexec", "-n", str(ranks)]

    def environment(self, family: Family) -> dict[str, str]:
        prefix = self.mpis[family]
        values = {**env.base(), "LD_LIBRARY_PATH": str(prefix / "lib")}
        if family is Family.OPENMPI:
            values |= {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
        if family is Family.MPICH:  # else it may take a cluster's device, which goes with its test
            values |= {"FI_TCP_IFACE": "lo"}
        if family is Family.INTEL:
            values |= {"I_MPI_ROOT": str(prefix), "FI_PROVIDER_PATH": str(prefix / "lib")}
            values |= {"I_MPI_FABRICS": "shm"}
        return values


def turns(family: Family, ranks: int) -> dict[str, str]:
    """Settings with which more ranks of MPICH than processors do not poll until the kernel takes
    their turn from them. It has none for the memory of a node; its network does it by the way."""
    crowded = ranks > len(os.sched_getaffinity(0))
    return {"MPIR_CVAR_NOLOCAL": "1"} if family is Family.MPICH and crowded else {}


def compile_c(source: str | Path, output: Path, *words: str | Path) -> Path:
    """Compile one of tests/native/c, or any file, with gcc; every warning is an error."""
    flags = ("-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-g", "-O1")
    done = run_command(
        ["gcc", *flags, C / source, *words, "-o", output, "-ldl"], env=dict(os.environ)
    )
    assert done.ok, done.text()
    return output


def compile_program(name: str, output: Path, *words: str | Path) -> Path:
    """Compile a program of ours with gcc."""
    first, *others = our_programs()[name].sources
    return compile_c(first, output, *others, *words)


def compile_part(name: str, source: str, output: Path, *words: str | Path) -> Path:
    """Compile one of tests/native/c with what a program of ours is built of, but for its `main` and
    what the file includes."""
    text = (C / source).read_text(encoding="utf-8")
    others = [
        p for p in our_programs()[name].sources[1:] if f"{p.parent.name}/{p.name}" not in text
    ]
    return compile_c(source, output, *others, *words)


def records(done: Completed) -> list[dict[str, Any]]:
    """The JSON lines of rank 0. What libraries print beside them is not ours to judge."""
    lines = done.stdout.decode(errors="replace").splitlines()
    return [json.loads(line) for line in lines if line.startswith('{"mpigraft":')]


def values(done: Completed) -> list[dict[str, Any]]:
    return [r for r in records(done) if r["mpigraft"] == "value"]


def srun(folder: Path) -> tuple[str, Path]:
    """A program of that name that heeds no request to end, and has a child that waits for its end
    to write a note, as srun's has Slurm end a step; it is up when `ready` is there."""
    program, note = folder / "srun", folder / "note"
    wait = "while kill -0 $$; do sleep 0.02; done 2>/dev/null"
    program.write_text(
        f"#!/bin/sh\ntrap '' TERM INT\n({wait}; echo step ended >{note}) &\n"
        f"touch {folder / 'ready'}\nwhile :; do sleep 0.1; done\n"
    )
    program.chmod(0o755)
    return str(program), note
