"""`mpigraft completion`: what a shell needs to complete command lines."""

from __future__ import annotations

from typing import Annotated

import typer

from mpigraft.cli.common import out
from mpigraft.core.errors import UsageError


def command(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="Shell: bash, zsh or fish.")],
) -> None:
    """Print what a shell reads to complete commands, options and values.

    Values are MPIs (those that `discover` found last), transports, benchmarks, variables, layouts
    and campaigns of the store. Nothing is printed where something is wrong.

    \b
    Examples:
      source <(mpigraft completion bash)
      mpigraft completion bash > ~/.local/share/bash-completion/completions/mpigraft
      mpigraft completion zsh >> ~/.zshrc
      mpigraft completion fish > ~/.config/fish/completions/mpigraft.fish
    """
    from mpigraft.cli.complete import SHELLS

    if shell not in SHELLS:
        raise UsageError.unknown("word-unknown", shell, SHELLS, what="shell")
    out(SHELLS[shell], exact=True)
