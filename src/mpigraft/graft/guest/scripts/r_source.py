"""Find the packages that a script of R names, and the script in the words that start R."""

from __future__ import annotations

import re
from collections.abc import Sequence

INTERPRETERS = frozenset({"R", "Rscript", "littler", "r"})
TOKEN = re.compile(
    r"""(?P<text>"(?:\\.|[^"\\])*(?:"|\\?\Z)|'(?:\\.|[^'\\])*(?:'|\\?\Z)|`[^`]*(?:`|\Z))
    |(?P<comment>\#[^\n]*)
    |(?P<load>\b(?:library|require|requireNamespace|loadNamespace|attachNamespace))\s*\(\s*
      (?:package\s*=\s*)?(?P<quote>["']?)(?P<name>[A-Za-z][\w.]*)(?P=quote)(?=(?P<rest>[^()]*)\))
    |(?P<space>[A-Za-z][\w.]*):::?(?=[\w.`"])
    |(?P<snow>\bmakeMPIcluster\b|\btype\s*=\s*(?P<q>["'])MPI(?P=q))
    |(?:(?P<caller>\\|[A-Za-z.][\w.]*)\s*)?(?P<open>\()|(?P<block>[{\[])|(?P<close>[)}\]])
    |(?P<branch>\belse\b|\brepeat\b|&&|\|\|)|(?P<end>[\n;])|[\w.]+|[^\s\w]""",
    re.VERBOSE | re.DOTALL,
)
CONDITIONS = frozenset({"if", "for", "while", "function", "\\"})
# Functions that evaluate their arguments in any case and let errors pass. Others may catch an error
# (tryCatch) or not evaluate at all (quote, switch).
EAGER = frozenset({
    "", "suppressPackageStartupMessages", "suppressMessages", "suppressWarnings", "invisible",
    "print", "cat", "message", "paste", "paste0", "sprintf", "format", "c", "local", "stopifnot",
    "system.time", "isTRUE", "as.integer", "as.numeric", "makeCluster",
})  # fmt: skip


def is_r(interpreter: str) -> bool:
    """Return whether a program of this name is R."""
    return interpreter.rpartition("/")[2] in INTERPRETERS


def r_script(words: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Find what these words have R run: (code of -e, path of the script, its arguments)."""
    rest = list(words[3:] if tuple(words[1:3]) == ("CMD", "BATCH") else words[1:])
    code: list[str] = []
    while rest:
        word = rest.pop(0)
        if word == "--args":
            break
        if word == "-e" and rest:
            code.append(rest.pop(0))
        elif word.startswith("--file="):
            return "", word.partition("=")[2], tuple(rest)
        elif not word.startswith("-"):  # the value of -f, too
            return "\n".join(code), "" if code else word, tuple(rest)
    return "\n".join(code), "", tuple(rest)


def named_packages(source: str) -> dict[str, bool]:
    """Give {package: whether it is loaded in any case}. Names that the script computes are left
    out."""
    named: dict[str, bool] = {}
    stack: list[tuple[bool, str, bool]] = []  # certain inside, caller, `branch` before
    branch = begun = False  # in the part that a condition governs; whether that part has begun
    for match in TOKEN.finditer(source):
        certain = (stack[-1][0] if stack else True) and not branch
        if match["comment"]:
            continue
        if match["end"]:
            branch = branch and not begun
            continue
        if name := _package(match):
            named[name] = named.get(name, False) or certain
        if match["open"] or match["block"] or match["load"]:
            caller = match["caller"] or ""
            stack.append((certain and caller in EAGER, caller, branch and not match["block"]))
            branch = begun = False
        elif match["close"] and stack:
            _, caller, before = stack.pop()
            branch = before or caller in CONDITIONS
            begun = caller not in CONDITIONS
        elif match["branch"]:
            branch, begun = True, False
        else:
            begun = True
    return named


def _package(match: re.Match[str]) -> str:
    if match["load"]:
        symbol = match["load"] in ("library", "require") and "character.only" not in match["rest"]
        return match["name"] if match["quote"] or symbol else ""
    return match["space"] or ("Rmpi" if match["snow"] else "")
