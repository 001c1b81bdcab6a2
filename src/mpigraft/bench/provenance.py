"""Where a configuration comes from, as the store keeps it and a report shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

from mpigraft.core import env
from mpigraft.core.model import Configuration, GraftPlan, MpiInstall, Setting
from mpigraft.core.serialize import canonical

OF_MPI = ("family", "version", "abi", "library_version", "source", "found", "libmpi", "libfabric",
          "ucx")  # fmt: skip
OF_GUEST = ("name", "kind", "digest", "os", "glibc")


def provenance(
    configuration: Configuration,
    program: str,
    files: Sequence[Sequence[str]] = (),
    suites: Mapping[str, Sequence[str]] | None = None,
    starts: Sequence[Mapping[str, object]] = (),
) -> str:
    """Canonical JSON of where a configuration comes from; `program` is the digest of the native
    programs that measured it, `files` are (name, SHA-256) of all that its launches use;
    `suites` has where each program of a suite was found, and its words; `starts` has
    Campaign.command_lines.
    Environment through the allow-list, secrets struck out."""
    mpi, transport = configuration.mpi, configuration.transport
    if mpi is None or transport is None:
        return canonical({"id": configuration.id})
    rows = [*mpi.environment, *configuration.rows]
    visible = env.shown({row.name: row.value or "" for row in rows})
    return canonical(
        {
            "mpi": mpi.id,
            **{name: getattr(mpi, name) for name in OF_MPI},
            "launcher": _launched_by(configuration, mpi),
            "transport": [transport.name, transport.row],
            "sources": transport.sources,
            "environment": [
                {"name": r.name, "value": visible[r.name], "scope": r.scope, "source": r.source}
                for r in rows
                if r.name in visible
            ],
            "libraries": configuration.libraries,
            "guest": _guest(configuration.graft),
            **({"setting": _setting(configuration.setting)} if configuration.setting else {}),
            "programs": program,
            "files": files,
            **({"suites": suites, "starts": starts} if suites else {}),
        }
    )


def _launched_by(configuration: Configuration, mpi: MpiInstall) -> list[str]:
    by = configuration.launcher
    return [by.kind, by.version, by.pmi] if by else [mpi.launcher_kind, mpi.launcher_version]


def _setting(setting: Setting) -> dict[str, object]:
    """Give what an arm has besides its plain one, whose key is `plain`. Names that look like
    secrets' were refused; files are (variable, SHA-256, text)."""
    return {
        "name": setting.name,
        "plain": setting.plain,
        "variables": [
            [row.name, None if row.value is None else env.redact(row.value)] for row in setting.rows
        ],
        "files": [
            [one.variable, sha256(one.text.encode()).hexdigest(), env.redact(one.text)]
            for one in setting.files
        ],
        "launcher": setting.launcher,
    }


def _guest(plan: GraftPlan | None) -> dict[str, object] | None:
    if plan is None:
        return None
    guest = plan.guest
    return {
        **{name: getattr(guest, name) for name in OF_GUEST},
        "host_glibc": plan.glibc,
        "replace": plan.replace,
        "engine": plan.engine,
        "plan": plan.key,
    }
