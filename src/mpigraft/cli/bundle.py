"""`mpigraft bundle`: a campaign as an archive for a paper or a vendor's ticket."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpigraft.cli import common
from mpigraft.cli.common import flag, option, store_of, tell
from mpigraft.core.errors import UsageError


def command(
    ctx: typer.Context,
    campaign: common.Campaign = None,
    output: Annotated[Path, option("FILE", "Archive to write.", True, "--output", "-o")] = Path(
        "bundle.tar.gz"
    ),
    old: Annotated[
        str, option("CAMPAIGN", "Add the comparison with this earlier campaign.", False, "--with")
    ] = "",
    no_hosts: Annotated[
        bool, flag("Number the hosts instead of naming them.", "--no-hosts")
    ] = False,
    no_output: Annotated[bool, flag("Leave out what launches printed.", "--no-output")] = False,
) -> None:
    """Write results, inputs, evidence, job scripts, analysis and versions as one archive.

    Secrets and home folders are struck out. The scripts need no mpigraft. The same campaign gives
    the same bytes; SHA256SUMS has a checksum for each file.

    \b
    Examples:
      mpigraft bundle night -o ticket.tar.gz --no-hosts
      mpigraft bundle after --with before
    """
    from mpigraft.cli.report import check
    from mpigraft.report import Choice, write_bundle

    check(output)
    if not output.name.endswith((".tar.gz", ".tgz")):
        raise UsageError.of("bundle-name", output=output, example=f"{output.stem}.tar.gz")
    choice = Choice(campaign, old, not no_hosts, not no_output)
    folder, count = write_bundle(store_of(ctx), choice, output)
    tell(f"wrote {output}: {count} files in {folder}, and their checksums in SHA256SUMS")
