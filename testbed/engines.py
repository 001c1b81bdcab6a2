"""Container engines for real: installed where they are not, and the words that start them.

podman, Charliecloud and bubblewrap are Debian's. Apptainer is in no release of it: the package of
Debian's sid is unpacked into a folder of the session beside the C library that it wants, and
nothing of it goes into the system. The words here are plain ones of our own, which were seen to
work, and no part of what is tested.
"""

from __future__ import annotations

import pwd
import shutil
import stat
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.process.command import Completed, run_command
from testbed.apptainer import install
from testbed.images import Images

USER = "someone-mpigraft"
SUB_IDS = 65536
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
# A process without CAP_SYS_RESOURCE may not raise limits, which podman does by default; crun
# wants pure cgroups. "keep-id": PMIx refuses a client whose user is not the server's, and
# mpirun then waits for ever. "passwd": podman would write the image's /etc/passwd. There is no
# sharing of /dev/mqueue, which not every machine has, hence /dev/shm alone.
PODMAN = (
    "podman", "--log-level=error", "--cgroup-manager=cgroupfs", "--runtime=runc", "run", "--rm",
    "--env-host", "--network=host", "--pid=host", "--passwd=false", "--volume=/dev/shm:/dev/shm",
    "--volume=/tmp:/tmp",
)  # fmt: skip
PODMAN_ROOT = ("--ulimit=nofile=1024:4096", "--ulimit=nproc=100:1000")
PODMAN_USER = ("--userns=keep-id",)
# Without /etc/hosts and /etc/resolv.conf MPI_Init waits for a name server, 5 seconds.
BWRAP = (
    "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--bind", "/sys", "/sys", "--bind", "/tmp",
    "/tmp", "--ro-bind-try", "/etc/hosts", "/etc/hosts",
    "--ro-bind-try", "/etc/resolv.conf", "/etc/resolv.conf",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bind:
    source: Path
    target: str
    writable: bool = False  # Charliecloud 0.31 knows no other


@dataclass(frozen=True, slots=True)
class Inside:
    """What a command runs in: an image's folder or, for Apptainer, its SIF."""

    image: Path
    binds: tuple[Bind, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    as_user: bool = False
    shared: bool = False  # ranks of a node in one user namespace; podman and bwrap cannot


def apptainer(inside: Inside) -> list[str]:
    # Apptainer has a shell evaluate the values of variables, unless told not to.
    words = ["apptainer", "-s", "exec", "--no-eval", *(["--sharens"] if inside.shared else [])]
    for bind in inside.binds:
        words += ["--bind", f"{bind.source}:{bind.target}:{'rw' if bind.writable else 'ro'}"]
    words += [f"--env={name}={value}" for name, value in inside.env]
    return [*words, str(inside.image)]


def podman(inside: Inside) -> list[str]:
    words = [*PODMAN, *(PODMAN_USER if inside.as_user else PODMAN_ROOT)]
    for bind in inside.binds:
        mode = "rw" if bind.writable else "ro"
        words.append(f"--volume={bind.source}:{bind.target}:{mode}")
    words += [f"--env={name}={value}" for name, value in inside.env]
    # But for an overlay, mount points would be made in the image.
    return [*words, "--rootfs", f"{inside.image}:O"]


def charliecloud(inside: Inside) -> list[str]:
    words = ["ch-run", "--env-no-expand", *(["--join"] if inside.shared else [])]
    words += [f"--bind={bind.source}:{bind.target}" for bind in inside.binds]
    words += [f"--set-env={name}={value}" for name, value in inside.env]
    return [*words, str(inside.image), "--"]


def bwrap(inside: Inside) -> list[str]:
    words = ["bwrap", "--ro-bind", str(inside.image), "/", *BWRAP]
    for bind in inside.binds:
        words += ["--bind" if bind.writable else "--ro-bind", str(bind.source), bind.target]
    for name, value in inside.env:
        words += ["--setenv", name, value]
    return words


ENGINES: Mapping[str, Callable[[Inside], list[str]]] = {
    "apptainer": apptainer,
    "podman": podman,
    "charliecloud": charliecloud,
    "bwrap": bwrap,
}


class Engines:
    """The engines of a test session, for root and for an ordinary user.

    Apptainer lies beside the images, and `close` removes the homes, where podman keeps things:
    in /tmp itself, for with a long path to its sockets podman waits 20 seconds after each run.
    """

    def __init__(self, cache: Path, as_root: tuple[str, ...], images: Images) -> None:
        self.root_words, self.images = as_root, images
        self.folder = images.stage / "engines"
        self.folder.mkdir()
        self.apptainer, self.why_no_apptainer = install(cache, self.folder / "apptainer")
        self.homes = Path(tempfile.mkdtemp(prefix="m-", dir="/tmp"))
        self.homes.chmod(0o755)
        self._make_user()
        self._make_homes()
        self._reasons: dict[bool, dict[str, str]] = {}

    def available(self, *, as_user: bool = False) -> Mapping[str, str]:
        """{engine: why it does not work here, or ""}, found out by starting each once."""
        if as_user not in self._reasons:
            self._reasons[as_user] = {name: self._reason(name, as_user) for name in ENGINES}
        return self._reasons[as_user]

    def image(self, name: str, engine: str, *, as_user: bool = False) -> Path:
        """The folder of an image that `engine` can start. podman makes files in it, if only in
        an overlay, which a user may do in a folder of his own alone."""
        own = engine == "podman" and as_user
        return self.images.folder(name, owner=USER if own else "")

    def words(self, engine: str, inside: Inside, *command: str | Path) -> list[str]:
        """The command in the container. An MPI's launcher may stand in front of it."""
        return [*ENGINES[engine](inside), *map(str, command)]

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        as_user: bool = False,
        env: Mapping[str, str] | None = None,
        limit_s: float = 60,
    ) -> Completed:
        """Run a command of this machine, as root or as the user, in a clean environment."""
        whole = (self.as_user if as_user else self.as_root)(argv, env)
        return run_command(whole, cwd=Path("/"), limit_s=limit_s)

    def as_root(
        self, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> list[str | Path]:
        return [*self.root_words, *self._clean("root", env), *argv]

    def as_user(
        self, argv: Sequence[str | Path], env: Mapping[str, str] | None = None
    ) -> list[str | Path]:
        """The words that run `argv` as the ordinary user, with no privilege left."""
        drop = ("--reuid", USER, "--regid", USER, "--init-groups", "--inh-caps=-all")
        return [*self.root_words, "setpriv", *drop, *self._clean(USER, env), *argv]

    def _clean(self, user: str, env: Mapping[str, str] | None) -> list[str]:
        home = self.home(user)
        rows = {
            "PATH": f"{self.folder / 'apptainer/usr/bin'}:{PATH}",
            "HOME": str(home),
            "USER": user,  # Charliecloud wants it
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(home / "run"),  # or podman's stays behind in /tmp
            "CONTAINERS_STORAGE_CONF": str(home / "storage.conf"),
            **(env or {}),
        }
        return ["env", "-i", *(f"{name}={value}" for name, value in rows.items())]

    def home(self, user: str) -> Path:
        return self.homes / user[0]

    def close(self) -> None:
        """Some files are of subordinate users: only root can remove them."""
        self._do("rm", "--recursive", "--force", "--one-file-system", self.homes)

    def _do(self, *argv: str | Path) -> None:
        done = run_command([*self.root_words, *argv])
        assert done.ok, done.text()

    def _make_user(self) -> None:
        """An account with subordinate ids, for podman; nothing is changed if it is there."""
        try:
            pwd.getpwnam(USER)
        except KeyError:
            self._do("useradd", "--no-create-home", "--shell=/bin/sh", USER)
        for kind, option in (("uid", "--add-subuids"), ("gid", "--add-subgids")):
            file = Path(f"/etc/sub{kind}")
            rows = [line.split(":") for line in file.read_text().splitlines()]
            if not any(row[0] == USER for row in rows):
                free = max([100000, *(int(row[1]) + int(row[2]) for row in rows)])
                self._do("usermod", option, f"{free}-{free + SUB_IDS - 1}", USER)

    def _make_homes(self) -> None:
        """Homes that end with the session, where podman keeps what it keeps."""
        for user in ("root", USER):
            home = self.home(user)
            (home / "run").mkdir(parents=True, mode=0o700)
            lines = (
                "[storage]",
                'driver = "vfs"',  # the one that works on every file system
                f'graphroot = "{home}/storage"',
                f'runroot = "{home}/run/storage"',
                "",
            )
            (home / "storage.conf").write_text("\n".join(lines), encoding="utf-8")
            self._do("chown", "-R", f"{user}:{user}", home)

    def _reason(self, engine: str, as_user: bool) -> str:
        program = ENGINES[engine](Inside(Path("/")))[0]
        if engine == "apptainer" and self.why_no_apptainer:
            return self.why_no_apptainer
        if engine != "apptainer" and not shutil.which(program, path=PATH):
            return f"{program} is not installed"
        image = self.image("bookworm-bare", engine, as_user=as_user)
        inside = Inside(image, as_user=as_user)
        done = self.run(self.words(engine, inside, "true"), as_user=as_user)
        return "" if done.ok else f"{engine} does not start here: {done.text().strip()[:300]}"

    def fuse_for_users(self) -> str:
        """Why a user cannot mount a SIF here, or "". /dev/fuse is for everyone on most machines;
        where it is root's alone it gets the mode that it has elsewhere."""
        device = Path("/dev/fuse")
        if not device.exists():
            return "there is no /dev/fuse"
        if stat.S_IMODE(device.stat().st_mode) & 0o006 != 0o006:
            self._do("chmod", "666", device)
        return ""
