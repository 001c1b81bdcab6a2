"""mpigraft as an ordinary user, though it and the MPIs may lie in folders that are root's alone.

A chmod of those folders was rejected: the machine is not ours. In a mount namespace of the command
an empty folder that everybody may enter lies over each, and what is needed of it is bound into it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from testbed.engines import USER, Engines

ROOT = Path(__file__).resolve().parents[1]


def words(engines: Engines, home: Path, cache: Path, *command: str | Path) -> list[str]:
    """The words that run `command` as the ordinary user with MPIGRAFT_HOME `home`."""
    settings = {
        "MPIGRAFT_HOME": str(home),
        "CONTAINERS_CONF": str(home / "containers.conf"),
        "TMPDIR": "/tmp",
    }
    needed = dict.fromkeys((Path(sys.base_prefix), Path(sys.prefix), ROOT, cache))
    script = "; ".join(["set -e", "mount --make-rshared /", *opened(needed), 'exec "$@"'])
    as_user = engines.as_user([*map(str, command)], settings)
    return ["unshare", "-m", "bash", "-c", script, "bash", *map(str, as_user)]


def new_home(engines: Engines, mpis: Iterable[Path], name: str) -> Path:
    """An MPIGRAFT_HOME of the user's with these MPIs and nothing cached."""
    home = engines.home(USER) / name
    (home / "mpi").mkdir(parents=True)
    for prefix in mpis:
        (home / "mpi" / prefix.name).symlink_to(prefix.resolve())
    (home / "containers.conf").write_text('[engine]\nruntime = "runc"\n')
    engines.run(["chown", "-R", f"{USER}:{USER}", home])
    return home


def opened(needed: Iterable[Path]) -> Sequence[str]:
    """Commands of a shell that let everybody reach these folders."""
    hidden: dict[Path, list[Path]] = {}
    for path in needed:
        shut = [p for p in (*reversed(path.parents), path) if not p.stat().st_mode & 0o001]
        if shut:
            hidden.setdefault(shut[0], []).append(path)
    lines = []
    for over, paths in hidden.items():
        lines += [f"exec {10 + n}<{shlex.quote(str(p))}" for n, p in enumerate(paths)]
        lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(over))}"]
        for n, path in enumerate(paths):
            to = shlex.quote(str(path))
            # -c: or mount would follow the link to where nothing is any more.
            lines += [f"mkdir -p {to}", f"mount -c --bind /proc/self/fd/{10 + n} {to}"]
            lines += [f"exec {10 + n}<&-"]
    return lines
