"""A site's profile: which MPI, transport, engine and binds a plain `mpigraft run` takes, and what
of that its users may change.

    [run]
    mpi = ["cray-mpich", "openmpi@5"]
    transport = "ofi-lnx"
    bind = ["/scratch"]
    set = { FI_LOG_LEVEL = "warn" }
    engine_options = { apptainer = ["--nv"] }

    [images]
    gromacs = "/apps/gromacs.sif"

    [policy]
    fixed = ["mpi", "transport"]

A profile guides; it is no lock: whoever may start programs can also start mpirun by hand.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.errors import UsageError
from mpigraft.wish import Wish, line_of

PLACE = Path("/etc/mpigraft/site.toml")
VARIABLE = "MPIGRAFT_SITE"
# Keys of [run] with the type of their value; `set` is a table of texts or a list of NAME=VALUE.
KEYS: Mapping[str, type] = {
    "mpi": list,  # or one text
    "transport": str,
    "launcher": str,
    "ranks": int,
    "engine": str,
    "engine_options": dict,
    "replace": str,
    "bind": list,
    "set": list,
    "proof": bool,
}
FLAGS = {"ranks": "-n", "proof": "--no-proof"}  # where the flag is not --KEY
KINDS = {str: "a text", int: "a whole number above 0", bool: "true or false"}
EXAMPLES = {
    "mpi": '["cray-mpich", "openmpi@5"]', "transport": '"ob1-sm"',
    "launcher": '"srun"', "ranks": "4",
    "engine": '"apptainer"', "engine_options": '{ apptainer = ["--nv"] }',
    "replace": '"mpi"', "bind": '["/scratch"]', "set": '{ FI_LOG_LEVEL = "warn" }',
    "proof": "true",
}  # fmt: skip
ALIAS = re.compile(r"[A-Za-z0-9][\w.+-]*")  # what `--image` takes for neither a path nor a name
SCHEME = re.compile(r"[a-z][a-z-]+:\S")  # docker://..., podman:NAME
TABLES = ("run", "images", "policy")
WITH_OPTIONS = ("apptainer", "podman", "charliecloud", "bwrap")
MAX_FILE = 1024 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class Site:
    """What a profile says: values of [run] by key, and where each stands ("site.toml:3")."""

    path: Path
    values: tuple[tuple[str, Any], ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    fixed: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = ()  # (alias, what it stands for)

    def known_images(self) -> str:
        """For the error of one that is not there."""
        names = ", ".join(alias for alias, _ in self.images)
        return f"or an image of {self.path}: {names}" if names else ""

    def image(self, word: str) -> tuple[str, str]:
        """(what `--image` takes, where it is said): of an alias what it stands for, of all else
        the word itself and nothing. A folder of the name here is ./NAME."""
        found = dict(self.images).get(word)
        if found:
            return found, dict(self.lines).get(f"images.{word}", "")
        if word and self.images and ALIAS.fullmatch(word) and not Path(word).exists():
            raise UsageError(
                f"{word}: no such file or folder",
                mend=f"give the path of an image, {self.known_images()}",
            )
        return word, ""

    @property
    def fixed_where(self) -> dict[str, str]:
        """Keys that flags may not change, and the line that has their value."""
        return {key: dict(self.lines).get(key, str(self.path)) for key in self.fixed}

    def merged(self, flags: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
        """The values of a job and who asked for each: flags that were given (those that are not
        None) over the site's. Lists are the site's, then the user's; of two settings of one name
        the later counts. Raises UsageError for a flag that the policy does not leave to users.
        """
        values = dict(self.values)
        sources = {key: where for key, where in self.lines if key in values}
        if flags.get("replace") == "nothing" and values.get("replace") != "nothing":
            self._refuse_own(values)
        for key, value in flags.items():
            if value is None or value == []:
                continue
            if key in self.fixed and value != values.get(key):
                self._refuse(key)
            both = isinstance(value, list) and values.get(key)
            both = both and key != "mpi"  # a user's choice goes over a site's list
            values[key] = [*values[key], *value] if both else value
            sources[key] = f"{sources[key]}, command line" if both else "command line"
        return values, sources

    def _refuse_own(self, values: Mapping[str, Any]) -> None:
        """A guest as it is has its own MPI, which is another than one that is fixed."""
        if "mpi" in self.fixed and values.get("mpi"):
            where = dict(self.lines)["mpi"]
            raise UsageError(
                "--replace nothing is not left to users here",
                why=f"{where} fixes the MPI to {_listed(values['mpi'])}, and that starts the "
                "guest's own",
                mend="leave it out, or ask those who keep the site's profile",
            )

    def _refuse(self, key: str) -> None:
        where = dict(self.lines).get(key, str(self.path))
        own = dict(self.values).get(key)
        raise UsageError(
            f"{FLAGS.get(key, '--' + key)} is not left to users here",
            why=f"{where} fixes it" + (f" to {_listed(own)}" if own not in (None, []) else ""),
            mend="leave it out, or ask those who keep the site's profile",
        )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def find(environ: Mapping[str, str]) -> Path:
    """The file that counts, there or not: $MPIGRAFT_SITE, else the one in /etc."""
    named = environ.get(VARIABLE, "")
    return Path(named).absolute() if named else PLACE


def read(environ: Mapping[str, str]) -> Site:
    """The site's profile; an empty one where there is none. Raises UsageError, with file and
    line, for a file that cannot be read, that others than root and this user may write, or that
    holds what is not known."""
    path = find(environ)
    try:
        with path.open("rb") as file:
            seen = path.stat()
            data = file.read(MAX_FILE + 1)
    except FileNotFoundError as error:
        if path == PLACE:
            return Site(path)
        raise UsageError(f"{VARIABLE}: {path}: {error.strerror}") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(seen.st_mode) or seen.st_mode & stat.S_IWOTH or len(data) > MAX_FILE:
        raise UsageError(
            f"{path} is no file that one can rely on",
            why="it decides what users start; it is not a regular file, or anybody may write it",
            mend=f"chmod o-w {path}",
        )
    try:
        text = data.decode("utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    return _site(path, table, text)


def _site(path: Path, table: Mapping[str, Any], text: str) -> Site:
    begins: dict[str, int] = {}
    for name, part in table.items():
        begins[name] = _heading(name, text)
        if name not in TABLES or not isinstance(part, dict):
            line = begins[name] if isinstance(part, dict) else line_of(name, text)
            known = ", ".join(f"[{table}]" for table in TABLES)
            raise UsageError(f"{path}:{line}: unknown key {name!r}", mend=f"known tables: {known}")
    values: dict[str, Any] = {}
    lines: dict[str, str] = {}
    for key, value in table.get("run", {}).items():
        where = f"{path}:{line_of(key, text, 'run', begins['run'])}"
        values[key] = _value(key, value, where)
        lines[key] = where
    images: dict[str, str] = {}
    for key, value in table.get("images", {}).items():
        where = f"{path}:{line_of(key, text, 'images', begins['images'])}"
        images[key] = _alias(key, value, where)
        lines[f"images.{key}"] = where
    fixed: tuple[str, ...] = ()
    for key, value in table.get("policy", {}).items():
        fixed = _fixed(key, value, f"{path}:{line_of(key, text, 'policy', begins['policy'])}")
    return Site(path, tuple(values.items()), tuple(lines.items()), fixed, tuple(images.items()))


def _heading(name: str, text: str) -> int:
    """The line on which a table begins; 1 where it has no line of its own."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().replace(" ", "").startswith(f"[{name}]"):
            return number
    return 1


def _value(key: str, value: Any, where: str) -> Any:
    if key not in KEYS:
        raise UsageError(
            f"{where}: unknown key {key!r} in [run]", mend=f"known keys: {', '.join(KEYS)}"
        )
    kind = KEYS[key]
    if key == "engine_options":
        return _engine_options(value, where)
    if key == "mpi":
        return _mpis(value, where)
    if key == "set" and isinstance(value, dict):
        value = [f"{name}={setting}" for name, setting in value.items()]
    if kind is list:
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise _unfit(f"{where}: {key} must be a list of texts", key)
        if key == "set":
            _check_settings(value, where)
        return value
    if not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool):
        raise _unfit(f"{where}: {key} must be {KINDS[kind]}, not {value!r:.40}", key)
    if isinstance(value, int) and kind is int and not 1 <= value <= 1_000_000:
        raise _unfit(f"{where}: {key} must be {KINDS[int]}", key)
    return value


def _mpis(value: Any, where: str) -> Any:
    """One MPI, or several in the order in which they are tried."""
    if isinstance(value, str):
        return value
    fine = isinstance(value, list) and all(isinstance(word, str) and word for word in value)
    if not fine or not value or len(set(value)) < len(value):
        raise _unfit(f"{where}: mpi must be a text, or a list of texts, each once", "mpi")
    return value


def _engine_options(value: Any, where: str) -> dict[str, list[str]]:
    """{engine: words} that stand before the image, as a person types them."""
    if not isinstance(value, dict):
        raise _unfit(f"{where}: engine_options must be a table", "engine_options")
    for engine, words in value.items():
        if engine not in WITH_OPTIONS:
            known = ", ".join(WITH_OPTIONS)
            raise UsageError(f"{where}: no engine {engine!r}", mend=f"known engines: {known}")
        fine = isinstance(words, list) and all(isinstance(word, str) for word in words)
        if not fine or any("\0" in word for word in words):
            raise _unfit(f"{where}: {engine} must be a list of texts", "engine_options")
        if words and (not words[0].startswith("-") or "--" in words):
            raise _unfit(
                f"{where}: {engine} = {words!r:.60} is no list of options: the engine would take "
                "a word of it for the image, or for the program",
                "engine_options",
            )
    return {engine: list(words) for engine, words in value.items()}


def _alias(name: str, value: Any, where: str) -> str:
    if not ALIAS.fullmatch(name):
        raise UsageError(
            f"{where}: {name!r} cannot be an image's alias",
            why="--image would take it for a path or for a name in a registry",
            mend="letters, digits, '.', '_', '+' and '-'",
        )
    absolute = isinstance(value, str) and (value.startswith("/") or SCHEME.match(value))
    if not absolute:
        raise UsageError(
            f"{where}: {name} must be an absolute path, or docker://, podman:NAME and the like",
            why="where people stand differs",
            mend='for example gromacs = "/apps/gromacs.sif"',
        )
    return str(value)


def _check_settings(words: list[str], where: str) -> None:
    try:
        Wish(set=tuple(words)).settings  # noqa: B018  raises for what is not NAME=VALUE
    except UsageError as error:
        raise UsageError(f"{where}: {error.seen}", why=error.why, mend=error.mend) from error


def _unfit(seen: str, key: str) -> UsageError:
    return UsageError(seen, mend=f"for example {key} = {EXAMPLES[key]}")


def _fixed(key: str, value: Any, where: str) -> tuple[str, ...]:
    if key != "fixed":
        raise UsageError(f"{where}: unknown key {key!r} in [policy]", mend="known keys: fixed")
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(
            f"{where}: fixed must be a list of texts", mend='for example fixed = ["mpi"]'
        )
    if unknown := [word for word in value if word not in KEYS]:
        raise UsageError(
            f"{where}: fixed names {unknown[0]!r}, which is no key of [run]",
            mend=f"known keys: {', '.join(KEYS)}",
        )
    return tuple(value)
