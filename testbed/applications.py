"""Software that nobody here wrote, for the images: LAMMPS and mpi4py, and how to compare its runs.

Debian's LAMMPS and mpi4py are packages. mpi4py is also taken from PyPI: its wheel serves several
MPIs and chooses by the libmpi that it meets, and its source has the test suite.
"""

from __future__ import annotations

import inspect
import re
import shlex
import sys
from pathlib import Path

from mpigraft.core.process.command import run_command

WHEEL = "4.1.2"  # of mpi4py
DEBIANS = {"3.11": "3.1.4", "3.13": "4.0.3"}  # mpi4py beside Debian's Python
LMP = "/usr/bin/lmp"
DEBIANS_PYTHON, VENVS_PYTHON = "/usr/bin/python3", "/opt/venv/bin/python"

# A melting Lennard-Jones crystal: what LAMMPS says of it is the same for one number of ranks.
MELT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 6 0 6 0 6
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 20
run 200
"""


def recipe(python: str) -> list[str]:
    """What decides how an image of Python `python` is made, beside its packages."""
    return [python, WHEEL, DEBIANS[python], inspect.getsource(hooks)]


def hooks(python: str, scratch: Path) -> list[str]:
    """Lines of shell that put mpi4py's wheel and tests into a new root, whose folder is $1."""
    tests = {DEBIANS[python], WHEEL}
    for version in sorted(tests):
        download(scratch, f"mpi4py=={version}", "--no-binary=:all:", "--no-build-isolation")
    download(scratch, f"mpi4py=={WHEEL}", "--only-binary=:all:", f"--python-version={python}")
    (wheel,) = scratch.glob("*.whl")
    unzip = f"import zipfile; zipfile.ZipFile({str(wheel)!r}).extractall()"
    site = f'"$1/opt/venv/lib/python{python}/site-packages"'
    return [
        'set -e; chroot "$1" python3 -m venv --without-pip /opt/venv',
        f"set -e; cd {site}; {shlex.join([sys.executable, '-c', unzip])}",
        *(
            f"set -e; tar --extract --no-same-owner --file {shlex.quote(str(file))}"
            f' --directory "$1/opt" {file.name.removesuffix(".tar.gz")}/test'
            for file in sorted(scratch.glob("mpi4py-*.tar.gz"))
        ),
    ]


def download(to: Path, *words: str) -> None:
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
    done = run_command([*pip, "--dest", to, *words], limit_s=300)
    assert done.ok, done.text()


# ------------------------------------------------------------------ LAMMPS

TIMINGS = re.compile(  # lines of a log that differ from run to run
    r" *create_atoms CPU = |Loop time of|Performance: |[0-9.]+% CPU use|Total wall time: "
    r"|(Pair|Neigh|Comm|Output|Modify|Other) +\|"
)


def physics(log: str) -> list[str]:
    """What LAMMPS printed of atoms: all of its lines but those with times."""
    lines = [line.rstrip() for line in log.splitlines()]
    return [line for line in lines if line and not TIMINGS.match(line)]
