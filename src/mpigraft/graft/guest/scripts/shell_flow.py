"""Follow the lists, branches and loops of a shell script, as far as reading shows which run."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import islice, product
from typing import TYPE_CHECKING

from mpigraft.graft.guest.scripts.launches import InnerLaunch
from mpigraft.graft.guest.scripts.shell_builtins import LOOKUPS, ShellOutcome, holds, outcome_of
from mpigraft.graft.guest.scripts.shell_syntax import (
    UNKNOWN,
    leaves,
    parse_shell,
    text_of,
)
from mpigraft.graft.guest.scripts.shell_values import (
    MAX_LENGTH,
    MOST,
    NOT_KNOWN,
    Fields,
    Variables,
    arithmetic,
    expand,
    expand_text,
)
from mpigraft.graft.guest.scripts.starters import ScriptCall, is_own

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_STEPS = 5000  # commands that are followed; functions, loops and scripts repeat some
MAX_PARSED = 1 << 20  # characters
MAX_CALLS = 20  # functions in functions
MAX_DEPTH = 30  # of commands in commands
CONDITIONS = frozenset({"command", "which", "type", "hash", "grep", "egrep", "expr", "getopts",
                        "read", "cmp", "diff", "pgrep", "mountpoint"})  # fmt: skip
# A variable of a rank: a script that looks at one may be meant to be started by a launcher.
RANK = re.compile(r"\b(OMPI_COMM_WORLD|PMI_|PMIX_|PALS_|MV2_COMM_WORLD|SLURM_(PROC|LOCAL)ID|ALPS_)")
EXPRESSIONS = frozenset({"binary_expression", "unary_expression", "parenthesized_expression"})


@dataclass(slots=True)
class ShellBudget:
    """How much is followed, over all scripts that start each other."""

    steps: int = MAX_STEPS
    characters: int = MAX_PARSED


Follow = Callable[
    [Fields, Mapping[str, str], str, Mapping[str, str]], tuple[InnerLaunch, ...] | None
]


@dataclass(slots=True)
class ShellFlow(ABC):
    """A script that is followed. `follow` answers for a script that this one starts, with its
    launches (None: its words are no shell script); `started` are its other commands."""

    script: str
    variables: Variables
    follow: Follow
    text_of: Callable[[str], str]  # of a file; empty: it cannot be read
    budget: ShellBudget = field(default_factory=ShellBudget)
    launches: list[InnerLaunch] = field(default_factory=list)
    started: list[ScriptCall] = field(default_factory=list)
    functions: dict[str, Node] = field(default_factory=dict)
    calls: int = 0
    depth: int = 0
    line: int = 0  # of the command whose text is followed; 0: lines are those of the script
    flow: str = ""  # exit, return, break or continue: what follows does not run
    failed: bool = False  # it is an exit with an error
    replaced: bool = False  # it ended by the start of another program
    may: set[str] = field(default_factory=set)  # of exit and so on: one may have come before
    output_texts: list[str] = field(default_factory=list)
    redirects: dict[str, tuple[str, str]] = field(default_factory=dict)  # by descriptor
    exports: set[str] = field(default_factory=set)  # variables that a launcher passes on
    attached: dict[int, Node] = field(default_factory=dict)  # redirections, by the node they are of
    input: tuple[str, str] = (UNKNOWN, "")  # (what a command reads, the file that it reads)

    def read(self, text: str) -> None:
        """Follow the text of the script."""
        try:
            self.parsed(text)
        except RecursionError:
            self.launches = [replace(one, certain=False) for one in self.launches]

    def parsed(self, text: str) -> ShellOutcome:
        self.budget.characters -= len(text)
        root = parse_shell(text) if self.budget.characters > 0 else None
        if root is None:
            self.may.add("error")
            return ShellOutcome.OPEN
        return self.walk([root])

    @abstractmethod
    def visit(self, node: Node) -> ShellOutcome:
        """Follow a statement."""

    # ------------------------------------------------------------- statements

    def walk(self, nodes: Iterable[Node]) -> ShellOutcome:
        outcome = ShellOutcome.LIKELY
        for node in nodes:
            if self.budget.steps < 0 or self.depth > MAX_DEPTH:
                self.may.add("error")
            if self.flow or self.budget.steps < 0 or self.depth > MAX_DEPTH:
                break
            if node.is_named and node.type != "comment":
                self.depth += 1
                outcome = self.visit(node)
                self.depth -= 1
        return outcome

    def compound(self, node: Node) -> ShellOutcome:
        if node.children[0].type == "((":
            return self.number(node.named_children[:1])
        return self.walk(node.children)

    def negated(self, node: Node) -> ShellOutcome:
        swapped = {ShellOutcome.YES: ShellOutcome.NO, ShellOutcome.NO: ShellOutcome.YES}
        return swapped.get(self.walk(node.named_children), ShellOutcome.OPEN)

    def function(self, node: Node) -> ShellOutcome:
        name, body = (node.child_by_field_name(field) for field in ("name", "body"))
        if name is not None and body is not None:
            self.functions[text_of(name)] = body
        return ShellOutcome.LIKELY

    def unset(self, node: Node) -> ShellOutcome:
        for child in node.named_children:
            self.variables.values[text_of(child)] = (("",),)
        return ShellOutcome.LIKELY

    def chain(self, left: Node, operator: Node, right: Node, *_: Node) -> ShellOutcome:
        return self.joined(self.walk([left]), operator.type, right)

    def joined(self, first: ShellOutcome, operator: str, right: Node) -> ShellOutcome:
        """Follow what is behind && or ||."""
        stops = ShellOutcome.NO if operator == "&&" else ShellOutcome.YES
        passes = ShellOutcome.YES if operator == "&&" else ShellOutcome.NO
        if first is stops or self.flow:
            return first
        if first is passes or (first is ShellOutcome.LIKELY and operator == "&&"):
            second = self.walk([right])
            return first if second is ShellOutcome.LIKELY else second
        self.branches([[right]], whole=False, fails=operator == "||")
        return first

    def clauses(self, node: Node) -> Iterator[tuple[ShellOutcome, list[Node]]]:
        """Yield the outcomes of the tests of an `if`, with their lists."""
        for clause in [node, *(c for c in node.children if c.type == "elif_clause")]:
            then = next((n for n, c in enumerate(clause.children) if c.type == "then"), 0)
            tests, behind = clause.children[:then], clause.children[then:]
            body = [c for c in behind if c.type not in ("elif_clause", "else_clause")]
            yield self.walk(tests), body
        yield ShellOutcome.YES, [c for c in node.children if c.type == "else_clause"]

    def cases(self, node: Node) -> Iterator[tuple[ShellOutcome, list[Node]]]:
        word = node.child_by_field_name("value")
        texts = expand_text([word], self) if word is not None else (UNKNOWN,)
        for item in (child for child in node.children if child.type == "case_item"):
            patterns = item.children_by_field_name("value")
            known = [p for one in patterns for p in expand_text([one], self)]
            matches = [
                True if p == "*" else None if UNKNOWN in p + t else fnmatchcase(t, p)
                for p in known
                for t in texts
            ]
            decided = True if True in matches else None if None in matches else False
            several = len(texts) > 1 and "*" not in known and decided
            yield outcome_of(None if several else decided), item.children[len(patterns) :]

    def choose(
        self, options: Iterator[tuple[ShellOutcome, list[Node]]], node: Node
    ) -> ShellOutcome:
        """Follow the list whose test holds, or those that may run."""
        lists = []
        whole = False
        for outcome, body in options:
            if outcome is not ShellOutcome.NO:
                lists.append(body)
            if whole := outcome is ShellOutcome.YES:
                break
        if not whole or len(lists) > 1:
            whole = whole and bool(lists[-1] or node.type == "case_statement")
            self.branches(lists, whole=whole, of_rank=RANK.search(text_of(node)) is not None)
        elif lists:
            self.walk(lists[0])
        return ShellOutcome.LIKELY

    def branches(
        self,
        lists: Sequence[Sequence[Node]],
        *,
        whole: bool,
        of_rank: bool = False,
        fails: bool = False,
    ) -> None:
        """Follow alternatives, each from the same variables."""
        before, kept, after = self.variables, self.launches, []
        found: list[tuple[list[InnerLaunch], bool]] = []
        flows = []
        for nodes in lists:
            self.variables, self.launches, self.flow = before.copy(), [], ""
            self.failed, self.replaced, others = fails and _is_exit(nodes), False, len(self.started)
            self.walk(nodes)
            beside = self.replaced or any(is_own(one.words[0]) for one in self.started[others:])
            excused = self.flow == "exit" and self.failed and not (of_rank or beside)
            if self.flow and not excused and not any(one.certain for one in self.launches):
                self.may.add(self.flow)
            self.started[others:] = [replace(x, certain=False) for x in self.started[others:]]
            found.append((self.launches, excused))
            flows.append(self.flow)
            if not self.flow:
                after.append(self.variables)
        self.variables, self.launches = before, kept
        passing = [launches for launches, excused in found if launches or not excused]
        every = whole and all(any(one.certain for one in few) for few in passing)
        for launches, _ in found:
            self.launches += [replace(x, certain=x.certain and every) for x in launches]
        self.flow = flows[0] if whole and all(flows) else ""
        self.variables.merge([*after, *([] if whole and after else [before.copy()])])

    def loop(self, node: Node) -> ShellOutcome:
        variable = node.child_by_field_name("variable")
        name = text_of(variable) if variable is not None else ""
        several = expand(node.children_by_field_name("value"), self)
        body = [
            child for child in node.children if child.type in ("do_group", "compound_statement")
        ]
        words = tuple(dict.fromkeys(word for fields in several for word in fields))
        if words and all(word == UNKNOWN for word in words):  # there may be none
            self.variables.values[name] = NOT_KNOWN
            self.branches([body], whole=False)
        elif len(several) > 1:
            self.variables.values[name] = tuple((word,) for word in words[:MOST])
            self.turn(body)
        else:
            for word in words[:MOST]:
                self.variables.values[name] = ((word,),)
                if self.turn(body):
                    break
        self.may -= {"break", "continue"}
        return ShellOutcome.LIKELY

    def turn(self, body: Sequence[Node]) -> bool:
        """Follow a body once; whether it ends the loop."""
        self.walk(body)
        ends = self.flow not in ("", "continue")
        self.flow = "" if self.flow in ("break", "continue") else self.flow
        self.may.discard("continue")
        return ends

    def repeat(self, node: Node) -> ShellOutcome:
        """Follow `while`, `until` or `for ((`, in which `(( ))` has three parts."""
        first, update, tests = (node.children_by_field_name(x)
                                for x in ("initializer", "update", "condition"))  # fmt: skip
        body = node.children_by_field_name("body")
        stops = ShellOutcome.YES if node.children[0].type == "until" else ShellOutcome.NO
        self.number(first)
        for _ in range(MOST):
            styled = node.type == "c_style_for_statement"
            outcome = self.number(tests) if styled else self.walk(tests)
            if outcome is stops or self.flow:
                break
            if outcome in (ShellOutcome.OPEN, ShellOutcome.LIKELY):
                self.branches([body], whole=False)
                self.flow = "" if self.flow in ("break", "continue") else self.flow
                break
            if self.turn(body):
                break
            self.number(update)
        self.may -= {"break", "continue"}
        return ShellOutcome.LIKELY

    def number(self, nodes: Sequence[Node]) -> ShellOutcome:
        value = [arithmetic(node, self) for node in nodes[:1]]
        return outcome_of(None if None in value or not value else value[0] != 0)

    def test(self, node: Node) -> ShellOutcome:
        if node.has_error:
            return ShellOutcome.OPEN
        if node.children[0].type == "((":
            return self.number(node.named_children[:1])
        words = [
            expand_text([leaf], self)
            if leaf.is_named and leaf.type != "test_operator"
            else (text_of(leaf),)
            for leaf in list(leaves(node, EXPRESSIONS))[1:-1]
        ]
        outcomes = {holds(fields, double=True) for fields in islice(product(*words), MOST)}
        return outcome_of(outcomes.pop() if len(outcomes) == 1 else None)

    def subshell(self, nodes: Iterable[Node]) -> ShellOutcome:
        """Follow commands whose variables, folder and exit are their own."""
        outer, flow, may = self.variables, self.flow, set(self.may)
        self.variables = outer.copy()
        outcome = self.walk(nodes)
        outer.files = self.variables.files
        self.variables, self.flow, self.may = outer, flow, may | (self.may & {"error"})
        return outcome

    def pipe(self, nodes: Sequence[Node]) -> ShellOutcome:
        outer, before = self.input, dict(self.redirects)
        outcome = ShellOutcome.LIKELY
        for number, node in enumerate(nodes):
            start = len(self.output_texts)
            outcome = self.subshell([node])
            if number + 1 < len(nodes):
                self.input, self.redirects["0"] = (self.cut(start), ""), ("|", "")
        self.input, self.redirects = outer, before
        return outcome

    def cut(self, start: int) -> str:
        """Take what was printed since; UNKNOWN: not all of it is known."""
        text = "".join(self.output_texts[start:])
        del self.output_texts[start:]
        return text if len(text) < MAX_LENGTH else UNKNOWN

    def output(self, node: Node) -> str:
        """Follow a command substitution, and give what it prints."""
        start, self.depth = len(self.output_texts), self.depth + 1
        if self.depth < MAX_DEPTH:
            self.subshell(node.named_children)
        self.depth -= 1
        names = [
            c.children[0]
            for c in leaves(node, {"list", "redirected_statement"})
            if c.type == "command"
        ]
        if names and text_of(names[0]) in LOOKUPS:  # what comes behind || is for want of it
            del self.output_texts[start + 1 :]
        return self.cut(start).rstrip("\n")


def _is_exit(nodes: Sequence[Node]) -> bool:
    return len(nodes) == 1 and text_of(nodes[0]).strip() == "exit"
