"""Follow a shell script as far as reading shows: which launchers of MPI it starts, and whether
always. Nothing is run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpigraft.graft.guest.scripts.launches import InnerLaunch, launch_of
from mpigraft.graft.guest.scripts.shell_builtins import ShellOutcome, holds, outcome_of, printed
from mpigraft.graft.guest.scripts.shell_flow import CONDITIONS, MAX_CALLS, ShellFlow
from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN, text_of
from mpigraft.graft.guest.scripts.shell_values import (
    MOST,
    NOT_KNOWN,
    Fields,
    Values,
    expand,
    expand_text,
)
from mpigraft.graft.guest.scripts.starters import (
    SHELLS,
    ScriptCall,
    behind_starters,
    shell_code,
    shell_script,
)

if TYPE_CHECKING:
    from tree_sitter import Node

DECLARATIONS = frozenset({"export", "declare", "typeset", "local", "readonly"})
MAYBE_NONE = re.compile(r"-[Ir]|--no-run-if-empty|--replace")  # of xargs


@dataclass(slots=True)
class ShellScript(ShellFlow):
    """A script whose commands are followed, too."""

    def visit(self, node: Node) -> ShellOutcome:
        self.budget.steps -= 1
        if node.id in self.attached:
            return self.redirected(self.attached.pop(node.id), node)
        if node.has_error and _is_broken(node):
            self.may.add("error")
        follow = FOLLOWED.get(node.type)
        return follow(self, node) if follow is not None else ShellOutcome.LIKELY

    def broken(self, node: Node) -> ShellOutcome:
        """Follow what the grammar made of a text that it does not know; what is behind the place
        is not certain."""
        for child in node.children:
            if child.type not in FOLLOWED and child.type not in (";", "&", "\n", ";;", "comment"):
                self.may.add("error")
            self.walk([child])
        self.may.add("error")
        return ShellOutcome.OPEN

    def assign(self, node: Node) -> ShellOutcome:
        for one in [node, *node.named_children]:
            name, value = (one.child_by_field_name(field) for field in ("name", "value"))
            if one.type != "variable_assignment" or name is None:
                continue
            values: Values = (("",),)
            if value is not None and value.type == "array":
                values = expand(value.named_children, self)
            elif value is not None:
                values = tuple((text,) for text in expand_text([value], self))
            before = self.variables.of(text_of(name))
            if any(child.type == "+=" for child in one.children):
                values = _added(before, values, listed=value is not None and value.type == "array")
            if name.type == "subscript":
                name, values = name.named_children[0], NOT_KNOWN
            self.variables.assign(text_of(name), values)
            if text_of(node).startswith("export"):
                self.exports.add(text_of(name))
        return ShellOutcome.LIKELY

    # ------------------------------------------------------------ redirections

    def redirection(self, node: Node) -> ShellOutcome:
        body = last = node.child_by_field_name("body")
        while last is not None and last.type in ("list", "pipeline"):
            last = last.named_children[-1]
        if body is None or last is None or last == body:
            return self.redirected(node, last)
        self.attached[last.id] = node  # the grammar redirects the whole list
        return self.walk(node.children_by_field_name("body"))

    def redirected(self, node: Node, body: Node | None) -> ShellOutcome:
        outer, own = self.input, self.redirects
        self.redirects = dict(own)
        documents, target = [], ("", "")
        for one in node.children_by_field_name("redirect"):
            nested = one.children_by_field_name("redirect")
            for redirect in (one, *nested):
                target = self.redirect(redirect) or target
            documents += [one] if one.type == "heredoc_redirect" else []
        start = len(self.output_texts)
        outcome = self.walk([body] if body is not None else [])
        if target[0]:
            text = self.cut(start)
            path, before = target[1], self.variables.files.get(target[1], "")
            self.variables.files[path] = before + text if target[0] == ">>" else text
        for one in documents:
            behind = [child for child in one.named_children if child.type == "pipeline"]
            for pipeline in behind:
                self.input, self.redirects["0"] = (self.cut(start), ""), ("|", "")
                outcome = self.pipe(pipeline.named_children)
            self.input, self.redirects = outer, own
            right, operator = (one.child_by_field_name(x) for x in ("right", "operator"))
            if right is not None and operator is not None:
                outcome = self.joined(outcome, operator.type, right)
        self.input, self.redirects = outer, own
        return outcome

    def redirect(self, node: Node) -> tuple[str, str] | None:
        """Follow a redirection; gives the operator and the file where that is written."""
        operators = [text_of(child) for child in node.children if not child.is_named]
        operator = operators[0] if operators else ""
        if node.type == "heredoc_redirect":
            self.redirects["0"], self.input = ("<<", UNKNOWN), (self.document(node), "")
            return None
        if node.type == "herestring_redirect":
            texts = expand_text(node.named_children[-1:], self)
            text = texts[0] if len(texts) == 1 else UNKNOWN
            self.redirects["0"], self.input = ("<<<", text), (f"{text}\n", "")
            return None
        descriptor = node.child_by_field_name("descriptor")
        number = text_of(descriptor) if descriptor is not None else ""
        words = expand_text(node.children_by_field_name("destination"), self)
        word = words[0] if len(words) == 1 else UNKNOWN
        path = UNKNOWN if UNKNOWN in word else self.path_of(word)
        number = number or ("0" if operator.startswith("<") else "1")
        shown = number if (number, operator[:1]) not in (("0", "<"), ("1", ">")) else ""
        self.redirects[number] = (f"{shown}{operator}", word)
        if number == "0":
            self.input = (UNKNOWN, path)
        written = number == "1" and operator in (">", ">>", ">|") and UNKNOWN not in path
        return (operator, path) if written else None

    def document(self, node: Node) -> str:
        """Give the text of a here-document."""
        children = {child.type: child for child in node.children}
        start, body = children.get("heredoc_start"), children.get("heredoc_body")
        if start is None or body is None:
            return "" if start is not None else UNKNOWN
        raw = re.search(r"[\\'\"]", text_of(start))
        texts = (text_of(body),) if raw else expand_text([body], self)
        text = texts[0] if len(texts) == 1 else UNKNOWN
        return re.sub(r"(?m)^\t+", "", text) if "<<-" in children else text

    def path_of(self, word: str) -> str:
        return posixpath.normpath(posixpath.join(self.variables.cwd, word))

    # ---------------------------------------------------------------- commands

    def command(self, node: Node) -> ShellOutcome:
        outer, own, before = self.input, self.redirects, self.variables.values
        self.redirects = dict(own)
        self.variables.values = dict(before)
        for child in node.children:
            if child.type == "variable_assignment":
                self.assign(child)
            elif child.type.endswith("_redirect"):
                self.redirect(child)
        name = node.child_by_field_name("name")
        words = [name] if name is not None else []
        several = expand([*words, *node.children_by_field_name("argument")], self)
        settings = {k: v for k, v in self.variables.values.items() if before.get(k) != v}
        exports = set(self.exports)
        self.exports |= settings.keys() if name is not None else set()
        outcome = self.several(several, node.start_point.row + 1)
        self.exports = (self.exports - settings.keys()) | exports
        for key, value in settings.items():  # of this command alone
            if name is not None and self.variables.values.get(key) == value:
                self.variables.values[key] = before.get(key, NOT_KNOWN)
        self.input, self.redirects = outer, own
        return outcome

    def several(self, several: tuple[Fields, ...], line: int) -> ShellOutcome:
        """Follow a command with the words that it may have."""
        found: list[list[InnerLaunch]] = []
        kept, others = self.launches, len(self.started)
        outcome = ShellOutcome.LIKELY
        for fields in several:
            self.launches = []
            outcome = self.fields(fields, self.line or line)
            found.append(self.launches)
        if len(several) > 1:
            self.started[others:] = [replace(x, certain=False) for x in self.started[others:]]
        every = all(any(one.certain for one in few) for few in found)
        self.launches = kept
        for launches in found:
            self.launches += [replace(x, certain=x.certain and every) for x in launches]
        return outcome if len(several) == 1 else ShellOutcome.OPEN

    def fields(self, fields: Fields, line: int) -> ShellOutcome:
        """Follow a command whose words are expanded."""
        if not fields:
            return ShellOutcome.LIKELY
        head, rest = fields[0], fields[1:]
        if head in self.functions and self.calls < MAX_CALLS:
            return self.call(head, rest)
        builtin = BUILTINS.get(head)
        return builtin(self, head, rest, line) if builtin else self.start(fields, line)

    def decide(self, head: str, rest: Fields, _line: int) -> ShellOutcome:
        if head in ("true", ":", "false"):
            return outcome_of(head != "false")
        return outcome_of(holds(rest[:-1] if head == "[" else rest))

    def end(self, head: str, rest: Fields, _line: int) -> ShellOutcome:
        self.flow = head if head != "return" or self.calls else "exit"
        self.failed = self.failed if not rest else rest[0].isdigit() and rest[0] != "0"
        return ShellOutcome.LIKELY

    def set(self, head: str, rest: Fields, line: int) -> ShellOutcome:
        if head == "set" and "--" in rest:
            self.variables.arguments = rest[rest.index("--") + 1 :]
        elif head == "eval":
            self.text(" ".join(rest), self.variables.arguments, line)
        elif head in (".", "source") and rest:
            path = self.path_of(rest[0])  # those of the system set up no launcher
            if UNKNOWN not in path and not path.startswith(("/etc/", "/usr/")):
                text = self.variables.files.get(path) or self.text_of(path)
                self.text(text, self.variables.arguments, line)
        for name, equals, value in (word.partition("=") for word in rest):
            if equals and head in DECLARATIONS:
                self.variables.assign(name, ((value,),))
        return ShellOutcome.LIKELY

    def copy(self, head: str, rest: Fields, line: int) -> ShellOutcome:
        """Follow cat and tee, which print what they read."""
        if rest and head == "cat":
            return self.start((head, *rest), line)
        self.output_texts.append(self.input[0])
        for word in rest:
            self.variables.files[self.path_of(word)] = self.input[0]
        return ShellOutcome.LIKELY

    def readers(self, head: str, rest: Fields, _line: int) -> ShellOutcome:
        """Follow what sets variables to what it reads."""
        for word in rest:
            self.variables.values[word] = NOT_KNOWN
        arguments = self.variables.arguments
        none = head == "getopts" and arguments is not None and not "".join(arguments)[:1]
        return outcome_of(False if none else None)

    def call(self, name: str, arguments: Fields) -> ShellOutcome:
        outer, line = self.variables.arguments, self.line
        self.variables.arguments, self.line = arguments, 0
        self.calls += 1
        outcome = self.walk([self.functions[name]])
        self.leave(outer)
        self.line = line
        return ShellOutcome.OPEN if outcome is not ShellOutcome.LIKELY else outcome

    def leave(self, arguments: Fields | None) -> None:
        """End a function or a text that is run."""
        self.calls -= 1
        self.variables.arguments = arguments
        self.flow = "" if self.flow == "return" else self.flow
        self.may.discard("return")

    def enter(self, head: str, rest: Fields, _line: int) -> ShellOutcome:
        folder = rest[0] if rest else UNKNOWN
        known = UNKNOWN not in folder + self.variables.cwd and folder != "-" and head != "popd"
        self.variables.cwd = self.path_of(folder) if known else UNKNOWN
        return ShellOutcome.LIKELY

    def shift(self, _head: str, rest: Fields, _line: int) -> ShellOutcome:
        count = rest[0] if rest else "1"
        arguments = self.variables.arguments
        known = arguments is not None and count.isdigit() and len(count) < 9
        self.variables.arguments = (arguments or ())[int(count) :] if known else None
        return ShellOutcome.LIKELY

    def text(self, text: str, arguments: Fields | None, line: int = 0) -> None:
        """Follow text that is run as a script: of eval, a here-document, or behind -c."""
        outer, before = self.variables.arguments, self.line
        self.variables.arguments, self.line = arguments, line
        self.calls += 1
        if self.calls < MAX_CALLS:
            self.parsed(text)
        self.leave(outer)
        self.line = before

    def shell(self, text: str, arguments: Fields | None, line: int) -> None:
        """Follow text that a shell of its own runs."""
        outer, flow, may = self.variables, self.flow, set(self.may)
        self.variables = outer.copy()
        self.text(text, arguments, line)
        self.variables, self.flow, self.may = outer, flow, may

    def start(self, fields: Fields, line: int) -> ShellOutcome:
        """Note what a command starts."""
        words, replaces = behind_starters(fields)
        name = fields[0].rpartition("/")[2]
        self.output_texts += [text for text in (printed(fields, self.variables.cwd),) if text]
        if not words:
            return ShellOutcome.OPEN if name in CONDITIONS else ShellOutcome.LIKELY
        own = name in ("xargs", "parallel")
        unsure = own and (any(map(MAYBE_NONE.match, fields)) or name == "parallel")
        if own:
            self.redirects = {key: one for key, one in self.redirects.items() if key != "0"}
        self.begin(words, line, certain=not self.may and not unsure)
        if replaces:
            self.flow, self.replaced, self.failed = "exit", True, False
        return ShellOutcome.OPEN if name in CONDITIONS else ShellOutcome.LIKELY

    def begin(self, words: Fields, line: int, *, certain: bool) -> None:
        cwd = self.variables.cwd
        if (started := launch_of(words)) is not None:
            launch = InnerLaunch(
                started[0], words, self.script, line, cwd, certain, own=started[1].own,
                redirects=tuple(self.redirects.values()),
                environment=self.variables.settings(self.exports),
            )  # fmt: skip
            self.launches.append(launch)
            return
        if code := shell_code(words):
            self.shell(code[0], code[1], line)
            return
        reads = words[0].rpartition("/")[2] in SHELLS and ("-s" in words or not shell_script(words))
        if reads:
            text = self.input[0] if self.input[0] != UNKNOWN else ""
            text = text or (self.text_of(self.input[1]) if self.input[1].strip(UNKNOWN) else "")
            self.redirects = {key: one for key, one in self.redirects.items() if key != "0"}
            self.shell(text, words[words.index("-s") + 1 :] if "-s" in words else (), line)
            return
        files = self.variables.files
        inner = self.follow(words, self.variables.exported(), cwd, files)
        self.launches += [replace(x, certain=x.certain and certain) for x in inner or ()]
        if inner is None:
            self.started.append(ScriptCall(line, words, certain=certain, cwd=cwd))


def _is_broken(node: Node) -> bool:
    """Return whether the grammar does not know the node itself, and not only a part of it."""
    own = node.type in ("case_statement", "pipeline", "list", "test_command")
    return node.type in ("command", "variable_assignment") or any(
        child.is_missing or (own and child.is_error) for child in node.children
    )


FOLLOWED: Mapping[str, Callable[[ShellScript, Node], ShellOutcome]] = {
    "program": lambda script, node: script.walk(node.children),
    "do_group": lambda script, node: script.walk(node.children),
    "else_clause": lambda script, node: script.walk(node.children),
    "compound_statement": ShellScript.compound,
    "command": ShellScript.command,
    "variable_assignment": ShellScript.assign,
    "variable_assignments": ShellScript.assign,
    "declaration_command": ShellScript.assign,
    "test_command": ShellScript.test,
    "list": lambda script, node: script.chain(*node.children),
    "negated_command": ShellScript.negated,
    "pipeline": lambda script, node: script.pipe(node.named_children),
    "subshell": lambda script, node: script.subshell(node.named_children),
    "redirected_statement": ShellScript.redirection,
    "if_statement": lambda script, node: script.choose(script.clauses(node), node),
    "case_statement": lambda script, node: script.choose(script.cases(node), node),
    "while_statement": ShellScript.repeat,
    "c_style_for_statement": ShellScript.repeat,
    "for_statement": ShellScript.loop,
    "function_definition": ShellScript.function,
    "unset_command": ShellScript.unset,
    "ERROR": ShellScript.broken,
}
Builtin = Callable[[ShellScript, str, Fields, int], ShellOutcome]
BUILTINS: Mapping[str, Builtin] = {
    **dict.fromkeys(("true", ":", "false", "test", "["), ShellScript.decide),
    **dict.fromkeys(("exit", "return", "break", "continue"), ShellScript.end),
    **dict.fromkeys(("cd", "pushd", "popd"), ShellScript.enter),
    **dict.fromkeys(("set", "eval", ".", "source", *DECLARATIONS), ShellScript.set),
    **dict.fromkeys(("cat", "tee"), ShellScript.copy),
    **dict.fromkeys(("read", "getopts", "mapfile", "readarray"), ShellScript.readers),
    "shift": ShellScript.shift,
}


def _added(before: Values, values: Values, *, listed: bool) -> Values:
    """Give the values behind `+=`."""
    pairs = ((old, new) for old in before for new in values)
    found = (
        (*old, *new) if listed else ("".join((*old[:1], *new)), *old[1:]) for old, new in pairs
    )
    return tuple(dict.fromkeys(found))[:MOST]
