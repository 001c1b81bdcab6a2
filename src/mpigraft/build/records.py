"""What was built below a prefix, and of what: one record a package.

A record says `begun` before EasyBuild starts and `built` once it has ended well, so that a build
which was killed is known for one, and a folder that somebody else made is not taken for ours.
"""

from __future__ import annotations

import contextlib
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.build.easyconfigs import render_easyconfig
from mpigraft.build.folders import BuildFolders, module_name
from mpigraft.build.modules import module_files
from mpigraft.build.recipes import read_easyconfig, recipe_of
from mpigraft.build.values import BuildPlan, BuildStep
from mpigraft.core.clock import utc_now
from mpigraft.core.errors import UsageError
from mpigraft.core.serialize import digest
from mpigraft.core.write import write_whole

SCHEMA = 1
BEGUN, BUILT = "begun", "built"
SHOWN = 4  # parameters that an error lists


class Standing(enum.Enum):
    """How far a package of a plan is."""

    ABSENT = "absent"
    CUT_OFF = "cut off"  # a build was killed, or failed
    BUILT = "built"


@dataclass(frozen=True, slots=True)
class Builder:
    """What builds, for the records."""

    easybuild: str  # its version
    compiler: str  # the first line of `cc --version`


def recipe_digests(plan: BuildPlan) -> dict[str, str]:
    """Return a digest of each package's recipe, and of the recipes of all that it needs."""
    digests: dict[str, str] = {}
    for step in plan.steps:
        needs = {name: digests[name] for name in step.needs}
        digests[step.id] = digest([recipe_of(render_easyconfig(step, plan)), needs])
    return digests


def standing(step: BuildStep, plan: BuildPlan, folders: BuildFolders, recipe: str) -> Standing:
    """Look at how far a package is. Raises UsageError for one that was built in another way, and
    for a folder that mpigraft did not build."""
    module = module_name(step, plan)
    root = folders.prefix / "software" / module
    record = read_record(folders.records / file_name(module))
    copy = _easybuilds_copy(root) if module_files(folders.modules / module) else None
    if copy is not None and record.get("state") == BUILT:
        if record.get("recipe") != recipe:
            raise _differs(step, plan, folders, record.get("parameters"))
        return Standing.BUILT
    if copy is not None:  # by EasyBuild alone, or by a build that was killed right after it
        if copy != recipe_of(render_easyconfig(step, plan)):
            raise _differs(step, plan, folders, copy)
        return Standing.BUILT
    if not record and root.is_dir() and any(root.iterdir()):
        raise UsageError.of("build-folder-taken", package=module, folder=root)
    return Standing.CUT_OFF if record else Standing.ABSENT


def _easybuilds_copy(root: Path) -> dict[str, Any] | None:
    """Return the recipe in the easyconfig that EasyBuild copies there after all else; None: it did
    not get so far."""
    for path in root.glob("easybuild/*.eb"):
        with contextlib.suppress(OSError, ValueError):
            return recipe_of(path.read_text(encoding="utf-8"))
    return None


def _differs(
    step: BuildStep, plan: BuildPlan, folders: BuildFolders, parameters: object
) -> UsageError:
    now = _plain(recipe_of(render_easyconfig(step, plan)))
    before = _plain(parameters) if isinstance(parameters, dict) else {}
    names = [name for name in sorted({*now, *before}) if now.get(name) != before.get(name)]
    what = ", ".join(names[:SHOWN]) or "a package that it needs"
    module = module_name(step, plan)
    return UsageError.of(
        "build-differs", package=module, prefix=folders.prefix, what=what,
        folder=folders.prefix / "software" / module,
    )  # fmt: skip


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """As JSON has them: tuples are lists."""
    plain: dict[str, Any] = json.loads(json.dumps(values))
    return plain


def write_record(
    step: BuildStep,
    plan: BuildPlan,
    folders: BuildFolders,
    builder: Builder,
    state: str,
) -> None:
    """Write the record of a package. Raises OSError."""
    module, archive = module_name(step, plan), step.archive
    text = render_easyconfig(step, plan)
    by_id = {one.id: module_name(one, plan) for one in plan.steps}
    record = {
        "schema": SCHEMA,
        "state": state,
        "package": step.id,
        "module": module,
        "recipe": recipe_digests(plan)[step.id],
        "plan": plan.recipe.id,
        "easybuild": builder.easybuild,
        "compiler": builder.compiler,
        "parameters": recipe_of(text),
        "options": str(read_easyconfig(text).get("configopts", "")),
        "source": {
            "file": archive.file,
            "sha256": "" if step.packed else archive.sha256,
            "by": archive.by,
        },
        "needs": [by_id[name] for name in step.needs],
        "why": step.why,
        "chosen": step.chosen,
        "when": utc_now(),
    }
    content = json.dumps(record, indent=1) + "\n"
    write_whole(folders.records / file_name(module), content.encode())


def recorded(step: BuildStep, plan: BuildPlan, folders: BuildFolders) -> bool:
    """Return whether a package has its last record."""
    record = read_record(folders.records / file_name(module_name(step, plan)))
    return record.get("state") == BUILT


def read_record(path: Path) -> dict[str, Any]:
    """Read a record; empty where there is none, or none that can be read."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def file_name(module: str) -> str:
    return module.replace("/", "-") + ".json"
