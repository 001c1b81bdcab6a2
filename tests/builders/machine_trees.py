"""Machines as trees of small files, planted under a temporary root.

A tree is TOML: `[environ]`, and `[files]` from path to content. Content that starts with `-> `
is a link, `{root}` stands for where the tree is planted, and a path that ends in `/` is a folder.
CPUs are made from a few numbers: nobody reads 256 topology folders.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from mpigraft.discovery.sources.candidate import Host
from tests.builders.elf import make_once

FOLDER = Path(__file__).parents[1] / "data" / "machines"


def plant(name: str, root: Path) -> Host:
    """The machine of `name`.toml below `root`."""
    table = tomllib.loads((FOLDER / f"{name}.toml").read_text().replace("{root}", str(root)))
    put(root, table.get("files", {}))
    if shape := table.get("cpu"):
        cpus(root, **shape)
    return Host({"PATH": "", "HOME": str(root / "home"), **table.get("environ", {})}, root)


def put(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name.lstrip("/")
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("-> "):
            path.symlink_to(content.removeprefix("-> "))
            continue
        path.write_text(content)
        if content.startswith("#!"):
            path.chmod(0o755)


def cpus(root: Path, sockets: int, cores: int, threads: int, numa: int, l3: int) -> None:
    """`cores` per socket in all, numbered as Linux does: second threads after all first ones."""
    total = sockets * cores
    files = {"/sys/devices/system/cpu/online": f"0-{total * threads - 1}\n"}

    def group(core: int, groups: int) -> str:
        """The CPUs that share one of `groups` equal parts with `core`."""
        size = total // groups
        first = core // size * size
        parts = (f"{first + t * total}-{first + t * total + size - 1}" for t in range(threads))
        return ",".join(parts)

    for cpu in range(total * threads):
        core = cpu % total
        top = f"/sys/devices/system/cpu/cpu{cpu}"
        files |= {
            f"{top}/topology/physical_package_id": f"{core // cores}\n",
            f"{top}/topology/core_id": f"{core % cores}\n",
            f"{top}/cache/index0/level": "1\n",
            f"{top}/cache/index0/shared_cpu_list": group(core, total),
            f"{top}/cache/index3/level": "3\n",
            f"{top}/cache/index3/shared_cpu_list": group(core, l3),
        }
    for node in range(numa):
        first = node * total // numa
        files[f"/sys/devices/system/node/node{node}/cpulist"] = group(first, numa)
    put(root, files)


# ------------------------------------------------------------------ libraries

VERSIONS = {
    "openmpi": "Open MPI v5.0.7, package: Open MPI user@host Distribution, ident: 5.0.7, Feb 2025",
    "mpich": "MPICH Version:      4.2.2\\nMPICH Device:       ch4:ofi\\n",
    "intel": "Intel(R) MPI Library 2021.12 for Linux* OS\\n",
    "cray": "MPI VERSION    : CRAY MPICH version 8.1.27.26 (ANL base 3.4a2)\\n"
    "MPI BUILD INFO : Thu Jun 22 2023\\n",
    "mvapich": "MVAPICH Version      :\\t3.0\\nMVAPICH Device : ch4:ofi\\n",
    "foreign": "Fujitsu MPI Library 4.0.1 (5.2.1fj4.0.1)",
}


def library(path: Path, text: str, *, before: str = "", flags: tuple[str, ...] = ()) -> Path:
    """A library that answers MPI_Get_library_version with `text`; `before` is C that runs when
    it is loaded."""
    source = f"""
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    #include <unistd.h>
    int MPI_Get_library_version(char *v, int *n) {{
        strcpy(v, "{text}");
        *n = strlen(v);
        return 0;
    }}
    int MPI_Get_version(int *v, int *s) {{ *v = 3; *s = 1; return 0; }}
    __attribute__((constructor)) static void before(void) {{ {before} }}
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    argv = ["gcc", "-shared", "-fPIC", f"-Wl,-soname,{path.name}"]
    whole = [*argv, "-o", str(path), "-x", "c", "-", "-x", "none", *flags]
    return make_once(path, (*argv, *flags, source), whole, source)


def launcher(path: Path, says: str) -> Path:
    """A program that answers whatever it is asked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' '{says}'\n")
    path.chmod(0o755)
    return path
