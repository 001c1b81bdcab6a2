"""Read what a guest's MPI was built with: MPICH's device, Open MPI's components."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from mpigraft.binary import ElfError, Resolved

# The string that MPI_Get_library_version prints behind "MPICH Device:", seen in 4.0.2 and 5.0.2.
DEVICE = re.compile(rb"\0(ch[34]:[a-z0-9_:, ]{1,60})\0")
COMPONENT = re.compile(
    r"mca_([a-z0-9]+)_(?!base_)(\w+?)(?:_component|\.so)"
)  # base_ is the framework
CARRIERS = ("libmpi.so", "libopen-pal.so", "libopen-rte.so")  # components may be built into them


def device(data: bytes) -> str:
    """Give MPICH's device as its configure option names it, ch4:ucx,ofi; empty where the bytes of a
    libmpi have no such string, or several."""
    names = {hit.decode("ascii").strip() for hit in DEVICE.findall(data)}
    return re.sub(r"[\s,]+", ",", names.pop()) if len(names) == 1 else ""


def components(
    closure: Sequence[Resolved], plugins: Iterable[str]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Give (framework, names) of Open MPI's components: files that it opens, and built-in ones.

    Empty where btl:self is not among them, which every Open MPI has: then the search was in the
    wrong folder, and an absent component means nothing.
    """
    frameworks: dict[str, set[str]] = {}
    for word in (*(PurePosixPath(path).name for path in plugins), *_built_in(closure)):
        if hit := COMPONENT.fullmatch(word):
            frameworks.setdefault(hit[1], set()).add(hit[2])
    if "self" not in frameworks.get("btl", ()):
        return ()
    return tuple((name, tuple(sorted(names))) for name, names in sorted(frameworks.items()))


def _built_in(closure: Sequence[Resolved]) -> Iterator[str]:
    for r in closure:
        if r.elf is not None and r.soname.startswith(CARRIERS):
            with contextlib.suppress(ElfError):
                yield from (s.name for s in r.elf.exported if s.name.startswith("mca_"))
