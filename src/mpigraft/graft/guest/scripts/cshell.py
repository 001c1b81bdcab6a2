"""Rewrite a script of the C shell in the words of a POSIX one, line by line."""

from __future__ import annotations

import re

CSHELLS = frozenset({"csh", "tcsh"})
RULES = tuple(
    (re.compile(pattern), text)
    for pattern, text in (
        (r"^else\s+if\s*\(.*\)\s*then$", "elif expr x; then"),
        (r"^if\s*\((?P<test>.*)\)\s*then$", r"if expr '\g<test>'; then"),
        (r"^if\s*\((?P<test>.*?)\)\s*(?P<rest>[^)]+)$", r"expr '\g<test>' && { \g<rest> ; }"),
        (r"^endif$", "fi"),
        (r"^foreach\s+(?P<name>\w+)\s*\((?P<words>.*)\)$", r"for \g<name> in \g<words>; do"),
        (r"^while\s*\(.*\)$", "while expr x; do"),
        (r"^end$", "done"),
        (r"^switch\s*\((?P<word>.*)\)$", r"case \g<word> in"),
        (r"^case\s+(?P<word>.*):$", r"\g<word>)"),
        (r"^default:$", "*)"),
        (r"^breaksw$", ";;"),
        (r"^endsw$", "esac"),
        (r"^set\s+(?P<name>\w+)\s*=\s*\((?P<words>.*)\)$", r'\g<name>="\g<words>"'),
        (r"^set\s+(?P<name>\w+)\s*=\s*(?P<word>.*)$", r"\g<name>=\g<word>"),
        (r"^setenv\s+(?P<name>\w+)\s+(?P<word>.*)$", r"export \g<name>=\g<word>"),
        (r"^(@|unset|unsetenv|limit|onintr|goto|\w+:)(\s.*)?$", ":"),
    )
)


def is_cshell(name: str) -> bool:
    """Return whether an interpreter of this name is a C shell."""
    return name in CSHELLS


def as_shell(text: str) -> str:
    """Rewrite a script; lines keep their numbers."""
    return "\n".join(_rewritten(line) for line in text.splitlines())


def _rewritten(line: str) -> str:
    code = line.strip()
    for pattern, text in RULES:
        if match := pattern.match(code):
            code = match.expand(text)
            break
    return re.sub(r"\$argv(\[\*\])?", '"$@"', code.replace("$argv:q", '"$@"'))
