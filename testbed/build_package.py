"""Build one package alone with EasyBuild, as a chain that ends with it.

python build_package.py NAME VERSION SOURCES PREFIX; no recipe of ours is as quick as this.
"""

from __future__ import annotations

import os
import platform
import sys
from dataclasses import replace
from pathlib import Path

from mpigraft.build import BuildFolders, BuildProgress, BuildRequest, build, plan_system
from mpigraft.build.values import BuildHost
from mpigraft.core.errors import MpigraftError
from mpigraft.knowledge import packages, plan_table


def main(name: str, version: str, sources: Path, prefix: Path) -> int:
    table = plan_table()
    recipe = replace(table.recipes[0], id=name, what=name, root=name, parts=())
    table = replace(table, recipes=(recipe,))
    request = BuildRequest(name, {name: version})
    files = frozenset(path.name for path in sources.iterdir())
    host = BuildHost(platform.machine(), frozenset(), {}, files, offline=True)
    (plan,) = plan_system(request, [host], packages(), table)
    folders = BuildFolders(prefix, sources)
    try:
        build(plan, folders, os.environ, _report)
    except MpigraftError as error:
        sys.stderr.write(f"{error}\n{error.why}\n")
        return int(error.exit_code)
    sys.stdout.write(f"{folders.root(plan)}\n")
    return 0


def _report(now: BuildProgress) -> None:
    sys.stdout.write(f"{now.package} {now.phase}\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
