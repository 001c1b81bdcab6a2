"""Find the ELF programs that cannot use an MPI library, by their bytes."""

from __future__ import annotations

from mpigraft.binary import Elf, ElfError, Root, RootError
from mpigraft.graft.guest import own_mpi

# A program that calls none of these neither starts another one nor opens a library later.
LEADS_ON = frozenset({
    "execl", "execle", "execlp", "execv", "execve", "execveat", "execvp", "execvpe", "fexecve",
    "posix_spawn", "posix_spawnp", "system", "popen", "dlopen", "dlmopen", "syscall",
})  # fmt: skip
# Libraries of the system that open others, but no MPI.
SYSTEM = ("libc.so.", "ld-linux", "libpthread.so.", "libdl.so.", "libselinux.so.", "libcrypto.so.",
          "libaudit.so.", "libsystemd.so.", "libpam")  # fmt: skip
STATIC = "it is linked statically: no MPI library can be put under it"


def without_mpi(root: Root, path: str) -> str:
    """Say why an ELF program cannot use an MPI library; empty: it may."""
    try:
        main = root.elf(path)
    except (ElfError, RootError):
        return ""
    if not main.dynamic or main.interpreter is None:
        return STATIC
    closure = own_mpi.loaded_objects(root, path, {})
    if not closure or any(r.elf is None for r in closure):
        return ""
    users = [main, *(r.elf for r in closure if r.elf and not r.soname.startswith(SYSTEM))]
    if any(_leads_on(user) for user in users):
        return ""
    return "neither it nor a library of it needs an MPI library, and it starts no other program"


def _leads_on(user: Elf) -> bool:
    try:
        return any(symbol.name in LEADS_ON for symbol in user.imported)
    except ElfError:
        return True
