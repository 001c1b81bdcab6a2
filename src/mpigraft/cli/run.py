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

from mpigraft.cli.common import (
    Agent,
    DryRun,
    Engine,
    Environment,
    Gpus,
    Hostfile,
    Hosts,
    console,
    flag,
    layout_option,
    option,
    out,
    tell,
)
from mpigraft.core.errors import LaunchFailed, MissingError, MpigraftError, UsageError

if TYPE_CHECKING:
    from mpigraft.request.job import RunSpec
    from mpigraft.run import Job

Words = list[str] | None
# Options end at the program: what follows is its own.
CONTEXT = {"allow_interspersed_args": False}
NOT_CHECKED = "--no-proof starts programs that never call it"
# Options that a site's profile has defaults for, and those about nodes and places.
OF_PROFILE = (
    "image", "mpi", "transport", "ranks", "engine", "replace", "bind", "env", "proof", "launcher",
)  # fmt: skip
OF_PLACEMENT = (
    "nodes", "ranks_per_node", "threads", "map_by", "bind_to", "gpus", "hosts", "hostfile", "agent",
)  # fmt: skip


def command(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="PROGRAM",
            help="Program and its arguments. Give options of this command before it.",
            show_default=False,
        ),
    ],
    image: Annotated[
        str | None,
        option(
            "GUEST",
            "Graft the MPI onto this program, root folder, SIF, OCI archive, or podman:IMAGE.",
        ),
    ] = None,
    stack: Annotated[
        str,
        option(
            "STACK",
            "Software stack that PROGRAM belongs to: run it on the MPI that was injected there, "
            "or with --replace nothing on the stack's own.",
            "none",
        ),
    ] = "",
    programs: Annotated[
        Words,
        option(
            "PATH",
            "Program of the guest that needs MPI, if PROGRAM is a script; repeatable.",
            "PROGRAM, or all that do",
            "--program",
        ),
    ] = None,
    mpi: Annotated[str | None, option("NAME", "MPI to use: openmpi, mpich@5.0.2.")] = None,
    transport: Annotated[
        str | None,
        option(
            "NAME",
            "Transport to force: ofi-lnx, ob1-sm. It is proved before the first run.",
            "the MPI's own choice",
        ),
    ] = None,
    ranks: Annotated[
        int | None, option("N", "Number of ranks in all.", "one per core", "-n")
    ] = None,
    nodes: Annotated[int | None, layout_option("nodes")] = None,
    ranks_per_node: Annotated[int | None, layout_option("ranks-per-node")] = None,
    threads: Annotated[int | None, layout_option("threads", "OMP_NUM_THREADS, or 1")] = None,
    map_by: Annotated[str | None, layout_option("map-by")] = None,
    bind_to: Annotated[str | None, layout_option("bind-to")] = None,
    gpus: Gpus = False,
    hosts: Hosts = "",
    hostfile: Hostfile = "",
    agent: Agent = "",
    launcher: Annotated[
        str | None,
        option(
            "NAME",
            "Launcher to use: own (the MPI's), srun, flux, pals or aprun.",
            "the MPI's own, or the scheduler's",
        ),
    ] = None,
    engine: Engine = None,
    replace: Annotated[
        str | None,
        option(
            "WHAT",
            "What to replace. mpi: the whole MPI; libfabric: only libfabric or UCX; "
            "nothing: run the guest as it is.",
            "mpi",
        ),
    ] = None,
    bind: Annotated[
        Words, option("A[:B[:ro]]", "Show the guest a file or folder of this machine; repeatable.")
    ] = None,
    env: Environment = None,
    proof: Annotated[
        bool | None,
        option(
            "",
            "Check what ranks run on. Use --no-proof for programs that never call MPI_Init.",
            "proof",
            "--proof/--no-proof",
        ),
    ] = None,
    stdin: Annotated[str, option("WHO", "Ranks that read standard input: 0, all or none.")] = "0",
    explain: Annotated[
        bool, flag("Print each decision and its source, then start the program.", "--explain")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Start a program on this machine's MPI, with proof of the world that ran.

    Its output, exit code and signals pass through unchanged. The exit code is 5 where the world,
    the libmpi or the transport that ran was not the one requested.

    \b
    Examples:
      mpigraft run -n 4 -- ./app input.dat
      mpigraft run --mpi openmpi@5 --transport ob1-sm -n 2 -- ./app
      mpigraft run --image app.sif -n 4 -- /opt/app/solver input.dat
      mpigraft run -n 2 --explain --dry-run -- ./app
      mpigraft run --ranks-per-node 8 --threads 7 --map-by numa --gpus -- ./app
      mpigraft run --ranks-per-node 48 -- ./nemo : --ranks-per-node 2 ./xios
      mpigraft run --stack /opt/stack --mpi openmpi@5 -n 4 -- gmx_mpi mdrun
    """
    options = locals()
    from mpigraft.launch.placement import refuse_count
    from mpigraft.request.job import STDIN

    if stdin not in STDIN:
        raise UsageError.of("stdin-unknown", stdin=stdin, known=", ".join(STDIN))
    if ranks is not None:
        refuse_count("-n", ranks)
    flags = {name: options[name] for name in OF_PROFILE}
    spec = job_spec(program, flags, {name: options[name] for name in OF_PLACEMENT})
    if stack:
        if image:
            raise UsageError.of("stack-and-image")
        spec = with_fields(spec, image="", stack=stack)
    spec = with_fields(spec, programs=tuple(programs or ()), stdin=stdin)
    return _run(spec, explain=explain, dry_run=dry_run)


def job_spec(
    program: list[str], flags: dict[str, Any], where: Mapping[str, Any] | None = None
) -> RunSpec:
    """Lay the flags that were given over the site's profile. `where` are those about nodes and
    places, of which a profile says nothing. Raises UsageError."""
    from mpigraft.launch.placement import refuse_count
    from mpigraft.request import read_site
    from mpigraft.request.job import JobPlacement, RunSpec, mpmd_programs

    profile = read_site(os.environ)
    values, sources = profile.merged(flags)
    first, others = mpmd_programs(program)
    given = {name: value for name, value in (where or {}).items() if value is not None}
    for name in ("nodes", "ranks_per_node", "threads"):
        refuse_count(f"--{name.replace('_', '-')}", given.get(name, 1))
    # the user's ranks per node count, whatever number of ranks the site has
    site_ranks = "ranks_per_node" in given and flags.get("ranks") is None
    ranks = 0 if site_ranks else values.get("ranks", 0)
    mpi = values.get("mpi", "")
    image, alias = profile.image(values.get("image", ""))
    if alias:
        sources["image"] = f"{sources['image']}, {values['image']} of {alias}"
    return RunSpec(
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
        where=JobPlacement(ranks=ranks, others=others, **given),
        settings=tuple(values.get("env", ())),
        proof=values.get("proof", True),
        site=profile.path,
        sources=tuple(sources.items()),
        fixed=tuple(profile.fixed_where.items()),
    )


def _run(spec: RunSpec, *, explain: bool, dry_run: bool) -> int:
    from mpigraft.discovery import discover_machine
    from mpigraft.request.fit import drop_forbidden_fixes
    from mpigraft.request.job import job_subject
    from mpigraft.run import plan_job, prove_job
    from mpigraft.run.cached import (
        keep_start,
        may_be_kept,
        start_document,
        start_job,
        start_key,
        watched_files,
    )

    environ = dict(os.environ)
    try:
        Path.cwd()
    except OSError as error:
        raise UsageError.of("cwd-gone") from error
    with console(stderr=True).status("looking at this machine"):
        try:
            subject = job_subject(spec, environ)  # first: it may end the matter at once
            planned = plan_job(spec, discover_machine(), environ, subject)
        except MpigraftError as error:
            drop_forbidden_fixes(error, dict(spec.fixed))
            raise blame_site(error, spec.sources) from error
    for line in planned.unknown:
        tell(f"mpigraft: {line}")
    if explain:
        for line in explained(planned):
            tell(line)
    if dry_run:
        out("\n".join(rendered(planned)))
        return 0
    inputs = watched_files(planned)
    with console(stderr=True).status("proving the transport"):
        prove_job(planned)
    key = start_key(sys.argv[2:], environ)  # what `entry` looks it up by
    document = start_document(planned, key, environ, inputs)
    if sys.argv[1:2] == ["run"] and not explain and may_be_kept(planned):
        keep_start(document, environ)
    try:
        code = start_job(document, environ, judge)
    except OSError as error:
        what = error.filename or document["argv"][0]
        raise LaunchFailed.of("program-fails", program=what, reason=error.strerror) from error
    if code is None:
        where = "TMPDIR" if planned.allocation.here else "MPIGRAFT_HOME"
        where = "MPIGRAFT_HOME" if planned.configuration.graft else where
        raise MissingError.of("job-unwritable", folder=document["home"], variable=where)
    return code


def blame_site(error: MpigraftError, sources: Sequence[tuple[str, str]]) -> MpigraftError:
    """The same error, with what a site's profile had a part in: the user did not type it."""
    requests = [f"{what} ({where})" for what, where in sources if where != "command line"]
    if requests:
        reason = f"the site's profile requested {', '.join(requests)}"
        error.why = f"{error.why}; {reason}" if error.why else reason
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
    from mpigraft.run import job_records, prepare_job

    folder = Path(job_records(planned, os.environ)) / f"mpigraft-{os.getpid()}-shown"
    made = prepare_job(planned, folder)
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
    from mpigraft.launch import encode_word

    preload, others = f"LD_PRELOAD={witness}", "MPIGRAFT_WITNESS="
    ours = {*encode_word(preload), preload}
    before = (f"{preload}:", *(f"{word}:" for word in encode_word(preload)))
    own = [w for w in words if w not in ours and not w.startswith(others)]
    return [
        next((f"LD_PRELOAD={w.removeprefix(b)}" for b in before if w.startswith(b)), w) for w in own
    ]


def judge(key: str, folder: str, well: bool) -> bool:
    """Whether the world of the job kept under `key` was wrong, by the records in `folder`; says
    on stderr what and why. `well`: it did not fail by itself."""
    from mpigraft.core.model import Level
    from mpigraft.run.cached import launch_findings

    findings = launch_findings(key, Path(folder), well=well)
    for one in findings:
        parts = [f"mpigraft: {one.message}"]
        parts += [f"why it matters: {one.why}"] if one.why else []
        more = f"; {NOT_CHECKED}" if one.code == "no-witness" else ""
        parts += [f"what to do: {one.fix}{more}"] if one.fix else []
        tell("\n".join(parts))
    return any(one.level is Level.ERROR for one in findings)
