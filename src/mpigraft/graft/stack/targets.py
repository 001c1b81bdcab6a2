"""Find the CPU target of a stack that this node takes: a version of EESSI has a tree for each."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.text import join_some
from mpigraft.knowledge import cpu_targets

VERSIONS, LINUX = "versions", "software/linux"
NAMED = 6
OVERRIDE = "EESSI_SOFTWARE_SUBDIR_OVERRIDE"  # by which a site or a user names the target


def cpu_target(folder: Path) -> Path:
    """Give the tree of this node's CPU that is below a folder of a version, or below the folder of
    its only version; any other folder as it is. Raises UsageError for several versions, or none
    for this CPU."""
    top = folder.parent if folder.name == VERSIONS else folder
    versions = sorted(one.parent for one in top.glob(f"{VERSIONS}/*/software"))
    if len(versions) > 1:
        names = join_some([one.name for one in versions], NAMED, ", ")
        raise UsageError.of("stack-versions", path=folder, names=names, first=versions[-1])
    version = versions[0] if versions else version_above(folder)
    there = [t for t in targets_of(version) if (version / LINUX / t).is_relative_to(folder)]
    if not there or folder == version / LINUX / there[0]:
        return folder
    named = [os.environ[OVERRIDE]] if os.environ.get(OVERRIDE) else []
    for name in (*named, *cpu_targets(platform.machine(), _cpuinfo())):
        if name in there:
            return version / LINUX / name
    raise UsageError.of("stack-no-target", path=folder, names=join_some(there, NAMED, ", "))


def version_above(folder: Path) -> Path:
    """Give the version of a folder between that and its CPU targets, such as software/linux/x86_64;
    any other folder as it is."""
    for depth in range(1, 5):
        if folder.parts[-depth:][:2] == Path(LINUX).parts[:depth]:
            version = folder.parents[depth - 1]
            return version if targets_of(version) else folder
    return folder


def targets_of(version: Path) -> list[str]:
    """List the CPU targets of a version: x86_64/amd/zen3."""
    top = version / LINUX
    trees = (*top.glob("*/*/software"), *top.glob("*/*/*/software"))
    return sorted(str(tree.parent.relative_to(top)) for tree in trees)


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return ""
