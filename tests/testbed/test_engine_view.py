"""What a program sees in each engine: what the plan says, and what the reference page says."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpigraft.binary.image.opening import open_root
from mpigraft.core.env import rank_argv
from mpigraft.core.model import Bind, BindKind, Copy, EngineContext, EnvRow, GraftPlan, Scope
from mpigraft.graft.engines.registry import ENGINES, find_engine, same_paths_inside, wrap_program
from mpigraft.graft.engines.wrapper import wrapper_script
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.injection.plan import RELAY
from mpigraft.knowledge.engines import job_aspects
from mpigraft.native.programs import PREBUILT
from mpigraft.request.environment import filter_environment
from testbed.engines import USER, Engines
from testbed.small_image import make_small_image, set_up_podman
from tests.builders.plans import label, plan

pytestmark = [pytest.mark.testbed, pytest.mark.root]

LIMIT_S = 60
AGAIN_S = 5
GROUP = 20  # besides the user's own
NAMES = ("apptainer", "charliecloud", "bwrap", "podman")
# Tells what a rank sees: of each path that is named its file, and then each aspect of the page.
PROBE = r"""
result=$1; shift
for path; do echo "path $path=$(stat -c %d:%i "$path" 2>/dev/null)"; done
echo "home=$HOME"
echo "cwd=$(pwd) $(stat -c %d:%i .)"
echo "tmp=$(stat -c %d:%i /tmp)"
echo "tmpdir=$TMPDIR $(stat -c %d:%i "$TMPDIR")"
for name in var/tmp run; do
    [ -e /$name/of-image ] && has=image || has=; [ -w /$name ] && has="$has, writable"
    echo "$name=$has"
done
echo "hostname=$(uname -n)"
echo "user=$(id -u):$(id -g)"
echo "groups=$(cat ../group 2>/dev/null)"
echo "umask=$(umask)"
for one in c f l n p s v; do limits="$limits $(ulimit -S$one):$(ulimit -H$one)"; done
echo "limits=$limits"
echo "network=$(readlink /proc/self/ns/net) $(readlink /proc/self/ns/pid)"
if (: >/opt/new) 2>/dev/null || (: >/new) 2>/dev/null; then echo root=written; else echo root=; fi
: >"$result"
"""
# Says when it is ready, counts a signal, and ends a moment after it has come.
CATCH = """
trap 'n=$((n + 1))' USR1; echo ready
while [ -z "$n" ]; do sleep 0.05; done; sleep 0.2
echo "caught=$n"
"""


@dataclass(frozen=True)
class Bed:
    folder: Path  # everybody may look into it
    user: pwd.struct_passwd
    environ: Mapping[str, str]

    @property
    def image(self) -> Path:
        return self.folder / "image"


@pytest.fixture(scope="module")
def bed(engines: Engines) -> Iterator[Bed]:
    with tempfile.TemporaryDirectory(prefix="view-", dir="/tmp") as name:
        folder = Path(name)
        make_small_image(folder / "image")
        for sub in ("graft/lib", "graft/bin", "graft/ranks", "here", "job", "home", "site", "data"):
            (folder / sub).mkdir(parents=True)
            (folder / sub).chmod(0o1777)
        relay = PREBUILT / os.uname().machine / "mpigraft-relay"
        (folder / "graft" / RELAY).write_bytes(relay.read_bytes())
        (folder / "graft" / RELAY).chmod(0o755)
        for sub in ("run", "var/tmp"):
            (folder / "image" / sub / "of-image").write_text("yes")
        for sub in ("opt/site", "opt/data"):
            (folder / "image" / sub).mkdir(parents=True)
        set_up_podman(folder, f'volumes = ["{folder}/site:/opt/site"]')
        folder.chmod(0o755)
        apptainer = engines.folder / "apptainer/usr/bin"
        (folder / "group").write_text("yes")
        os.chown(folder / "group", 0, GROUP)
        (folder / "group").chmod(0o640)
        user = pwd.getpwnam(USER)
        yield Bed(
            folder,
            user,
            {
                "PATH": f"{apptainer}:{os.environ['PATH']}",
                "HOME": str(folder / "home"),
                "USER": USER,
                "TMPDIR": str(folder / "job"),
                "CONTAINERS_CONF": str(folder / "containers.conf"),
                "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
                "APPTAINER_BIND": f"{folder}/site:/opt/site",
            },
        )


def made_for(bed: Bed, engine: str, cwd: Path, *, root: bool) -> tuple[GraftPlan, EngineContext]:
    """A plan by hand, and where its ranks start."""
    program, version = find_engine(engine, bed.environ)
    guest = Guest(label(str(bed.image)), open_root(bed.image))
    where = EngineContext(
        program=program,
        version=version,
        root=root,
        cwd=str(cwd),
        ranks_per_node=1,
        graft=str(bed.folder / "graft"),
        extra=(Bind(f"{bed.folder}/data", "/opt/data", BindKind.FOLDER),),
        environment=tuple(bed.environ.items()),
        umask="0027",
    )
    made = plan(
        guest.label,
        engine,
        place=ENGINES[engine].place(guest),
        copies=(Copy("", RELAY, ""),),
        binds=(),
        devices=(Bind("/dev/shm", "/dev/shm", BindKind.FOLDER, writable=True),),
        environment=(EnvRow("LD_PRELOAD", None, Scope.RANK, "plan"),),
        passed=("HOME", "USER", "TMPDIR", "MPIGRAFT_*", "APPTAINER_BIND"),
    )
    return made, where


def started(
    bed: Bed, made: GraftPlan, where: EngineContext, *program: str
) -> tuple[list[str], dict[str, object]]:
    """The words that start a program as a launcher would, and how."""
    rows = (*ENGINES[made.engine].rows(made, where), *made.environment)
    user, other = f"{bed.user.pw_uid}", f"{bed.user.pw_gid},{GROUP}"
    drop = ("setpriv", f"--reuid={user}", f"--regid={bed.user.pw_gid}", f"--groups={other}")
    before = () if where.root else (*drop, "--inh-caps=-all")
    words = [*before, *wrap_program(made, where, rank_argv(rows, program))]
    return words, {"cwd": where.cwd, "env": dict(bed.environ), "umask": 0o027}


def seen_in(bed: Bed, made: GraftPlan, where: EngineContext, *words: str) -> dict[str, str]:
    argv, options = started(bed, made, where, "/bin/sh", "-c", PROBE, "sh", *words)
    done = subprocess.run(  # type: ignore[call-overload]
        argv, capture_output=True, text=True, timeout=LIMIT_S, **options
    )
    assert done.returncode == 0, done.stderr
    return dict(line.partition("=")[::2] for line in done.stdout.splitlines())


BREAKING = [
    ("apptainer", "APPTAINER_CONTAINALL=1"),
    ("apptainer", "SINGULARITY_CLEANENV=1"),
    ("apptainer", "APPTAINER_PWD=/opt"),
    ("apptainer", "APPTAINER_HOSTNAME=other"),
    ("apptainer", "APPTAINERENV_TMPDIR=/nowhere"),
    ("podman", "CONTAINER_HOST=ssh://root@nowhere.example/podman.sock"),
    ("podman", "LISTEN_FDS=3"),
]


@pytest.mark.parametrize(("engine", "variable"), BREAKING)
def test_a_variable_that_breaks_a_run_is_dropped(bed: Bed, engine: str, variable: str) -> None:
    """A plan as a script unsets it; `run` starts the engine without it, and gives the reason."""
    name, _, value = variable.partition("=")
    made, where = made_for(bed, engine, bed.folder / "here", root=True)
    user = filter_environment({**bed.environ, name: value})
    clean = user.into(made, where)[1]
    assert name in dict(clean.dropped)
    assert name not in dict(clean.environment)
    script = bed.folder / "script"
    script.write_text(wrapper_script(made, where))
    script.chmod(0o755)
    (bed.folder / "graft" / "ranks").mkdir(exist_ok=True)
    done = subprocess.run(
        [script, "/bin/sh", "-c", 'echo "$(pwd) $TMPDIR $(uname -n) $(cat ../group)"'],
        env={**bed.environ, name: value}, cwd=where.cwd, umask=0o027,
        capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    here = f"{where.cwd} {bed.environ['TMPDIR']} {os.uname().nodename} yes"
    assert (done.returncode, done.stdout.strip()) == (0, here), done.stderr


@pytest.mark.parametrize("engine", NAMES)
def test_a_script_takes_tmpdir_and_umask_of_when_it_runs(bed: Bed, engine: str) -> None:
    """Not those of when it was written: a job has a TMPDIR of its own."""
    made, where = made_for(bed, engine, bed.folder / "here", root=True)
    script = bed.folder / "script"
    script.write_text(wrapper_script(made, where))
    script.chmod(0o755)
    with tempfile.TemporaryDirectory(dir=bed.folder) as below:
        for folder in (below, "/mnt" if engine != "charliecloud" else below):
            done = subprocess.run(
                [script, "/bin/sh", "-c", 'echo "$TMPDIR $(stat -c %d:%i "$TMPDIR") $(umask)"'],
                env={**bed.environ, "TMPDIR": folder}, cwd=where.cwd, umask=0o037,
                capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            due = f"{folder} {identity(folder)} 0037"
            assert (done.returncode, done.stdout.strip()) == (0, due), done.stderr


def identity(path: str | Path) -> str:
    status = Path(path).stat()
    return f"{status.st_dev}:{status.st_ino}"


CASES = [
    pytest.param(engine, root, id=f"{engine}-{'root' if root else 'user'}")
    for engine in NAMES
    for root in (True, False)
    if root or engine != "podman"  # of a user it leaves a process, as test_engines.py sees to
]


@pytest.mark.parametrize(("engine", "root"), CASES)
@pytest.mark.parametrize("below", ["", "here"], ids=["tmp", "below-tmp"])
def test_a_program_sees_what_the_plan_says(bed: Bed, engine: str, root: bool, below: str) -> None:
    """TMPDIR is another folder than the working folder, as in a batch job."""
    cwd = bed.folder / below if below else Path("/tmp")
    made, where = made_for(bed, engine, cwd, root=root)
    result = f"{bed.folder.name}-{engine}-{root}"
    paths = [
        "/tmp", bed.environ["TMPDIR"], str(bed.folder / "here"), "/var/tmp", "/run", "/opt/site",
        "/opt/data", "/etc", "/usr", "/home", "/opt", "/bin",
    ]  # fmt: skip
    inside = seen_in(bed, made, where, result, *paths)
    same = same_paths_inside(made, where)
    for path in paths:
        outside = identity(path) if Path(path).exists() else "-"
        assert (inside[f"path {path}"] == outside) is same(path), path
    for target, source in (("/opt/data", "data"), ("/opt/site", "site")):
        at = identity(bed.folder / source)
        bound = target == "/opt/data" or engine in ("apptainer", "podman")
        assert (inside[f"path {target}"] == at) is bound, target
    (cwd / result).unlink()  # it was written there


def usual(bed: Bed, where: EngineContext) -> dict[str, str]:
    """What a program has where the page's usual column holds."""
    limits = 'for o in c f l n p s v; do printf " %s:%s" "$(ulimit -S$o)" "$(ulimit -H$o)"; done'
    ids = (0, 0) if where.root else (bed.user.pw_uid, bed.user.pw_gid)
    return {
        "home": bed.environ["HOME"],
        "cwd": f"{where.cwd} {identity(where.cwd)}",
        "tmp": identity("/tmp"),
        "tmpdir": f"{bed.environ['TMPDIR']} {identity(bed.environ['TMPDIR'])}",
        "var/tmp": "image",
        "run": "image",
        "root": "",
        "hostname": os.uname().nodename,
        "user": f"{ids[0]}:{ids[1]}",
        "groups": "yes",
        "umask": "0027",
        "limits": subprocess.run(
            ["sh", "-c", limits], capture_output=True, text=True, check=True
        ).stdout,
        "network": " ".join(str(Path("/proc/self/ns", one).readlink()) for one in ("net", "pid")),
        "signals": "1",
    }


def caught(bed: Bed, made: GraftPlan, where: EngineContext) -> str:
    """How often a program catches a signal that its launcher sends once. podman 4.3.1 may lose one
    that comes while it starts the program: there it is sent again until one is caught."""
    argv, options = started(bed, made, where, "/bin/sh", "-c", CATCH)
    process = subprocess.Popen(  # type: ignore[call-overload]
        argv, stdout=subprocess.PIPE, text=True, process_group=0, **options
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(LIMIT_S // AGAIN_S if made.engine == "podman" else 1):
            os.killpg(process.pid, signal.SIGUSR1)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(AGAIN_S)
                break
        process.kill()
        return str(process.stdout.read().partition("caught=")[2].strip())


@pytest.mark.parametrize(("engine", "root"), CASES)
def test_a_program_has_what_the_reference_page_says(bed: Bed, engine: str, root: bool) -> None:
    made, where = made_for(bed, engine, bed.folder / "here", root=root)
    inside = seen_in(bed, made, where, f"{bed.folder}/here/result")
    (bed.folder / "here/result").unlink()
    outside = usual(bed, where)
    inside["signals"] = caught(bed, made, where)
    assert [row.id for row in job_aspects()] == list(outside)
    as_usual = {name for name in outside if inside[name] == outside[name]}
    listed = {row.id for row in job_aspects() if row.is_usual(engine, root=root)}
    assert as_usual == listed, {n: (inside[n], outside[n]) for n in as_usual ^ listed}
