"""Find the shared libraries of R packages that need MPI, in the folders where R searches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mpigraft.binary import Root, RootError
from mpigraft.graft.guest import own_mpi
from mpigraft.graft.guest.command import CommandKind, GuestCommand
from mpigraft.knowledge import binding_of

MAX_TEXT = 1 << 20  # bytes of one file
MAX_PACKAGES = 2000
FOLDERS = ("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/lib/R/library")
VARIABLES = ("R_LIBS", "R_LIBS_USER", "R_LIBS_SITE")
HOME = re.compile(r"^\s*R_HOME_DIR=[\"']?(/[^\s\"']+)", re.MULTILINE)
SETTING = re.compile(rf"^(?:{'|'.join(VARIABLES)})=(.*)", re.MULTILINE)
FIELD = re.compile(r"^(Depends|Imports):(.*(?:\n[ \t].*)*)", re.MULTILINE)
NAME = re.compile(r"(?:^|,)\s*([A-Za-z][\w.]*)")


def follow(
    root: Root, named: Mapping[str, bool], script: str, environment: Mapping[str, str]
) -> GuestCommand:
    """Follow {package: whether it is loaded in any case} to the libraries that need MPI. `script`
    is the path of `R`, the shell script that starts it; empty: not known."""
    match = HOME.search(_text(root, script)) if script else None
    home = match[1] if match else environment.get("R_HOME", "/usr/lib/R")
    folders = tuple(dict.fromkeys(_folders(root, home, environment)))
    reached: dict[str, bool] = {}
    queue = list(named.items())
    while queue and len(reached) < MAX_PACKAGES:
        name, certain = queue.pop()
        if reached.get(name, False) < certain or name not in reached:
            reached[name] = certain
            queue += _needed(root, _place(root, name, folders), certain=certain)
    certainty: dict[str, bool] = {}
    for name, certain in reached.items():
        for library in _libraries(root, _place(root, name, folders)):
            certainty[library] = certain and _is_whole(root, library, home)
    return GuestCommand(
        CommandKind.MPI,
        _program(root, home, script),
        tuple(sorted(path for path, certain in certainty.items() if certain)),
        tuple(sorted(path for path, certain in certainty.items() if not certain)),
    )


def _folders(root: Root, home: str, environment: Mapping[str, str]) -> Iterator[str]:
    settings = [environment.get(name, "") for name in VARIABLES]
    for name in ("Renviron", "Renviron.site"):
        settings += SETTING.findall(_text(root, f"{home}/etc/{name}"))
    for value in settings:
        yield from re.findall(r"(?<![^:'\"\-])/[^:'\"}\s]+", value)
    yield from (f"{home}/site-library", f"{home}/library", *FOLDERS)


def _place(root: Root, name: str, folders: tuple[str, ...]) -> str:
    """Find the folder of a package; empty: none has it."""
    places = (f"{folder.rstrip('/')}/{name}" for folder in folders)
    return next((place for place in places if root.find(f"{place}/DESCRIPTION")), "")


def _needed(root: Root, place: str, *, certain: bool) -> Iterator[tuple[str, bool]]:
    """Yield what a package needs. One of `Imports` that NAMESPACE does not import is loaded when a
    function first uses it."""
    imported = " ".join(
        re.findall(r"^[ \t]*import[^)]*\)", _text(root, f"{place}/NAMESPACE"), re.M)
    )
    for field, value in FIELD.findall(_text(root, f"{place}/DESCRIPTION")) if place else ():
        for name in NAME.findall(value):
            named = field == "Depends" or re.search(rf"\b{re.escape(name)}\b", imported)
            yield name, certain and bool(named)


def _libraries(root: Root, place: str) -> Iterator[str]:
    for name in root.names(f"{place}/libs") if place else ():
        entry = root.find(f"{place}/libs/{name}") if name.endswith(".so") else None
        if entry is not None and own_mpi.needs(root, entry.path):
            yield entry.path


def _is_whole(root: Root, path: str, home: str) -> bool:
    """Return whether R finds what a file needs besides MPI: its start adds a folder of its own to
    the loader's. A check must not refuse for a library that is found in a way that it does not
    know."""
    rows = own_mpi.loaded_objects(root, path, {})
    return bool(rows) and all(
        row.elf or binding_of(row.name) or root.find(f"{home}/lib/{row.name}") for row in rows
    )


def _program(root: Root, home: str, script: str) -> str:
    """Give the ELF program that runs scripts, or else the starter beside `R`."""
    names = (f"{home}/bin/exec/R", f"{script.rpartition('/')[0]}/Rscript")
    entries = [entry for name in names if (entry := root.find(name)) is not None]
    whole = [entry.path for entry in entries if _is_whole(root, entry.path, home)]
    return next(iter((*whole, *(entry.path for entry in entries))), "")


def _text(root: Root, path: str) -> str:
    entry = root.find(path)
    if entry is None or entry.kind != "file":
        return ""
    try:
        return root.read(entry.path, MAX_TEXT).decode("utf-8", "replace")
    except RootError:
        return ""
