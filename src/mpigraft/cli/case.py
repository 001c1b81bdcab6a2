"""`mpigraft case`: campaign files for applications that studies of MPI measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from mpigraft.cli.common import Json, console, out

if TYPE_CHECKING:
    from mpigraft.core.serialize import Keys
    from mpigraft.knowledge import ApplicationCase

    CaseKeys = Annotated[dict[str, Any], ApplicationCase, Keys(name=str, file=str)]


class CaseDocument(TypedDict):
    """Campaign files for known applications."""

    cases: list[CaseKeys]


def command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Case to print; without one, list all."),
    ] = "",
    as_json: Json = False,
) -> None:
    """Print a campaign file for a known application: its figure of merit, a layout, its sources.

    You bring the program and its input: save the file beside them, edit its command, and give it
    to `mpigraft bench`. Nothing is started here.

    \b
    Examples:
      mpigraft case
      mpigraft case castep > castep.toml
      mpigraft bench castep.toml --layout 2x64 --dry-run
    """
    from mpigraft.knowledge import case_names, case_text, load_case

    cases = {one: load_case(one) for one in ([name] if name else case_names())}
    if as_json:
        from mpigraft.core.serialize import document, plain

        rows = ((one, plain(case), case_text(one)) for one, case in cases.items())
        keys = CaseDocument(cases=[{"name": n, **row, "file": text} for n, row, text in rows])
        out(document(**keys))
        return
    if name:
        out(case_text(name))
        return
    from mpigraft.report import print_cases

    print_cases(console(), cases)
