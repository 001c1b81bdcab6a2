"""Small guests: a folder with a loader, a C library and /usr/bin/env, to be asked by chroot."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from mpigraft import linking, resolve, run
from mpigraft.host_loader import INTERPRETERS
from mpigraft.resolve import Resolved
from mpigraft.root import FolderRoot

LOADER = INTERPRETERS.get(platform.machine(), "")
CHROOT = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin") or ""
ENV = "/usr/bin/env"
TOLD = re.compile(r"\t(?:(.*) => )?(.*) (?:\(0x[0-9a-f]+\)|=> not found)")


def small_root(folder: Path, given: Path = Path("/")) -> Path:
    """A root with the loader and what `env` needs of `given`, this machine or an image."""
    source = FolderRoot(given)
    rows = resolve.closure(ENV, environment={}, root=source)
    for path in (ENV, LOADER, *(str(r.path) for r in rows)):
        entry = source.find(path)
        assert entry
        assert entry.source
        to = folder / path.lstrip("/")
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(entry.source, to)
    for name in ("etc", "proc"):
        (folder / name).mkdir(exist_ok=True)
    return folder


def libraries_of(folder: Path) -> Path:
    """Where a small root's C library lies."""
    return next(path for path in folder.rglob("libc.so.6")).parent


def patched(path: Path, *changes: tuple[bytes, bytes]) -> None:
    """Other constants in a loader, of the same lengths."""
    data = path.read_bytes()
    for old, new in changes:
        assert len(old) == len(new)
        assert old in data
        data = data.replace(old, new)
    path.write_bytes(data)


def asked(folder: Path, program: str, environment: Mapping[str, str]) -> str:
    """What the guest's own loader says when the program is started there to be traced.

    With /proc, as in a container: the loader has a program's $ORIGIN from there.
    """
    wish = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes", **environment}
    words = [f"{name}={value}" for name, value in wish.items()]
    space = ["unshare", "--pid", "--fork", f"--mount-proc={folder}/proc", CHROOT, str(folder)]
    return run.run([*space, ENV, *words, program], env={"PATH": os.defpath}, limit_s=30).text()


def traced_in(folder: Path, program: str, environment: Mapping[str, str]) -> list[str]:
    """What the guest's own loader maps, in its order: paths, and names that it does not find."""
    found = []
    for line in asked(folder, program, environment).splitlines():
        if (match := TOLD.fullmatch(line)) and "vdso" not in match[0]:
            found.append(match[2] if match[2].startswith("/") else match[1] or match[2])
    return list(dict.fromkeys(os.path.normpath(f) if "/" in f else f for f in found))


def lacking_in(folder: Path, program: str) -> tuple[set[str], set[str]]:
    """(symbols, version nodes) that the guest's own loader misses."""
    text = asked(folder, program, {})
    rows = re.findall(r"undefined symbol: (\S+?)(?:, version (\S+))?\t\(", text)
    nodes = re.findall(r": version [`'](.*)' not found \(required by", text)
    return {f"{name}@{version}" if version else name for name, version in rows}, set(nodes)


def resolved_in(
    root: FolderRoot, program: str, environment: Mapping[str, str]
) -> tuple[Resolved, ...]:
    return resolve.closure(program, environment=environment, root=root)


def names_of(rows: tuple[Resolved, ...]) -> list[str]:
    return [os.path.normpath(r.path) if r.path else r.name for r in rows]


def linked_in(root: FolderRoot, program: str) -> tuple[set[str], set[str]]:
    """(symbols, version nodes) that are missing by our own reckoning."""
    rows = [r for r in resolve.closure(program, environment={}, root=root) if r.elf]
    objects = [root.elf(program), *(r.elf for r in rows if r.elf)]
    unmet = linking.unmet(objects, [program, *(r.name for r in rows)])
    return {x.symbol for x in linking.unbound(objects)}, {x.node for x in unmet}


def without_loader(names: list[str], loader: str = LOADER) -> list[str]:
    """The loader's own name is told in its own way: by the program's interpreter."""
    return [name for name in names if name != loader]


def agree_in(
    folder: Path, program: str, environment: Mapping[str, str] | None = None
) -> dict[str, Resolved]:
    """The guest's loader and resolution map the same. Returns what was resolved, by name."""
    environment = environment or {}
    rows = resolved_in(FolderRoot(folder), program, environment)
    expected = traced_in(folder, program, environment)
    assert expected, asked(folder, program, environment)
    loader = FolderRoot(folder).elf(program).interpreter or LOADER
    assert without_loader(names_of(rows), loader) == without_loader(expected, loader)
    return {r.name: r for r in rows}
