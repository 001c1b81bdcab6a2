"""Modules in both languages: Lua for Lmod, Tcl for environment modules.

EasyBuild writes one language, that of the tool which it used. What its file does is read here as
values and written in the other, so that both tools find the same modules in one folder: Lmod
prefers NAME.lua to NAME, and environment modules skip a file without `#%Module`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.write import make_folder, write_whole

LUA, TCL = ".lua", ""  # what ends a file's name
MAGIC = "#%Module"
OTHER = {LUA: TCL, TCL: LUA}


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing that a module does: prepend or append to a list of paths, set a variable, load
    another module or exclude it."""

    verb: str  # prepend, append, set, load, conflict
    name: str  # of the variable or module
    value: str = ""


@dataclass(frozen=True, slots=True)
class ModuleText:
    text: str  # what `module help` shows
    statements: tuple[Statement, ...]


LUA_ROOT = re.compile(r'^local root = "(.*)"$', re.MULTILINE)
LUA_CALL = re.compile(
    r'^[ \t]*(prepend_path|append_path|setenv|conflict|depends_on|load)\("((?:[^"\\]|\\.)*)"'
    r"(?:, (.*?))?\)$",
    re.MULTILINE,
)
LUA_VERBS = {
    "prepend_path": "prepend",
    "append_path": "append",
    "setenv": "set",
    "conflict": "conflict",
    "depends_on": "load",
    "load": "load",
}
LUA_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
LUA_HELP = re.compile(r"^help\(\[==\[\n(.*?)\]==\]\)", re.MULTILINE | re.DOTALL)
TCL_ROOT = re.compile(r"^set root[ \t]+(.*)$", re.MULTILINE)
TCL_CALL = re.compile(
    r"^[ \t]*(prepend-path|append-path|setenv|conflict|depends-on|module load)[ \t]+"
    r"(\S+)(?:[ \t]+(.*))?$",
    re.MULTILINE,
)
TCL_VERBS = {
    "prepend-path": "prepend",
    "append-path": "append",
    "setenv": "set",
    "conflict": "conflict",
    "depends-on": "load",
    "module load": "load",
}
TCL_HELP = re.compile(r"^proc ModulesHelp .*?puts stderr \{(.*?)\n\s*\}\n\}", re.M | re.DOTALL)


def read_module(text: str) -> ModuleText:
    """Read a module that EasyBuild wrote, in either language."""
    return _read_tcl(text) if text.startswith(MAGIC) else _read_lua(text)


def _read_lua(text: str) -> ModuleText:
    root = LUA_ROOT.search(text)
    statements = tuple(
        Statement(LUA_VERBS[call[1]], _plain(call[2]), _lua_value(call[3], root))
        for call in LUA_CALL.finditer(text)
    )
    shown = LUA_HELP.search(text)
    return ModuleText(shown[1].strip() if shown else "", statements)


def _lua_value(expression: str | None, root: re.Match[str] | None) -> str:
    """Return a literal, `root`, or `pathJoin(root, "a", "b")`."""
    parts = [_plain(part) for part in LUA_TEXT.findall(expression or "")]
    if expression and not expression.startswith('"') and root:
        parts.insert(0, _plain(root[1]))
    return posixpath.join(*parts) if parts else ""


def _read_tcl(text: str) -> ModuleText:
    root = TCL_ROOT.search(text)
    place = _tcl_value(root[1], "") if root else ""
    statements = tuple(
        Statement(TCL_VERBS[call[1]], _tcl_value(call[2], place), _tcl_value(call[3] or "", place))
        for call in TCL_CALL.finditer(text)
    )
    shown = TCL_HELP.search(text)
    return ModuleText(shown[1].strip() if shown else "", statements)


def _tcl_value(word: str, root: str) -> str:
    word = word.strip()
    if word[:1] == "{" and word[-1:] == "}":
        return word[1:-1]
    if word[:1] == '"' and word[-1:] == '"':
        word = word[1:-1]
    return _plain(re.sub(r"(?<!\\)\$root\b", lambda _: _escaped(root, "\\"), word))


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _escaped(text: str, special: str) -> str:
    return "".join(f"\\{letter}" if letter in special else letter for letter in text)


def render_lua(module: ModuleText) -> str:
    """Write a module for Lmod."""

    def quoted(text: str) -> str:
        return f'"{_escaped(text, chr(92) + chr(34))}"'

    calls = {v: k for k, v in LUA_VERBS.items() if k != "load"}
    lines = [f"help([==[\n{module.text.replace(']==]', '')}\n]==])"]
    for one in module.statements:
        words = [quoted(one.name), *([quoted(one.value)] if one.value or one.verb == "set" else [])]
        lines.append(f"{calls[one.verb]}({', '.join(words)})")
    return "\n".join([*lines, ""])


def render_tcl(module: ModuleText) -> str:
    """Write a module for environment modules; a load is guarded, as not every version has
    depends-on."""

    def quoted(text: str) -> str:
        return f'"{_escaped(text, chr(92) + chr(34) + "$[]")}"'

    calls = {v: k for k, v in TCL_VERBS.items()}
    shown = [f"    puts stderr {quoted(line)}" for line in module.text.splitlines()]
    lines = [MAGIC, "proc ModulesHelp { } {", *shown, "}"]
    for one in module.statements:
        if one.verb == "load":
            load = f"module load {one.name}"
            lines += [f"if {{ ![ is-loaded {one.name} ] }} {{", f"    {load}", "}"]
        elif one.verb == "conflict":
            lines.append(f"conflict {one.name}")
        else:
            lines.append(f"{calls[one.verb]} {one.name} {quoted(one.value)}")
    return "\n".join([*lines, ""])


RENDERERS = {LUA: render_lua, TCL: render_tcl}


def module_files(place: Path) -> dict[str, Path]:
    """Return the files of a module that are there, by what ends their names; `place` is without
    one."""
    files = {ending: place.with_name(place.name + ending) for ending in RENDERERS}
    return {ending: file for ending, file in files.items() if file.is_file()}


def write_both(place: Path, easybuilds: str) -> None:
    """Write the module at `place` in the language that EasyBuild did not use; it used the one that
    ends with `easybuilds`. Raises OSError."""
    text = place.with_name(place.name + easybuilds).read_text(encoding="utf-8")
    other = OTHER[easybuilds]
    written = RENDERERS[other](read_module(text)).encode()
    path = place.with_name(place.name + other)
    if not path.is_file() or path.read_bytes() != written:
        write_whole(path, written)


def write_settings(
    place: Path, module: tuple[Path, str], rows: Mapping[str, str], notes: Iterable[str]
) -> None:
    """Write a module at `place`, in both languages, that loads another, given by the folder to use
    and its name, and sets variables. Raises OSError."""
    folder, name = module
    made = ModuleText(
        "\n".join(notes),
        (
            Statement("prepend", "MODULEPATH", str(folder)),
            Statement("load", name),
            *(Statement("set", variable, value) for variable, value in rows.items()),
        ),
    )
    make_folder(place.parent)
    for ending, render in RENDERERS.items():
        write_whole(place.with_name(place.name + ending), render(made).encode())
