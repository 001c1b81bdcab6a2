"""`mpigraft diagnose`: which known issues explain results, outputs or a machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli import common
from mpigraft.core.errors import UsageError
from mpigraft.core.text import columns

if TYPE_CHECKING:
    from mpigraft.advice import Examined

NOTHING = 6


def command(
    ctx: typer.Context,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CAMPAIGN | FILE...]",
            help="A campaign; or outputs of OSU, IMB or any job, profiles, and `discover --json`.",
            show_default="this machine",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        common.option("FILE", "Results of the same benchmarks to compare the files with."),
    ] = None,
    full: common.Full = False,
    as_json: common.Json = False,
) -> int:
    """Name the known issues that explain a slow curve, a failed job or this machine.

    Nothing is started. Each issue has what was seen, its cause, one command that confirms or
    refutes it, and the fix. Measured: the values themselves are the fault. Matches: only this
    issue is known to look like that. Possible: it fits, and so may other causes. Of this
    machine, limits that are short are named too.

    \b
    Examples:
      mpigraft diagnose
      mpigraft diagnose latency.txt bibw.txt
      mpigraft diagnose slow.txt --baseline vendor.txt
      mpigraft diagnose slurm-1234.out machine.json
    """
    from mpigraft.advice import diagnose
    from mpigraft.core.serialize import document
    from mpigraft.report import diagnosis_document, diagnosis_screen, print_screen

    examined = _examined(ctx, what or [], baseline)
    found = diagnose(examined)
    if as_json:
        common.out(document(**diagnosis_document(examined, found)))
    else:
        print_screen(diagnosis_screen(examined, found, columns(), full=full), common.console())
    return 0 if examined else NOTHING


def _examined(ctx: typer.Context, words: list[str], baseline: Path | None) -> Examined:
    """Read files, a campaign where one word is no file, or this machine."""
    from mpigraft.advice import Examined, examine_campaign, examine_files

    paths = [Path(word) for word in words]
    known = [path for path in paths if path.exists()]
    if baseline and not known:
        raise UsageError.of("option-alone", flag="--baseline", other="a FILE")
    if not words:
        here = common.examine_machine()
        common.tell_machine_limits(here, here.mpis)
        return Examined(machines=(here,))
    if known or len(words) > 1 or "/" in words[0] or Path(words[0]).suffix:
        return examine_files(paths, baseline)
    return examine_campaign(common.store_of(ctx), words[0])
