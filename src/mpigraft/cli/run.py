"""`mpigraft run`: start a program on this machine's MPI, with proof of what ran."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace as with_fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.cli.common import Gpus, console, out, place, tell
from mpigraft.errors import LaunchFailed, MissingError, MpigraftError, UsageError

if TYPE_CHECKING:
    from mpigraft.job import Job
    from mpigraft.job_ask import Ask

Words = list[str] | None
# Options end at the program: what follows is its own.
CONTEXT = {"allow_interspersed_args": False}
UNSEEN = "--no-proof starts what never does"


def command(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM",
            help="With its arguments; options of this command end before it, or at --.",
            show_default=False,
        ),
    ],
    image: Annotated[
        str | None,
        typer.Option(
            metavar="GUEST",
            help="Put the MPI under a program, root folder, SIF, OCI archive, or podman:IMAGE.",
        ),
    ] = None,
    programs: Annotated[
        Words,
        typer.Option(
            "--program",
            metavar="PATH",
            help="What in the guest needs MPI, where PROGRAM is a script; may be given again.",
            show_default="PROGRAM, or all that do",
        ),
    ] = None,
    mpi: Annotated[
        str | None, typer.Option(metavar="NAME", help="An MPI: openmpi, mpich@5.0.2.")
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A transport: ofi-lnx, ob1-sm; it is forced, and proved before the first run.",
            show_default="the MPI's own choice",
        ),
    ] = None,
    ranks: Annotated[
        int | None,
        typer.Option("-n", metavar="N", help="Ranks, in all.", show_default="one per core"),
    ] = None,
    nodes: Annotated[int | None, place("nodes")] = None,
    per_node: Annotated[int | None, place("ranks-per-node")] = None,
    threads: Annotated[int | None, place("threads", "OMP_NUM_THREADS, or 1")] = None,
    map_by: Annotated[str | None, place("map-by")] = None,
    bind_to: Annotated[str | None, place("bind-to")] = None,
    gpus: Gpus = False,
    hosts: Annotated[
        str | None,
        typer.Option(metavar="N1,N2", help="Nodes by name.", show_default="the allocation's"),
    ] = None,
    hostfile: Annotated[
        str | None, typer.Option(metavar="FILE", help="A file with a node's name on each line.")
    ] = None,
    agent: Annotated[
        str | None, typer.Option(metavar="PROGRAM", help="To be used like ssh, to reach nodes.")
    ] = None,
    launcher: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="own, srun, flux, pals or aprun.",
            show_default="the MPI's own, or the scheduler's",
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="apptainer, podman, charliecloud, bwrap or none.",
            show_default="the first that is here",
        ),
    ] = None,
    replace: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="mpi; libfabric: that or UCX only; nothing: the guest as it is.",
            show_default="mpi",
        ),
    ] = None,
    bind: Annotated[
        Words,
        typer.Option(metavar="A[:B[:ro]]", help="What the guest sees of this machine besides."),
    ] = None,
    set_: Annotated[
        Words, typer.Option("--set", metavar="NAME=VALUE", help="In every rank's environment.")
    ] = None,
    proof: Annotated[
        bool | None,
        typer.Option(
            "--proof/--no-proof",
            help="Whether ranks must tell what they run on; not for what never calls MPI_Init.",
            show_default="proof",
        ),
    ] = None,
    stdin: Annotated[
        str,
        typer.Option(metavar="WHO", help="Ranks that read standard input: 0, all or none."),
    ] = "0",
    explain: Annotated[
        bool, typer.Option("--explain", help="Say what was decided and by whom, then start it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be started, start nothing.")
    ] = False,
) -> int:
    """Start a program on this machine's MPI, with proof of the world that ran.

    Its output, its exit code and signals pass through unchanged. Code 5 is for a world, a libmpi
    or a transport that was not the one asked for.

    \b
    Examples:
      mpigraft run -n 4 -- ./app input.dat
      mpigraft run --mpi openmpi@5 --transport ob1-sm -n 2 -- ./app
      mpigraft run --image app.sif -n 4 -- /opt/app/solver input.dat
      mpigraft run -n 2 --explain --dry-run -- ./app
      mpigraft run --ranks-per-node 8 --threads 7 --map-by numa --gpus -- ./app
      mpigraft run --ranks-per-node 48 -- ./nemo : --ranks-per-node 2 ./xios
    """
    from mpigraft import job_ask, layouts

    if stdin not in job_ask.STDIN:
        known = ", ".join(job_ask.STDIN)
        raise UsageError(f"--stdin {stdin!r} is unknown", mend=f"one of {known}")
    if ranks is not None:
        layouts.refuse_count("-n", ranks)
    flags = {
        "image": image, "mpi": mpi, "transport": transport, "ranks": ranks, "engine": engine,
        "replace": replace, "bind": bind, "set": set_, "proof": proof, "launcher": launcher,
    }  # fmt: skip
    where = {
        "nodes": nodes, "ranks_per_node": per_node, "threads": threads, "map_by": map_by,
        "bind_to": bind_to, "gpus": gpus, "hosts": hosts, "hostfile": hostfile, "agent": agent,
    }  # fmt: skip
    ask = asked(program, flags, where)
    ask = with_fields(ask, programs=tuple(programs or ()), stdin=stdin)
    return _run(ask, explain=explain, dry_run=dry_run)


def asked(program: list[str], flags: dict[str, Any], where: Mapping[str, Any] | None = None) -> Ask:
    """What is asked of a job: flags that were given, over the site's profile. `where` are those
    about nodes and places, of which a profile says nothing."""
    from mpigraft import job_layout, layouts, site
    from mpigraft.job_ask import Ask

    profile = site.read(os.environ)
    values, sources = profile.merged(flags)
    first, others = job_layout.programs(program)
    told = {name: value for name, value in (where or {}).items() if value is not None}
    for name in ("nodes", "ranks_per_node", "threads"):
        layouts.refuse_count(f"--{name.replace('_', '-')}", told.get(name, 1))
    site_ranks = "ranks_per_node" in told and flags.get("ranks") is None  # the user's flag counts
    ranks = 0 if site_ranks else values.get("ranks", 0)
    mpi = values.get("mpi", "")
    image, alias = profile.image(values.get("image", ""))
    if alias:
        sources["image"] = f"{sources['image']}, {values['image']} of {alias}"
    return Ask(
        program=first,
        image=image,
        engine=values.get("engine", ""),
        replace=values.get("replace", ""),
        binds=tuple(values.get("bind", ())),
        optional=tuple(dict(profile.values).get("bind", ())),
        engine_options=tuple(
            (name, tuple(words)) for name, words in values.get("engine_options", {}).items()
        ),
        mpi=mpi if isinstance(mpi, str) else "",
        mpis=() if isinstance(mpi, str) else tuple(mpi),
        transport=values.get("transport", ""),
        launcher=values.get("launcher", ""),
        where=job_layout.Where(ranks=ranks, others=others, **told),
        settings=tuple(values.get("set", ())),
        proof=values.get("proof", True),
        site=profile.path,
        sources=tuple(sources.items()),
        fixed=tuple(profile.fixed_where.items()),
    )


def _run(ask: Ask, *, explain: bool, dry_run: bool) -> int:
    from mpigraft import alternatives, discover, fast, job, job_ask, kept_jobs

    environ = dict(os.environ)
    try:
        Path.cwd()
    except OSError as error:
        raise UsageError(
            "the working folder is gone",
            why="ranks work in the folder from which they are started",
            mend="change to one that is there",
        ) from error
    with console(stderr=True).status("looking at this machine"):
        try:
            subject = job_ask.subject(ask, environ)  # first: it may end the matter at once
            planned = job.plan(ask, discover.machine(), environ, subject)
        except MpigraftError as error:
            alternatives.permitted(error, dict(ask.fixed))
            raise told_by_site(error, ask.sources) from error
    for line in planned.unknown:
        tell(f"mpigraft: {line}")
    if explain:
        for line in explained(planned):
            tell(line)
    if dry_run:
        out("\n".join(rendered(planned)))
        return 0
    inputs = kept_jobs.watched(planned)
    with console(stderr=True).status("proving the transport"):
        job.prove(planned)
    key = fast.key(sys.argv[2:], environ)  # what `entry` looks it up by
    document = kept_jobs.document(planned, key, environ, inputs)
    if sys.argv[1:2] == ["run"] and not explain and kept_jobs.may_be_kept(planned):
        fast.keep(document, environ)
    try:
        code = fast.start(document, environ, judge)
    except OSError as error:
        what = error.filename or document["argv"][0]
        raise LaunchFailed(f"{what}: {error.strerror}") from error
    if code is None:
        where = "TMPDIR" if planned.allocation.here else "MPIGRAFT_HOME"
        where = "MPIGRAFT_HOME" if planned.configuration.graft else where
        raise MissingError(
            f"nothing can be written in {document['home']}",
            why="ranks write there what they run on",
            mend=f"make room, or set {where} to a folder that may be written",
        )
    return code


def told_by_site(error: MpigraftError, sources: Sequence[tuple[str, str]]) -> MpigraftError:
    """The same error, with what a site's profile had a part in: the user did not type it."""
    theirs = [f"{what} ({where})" for what, where in sources if where != "command line"]
    if theirs:
        told = f"the site's profile asked for {', '.join(theirs)}"
        error.why = f"{error.why}; {told}" if error.why else told
    return error


def explained(planned: Job) -> list[str]:
    """One line per decision: what, which, and by whom."""
    return [f"mpigraft: {one.what}: {one.value}  [{one.source}]" for one in planned.lines]


def rendered(planned: Job) -> list[str]:
    """The command line that would be started, and what of the environment is changed for it: lines
    that a shell takes as they are.

    They begin at the launcher, and at the files that it reads. What this command puts around it is
    of no use without it: the guard ends with the process that started it, and the folder for the
    records of ranks is made and judged for each job anew.
    """
    from mpigraft import job

    folder = Path(job.records_home(planned, os.environ)) / f"mpigraft-{os.getpid()}-shown"
    made = job.prepare(planned, folder)
    witness = str(planned.natives.witness)
    given = dict(made.env)
    changed = [f"unset {name}" for name in sorted(os.environ.keys() - given.keys()) if _named(name)]
    changed += [
        f"export {name}={shlex.quote(value)}"
        for name, value in made.env
        if os.environ.get(name) != value
    ]
    files = [shlex.join(["mkdir", str(folder)])] if made.files else []
    files += [line for path, text in made.files for line in _written(path, text, witness)]
    words = made.argv[made.argv.index("--") + 1 :]
    return [*changed, *files, shlex.join(_unwitnessed(words, witness))]


def _written(path: Path, text: str, witness: str) -> list[str]:
    """What makes a file that the launcher reads; scripts of programs as they are without the
    witness."""
    lines = text.splitlines()
    if text.startswith("exec "):
        lines = [shlex.join(_unwitnessed(shlex.split(text), witness))]
    return [f"cat >{shlex.quote(str(path))} <<'END OF FILE'", *lines, "END OF FILE"]


def _named(variable: str) -> bool:
    """Whether a shell can name it: functions that bash exports are no names."""
    return variable.isascii() and variable.isidentifier()


def _unwitnessed(words: Sequence[str], witness: str) -> list[str]:
    """The words of a launch without what makes ranks write records: a user's own LD_PRELOAD
    stays."""
    from mpigraft.seating import encoded

    preload, others = f"LD_PRELOAD={witness}", "MPIGRAFT_WITNESS="
    ours = {*encoded(preload), preload}
    before = (f"{preload}:", *(f"{word}:" for word in encoded(preload)))
    kept = [w for w in words if w not in ours and not w.startswith(others)]
    return [
        next((f"LD_PRELOAD={w.removeprefix(b)}" for b in before if w.startswith(b)), w)
        for w in kept
    ]


def judge(key: str, folder: str, well: bool) -> bool:
    """Whether the world of the job kept under `key` was wrong, by the records in `folder`; says
    on stderr what and why. `well`: it did not fail by itself."""
    from mpigraft import kept_jobs
    from mpigraft.model import Level

    found = kept_jobs.findings(key, Path(folder), well=well)
    for one in found:
        parts = [f"mpigraft: {one.seen}"]
        parts += [f"why it matters: {one.why}"] if one.why else []
        more = f"; {UNSEEN}" if one.code == "no-witness" else ""
        parts += [f"what to do: {one.mend}{more}"] if one.mend else []
        tell("\n".join(parts))
    return any(one.level is Level.ERROR for one in found)
