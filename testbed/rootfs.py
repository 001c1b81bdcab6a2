"""Bare root filesystems of Debian, and what they need of this machine to reach its packages.

Nothing of one site is written here: the archives are those of this machine's own apt with the
suite's name changed, and proxies, certificates and package settings are what its environment
has. A root is made once and kept as a tar.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from mpigraft.core.process.command import Completed, run_command

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CACHE_INSIDE = "/var/cache/mpigraft-tests"
# What the issue takes for given, and no more; sudo is for the ordinary user.
INCLUDE = "python3,make,ca-certificates,sudo"
USER = "someone"
SETTING = re.compile(
    r"(PIP_\w+|\w*(CERT|CA_BUNDLE|CAINFO)\w*|(https?|no|all)_proxy)", re.IGNORECASE
)
LOCAL_SETTING = re.compile(r"PIP_(FIND_LINKS|CACHE_DIR|TARGET|PREFIX|LOG|BUILD_TRACKER)")


def apt_lines(targets: str, own: str, suite: str) -> list[str]:
    """Lines of a sources.list for `suite`: those of a machine whose own suite is `own`.

    `targets` has a line `URI RELEASE COMPONENT` for each archive that apt reads, as `apt-get
    indextargets` prints them; those of other suites than `own` (a vendor's, a backport's) are left
    out, as no one knows their names in another suite.
    """
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    lines: list[str] = []
    for target in targets.splitlines():
        uri, release, component = target.split()
        base, _, rest = release.partition("-")
        if base == own and rest in {"", "updates", "security"} and component == "main":
            lines.append(f"deb {signed}{uri} {suite}{release[len(own) :]} {component}")
    return lines


def own_suite() -> str:
    """VERSION_CODENAME of this machine; empty where it is no release of Debian."""
    told = dict(
        line.partition("=")[::2] for line in Path("/etc/os-release").read_text().splitlines()
    )
    return told.get("VERSION_CODENAME", "") if told.get("ID") == "debian" else ""


def make(suite: str, cache: Path, as_root: tuple[str, ...]) -> Path:
    """The tar of a bare root of `suite`, made unless `cache` has it."""
    made = cache / f"rootfs-{suite}.tar"
    if made.exists():
        return made
    new = made.with_suffix(".new.tar")
    bootstrap(suite, new, INCLUDE, as_root)
    new.rename(made)
    return made


def bootstrap(
    suite: str, to: Path, include: str, as_root: tuple[str, ...], *options: str, variant: str = ""
) -> None:
    """Make a root of `suite` with the packages `include` as the tar `to`."""
    argv: list[str | Path] = [
        *as_root, "mmdebstrap", "--quiet", "--mode=root", "--format=tar",
        f"--variant={variant or 'minbase'}", f"--include={include}",
        "--aptopt=Acquire::Languages \"none\"", *options, suite, to, *archives(suite),
    ]  # fmt: skip
    done = run_command(argv, limit_s=600)
    assert done.ok, done.text()


def archives(suite: str) -> list[str]:
    """Lines of a sources.list for `suite`, from where this machine has its own packages."""
    form = "$(REPO_URI) $(RELEASE) $(COMPONENT)"
    targets = run_command(["apt-get", "indextargets", "--format", form, "Created-By: Packages"])
    lines = apt_lines(targets.text(), own_suite(), suite)
    assert lines, f"this machine's apt names no Debian archive: {targets.text()}"
    return lines


def settings(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that package clients need to reach what this machine reaches."""
    return {
        name: value
        for name, value in environ.items()
        if SETTING.fullmatch(name) and not LOCAL_SETTING.fullmatch(name)
    }


def client_files(environ: Mapping[str, str] = os.environ) -> list[Path]:
    """Files of this machine that those variables name, and that network clients read."""
    named = [Path(value) for value in settings(environ).values() if value.startswith("/")]
    always = [Path("/etc/resolv.conf"), Path("/etc/hosts"), Path("/etc/pip.conf")]
    return [path for path in (*named, *always) if path.is_file()]


class Root:
    """One unpacked root filesystem; `close` removes it."""

    def __init__(self, tar: Path, folder: Path, cache: Path, as_root: tuple[str, ...]) -> None:
        self.folder, self.cache, self.as_root = folder, cache, as_root
        folder.mkdir(parents=True)
        cache.mkdir(parents=True, exist_ok=True)
        self.do("tar", "--extract", "--numeric-owner", "--file", tar, "--directory", folder)
        for path in client_files():
            to = folder / path.relative_to("/")
            self.do("mkdir", "-p", to.parent)
            self.do("cp", "--dereference", "--remove-destination", path, to)
        proxies = [
            line
            for line in run_command(["apt-config", "dump"]).text().splitlines()
            if re.match(r"Acquire::https?::", line)
        ]
        self.write("etc/apt/apt.conf.d/99host", "\n".join([*proxies, ""]))

    def do(self, *argv: str | Path) -> None:
        done = run_command([*self.as_root, *argv], limit_s=300)
        assert done.ok, done.text()

    def write(self, inside: str, text: str) -> None:
        done = run_command([*self.as_root, "tee", self.folder / inside], stdin=text.encode())
        assert done.ok, done.text()

    def enter(
        self,
        command: str,
        *,
        user: str = "root",
        cwd: str = "/",
        limit_s: float = 600,
        offline: bool = False,
    ) -> Completed:
        """Run a line of shell as `user` inside, with nothing of this environment but `settings`.
        `offline` gives it a network of its own with loopback alone, and so a campaign lock of its
        own: other tests may measure meanwhile."""
        home = "/root" if user == "root" else f"/home/{user}"
        environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
            "HOME": home,
            "USER": user,
            "LANG": "C.UTF-8",
            "PIP_CACHE_DIR": f"{CACHE_INSIDE}/pip",
            **settings(),
        }
        rows = [f"{name}={value}" for name, value in environment.items()]
        inner = ["env", "-i", *rows, "sh", "-c", f"cd {cwd} && {command}"]
        space = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
        if offline:
            space += ["--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        script: list[str | Path] = [HERE / "enter", self.folder, self.cache, user]
        return run_command([*self.as_root, *space, *script, *inner], limit_s=limit_s)

    def close(self) -> None:
        self.do("rm", "--recursive", "--force", "--one-file-system", self.folder)


def copy_project(to: Path) -> None:
    """Copy what git tracks, as it lies in the work tree: what is not tracked no one else has."""
    listing = run_command(["git", "-C", PROJECT, "ls-files", "-z"])
    assert listing.ok, listing.text()
    for name in filter(None, listing.stdout.decode().split("\0")):
        source = PROJECT / name
        if source.is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)


Unpack = Callable[[str], Root]
