"""A guest of a few programs of this machine and their libraries: it is made in a moment, and every
engine starts it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

FOLDERS = ("dev", "proc", "sys", "tmp", "etc", "mnt", "run", "home", "opt/extra", "var/tmp")
PROGRAMS = ("sh", "cat", "readlink", "env", "sleep", "stat", "id", "uname")


def make_small_image(image: Path) -> None:
    """Make a root folder with the few programs that a probe needs."""
    for sub in (*FOLDERS, "usr/bin"):
        (image / sub).mkdir(parents=True)
    for name in ("passwd", "group", "hosts", "resolv.conf", "mtab", "localtime"):
        (image / "etc" / name).write_text("")
    (image / "bin").symlink_to("usr/bin")
    for name in PROGRAMS:
        program = Path(shutil.which(name) or "").resolve()
        shutil.copy(program, image / "usr/bin" / name)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True)
        for library in re.findall(r"(/\S+)", listed.stdout):
            target = image / library[1:]
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)


def set_up_podman(folder: Path, *settings: str) -> None:
    """Its storage in our folder, on any file system; and what a machine without raised limits,
    or with hybrid cgroups, asks for."""
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/store"\nrunroot = "{folder}/run"\n'
    )
    limits = 'default_ulimits = ["nofile=1024:4096", "nproc=100:1000"]'
    engine = ("[engine]", 'runtime = "runc"', 'cgroup_manager = "cgroupfs"')
    lines = ("[containers]", limits, *settings, *engine, "")
    (folder / "containers.conf").write_text("\n".join(lines))
