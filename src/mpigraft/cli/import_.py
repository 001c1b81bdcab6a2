"""`mpigraft import`: published tables and old outputs, compared like one's own results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.core.errors import UsageError
from mpigraft.core.numbers import counted
from mpigraft.core.text import join_some, printable

if TYPE_CHECKING:
    from mpigraft.bench import ImportedFile
    from mpigraft.report import ImportTally

LONGEST_NAME, LONGEST_TEXT = 100, 300
LISTED = 100  # refused files that are listed with their reasons
SHOWN = 5  # names that a line lists
DETAILED = 20  # files; of more, each is shown with -v only


def command(
    ctx: typer.Context,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|FOLDER",
            help="Outputs of OSU, IMB, mpigraft-bench or ReFrame. Also exports, and reports "
            "of mpiP, mpitrace, IPM or CrayPat-lite.",
        ),
    ],
    configuration: Annotated[
        str, common.option("NAME", "Name of the MPI or configuration measured.", "the pattern's")
    ] = "",
    pattern: Annotated[
        str, common.option("P", "What the files' names say, as fields in braces.", False)
    ] = "",
    campaign: Annotated[
        str,
        common.option(
            "NAME",
            "Campaign to add them to. With {date} in it, one for each day.",
            "machine or import",
        ),
    ] = "",
    machine: Annotated[str, common.option("M", "Machine that was measured.")] = "",
    about: Annotated[
        str,
        common.option("TEXT", "Nodes, network and software, for captions of figures.", rare=True),
    ] = "",
    nodes: Annotated[int | None, common.option("N", "Number of nodes.", min=1)] = None,
    ranks_per_node: Annotated[int | None, common.option("K", "Ranks on each node.", min=1)] = None,
    allocation: Annotated[
        str, common.option("A", "Name of the job; only tables of one job are paired.", rare=True)
    ] = "",
    edited: Annotated[
        bool,
        common.flag(
            "Take exports that were edited, as campaigns of their own.", "--edited", rare=True
        ),
    ] = False,
    dry_run: Annotated[
        bool, common.flag("Show what would be stored; store nothing.", "--dry-run")
    ] = False,
    as_json: common.Json = False,
) -> None:
    """Add benchmark outputs to an imported campaign, for `compare` and `report`.

    Of a folder, all files below it are read. The first configuration is the baseline. A benchmark
    that is imported again is the next round. A file that is stored already is not stored again.
    Files that are refused are listed, the others are stored, and the exit code is 2.

    A report of a profiler is no result: it is shown as `mpigraft profile --show` does, and
    nothing is stored.

    Fields of --pattern: benchmark, nodes, ranks, ranks_per_node, date, round, configuration,
    mpi, transport, machine, allocation; any other becomes a part of the configuration's name.
    * is any text.

    \b
    Examples:
      mpigraft import bibw.txt --configuration cray-mpich@9.1.0 --machine olivia
      mpigraft import results --pattern '{configuration}/osu_{benchmark}_{nodes}nodes_*.dat'
    """
    from mpigraft.bench import ImportOptions, Pattern, collect_sources, import_files
    from mpigraft.report import ImportTally, import_document, import_summary

    if profiles := _profiles(files):
        if len(profiles) < len(files):
            other = next(path for path in files if path not in profiles)
            raise UsageError.of("import-profile-mixed", path=profiles[0], other=other)
        _show(profiles, as_json=as_json)
        return
    options = ImportOptions(
        configuration=_name("--configuration", configuration),
        campaign=_name("--campaign", campaign),
        machine=_name("--machine", machine),
        about=_name("--about", about, LONGEST_TEXT),
        nodes=nodes or 0,
        ranks_per_node=ranks_per_node or 0,
        allocation=_name("--allocation", allocation),
        edited=edited,
    )
    sources, unmatched = collect_sources(files, Pattern.parse(pattern) if pattern else None)
    reports = [] if as_json else _profiles([source.path for source in sources])
    sources = [source for source in sources if source.path not in reports]
    if reports and not sources:
        _show(reports, as_json=False)
        return
    verbose = ctx.find_root().params["verbose"]
    detailed = verbose or (len(files) == len(sources) <= DETAILED and not pattern)
    tally = ImportTally(unmatched, detailed=detailed, keep=as_json)
    for file in _watched(
        import_files(common.store_of(ctx), sources, options, dry_run=dry_run), len(sources)
    ):
        for line in tally.add(file):
            if not as_json:
                common.out(line)
    if as_json:
        common.out(import_document(tally, dry_run=dry_run))
    else:
        for line in import_summary(tally, dry_run=dry_run, detailed=detailed):
            common.out(line)
        _show(reports, as_json=False)
    _refuse(tally, files)


def _profiles(files: list[Path]) -> list[Path]:
    from mpigraft.trace import is_profile

    return [path for path in files if is_profile(path)]


def _show(paths: list[Path], *, as_json: bool) -> None:
    """Show reports of profilers, one after another; those of the ranks of one job, which have one
    name but for the rank, are one. Raises UsageError."""
    from mpigraft.cli.profile import Form, show_profile

    jobs: dict[Path, list[Path]] = {}
    for path in paths:
        jobs.setdefault(path.with_suffix("") if path.suffix[1:].isdigit() else path, []).append(
            path
        )
    if as_json and len(jobs) > 1:
        raise UsageError.of("import-profiles-json", count=len(jobs))
    for number, job in enumerate(jobs.values()):
        if number:
            common.out("")
        show_profile(*job, form=Form(full=True, as_json=as_json))


def _watched(files: Iterator[ImportedFile], total: int) -> Iterator[ImportedFile]:
    """Show a bar with the time left on a terminal, if there are many files."""
    if total <= DETAILED:
        yield from files
        return
    from rich.progress import MofNCompleteColumn, TimeRemainingColumn

    from mpigraft.cli.progress import make_bar

    with make_bar(MofNCompleteColumn(), TimeRemainingColumn(), transient=True) as bar:
        task = bar.add_task("importing", total=total)
        for file in files:
            bar.advance(task)
            yield file


def _name(flag: str, text: str, longest: int = LONGEST_NAME) -> str:
    """Check that a name, if there is one, fits into a table and on a command line. Raises
    UsageError."""
    if not text:
        return text
    if not text.strip() or not text.isprintable() or len(text) > longest:
        raise UsageError.of("text-invalid", flag=flag, text=text[:40], longest_name=longest)
    return text.strip()


def _refuse(tally: ImportTally, paths: Sequence[Path]) -> None:
    """List what was refused on stderr; raise UsageError if anything was, or nothing was taken."""
    total = sum(tally.counts.values())
    codes = {error.code for _, error in tally.refused}
    if tally.refused and (total == 1 or codes == {"import-no-configuration"}):
        raise tally.refused[0][1]  # the same error for all of them is printed once
    for name, error in tally.refused[:LISTED]:
        message = error.message if name in error.message else f"{name}: {error.message}"
        common.tell(f"refused: {message}")
    if len(tally.refused) > LISTED:
        common.tell(f"refused: {len(tally.refused) - LISTED} more, which --json lists")
    for fix in dict.fromkeys(error.fix for _, error in tally.refused if error.fix):
        common.tell(f"what to do: {fix}")
    if tally.refused:
        count = f"{len(tally.refused)} of {counted(total, 'file')}"
        raise UsageError.of("import-refused", count=count)
    if failed := tally.failed:
        raise UsageError.of("import-failed", count=f"{failed} of {counted(total, 'file')}")
    if not tally.taken:
        skipped = "; ".join(dict.fromkeys(error.message for _, error in tally.skipped[:SHOWN]))
        shown = join_some([printable(str(path)) for path in paths], SHOWN, ", ")
        raise UsageError.of("import-nothing", paths=shown, skipped=skipped or "it is empty")
