"""Find the places of a stack: its tree, the installation of a file, its compatibility layer.

Layouts: EasyBuild's (`software/NAME/VERSION`), Spack's (`NAME-VERSION-HASH`), and any other tree
with `bin` and `lib` folders. Sources: EasyBuild's docs, "installation path"; Spack's
`lib/spack/spack/directory_layout.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath

from mpigraft.graft.stack.targets import version_above

SOFTWARE = "software"
SPACK = re.compile(r"(?P<name>[\w+-]+?)-(?P<version>\d[\w.+-]*|develop|main|master)-[a-z2-7]{7,32}")
PARTS = frozenset(["bin", "sbin", "lib", "lib64", "libexec", "share", "usr"])
OF_SYSTEM = frozenset(["/", "/usr", "/usr/local", "/lib", "/lib64", "/usr/lib", "/usr/lib64"])
LOADER = re.compile(r"(/usr)?/lib(32|64|x32)?/[^/]+")


def tree_of(program: Path) -> Path:
    """Give the tree that a program belongs to: the folder above `software`, Spack's, or its own
    installation."""
    trees = [f for f in program.parents if f.name == SOFTWARE and len(_installed(program, f)) == 2]
    proven = [f for f in trees if _is_easybuild(f.joinpath(*_installed(program, f)))]
    for folder in (*proven, *trees):
        return folder.parent
    for folder in program.parents:
        if (folder / ".spack-db").is_dir():
            return folder
    top = next((f for f in program.parents if f.name not in PARTS), program.parent)
    return top if str(top) not in OF_SYSTEM else program.parent


def _installed(program: Path, tree: Path) -> tuple[str, ...]:
    """Give NAME and VERSION of a program's installation below a folder `software`."""
    return program.relative_to(tree).parts[:-1][:2]


def _is_easybuild(folder: Path) -> bool:
    """Return whether EasyBuild installed here: it leaves its log. A folder of that name says
    nothing."""
    return any((folder / "easybuild").glob("easybuild-*"))


def is_stack(path: Path) -> bool:
    """Return whether a folder has the layout of a software stack, EasyBuild's or Spack's. A folder
    that is the root of a file system has none, even with a folder `software`."""
    if (
        not path.is_dir()
        or (path / "etc/os-release").exists()
        or (path / ".singularity.d").exists()
    ):
        return False
    own = (SOFTWARE, ".spack-db", "opt/spack/.spack-db")
    real = path.resolve()
    return (
        real.name in (SOFTWARE, "versions")
        or any(real.glob("versions/*/software"))
        or version_above(real) != real
        or any((real / name).is_dir() for name in own)
        or any(_is_easybuild(folder) for folder in (real, *real.parents))
    )


def module_of(path: str, root: str) -> str:
    """Name the installation of a file: GROMACS/2024.1-foss-2023b. Empty where no layout is known
    and the file is in no folder of its own below `root`."""
    below = PurePosixPath(path).relative_to(root).parts[:-1]
    parts = (PurePosixPath(root).name, *below)
    if (at := _software_in(parts)) is not None:
        return "/".join(parts[at + 1 : at + 3])
    above = PurePosixPath(root).parts
    if SOFTWARE in above:  # the stack that was named is one installation of a larger tree
        start = len(above) - above[::-1].index(SOFTWARE)
        whole = (*above[start:], *below)
        if len(whole) >= 2:
            return "/".join(whole[:2])
    for part in reversed((*above, *below)):
        if match := SPACK.fullmatch(part):
            return f"{match['name']}/{match['version']}"
    end = next((n for n, part in enumerate(below) if part in PARTS), len(below))
    return "/".join(below[:end][-2:]) or PurePosixPath(root).name


def _software_in(parts: Sequence[str]) -> int | None:
    """Find the folder `software` that has NAME and VERSION below it: the innermost, for EESSI's
    tree is below another one. What an installation has inside does not count."""
    best = None
    for at, part in enumerate(parts):
        if best is not None and part in PARTS:
            break
        if part == SOFTWARE and len(parts) > at + 2 and not PARTS & {*parts[at + 1 : at + 3]}:
            best = at
    return best


def trees_of(paths: Sequence[str], root: str) -> frozenset[str]:
    """Give the folders of installations: each `software` below the root, else the root."""
    trees = set()
    top = len(PurePosixPath(root).parts)
    for folder in {path.rpartition("/")[0] for path in paths}:
        parts = PurePosixPath(folder).parts
        if (at := _software_in(parts[top - 1 :])) is not None:
            trees.add(str(PurePosixPath(*parts[: top + at])))
    return frozenset(trees or {root})


def layer_root(interpreter: str) -> str:
    """Give the root of the compatibility layer of a loader: the folder above its `lib64`."""
    if LOADER.fullmatch(interpreter):
        return "/"
    folder = PurePosixPath(interpreter).parent
    while folder.name in PARTS or folder.name.endswith(("-linux-gnu", "-linux-gnueabihf")):
        folder = folder.parent
    return str(folder)


def slot_path(folder: str) -> str:
    """Give what one symlink switches: the folder above `lib` or `lib64`, else the folder."""
    path = PurePosixPath(folder)
    return str(path.parent) if path.name in ("lib", "lib64") else str(path)


@lru_cache(maxsize=1 << 14)
def is_installation(folder: str) -> bool:
    """Return whether a folder outside of the tree belongs to software that EasyBuild or Spack
    installed: programs find their own libraries there, and no override."""
    try:
        return any(_is_easybuild(p) or (p / ".spack").is_dir() for p in Path(folder).parents)
    except OSError:
        return False


def below(path: str, folders: Sequence[str]) -> bool:
    """Return whether a path is one of these folders, or below one."""
    return any(path == f or path.startswith(f"{f.rstrip('/')}/") for f in folders)
