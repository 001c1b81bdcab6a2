"""A stand-in for EasyBuild: it makes the files of each of its steps, in its order, in no time.

The order and the files are those of EasyBuild 5.4.1, as a build of libconfig left them after each
step. The real one is in tests/testbed.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mpigraft.build.folders import BuildFolders
from mpigraft.build.plan import plan_build
from mpigraft.build.values import BuildHost, BuildPlan, BuildRequest
from mpigraft.knowledge.builds import packages, plan_table

# Each begins with what it does to files, and prints its line before that.
STEPS = (
    "fetching files and verifying checksums",
    "unpacking",
    "configuring",
    "building",
    "installing",
    "creating module",
    "copying logs",  # EasyBuild prints nothing of it
)
STAND_IN = '''#!{python} -S
import os, pathlib, shutil, signal, sys
if "--version" in sys.argv:
    print("This is EasyBuild 5.4.1 (framework: 5.4.1, easyblocks: 5.4.1) on host here.")
    sys.exit()
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
prefix, config = pathlib.Path(options["prefix"]), pathlib.Path(sys.argv[-1])
values = {{}}
exec(config.read_text(), values)
name, version = values["name"], values["version"] + values.get("versionsuffix", "")
software = prefix / "software" / name / version
lua = options["module-syntax"] == "Lua"
module = prefix / "modules/all" / name / (version + ".lua" * lua)
work = prefix / "build" / name
lock = prefix / "software/.locks" / (name + version)
at = os.environ.get("TZ", "").split("/")  # STEP/WHO/PACKAGE, in a variable that is passed on
with open(prefix / "runs", "a") as runs:
    runs.write(name + " " + ("again" if "rebuild" in options else "") + "\\n")
if module.exists() and "rebuild" not in options:
    print("== " + name + " is already installed (module found), skipping")
    sys.exit()

def end(step):
    """End who is to end at this step: EasyBuild fails, mpigraft is killed, or all are."""
    if at[0] != step or at[2] != name:
        return
    if at[1] == "fails":
        print("make: *** [Makefile:1: all] Error 1")
        how = "shell command 'make' failed with exit code 2 in build step for x.eb"
        print("== FAILED: Installation ended unsuccessfully: " + how + " (took 2 secs)")
        print("== Results of the build can be found in the log file(s) " + str(prefix / "eb.log"))
        sys.exit(1)
    if at[1] == "interrupted":
        os.kill(int(os.environ["HOSTNAME"]), signal.SIGINT)
        signal.pause()
    os.kill(int(os.environ["HOSTNAME"]), signal.SIGKILL)  # mpigraft's process
    if at[1] == "all":
        os.kill(os.getppid(), signal.SIGKILL)  # the guard
        os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()

def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

def do(step):
    if step.startswith("fetching"):
        lock.mkdir(parents=True, exist_ok=True)
        write(prefix / "sources" / name, "")
    if step == "unpacking":
        shutil.rmtree(work, ignore_errors=True)
        write(work / "configure", "")
    if step == "configuring":
        shutil.rmtree(software, ignore_errors=True)  # make_installdir, before configure
        software.mkdir(parents=True)
    if step == "building":
        write(work / "lib.so", name)
    if step == "installing":
        write(software / "bin/first", name)
        end("half " + step)
        write(software / "lib/lib.so", name)
    if step == "creating module":
        comment = "-- " if lua else "#%Module\\n# "
        write(module, comment + name + "\\n")
    if step == "copying logs":
        shutil.rmtree(work)
        write(software / "easybuild" / config.name, config.read_text())
        lock.rmdir()

for step in {steps!r}:
    if step != "copying logs":
        print("== " + step + "...")
    sys.stdout.flush()
    do(step)
    end(step)
print("== COMPLETED: Installation ended successfully (took 2 secs)")
'''


def a_plan(recipe: str = "openmpi", configure: tuple[str, ...] = ()) -> BuildPlan:
    """libfabric and an MPI."""
    host = BuildHost("x86_64", frozenset(), {})
    return plan_build(BuildRequest(recipe), host, packages(), plan_table())


def stand_in(folder: Path, tool: str = "LMOD_CMD") -> dict[str, str]:
    """Make the stand-in in a folder, and the environment of a user who has it. TZ has what ends
    whom: it is among the few variables that a build passes on."""
    eb = folder / "eb"
    folder.mkdir(exist_ok=True)
    eb.write_text(STAND_IN.format(python=sys.executable, steps=STEPS), encoding="utf-8")
    eb.chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "HOME": str(folder),
        tool: "/usr/share/lmod",
    }


def runs(folders: BuildFolders) -> list[str]:
    """What the stand-in was started for."""
    path = folders.prefix / "runs"
    return [line.strip() for line in path.read_text().splitlines()] if path.exists() else []


def tree(folder: Path) -> dict[str, str]:
    """The content of every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_text(errors="replace")
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
