"""Application images: small Debian roots with MPI programs in /opt/app, as folder, SIF and OCI.

A root is made once and kept as a tar; so are its SIF and its OCI archive. What is unpacked lies
in a folder of the session that an ordinary user can reach, which a cache in root's home is not.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from testbed import applications, oci, rootfs
from testbed.kept import kept, recipe

PROGRAMS = rootfs.HERE / "programs"
ZIG_CACHE = rootfs.PROJECT / "build" / "zig"  # where the build of the C programs has its own
SMALL = (
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "info", "locale", "man")),
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=force-unsafe-io",  # a machine that goes down meanwhile starts anew anyway
)
# Lines of shell that run outside a new root, whose folder is $1. Most images have these two
# files, and engines that may not make them want them: bubblewrap, podman for a user.
USUAL = 'ln -sf ../proc/self/mounts "$1/etc/mtab"; touch "$1/etc/hosts"'
PROGRAMS_OF = 'mkdir -p "$1/{folder}"; cp {built}/* "$1/{folder}"'
# The copy is the image's own MPI at a place that only a search path in a program leads to.
PRIVATE_MPI = 'mkdir -p "$1/opt/mpi/lib"; cp -L "$1"/usr/lib/*/lib{name} "$1/opt/mpi/lib"'
HELLO_BY_ZIG = (
    'mkdir -p "$1/opt/app"; {zig} -O1 -Wl,--allow-shlib-undefined {sources}'
    ' "$1"/usr/lib/*/libmpi.so.40 -o "$1/opt/app/hello"'
)
RECIPE = (SMALL, USUAL, PROGRAMS_OF, PRIVATE_MPI, HELLO_BY_ZIG)


@dataclass(frozen=True, slots=True)
class Image:
    """What is installed, and which programs lie where: (folder inside, the MPI they are built on).

    `architecture` is empty for this machine's own; another's is unpacked and nothing in it is run.
    An image with `python`, the version of its Python, also has mpi4py as PyPI has it and mpi4py's
    tests. A `long` image is made when a test asks for it, since only long tests do.
    """

    suite: str
    packages: tuple[str, ...]
    programs: tuple[tuple[str, str], ...] = (("opt/app", "openmpi"),)
    libmpi: str = "mpi.so.40"  # of which a private copy is made; none if empty
    architecture: str = ""
    python: str = field(default="", repr=False)
    long: bool = field(default=False, repr=False)


IMAGES: Mapping[str, Image] = {
    "bookworm": Image("bookworm", ("openmpi-bin", "libopenmpi3", "libgfortran5")),
    "bookworm-bare": Image(
        "bookworm",
        ("libgfortran5", "libstdc++6"),
        (("opt/app", "openmpi"), ("opt/app-mpich", "mpich")),
        libmpi="",
    ),
    "bookworm-mpich": Image(
        "bookworm",
        ("mpich", "libmpich12", "libgfortran5"),
        (("opt/app", "mpich"),),
        libmpi="mpich.so.12",
    ),
    "trixie": Image("trixie", ("openmpi-bin", "libopenmpi40", "libgfortran5")),
    "bullseye": Image("bullseye", ("openmpi-bin", "libopenmpi3", "libgfortran5")),
    "arm64": Image(
        "bookworm", ("libopenmpi3", "libgfortran5"), libmpi="", architecture="arm64"
    ),
    "bookworm-apps": Image(
        "bookworm",
        ("openmpi-bin", "lammps", "python3-mpi4py", "python3-distutils"),
        programs=(),
        libmpi="",
        python="3.11",
        long=True,
    ),
    "bookworm-apps-mpich": Image(
        "bookworm",
        ("mpich", "libmpich12", "python3"),
        programs=(),
        libmpi="",
        python="3.11",
        long=True,
    ),
    "trixie-apps": Image(
        "trixie",
        ("openmpi-bin", "lammps", "python3-mpi4py"),
        programs=(),
        libmpi="",
        python="3.13",
        long=True,
    ),
}  # fmt: skip
USUAL_IMAGES = tuple(name for name, image in IMAGES.items() if not image.long)
COMPILERS = "gcc,g++,gfortran,libc6-dev"
COMPILED = {  # where programs are compiled: with which MPIs
    "bookworm": ("openmpi", "mpich"),
    "trixie": ("openmpi",),
    "bullseye": ("openmpi",),
}


class Images:
    """The images of a test session. `close` removes what was unpacked; the cache stays.

    `mpis` are the prefixes of the wheels, `apptainer` the words that start it.
    """

    def __init__(
        self, cache: Path, as_root: tuple[str, ...], mpis: Mapping[Family, Path]
    ) -> None:  # fmt: skip
        self.cache, self.as_root, self.mpis = cache, as_root, mpis
        self.stage = Path(tempfile.mkdtemp(prefix="mpigraft-images-"))
        self.stage.chmod(0o755)

    def make_all(self) -> None:
        """Make what the cache lacks, two at a time: each keeps one core busy."""
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(self.tar, USUAL_IMAGES))

    def tar(self, name: str) -> Path:
        """The root as a tar, owners and all."""
        image = IMAGES[name]
        sources = self._sources() if image.programs else applications.recipe(image.python)
        made_by = recipe(repr(image), repr(RECIPE), *sources)
        made = self.cache / f"image-{name}.tar"
        return kept(made, made_by, lambda new: self._make(image, new))

    def folder(self, name: str, owner: str = "") -> Path:
        """The root unpacked, once a session: not to be written to. Its files are of the users
        that they are of in the image, root for the most part, or all of the user `owner`."""
        to = self.stage / "-".join(filter(None, (name, owner)))
        if not to.exists():
            tar = self.tar(name)
            new = self.stage / f"new-{name}"
            new.mkdir()
            self._do("tar", "--extract", "--numeric-owner", "--file", tar, "--directory", new)
            self._do("chmod", "755", new)
            if owner:
                self._do("chown", "--recursive", "--no-dereference", f"{owner}:", new)
            self._do("mv", new, to)
        return to

    def oci(self, name: str) -> Path:
        """An OCI archive of two layers; oci.py says what the second takes away."""
        tar = self.tar(name)
        architecture = IMAGES[name].architecture or native()
        made_by = recipe(_of(tar), Path(oci.__file__))
        made = kept(
            self.cache / f"image-{name}-oci.tar",
            made_by,
            lambda new: oci.write(tar, architecture, new),
        )
        return self._reachable(made)

    def sif(self, name: str, apptainer: Path) -> Path:
        """A SIF, squashed by gzip as Apptainer does it, though in a hurry: its strongest costs
        ten times the time and saves a tenth of the size."""
        folder = self.folder(name)
        hurry = "-comp gzip -Xcompression-level 1"
        made_by = recipe(_of(self.tar(name)), hurry)

        def make(new: Path) -> None:
            squash = f"--mksquashfs-args={hurry}"
            self._do(apptainer, "-s", "build", squash, new, folder)

        return self._reachable(kept(self.cache / f"image-{name}.sif", made_by, make))

    def close(self) -> None:
        """Nobody waits for the removal: of gigabytes it can take a minute."""
        remove = ("rm", "--recursive", "--force", "--one-file-system", self.stage)
        self._do("sh", "-c", 'setsid "$@" >/dev/null 2>&1 </dev/null &', "sh", *remove)

    def _do(self, *argv: str | Path) -> None:
        done = run_command([*self.as_root, *argv], limit_s=300)
        assert done.ok, f"{argv}: {done.text()}"

    def _reachable(self, made: Path) -> Path:
        """A copy where an ordinary user can read it."""
        copy = self.stage / made.name
        if not copy.exists():
            shutil.copyfile(made, copy)
            copy.chmod(0o644)
        return copy

    def _sources(self) -> list[str | Path]:
        names = sorted(path for path in PROGRAMS.iterdir() if path.is_file())
        return [*names, *(prefix.name for prefix in self.mpis.values())]

    def _programs(self, suite: str) -> Path:
        """A tar with a folder of programs for each MPI of `suite`.

        The root with the compilers is not kept: three of them are 2 GB, and are wanted again
        only when a program changes.
        """
        made_by = recipe(suite, COMPILERS, *COMPILED[suite], *self._sources())
        made = self.cache / f"programs-{suite}.tar"
        return kept(made, made_by, lambda new: self._compile(suite, new))

    def _compile(self, suite: str, to: Path) -> None:
        packages = [f"lib{mpi}-dev" for mpi in COMPILED[suite]]
        include = ",".join([COMPILERS, *packages])
        with tempfile.TemporaryDirectory(dir=self.stage) as scratch:
            tar = Path(scratch) / "root.tar"
            rootfs.bootstrap(suite, tar, include, self.as_root, *SMALL)
            root = rootfs.Root(tar, Path(scratch) / "root", Path(scratch) / "cache", self.as_root)
            try:
                self._do("cp", "-R", PROGRAMS, root.folder / "programs")
                for mpi in COMPILED[suite]:
                    wheel = ""
                    if mpi == "mpich":
                        wheel = "/wheel"
                        self._do("cp", "-RL", self.mpis[Family.MPICH], root.folder / "wheel")
                    done = root.enter(f"/programs/compile {mpi} /out/{mpi} {wheel}")
                    assert done.ok, done.text()
                out = root.folder / "out"
                self._do("tar", "--create", "--file", to, "--directory", out, *COMPILED[suite])
            finally:
                root.close()

    def _make(self, image: Image, new: Path) -> None:
        if image.architecture:
            self._make_foreign(image, new)
            return
        with tempfile.TemporaryDirectory(dir=self.stage) as scratch:
            if image.programs:
                programs = self._programs(image.suite)
                self._do("tar", "--extract", "--file", programs, "--directory", scratch)
            lines = _hooks(image, Path(scratch))
            if image.python:
                lines += applications.hooks(image.python, Path(scratch))
            options = [f"--customize-hook={line}" for line in lines]
            include = ",".join(image.packages)
            rootfs.bootstrap(image.suite, new, include, self.as_root, *SMALL, *options)

    def _make_foreign(self, image: Image, new: Path) -> None:
        """Packages of another architecture, extracted: their scripts would have to run there.

        The one program is compiled by zig, on the packages' library and the wheel's headers:
        Open MPI 4 and 5 have one ABI, and Debian's headers would bring a hundred packages.
        """
        zig = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.17"]
        where = [f"ZIG_GLOBAL_CACHE_DIR={ZIG_CACHE}", f"ZIG_LOCAL_CACHE_DIR={ZIG_CACHE}"]
        headers = f"-I{self.mpis[Family.OPENMPI] / 'include'}"
        hook = HELLO_BY_ZIG.format(
            zig=shlex.join(["env", *where, *zig]),
            sources=shlex.join([headers, str(PROGRAMS / "hello.c")]),
        )
        rootfs.bootstrap(
            image.suite, new, ",".join([*image.packages, "libc6", "base-files"]), self.as_root,
            f"--architectures={image.architecture}", *SMALL,
            "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr", f"--extract-hook={hook}",
            variant="extract",
        )  # fmt: skip


def native() -> str:
    """This machine's architecture as Debian calls it: amd64, arm64."""
    return run_command(["dpkg", "--print-architecture"]).text().strip()


def _hooks(image: Image, programs: Path) -> list[str]:
    lines = [USUAL]
    for folder, mpi in image.programs:
        lines.append(PROGRAMS_OF.format(folder=folder, built=shlex.quote(str(programs / mpi))))
    if image.libmpi:
        lines.append(PRIVATE_MPI.format(name=image.libmpi))
    return [f"set -e; {line}" for line in lines]


def _of(tar: Path) -> str:
    """What a tar is, told by its note: reading all of it again takes longer."""
    return tar.with_name(f"{tar.name}.made").read_text(encoding="utf-8")
