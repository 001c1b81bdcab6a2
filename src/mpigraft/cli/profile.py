"""`mpigraft profile`: run a program and show where its MPI time goes; show a profile again."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import job
from mpigraft.cli.common import DryRun, console, flag, option, out, tell
from mpigraft.cli.options import takes_request
from mpigraft.core.errors import MissingError, MpigraftError, UsageError
from mpigraft.request import Asked, RunSpec

if TYPE_CHECKING:
    from mpigraft.run import Job
    from mpigraft.trace import Profile

CONTEXT = job.CONTEXT
WAITS, SITES = "waits", "sites"  # words of MPIGRAFT_TRACE_OPTIONS


@takes_request()
def command(
    *,
    program: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PROGRAM",
            help="Program and its arguments. Give options of this command before it.",
            show_default=False,
        ),
    ] = None,
    waits: Annotated[
        bool,
        flag(
            "Tell waiting for others from moving data. It costs a barrier before each collective "
            "and a probe before each blocking receive.",
            "--waits",
            panel="Profile",
        ),
    ] = False,
    sites: Annotated[
        bool, flag("Tell where routines are called from.", "--sites", panel="Profile", rare=True)
    ] = False,
    output: Annotated[
        Path | None,
        option(
            "FILE",
            "Write the profile as a JSON document, for --show.",
            False,
            "--output",
            "-o",
            panel="Output",
        ),
    ] = None,
    html: Annotated[
        Path | None,
        option("FILE", "Write the profile as one page that opens offline.", False, panel="Output"),
    ] = None,
    top: Annotated[int, option("N", "Rows of each table.", min=1, panel="Output", rare=True)] = 10,
    show: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Show a profile of -o, or another profiler's report. It is mpiP's, mpitrace's, IPM's "
            "or CrayPat-lite's; nothing is started.",
            False,
            panel="Output",
        ),
    ] = None,
    world: Annotated[
        int,
        option(
            "N",
            "Show another MPI world that ran in the job, by its number.",
            min=0,
            panel="Output",
            rare=True,
        ),
    ] = 0,
    as_json: Annotated[
        bool, flag("Print a JSON document.", "--json", panel="Output", rare=True)
    ] = False,
    full: Annotated[
        bool, flag("Print every table, and all of it.", "--full", panel="Output", rare=True)
    ] = False,
    asked: Asked[RunSpec],
    dry_run: DryRun = False,
) -> int:
    """Run a program as `mpigraft run` does, and show where its MPI time goes.

    The program's output, exit code and signals pass through unchanged; the profile goes to
    standard error when it has ended, however it did.

    \b
    Examples:
      mpigraft profile -n 8 -- ./app input.dat
      mpigraft profile --waits --sites -o app.json --html app.html -n 8 -- ./app
      mpigraft profile --transport ofi-lnx -n 8 -- ./app
      mpigraft profile --show app.json
    """
    if show:
        if program:
            raise UsageError.of("profile-show-and-run", program=program[0])
        if show[1:]:
            raise UsageError.of("profile-show-one", paths=" and ".join(map(str, show)))
        show_profile(show[0], output=output, html=html, form=Form(top, full, as_json), world=world)
        return 0
    if not program:
        raise UsageError.of("profile-nothing")
    if as_json:
        raise UsageError.of("profile-json-mixed")
    if world:
        raise UsageError.of("profile-world-and-run", world=world)
    for path in filter(None, (output, html)):
        refuse_place(path)
    planned = job.decide_job(
        job.requested_job(asked, program, "profile"), _tracing(waits=waits, sites=sites)
    )
    if dry_run:
        return job.print_script(planned)
    code, profile = job.prove_and_collect(
        planned, lambda folder, code: _collect(planned, folder, code, Form(top, full))
    )
    try:
        if profile:
            write_profile(profile, output, html)
    except MpigraftError as error:
        if not code:
            raise
        tell(f"mpigraft: {error}")
    return code


def _tracing(*, waits: bool, sites: bool) -> tuple[str, ...]:
    return tuple(word for word, on in ((WAITS, waits), (SITES, sites)) if on)


@dataclass(frozen=True, slots=True)
class Form:
    """How a profile is printed."""

    top: int = 10
    full: bool = False
    as_json: bool = False

    def show(self, profile: Profile, *, stderr: bool = False) -> None:
        """Print one screen, or all of it."""
        from mpigraft.report import print_screen, profile_lines, profile_screen

        if not self.full:
            print_screen(profile_screen(profile, self.top), console(stderr=stderr))
            return
        (tell if stderr else out)("\n".join(profile_lines(profile, self.top)))


def _collect(planned: Job, folder: Path, code: int, form: Form) -> Profile | None:
    """Read what ranks counted and show it, if they did; the program's exit code is its own."""
    from dataclasses import replace

    from mpigraft.trace import Counting, counted_profile, read_counts

    assert planned.tracing is not None
    waits = WAITS in planned.tracing
    try:
        counts, root = read_counts(folder), _files_root(planned)
        ranks = planned.layout.ranks
        found = counted_profile(counts, Counting(ranks, waits, exit_code=code, root=root))
    except MpigraftError as error:
        tell(f"mpigraft: {error}")
        return None
    if found is None:
        program = planned.spec.program[0]
        missing = MissingError.of("profile-no-counts", program=program)
        tell(f"mpigraft: {no_return(folder, program) or missing}")
        return None
    found = replace(found, labels=_labels(planned))
    form.show(found, stderr=True)
    return found


def no_return(folder: Path, program: str) -> MissingError | None:
    """Return whether no rank came back from MPI_Init, by what the witness noted in the folder."""
    from mpigraft.evidence import read_entered, read_witness

    if read_witness(folder) or not (entered := read_entered(folder)):
        return None
    processes = f"{len(entered)} processes" if len(entered) > 1 else "a process"
    return MissingError.of("trace-no-return", program=program, processes=processes)


def _files_root(planned: Job) -> Path | None:
    """Return where the files lie that ranks map, as far as they can be read here."""
    graft = planned.configuration.graft
    if graft is None or graft.guest.kind.on_host:
        return Path("/")
    folder = Path(graft.guest.source)
    return folder if folder.is_dir() else None


def _labels(planned: Job) -> tuple[tuple[str, str], ...]:
    configuration = planned.configuration
    transport = configuration.transport.name if configuration.transport else ""
    mpi = configuration.mpi.id if configuration.mpi else ""
    rows = (("mpi", mpi), ("transport", transport))
    return tuple((name, value) for name, value in rows if value)


FORM = Form()

# ------------------------------------------------------------------ files


def show_profile(
    path: Path,
    *more: Path,
    output: Path | None = None,
    html: Path | None = None,
    form: Form = FORM,
    world: int = 0,
) -> None:
    """Show a profile that was written, or another tool's report; `more` are those of other ranks.
    Raises UsageError."""
    from mpigraft.trace import read_profile, render_profile

    read = read_profile(path, *more)
    profile = read.of_world(world) if world else read
    if profile is None:
        raise UsageError.of("profile-no-world", path=path, world=world, count=len(read.others))
    if form.as_json:
        out(render_profile(profile))
    else:
        form.show(profile)
    write_profile(profile, output, html)


def refuse_place(path: Path) -> None:
    """Refuse a file that cannot be written, before a program runs for hours. Raises UsageError
    for a path that cannot be a file, MissingError for one without the right or the room."""
    from mpigraft.cli.report import check
    from mpigraft.core.write import is_stream

    if not is_stream(path):
        check(path, "FILE")
    try:
        if not is_stream(path):
            with tempfile.TemporaryFile(dir=path.resolve().parent):
                pass
        if path.exists() and not os.access(path, os.W_OK):
            raise PermissionError(0, "no permission to write it")
    except OSError as error:
        raise MissingError.of("profile-unwritable", path=path, reason=error.strerror) from error


def write_profile(profile: Profile, output: Path | None, html: Path | None) -> None:
    """Write the document and the page that were asked for. Raises MissingError."""
    from mpigraft.core.write import write_whole
    from mpigraft.report import render_profile_page
    from mpigraft.trace import render_profile

    for path, render in ((output, render_profile), (html, render_profile_page)):
        if path is None:
            continue
        try:
            write_whole(path, render(profile).encode())
        except OSError as error:
            raise MissingError.of("profile-unwritable", path=path, reason=error.strerror) from error
