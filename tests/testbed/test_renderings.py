"""Every engine for real: what a plan by hand says is what two processes of a node see.

The guest is a few programs of this machine and their libraries, so no image has to be made.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpigraft.binary.image.opening import open_root
from mpigraft.core.errors import MissingError
from mpigraft.core.model import Bind, BindKind, EngineContext, EnvRow, GraftPlan, GuestKind, Scope
from mpigraft.graft.engines import registry, wrapper
from mpigraft.graft.engines.registry import engine_words
from mpigraft.graft.guest.examination import Guest
from testbed.engines import Engines
from testbed.small_image import make_small_image, set_up_podman
from tests.builders.plans import label, plan

pytestmark = pytest.mark.testbed

LIMIT_S = 60
OVER = '/usr/lib/guest data/it\'s, "the" library.so'
NOBODY = 65534
AS_NOBODY = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
NAMES = ("apptainer", "charliecloud", "bwrap", "podman")
# Tells all that a rank sees, a name and a value in each line.
TELL = """
echo "over=$(cat "$1")"
echo "graft=$(cat "$2/lib/library")"
echo "extra=$(cat "$3/file")"
echo "cwd=$(pwd)"
echo "rank=$PMIX_RANK"
echo "stray=$STRAY"
echo "preload=$LD_PRELOAD"
echo "set=$SET"
echo "user=$(readlink /proc/self/ns/user)"
echo "pid=$(readlink /proc/self/ns/pid)"
(: >"$2/ranks/r$PMIX_RANK") && echo "ranks=written"
if (: >"$2/lib/new") 2>/dev/null; then echo "lib=written"; fi
read -r line; echo "stdin=$line"
# As MPI_Init: nobody goes before all have come.
for n in 1 2 3 4 5 6 7 8 9; do
    [ -e "$2/ranks/r0" ] && [ -e "$2/ranks/r1" ] || sleep 0.3
done
exit 3
"""
# A launcher: two ranks of one parent, which is what engines go by to share a container.
LAUNCH = """
echo hello | PMIX_RANK=0 "$@" & one=$!
echo hello | PMIX_RANK=1 "$@" & two=$!
wait $one; a=$?; wait $two; echo "codes=$a $?"
"""


@dataclass(frozen=True)
class Bed:
    folder: Path  # everybody may look into it
    image: Path
    graft: Path
    extra: Path
    cwd: Path
    environ: dict[str, str]


@pytest.fixture(scope="module")
def bed(request: pytest.FixtureRequest) -> Iterator[Bed]:
    """With the tests' own Apptainer in PATH, where root may make one."""
    paths = [os.environ["PATH"]]
    if os.geteuid() == 0 and shutil.which("mmdebstrap"):
        made_here: Engines = request.getfixturevalue("engines")
        paths.insert(0, str(made_here.folder / "apptainer/usr/bin"))
    with tempfile.TemporaryDirectory(prefix="renderings ", dir="/tmp") as name:
        folder = Path(name)
        made = Bed(
            folder,
            folder / "an image",
            folder / "graft",
            folder / 'ex,tra "1"',
            folder / "cwd",
            {
                "PATH": ":".join(paths),
                "USER": "someone",
                "CONTAINERS_CONF": str(folder / "containers.conf"),
                "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            },
        )
        make_small_image(made.image)
        (made.image / OVER[1:]).parent.mkdir(parents=True)
        (made.image / OVER[1:]).write_text("the guest's own\n")
        for sub in ("graft/lib", "graft/ranks", "cwd", made.extra.name, "root", "user"):
            (folder / sub).mkdir(parents=True)
        (made.graft / "ranks").chmod(0o1777)
        if os.geteuid() == 0:
            os.chown(folder / "user", NOBODY, NOBODY)
        (made.graft / "lib/library").write_text("grafted\n")
        (made.extra / "file").write_text("extra\n")
        set_up_podman(folder)
        folder.chmod(0o755)
        yield made


def made_for(bed: Bed, engine: str, *, root: bool) -> tuple[GraftPlan, EngineContext]:
    try:
        program, version = registry.find_engine(engine, bed.environ)
    except MissingError as error:
        pytest.skip(error.message)
    guest = Guest(label(str(bed.image), GuestKind.FOLDER), open_root(bed.image))
    where = EngineContext(
        program=program,
        version=version,
        root=root,
        cwd=str(bed.cwd),
        ranks_per_node=2,
        graft=str(bed.graft),
        extra=(Bind(str(bed.extra), "/opt/extra", BindKind.FOLDER),),
        environment=tuple(bed.environ.items()),
    )
    made = plan(
        guest.label,
        engine,
        place=registry.ENGINES[engine].place(guest),
        binds=(Bind("{graft}/lib/library", OVER),),
        environment=(
            EnvRow("LD_PRELOAD", None, Scope.RANK, "plan"),
            EnvRow("SET", "a 'b' $c", Scope.RANK, "plan"),
        ),
        passed=("PMIX_*",),
    )
    return made, where


def told(bed: Bed, made: GraftPlan, words: tuple[str, ...], *, root: bool) -> list[dict[str, str]]:
    rank = (*words, "/bin/sh", "-c", TELL, "sh", OVER, made.place, "/opt/extra")
    before = () if root or os.geteuid() != 0 else AS_NOBODY
    done = subprocess.run(
        [*before, "/bin/sh", "-c", LAUNCH, "sh", *rank],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=bed.cwd,
        env={**bed.environ, "HOME": str(bed.folder / ("root" if root else "user")), "STRAY": "x"},
    )
    assert "over=" in done.stdout, done.stderr
    ranks: list[dict[str, str]] = [{}, {}]
    for which in (0, 1):  # lines of two processes: no line is cut, but they are mixed
        ranks[which] = dict(
            line.partition("=")[::2] for line in done.stdout.splitlines() if "=" in line
        )
    users = set(re.findall(r"^user=(.*)$", done.stdout, re.MULTILINE))
    return [{**rank, "users": str(len(users)), "stderr": done.stderr} for rank in ranks]


CASES = [
    pytest.param(engine, root, id=f"{engine}-{'root' if root else 'user'}")
    for engine in NAMES
    for root in (True, False)
]


@pytest.mark.parametrize(("engine", "root"), CASES)
@pytest.mark.parametrize("written", [False, True], ids=["words", "wrapper"])
def test_ranks_see_what_the_plan_says(bed: Bed, engine: str, root: bool, written: bool) -> None:
    if root and os.geteuid() != 0:
        pytest.skip("needs root")
    if not root and engine == "podman" and os.geteuid() == 0:
        pytest.skip("podman over somebody else's folder is refused")
    made, where = made_for(bed, engine, root=root)
    if written:
        script = bed.folder / f"{engine}.sh"
        script.write_text(wrapper.wrapper_script(made, where))
        script.chmod(0o755)
        words: tuple[str, ...] = (str(script),)
    else:
        words = (*engine_words(made, where), "/usr/bin/env", "SET=a 'b' $c")
    before = _tree(bed.image)
    for old in (bed.graft / "ranks").iterdir():
        old.unlink()
    ranks = told(bed, made, words, root=root)
    for rank in ranks:
        assert rank["over"] == rank["graft"] == "grafted"
        assert rank["extra"] == "extra"
        assert rank["cwd"] == str(bed.cwd)
        assert rank["rank"] in {"0", "1"}
        assert rank["preload"] == ""
        assert rank["set"] == "a 'b' $c"
        assert rank["pid"] == str(Path("/proc/self/ns/pid").readlink())
        assert rank["ranks"] == "written"
        assert rank["stdin"] == "hello"
        assert rank["codes"] == "3 3", rank["stderr"]
        assert "lib" not in rank or engine == "charliecloud"  # whose binds are all writable
    if not written:
        shares = registry.ENGINES[engine].shares(made, where)
        assert (ranks[0]["users"] == "1") is ("lost" not in shares)
    assert _tree(bed.image) == before


def _tree(folder: Path) -> list[tuple[str, int]]:
    return sorted((str(p), p.lstat().st_size) for p in folder.rglob("*") if not p.is_dir())
