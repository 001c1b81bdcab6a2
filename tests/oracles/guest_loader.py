"""Small guests: a folder with a loader, a C library and /usr/bin/env, to be asked by chroot."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mpigraft.binary.architecture import levels
from mpigraft.binary.architecture.interpreters import INTERPRETERS
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.root import Root
from mpigraft.binary.loader import dependencies
from mpigraft.binary.loader import guest as guest_loader
from mpigraft.binary.loader import symbols as linking
from mpigraft.binary.loader.host import Loader
from mpigraft.binary.loader.search import Resolved
from mpigraft.core.process import command

LOADER = INTERPRETERS.get(platform.machine(), "")
CHROOT = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin") or ""
ENV = "/usr/bin/env"
NOTHING: Mapping[str, str] = MappingProxyType({})
TOLD = re.compile(r"\t(?:(.*) => )?(.*) (?:\(0x[0-9a-f]+\)|=> not found)")


def small_root(folder: Path, given: Path = Path("/"), *programs: str) -> Path:
    """A root with the loader, `env` and other programs, and what they need, of `given`: this
    machine or an image."""
    source = FolderRoot(given)
    starts = (ENV, *programs)
    rows = [r for p in starts for r in dependencies.closure(p, environment={}, root=source)]
    for path in (*starts, LOADER, *(str(r.path) for r in rows)):
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
    return command.run_command(
        [*space, ENV, *words, program], env={"PATH": os.defpath}, limit_s=30
    ).text()


@dataclass(frozen=True)
class Told:
    """What a loader maps, in its order: paths, and names that it does not find; what it misses."""

    maps: list[str]
    symbols: set[str]
    nodes: set[str]


def told_in(folder: Path, program: str, environment: Mapping[str, str] = NOTHING) -> Told:
    """By the guest's own loader."""
    return _told(asked(folder, program, environment))


def told_of_all(folder: Path, programs: Sequence[str]) -> dict[str, Told]:
    """By the loader of a guest that has a shell, of many programs at once."""
    wish = "LD_TRACE_LOADED_OBJECTS=1 LD_WARN=yes LD_BIND_NOW=yes"
    script = f'for p; do echo "== $p"; {wish} "$p"; done 2>&1'
    space = ["unshare", "--pid", "--fork", f"--mount-proc={folder}/proc", CHROOT, str(folder)]
    argv = [*space, "/bin/sh", "-c", script, "sh", *programs]
    text = command.run_command(argv, env={"PATH": os.defpath}, limit_s=300).text()
    parts = [part.partition("\n") for part in text.removeprefix("== ").split("\n== ")]
    return {path: _told(said) for path, _, said in parts}


def _told(text: str) -> Told:
    maps = []
    for line in text.splitlines():
        if (match := TOLD.fullmatch(line)) and "vdso" not in match[0]:
            maps.append(match[2] if match[2].startswith("/") else match[1] or match[2])
    rows = re.findall(r"undefined symbol: (\S+?)(?:, version (\S+))?\t\(", text)
    nodes = re.findall(r": version [`'](.*)' not found \(required by", text)
    return Told(
        list(dict.fromkeys(os.path.normpath(m) if "/" in m else m for m in maps)),
        {f"{name}@{version}" if version else name for name, version in rows},
        set(nodes),
    )


def found_in(root: Root, program: str, environment: Mapping[str, str] = NOTHING) -> Told:
    """By our own reckoning."""
    rows = dependencies.closure(program, environment=environment, root=root)
    maps = [os.path.normpath(r.path) if r.path else r.name for r in rows]
    loaded = [(r.name, r.elf) for r in rows if r.elf]
    objects = [root.elf(program), *(facts for _, facts in loaded)]
    unmet = linking.unmet_versions(objects, [program, *(name for name, _ in loaded)])
    symbols = {x.symbol for x in linking.unbound_symbols(objects)}
    return Told(maps, symbols, {x.node for x in unmet})


def agree(root: Root, program: str, told: Told, environment: Mapping[str, str] = NOTHING) -> None:
    """Our reckoning is what the loader told."""
    # It tells its own name in its own way: by the program's interpreter.
    loader = root.elf(program).interpreter or LOADER
    found = found_in(root, program, environment)
    assert [m for m in found.maps if m != loader] == [m for m in told.maps if m != loader], program
    assert (found.symbols, found.nodes) == (told.symbols, told.nodes), program


def agree_in(
    folder: Path, program: str, environment: Mapping[str, str] = NOTHING
) -> dict[str, Resolved]:
    """The guest's loader and resolution map the same. Returns what was resolved, by name."""
    root = FolderRoot(folder)
    told = told_in(folder, program, environment)
    assert told.maps, asked(folder, program, environment)
    agree(root, program, told, environment)
    rows = dependencies.closure(program, environment=environment, root=root)
    return {r.name: r for r in rows}


def loader_here(root: Root, program: str) -> Loader:
    """The loader of a program as it is on this machine's CPU."""
    main = root.elf(program)
    return guest_loader.loader_of(main, root, levels.cpu_flags(main.machine))
