"""Find where a Python inside a root would search modules: its sys.path, by its files alone.

Nothing is run. The rules are those of CPython 3.8 to 3.14 on Linux (Modules/getpath.py,
Lib/site.py, importlib's FileFinder) and of Debian's site.py, which has dist-packages.
"""

from __future__ import annotations

import ast
import io
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from mpigraft.binary import Root, RootError
from mpigraft.core.parsers import parse_python

NAME = re.compile(r"python(?:3(?:\.(\d{1,2}))?)?t?d?m?")
PREFIXED = re.compile(r"python3\.(\d{1,2})(t?)")
MAX_TEXT = 1 << 20  # bytes of a .pth file, a pyvenv.cfg
MAX_ZIP = 1 << 26  # bytes of an archive on sys.path, and of what is read of it
MAX_PATHS = 1000  # folders of sys.path
USUAL_STDLIB = "lib/python3.{}"


@dataclass(frozen=True, slots=True)
class Python:
    """An interpreter as it would start: it imports only what is in `path`."""

    program: str  # path inside, as it is spelled
    version: str  # 3.11
    stdlib: str  # folder; its modules import nothing but each other
    path: tuple[str, ...]  # sys.path after the script's own folder
    sites: tuple[str, ...]  # of these, the folders of installed packages
    mapped: tuple[tuple[str, str], ...] = ()  # (module, folder) of editable installs
    hooks: tuple[str, ...] = ()  # .pth files with code, which may change how modules are found


@dataclass(frozen=True, slots=True)
class Options:
    """The options of the command line that decide on sys.path."""

    environment: bool = True  # PYTHON* count: no -E, -I
    site: bool = True  # no -S
    user: bool = True  # no -s


def is_python(path: str) -> bool:
    """Return whether a file name is that of a Python interpreter."""
    return NAME.fullmatch(path.rpartition("/")[2]) is not None


def python_of(
    root: Root, program: str, environment: Mapping[str, str], options: Options
) -> Python | None:
    """Describe the Python that a program of this path starts; None for another program."""
    entry = root.find(program)
    if entry is None or not (is_python(program) or is_python(entry.path)):
        return None
    venv = _venv(root, program)
    bases = (venv.home, _folder(entry.path)) if venv else (_folder(entry.path),)
    number = _version_of_name(entry.path) or (venv.version if venv else "")
    prefix, version = next(
        (hit for base in bases if (hit := _prefix(root, base, number))), ("", "")
    )
    if not version:
        return None
    search = _Search(root, version, f"{prefix.rstrip('/')}/{USUAL_STDLIB.format(version)}")
    if options.environment:
        for folder in environment.get("PYTHONPATH", "").split(":"):
            search.add(folder)
    search.standard(prefix)
    if options.site:
        user = options.user and not (venv and not venv.system)
        user = user and not (options.environment and environment.get("PYTHONNOUSERSITE"))
        home = environment.get("HOME", "")
        if user and home.startswith("/"):
            base = environment.get("PYTHONUSERBASE") if options.environment else ""
            search.site(f"{base or f'{home}/.local'}/lib/python3.{version}/site-packages")
        if venv:
            search.site(f"{venv.prefix}/lib/python3.{version}/site-packages")
            search.site(f"{venv.prefix}/lib64/python3.{version}/site-packages")
        if not venv or venv.system:
            for folder in _site_folders(root, prefix, version, search.stdlib):
                search.site(folder)
    return Python(
        program,
        f"3.{version}",
        search.stdlib,
        tuple(search.path),
        tuple(search.sites),
        tuple(search.mapped.items()),
        tuple(search.hooks),
    )


@dataclass(slots=True)
class _Search:
    """sys.path as it grows."""

    root: Root
    version: str
    stdlib: str
    path: dict[str, None] = field(default_factory=dict)
    sites: dict[str, None] = field(default_factory=dict)
    mapped: dict[str, str] = field(default_factory=dict)
    hooks: dict[str, None] = field(default_factory=dict)

    def add(self, folder: str) -> None:
        if folder.startswith("/") and len(self.path) < MAX_PATHS:
            entry = self.root.find(folder)
            if entry is not None and entry.path not in self.path:
                self.path[entry.path] = None

    def standard(self, prefix: str) -> None:
        self.add(f"{prefix.rstrip('/')}/lib/python3{self.version}.zip")
        self.add(self.stdlib)
        self.add(f"{self.stdlib}/lib-dynload")
        self.add(self.stdlib.replace("/lib/", "/lib64/") + "/lib-dynload")  # Fedora, SUSE

    def site(self, folder: str) -> None:
        """Add a folder as site.addsitedir does: the folder, then what its .pth files name."""
        entry = self.root.find(folder)
        if entry is None or entry.kind != "folder" or entry.path in self.sites:
            return
        self.add(entry.path)
        self.sites[entry.path] = None
        for name in self.root.names(entry.path):
            if name.endswith(".pth") and not name.startswith("."):
                self._pth(entry.path, name)

    def _pth(self, folder: str, name: str) -> None:
        for line in _text(self.root, f"{folder}/{name}").splitlines():
            if line.startswith("#") or not line.strip():
                continue
            if line.startswith(("import ", "import\t")):
                if editable := re.match(r"import (__editable___\w+_finder)\b", line):
                    self.mapped |= _mapping(self.root, f"{folder}/{editable[1]}.py")
                else:
                    self.hooks[f"{folder}/{name}"] = None
                continue
            where = line.rstrip()
            self.add(where if where.startswith("/") else f"{folder}/{where}")


def _mapping(root: Root, path: str) -> dict[str, str]:
    """Read MAPPING of setuptools' finder for an editable install: {module: folder or file}."""
    try:
        tree = parse_python(_text(root, path).encode())
    except (SyntaxError, ValueError):
        return {}
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        value = node.value if isinstance(node, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and target.id == "MAPPING" and value is not None:
            try:
                pairs = ast.literal_eval(value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                return {}
            whole = isinstance(pairs, dict)
            return (
                {k: v for k, v in pairs.items() if isinstance(k, str) and isinstance(v, str)}
                if whole
                else {}
            )
    return {}


# ------------------------------------------------------------------ prefixes


@dataclass(frozen=True, slots=True)
class _Venv:
    prefix: str
    home: str  # folder of the interpreter that it was made from
    system: bool  # include-system-site-packages
    version: str  # 11; empty: it does not say


def _venv(root: Root, program: str) -> _Venv | None:
    """Read pyvenv.cfg next to the program or one folder up; the program's link is not followed."""
    folder = _folder(program)
    for place in (folder, _folder(folder)):
        entry = root.find(f"{place.rstrip('/')}/pyvenv.cfg")
        if entry is None or entry.kind != "file":
            continue
        lines = (line.partition("=") for line in _text(root, entry.path).splitlines())
        rows = {key.strip().lower(): value.strip() for key, eq, value in lines if eq}
        version = rows.get("version") or rows.get("version_info") or ""
        match = re.match(r"3\.(\d{1,2})\b", version)
        return _Venv(
            _folder(entry.path),
            rows.get("home", ""),
            rows.get("include-system-site-packages", "").lower() == "true",
            match[1] if match else "",
        )
    return None


def _prefix(root: Root, folder: str, number: str) -> tuple[str, str] | None:
    """Give (prefix, minor version) of the interpreter in a folder: by the first folder above it
    with a standard library, whose landmark is os.py; else by /usr."""
    parents = [folder]
    while parents[-1] not in ("/", ""):
        parents.append(_folder(parents[-1]))
    for place in (*parents, "/usr"):
        top = place.rstrip("/")
        numbers = [number] if number else _versions(root, f"{top}/lib")
        for minor in numbers:
            landmark = f"{top}/{USUAL_STDLIB.format(minor)}/os.py"
            wide = f"{top}/lib64/python3.{minor}/os.py"
            if root.find(landmark) or root.find(f"{landmark}c") or root.find(wide):
                return top or "/", minor
    return None


def _versions(root: Root, lib: str) -> list[str]:
    """List minor versions of the standard libraries in a folder, the newest first."""
    hits = (PREFIXED.fullmatch(name) for name in root.names(lib))
    return sorted((hit[1] for hit in hits if hit and not hit[2]), key=int, reverse=True)


def _version_of_name(path: str) -> str:
    match = NAME.fullmatch(path.rpartition("/")[2])
    return (match and match[1]) or ""


def _site_folders(root: Root, prefix: str, version: str, stdlib: str) -> Iterator[str]:
    """Yield what getsitepackages() gives; Debian's own python has dist-packages instead."""
    top = prefix.rstrip("/")
    if "dist-packages" in _text(root, f"{stdlib}/site.py"):
        yield f"{top}/local/lib/python3.{version}/dist-packages"
        yield f"{top}/lib/python3/dist-packages"
        yield f"{top}/lib/python3.{version}/dist-packages"
        return
    if top == "/usr":  # Fedora's has /usr/local too
        yield f"/usr/local/lib64/python3.{version}/site-packages"
        yield f"/usr/local/lib/python3.{version}/site-packages"
    yield f"{top}/lib64/python3.{version}/site-packages"
    yield f"{top}/lib/python3.{version}/site-packages"


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _text(root: Root, path: str) -> str:
    try:
        return root.read(path, MAX_TEXT).decode("utf-8", "replace")
    except RootError:
        return ""


# ------------------------------------------------------------------ modules


@dataclass(frozen=True, slots=True)
class PythonModule:
    """A module where it was found. Several `files` of an extension: one per ABI of MPI."""

    name: str  # mpi4py.MPI
    kind: str  # source, extension, namespace, other (bytecode alone)
    files: tuple[str, ...]  # paths inside; of an archive ARCHIVE/member
    folders: tuple[str, ...]  # __path__ of a package; empty for a module
    data: bytes | None = field(default=None, repr=False)  # source of a member of an archive


class Finder:
    """Finds modules as importlib's path finder does; lists each folder once."""

    def __init__(self, root: Root, version: str, machine: str) -> None:
        self.root = root
        tag = version.replace(".", "")
        suffix = rf"\.(?:cpython-{tag}[a-z]*-{re.escape(machine)}-linux-gnu|abi3)\.so|\.so"
        self._extension = re.compile(rf"([^.]+)((?:\.[a-z][a-z0-9_]*)?)(?:{suffix})")
        self._names: dict[str, frozenset[str]] = {}
        self._extensions: dict[str, dict[str, list[str]]] = {}
        self._archives: dict[str, dict[str, bytes] | None] = {}

    def find(self, name: str, path: tuple[str, ...]) -> PythonModule | None:
        """Find the module of a full name whose parent package has `path` as __path__."""
        last = name.rpartition(".")[2]
        portions = []
        for place in path:
            entry = self.root.find(place)
            if entry is None:
                module = self._in_archive(name, place)
            elif entry.kind == "file":
                module = self._in_archive(name, entry.path)
            else:
                module = self._in_folder(name, entry.path)
            if module is not None:
                return module
            if entry is not None and last in self.listed(entry.path):
                below = self.root.find(f"{entry.path.rstrip('/')}/{last}")
                if below is not None and below.kind == "folder":
                    portions.append(below.path)
        return PythonModule(name, "namespace", (), tuple(portions)) if portions else None

    def listed(self, folder: str) -> frozenset[str]:
        if folder not in self._names:
            self._names[folder] = frozenset(self.root.names(folder))
        return self._names[folder]

    def _in_folder(self, name: str, folder: str) -> PythonModule | None:
        last, names, top = name.rpartition(".")[2], self.listed(folder), folder.rstrip("/")
        if last in names:
            entry = self.root.find(f"{top}/{last}")
            if entry is not None and entry.kind == "folder":
                package = self._one(name, "__init__", entry.path, (entry.path,))
                if package is not None:
                    return package
        return self._one(name, last, folder, ())

    def _one(self, name: str, stem: str, folder: str, path: tuple[str, ...]) -> PythonModule | None:
        top, names = folder.rstrip("/"), self.listed(folder)
        if extensions := self.extensions(folder).get(stem):
            return PythonModule(name, "extension", tuple(f"{top}/{n}" for n in extensions), path)
        if f"{stem}.py" in names:
            return PythonModule(name, "source", (f"{top}/{stem}.py",), path)
        if f"{stem}.pyc" in names:
            return PythonModule(name, "other", (f"{top}/{stem}.pyc",), path)
        return None

    def extensions(self, folder: str) -> dict[str, list[str]]:
        """Give {module: file names} of the extension modules in a folder: a plain file alone, else
        the variants for the ABIs of MPI (mpi4py 4.1, _mpiabi.py: MPI.openmpi.cpython-...)."""
        if folder not in self._extensions:
            variants: dict[str, list[str]] = {}
            plain: dict[str, str] = {}
            for name in sorted(self.listed(folder), key=lambda n: ("cpython" not in n, n)):
                hit = self._extension.fullmatch(name)
                if hit and not hit[2]:
                    plain.setdefault(hit[1], name)
                elif hit:
                    variants.setdefault(hit[1], []).append(name)
            self._extensions[folder] = variants | {stem: [name] for stem, name in plain.items()}
        return self._extensions[folder]

    def _in_archive(self, name: str, place: str) -> PythonModule | None:
        """Find a module in a zip file on sys.path, or in a folder within one."""
        archive, inner = place, ""
        while archive not in ("", "/") and (entry := self.root.find(archive)) is None:
            archive, _, last = archive.rpartition("/")
            inner = f"{last}/{inner}"
        if archive in ("", "/") or entry is None or entry.kind != "file":
            return None
        members = self._members(entry.path)
        stem = inner + name.rpartition(".")[2]
        for member, path in (
            (f"{stem}/__init__.py", (f"{archive}/{stem}",)),
            (f"{stem}.py", ()),
        ):
            if members and member in members:
                file = f"{archive}/{member}"
                return PythonModule(name, "source", (file,), path, members[member])
        return None

    def _members(self, archive: str) -> dict[str, bytes] | None:
        if archive not in self._archives:
            self._archives[archive] = _unzipped(self.root, archive)
        return self._archives[archive]

    def source(self, module: PythonModule, limit: int) -> bytes:
        """Read a module's source. Raises RootError when it cannot be read."""
        return module.data if module.data is not None else self.root.read(module.files[0], limit)


def _unzipped(root: Root, path: str) -> dict[str, bytes] | None:
    """Read the sources in an archive; None for another file."""
    sources: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(root.read(path, MAX_ZIP))) as archive:
            budget = MAX_ZIP
            for info in archive.infolist():
                budget -= info.file_size
                if info.filename.endswith(".py") and budget >= 0:
                    sources[info.filename] = archive.read(info)
    except (RootError, OSError, ValueError, RuntimeError, zipfile.BadZipFile, NotImplementedError):
        return None
    except Exception:  # zlib.error and its kin, of a file that is no archive or a broken one
        return None
    return sources
