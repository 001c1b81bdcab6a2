"""A site's profile: which MPI, transport, engine and binds a plain `mpigraft run` takes, and what
of that its users may change.

    [run]
    mpi = ["cray-mpich", "openmpi@5"]
    transport = "ofi-lnx"
    bind = ["/scratch"]
    env = { FI_LOG_LEVEL = "warn" }
    engine_option = { apptainer = ["--nv"] }

    [bench]
    osu = ["/apps/osu-7.4"]

    [images]
    gromacs = "/apps/gromacs.sif"

    [setting.eager64]
    env = { UCX_RNDV_THRESH = "65536" }

    [policy]
    fixed = ["mpi", "transport"]

A profile guides; it is no lock: whoever may start programs can also start mpirun by hand.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mpigraft.core import file_dependencies
from mpigraft.core.errors import UsageError
from mpigraft.core.parsers import MAX_TOML
from mpigraft.core.text import printable
from mpigraft.request.job.spec import RunSpec
from mpigraft.request.options import (
    COMMAND_LINE,
    Asked,
    asked_for,
    line_of,
    options_of,
    parse_toml_file,
    read_option,
    with_options,
)
from mpigraft.request.settings import RequestedSetting, named_setting, settings_of_table
from mpigraft.request.spec import CampaignSpec

PLACE = Path("/etc/mpigraft/site.toml")
VARIABLE = "MPIGRAFT_SITE"
ALIAS = re.compile(r"[A-Za-z0-9][\w.+-]*")  # what `--image` takes for neither a path nor a name
SCHEME = re.compile(r"[a-z][a-z-]+:\S")  # docker://..., podman:NAME
NOTHING = RunSpec()
TABLES = ("run", "bench", "images", "setting", "policy")


RUN = {key: one for key, one in options_of(RunSpec).items() if one.rules.site}
BENCH = {key: one for key, one in options_of(CampaignSpec).items() if key in ("osu", "imb")}
KEYS = tuple(RUN)


def flag_of_key(key: str) -> str:
    """Name the flag of `mpigraft run` that takes the place of a key of [run]."""
    return RUN[key].flag


@dataclass(frozen=True, slots=True)
class Site:
    """The content of a profile: the request of [run], and where each key is ("site.toml:3")."""

    path: Path
    run: RunSpec = NOTHING
    lines: tuple[tuple[str, str], ...] = ()
    fixed: tuple[str, ...] = ()
    images: tuple[tuple[str, str], ...] = ()  # (alias, its image)
    # What campaigns use that name no build.
    osu: tuple[str, ...] = ()
    imb: tuple[str, ...] = ()
    settings: tuple[RequestedSetting, ...] = ()  # of [setting.NAME]

    def named_settings(self, requested: Sequence[RequestedSetting]) -> tuple[RequestedSetting, ...]:
        """Return settings with those that are a name alone looked up here. Raises UsageError."""
        return tuple(named_setting(one, self.settings, str(self.path)) for one in requested)

    def settings_of(self, spec: RunSpec) -> tuple[RequestedSetting, ...]:
        """Read the settings of a job as they were typed. Raises UsageError."""
        words = list(spec.setting)
        return self.named_settings(read_option(options_of(RunSpec), "setting", words, COMMAND_LINE))

    def with_defaults(self, spec: CampaignSpec) -> CampaignSpec:
        """Return the same campaign with the site's builds of suites where it names none; in a
        container, with the site's engine, and its options of engines and those of its binds that
        are here, which come before the campaign's own."""
        named = self.named_settings(spec.setting)
        spec = replace(spec, osu=spec.osu or self.osu, imb=spec.imb or self.imb, setting=named)
        if not spec.image:
            return spec
        own = {"engine": spec.engine, "engine_option": spec.engine_options, "bind": spec.bind}
        job = self.merged(asked_for(RunSpec, {key: value or None for key, value in own.items()}))
        here = (b for b in job.binds if b in spec.bind or Path(b.partition(":")[0]).exists())
        return replace(spec, engine=job.engine, engine_options=job.engine_options, bind=tuple(here))

    def known_images(self) -> str:
        """For the error of one that is not there."""
        names = ", ".join(alias for alias, _ in self.images)
        return f"or an image of {self.path}: {names}" if names else ""

    def image(self, word: str) -> tuple[str, str]:
        """Return (what `--image` takes, where that is set): an alias's image and its line; for all
        else the word itself and nothing. A folder of the name here is ./NAME."""
        image = dict(self.images).get(word)
        if image:
            return image, dict(self.lines).get(f"images.{word}", "")
        if word and self.images and ALIAS.fullmatch(word) and not Path(word).exists():
            raise UsageError.of("image-missing", word=word, or_alias=self.known_images())
        return word, ""

    @property
    def fixed_where(self) -> dict[str, str]:
        """Keys that flags may not change, and the line that has their value."""
        return {key: dict(self.lines).get(key, str(self.path)) for key in self.fixed}

    def merged(self, asked: Asked[RunSpec]) -> RunSpec:
        """Lay the options that were given over the site's, and say who asked for each. Lists are
        the site's, then the user's; of two settings of one name the later counts. Raises
        UsageError for an option that the policy does not leave to users."""
        given, own = asked.given, dict(self.lines)
        sources = {key: where for key, where in self.lines if key in RUN}
        if "replace" in given and asked.value.replace == "nothing" != self.run.replace:
            self._refuse_own()
        changes = {}
        for key, one in RUN.items():
            value, site_value = one.value(asked.value), self.value(key)
            if key not in given:
                changes[key] = one.value(self.run)
                continue
            if key == "engine_option":
                value = read_option(RUN, key, list(value), COMMAND_LINE)
            if key in self.fixed and (key not in own or value != site_value):
                self._refuse(key)
            both = isinstance(value, tuple) and bool(site_value)
            changes[key] = (*site_value, *value) if both else value
            sources[key] = f"{own[key]}, {COMMAND_LINE}" if both else COMMAND_LINE
        sources |= dict.fromkeys(sorted(given - RUN.keys()), COMMAND_LINE)
        mpis = () if "mpi" in given else self.run.mpis  # a user's choice goes over a site's list
        changes["setting"] = self.settings_of(asked.value)
        spec = with_options(asked.value, changes)
        return replace(spec, mpis=mpis, optional=self.run.binds, sources=tuple(sources.items()))

    def value(self, key: str) -> Any:
        """Take what [run] has for a key: of `mpi` one, or a list of them."""
        return (key == "mpi" and self.run.mpis) or RUN[key].value(self.run)

    def _refuse_own(self) -> None:
        """Refuse a guest as it is where an MPI is fixed: it has its own, which is another."""
        if "mpi" in self.fixed and (mpi := self.value("mpi")):
            where = dict(self.lines)["mpi"]
            raise UsageError.of("site-fixes-replace", where=where, listed=_listed(mpi))

    def _refuse(self, key: str) -> None:
        lines = dict(self.lines)
        own = self.value(key)
        raise UsageError.of(
            "site-fixes-option",
            flag=flag_of_key(key),
            where=lines.get(key, str(self.path)),
            to_value=f" to {_listed(own)}" if key in lines and own != () else "",
        )


def _listed(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def find(environ: Mapping[str, str]) -> Path:
    """Return the file that counts, there or not: $MPIGRAFT_SITE, else the one in /etc."""
    named = environ.get(VARIABLE, "")
    return Path(named).absolute() if named else PLACE


def read_site(environ: Mapping[str, str]) -> Site:
    """Return the site's profile; an empty one where there is none. Raises UsageError, with file and
    line, for a file that cannot be read, that others than root and this user may write, or that
    holds what is not known."""
    path = find(environ)
    file_dependencies.file(path)
    try:
        with path.open("rb") as file:
            status = path.stat()
            data = file.read(MAX_TOML + 1)
    except FileNotFoundError as error:
        if path == PLACE:
            return Site(path)
        raise UsageError.of(
            "site-file-unreadable", variable=VARIABLE, path=path, reason=error.strerror
        ) from error
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error
    if not stat.S_ISREG(status.st_mode) or status.st_mode & stat.S_IWOTH or len(data) > MAX_TOML:
        raise UsageError.of("site-file-unsafe", path=path)
    table, text = parse_toml_file(data, path)
    return _site(Path(printable(str(path))), table, text)  # from here on to be shown alone


def _site(path: Path, table: Mapping[str, Any], text: str) -> Site:
    begins: dict[str, int] = {}
    for name, part in table.items():
        begins[name] = _heading(name, text)
        if name not in TABLES or not isinstance(part, dict):
            line = begins[name] if isinstance(part, dict) else line_of(name, text)
            raise UsageError.unknown("site-key-unknown", name, TABLES, path=path, line=line)
    values: dict[str, object] = {}
    lines: dict[str, str] = {}
    for key, value in table.get("run", {}).items():
        where = f"{path}:{line_of(key, text, 'run', begins['run'])}"
        values[key] = read_option(RUN, key, value, where)
        lines[key] = where
    run = with_options(NOTHING, values)
    if isinstance(run.mpi, tuple):
        run = replace(run, mpi="", mpis=run.mpi)
    builds = {
        key: read_option(BENCH, key, value, _place(path, text, "bench", key, begins))
        for key, value in table.get("bench", {}).items()
    }
    for key, folders in builds.items():
        if relative := [one for one in folders if not one.startswith("/")]:
            where = _place(path, text, "bench", key, begins)
            raise UsageError.of("site-build-relative", where=where, folder=relative[0])
    images: dict[str, str] = {}
    for key, value in table.get("images", {}).items():
        where = f"{path}:{line_of(key, text, 'images', begins['images'])}"
        images[key] = _alias(key, value, where)
        lines[f"images.{key}"] = where
    fixed: tuple[str, ...] = ()
    for key, value in table.get("policy", {}).items():
        fixed = _fixed(key, value, f"{path}:{line_of(key, text, 'policy', begins['policy'])}")
    settings = settings_of_table(table, text, path)
    return Site(
        path, run, tuple(lines.items()), fixed, tuple(images.items()), settings=settings, **builds
    )


def _place(path: Path, text: str, name: str, key: str, begins: Mapping[str, int]) -> str:
    """File and line of a key in a table."""
    return f"{path}:{line_of(key, text, name, begins[name])}"


def _heading(name: str, text: str) -> int:
    """Return the line on which a table begins; 1 where it has no line of its own."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip().replace(" ", "").startswith(f"[{name}]"):
            return number
    return 1


def _alias(name: str, value: Any, where: str) -> str:
    if not ALIAS.fullmatch(name):
        raise UsageError.of("site-alias-invalid", where=where, name=name)
    absolute = isinstance(value, str) and (value.startswith("/") or SCHEME.match(value))
    if not absolute:
        raise UsageError.of("site-image-relative", where=where, name=name)
    return str(value)


def _fixed(key: str, value: Any, where: str) -> tuple[str, ...]:
    if key != "fixed":
        raise UsageError.of("site-policy-key-unknown", where=where, key=key)
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError.of("site-fixed-invalid", where=where)
    if unknown := [word for word in value if word not in KEYS]:
        raise UsageError.unknown("site-fixed-unknown", unknown[0], KEYS, where=where)
    return tuple(value)
