"""Small ELF files: compiled ones for one rule each, and crafted ones that no linker would make."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

DT_NEEDED, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SONAME, DT_RPATH = 1, 4, 5, 6, 10, 14, 15
DT_RUNPATH, DT_GNU_HASH, DT_VERSYM, DT_VERDEF = 29, 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFC
DT_VERNEED = 0x6FFFFFFE


Rows = list[tuple[int, int | str]]  # of a dynamic section: (tag, value or name of a table)

OLD_AND_NEW = """
int first(void) { return 1; }
__asm__(".symver second_old, second@V_1");
int second_old(void) { return 1; }
__asm__(".symver second_new, second@@V_2");
int second_new(void) { return 2; }
int data[7];
"""
VERSIONED = (
    OLD_AND_NEW
    + """
__thread int local_to_thread;
__attribute__((weak)) int feeble(void) { return 3; }
__attribute__((visibility("hidden"))) int hidden(void) { return 4; }
__attribute__((visibility("protected"))) int guarded(void) { return 5; }
extern int wanted(void);
extern __attribute__((weak)) int welcome(void);
int (*use(void))(void) { return welcome ? wanted : first; }
"""
)
NODES = "V_1 { global: *; local: private_*; }; V_2 { } V_1;"


def compiled(
    path: Path,
    source: str = "",
    *,
    flags: Sequence[str] = (),
    needs: Sequence[Path] = (),
    soname: str | None = None,
    shared: bool = True,
    compiler: Sequence[str] = ("gcc",),
) -> Path:
    """A shared library without any C library; `needs` become its DT_NEEDED."""
    path.parent.mkdir(parents=True, exist_ok=True)
    name = () if soname is None else (f"-Wl,-soname,{soname}",)
    kind = ("-shared", "-fPIC") if shared else ()
    return _link(path, source, (*kind, *name, *flags), needs, compiler)


def program(
    path: Path, source: str = "", *, flags: Sequence[str] = (), needs: Sequence[Path] = ()
) -> Path:
    """A program that has an interpreter and does nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return _link(path, f"void _start(void) {{}}\n{source}", flags, needs, ("gcc",))


_files: dict[tuple[str, ...], bytes] = {}
_with_soname: set[str] = set()


def make_once(path: Path, made_of: tuple[str, ...], argv: Sequence[str], source: str) -> Path:
    """Run a compiler that writes `path`, or copy what it made of the same before in this session:
    many tests start from the same few libraries."""
    if made_of not in _files:
        done = subprocess.run(argv, input=source.encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        _files[made_of] = path.read_bytes()
    else:
        path.unlink(missing_ok=True)
        path.write_bytes(_files[made_of])
        path.chmod(0o755)
    return path


def _link(
    path: Path, source: str, flags: Sequence[str], needs: Sequence[Path], compiler: Sequence[str]
) -> Path:
    argv = [*compiler, "-nostdlib", "-Wl,--no-as-needed", "-Wl,--allow-shlib-undefined", *flags]
    scripts = [Path(flag.partition("-script=")[2]) for flag in flags if "-script=" in flag]
    made_of = (*argv, source, *map(_identity, needs), *(script.read_text() for script in scripts))
    whole = [*argv, "-o", str(path), "-x", "c", "-", "-x", "none", *map(str, needs)]
    make_once(path, made_of, whole, source)
    if any("-soname," in flag for flag in flags):
        _with_soname.add(sha256(path.read_bytes()).hexdigest())
    return path


def _identity(library: Path) -> str:
    """What of a needed library the linker writes down: without a soname it is the path."""
    digest = sha256(library.read_bytes()).hexdigest()
    return digest if digest in _with_soname else f"{library} {digest}"


def crafted(
    tables: Mapping[str, bytes],
    dynamic: Sequence[tuple[int, int | str]],
    *,
    bits: int = 64,
    order: str = "<",
    machine: int = 62,
) -> bytes:
    """A library with one loaded segment, address 0 at offset 0. A value of `dynamic` that is a
    name of `tables` stands for the table's address."""
    word = "Q" if bits == 64 else "I"
    header, entry = (64, 56) if bits == 64 else (52, 32)
    at = 0x100
    size = (len(dynamic) + 1) * struct.calcsize(f"={2 * word}")
    place, places = at + size + 15 & ~15, {}
    for name, table in tables.items():
        places[name] = place
        place += len(table) + 15 & ~15
    rows = [(tag, places[v] if isinstance(v, str) else v) for tag, v in dynamic]
    data = bytearray(place)
    data[:16] = b"\x7fELF" + bytes([bits // 32, 1 if order == "<" else 2, 1]) + bytes(9)
    fields = (3, machine, 1, 0, header, 0, 0, header, entry, 2, 0, 0, 0)
    struct.pack_into(f"{order}HHI3{word}I6H", data, 16, *fields)
    for number, (kind, start, length) in enumerate(((1, 0, place), (2, at, size))):
        if bits == 64:
            row = struct.pack(f"{order}II6Q", kind, 6, start, start, start, length, length, 16)
        else:
            row = struct.pack(f"{order}8I", kind, start, start, start, length, length, 6, 16)
        data[header + number * entry : header + number * entry + len(row)] = row
    flat = [value for row_ in (*rows, (0, 0)) for value in row_]
    struct.pack_into(f"{order}{len(flat)}{word}", data, at, *flat)
    for name, table in tables.items():
        data[places[name] : places[name] + len(table)] = table
    return bytes(data)
