"""Two campaigns side by side: what `compare OLD NEW` shows, as text, Markdown and JSON."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Self, TypedDict

from mpigraft.analysis import (
    FactChange,
    compare_campaigns,
    labels_with_values,
    list_changes,
    match_configurations,
    unmatched,
    what_changed,
)
from mpigraft.core import numbers
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.messages import Lines
from mpigraft.core.model import (
    AcrossRule,
    Comparison,
    Finding,
    Level,
    Measured,
    Verdict,
    shared_reason,
)
from mpigraft.core.serialize import document, plain, row_of
from mpigraft.core.text import fold, join_some, labelled, printable
from mpigraft.report.answer import ANSWER, IN_THE_ANSWER, curve_table, legend
from mpigraft.report.contents import load_measured
from mpigraft.report.fail_on import curve_line, refuse_unjudged
from mpigraft.report.headline import open_curves
from mpigraft.report.json import finite, group_keys
from mpigraft.report.markdown import escape, markdown_table
from mpigraft.report.overtime.junit import Case, junit
from mpigraft.report.screen import Screen, finding_lines, folded, print_screen, signs_of
from mpigraft.report.store_document import without_homes
from mpigraft.report.table import Column, Judged, Signs, Table
from mpigraft.report.tables import size_table
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, distinct_curves, sections, tally
from mpigraft.store import Store

if TYPE_CHECKING:
    from rich.console import Console

    from mpigraft.core.model import CampaignRecord
    from mpigraft.core.serialize import Keys
    from mpigraft.report.json import GroupKeys, NoiseKeys

    SideKeys = Annotated[
        dict[str, Any], CampaignRecord, Keys("seed", "baseline", "plan", allocations=int)
    ]

NOT_RECORDED = "not recorded"
NOTHING = "Nothing that both campaigns recorded"
UNLIKE = "node-unlike"
CONTENTS = "contents of "  # begins the facts about a library's file
LONG = 60  # characters of a change that are too many for a line of several
SHOWN = 12  # facts that a line names
ORDER = {Level.ERROR: 0, Level.WARNING: 1, Level.INFO: 2}
CURVES = (
    Column("configuration"),
    Column("curve"),
    Column("ratio", right=True),
    Column("95 % interval"),
)


@dataclass(frozen=True, slots=True)
class Across:
    """Two campaigns, their comparison, and every fact of both."""

    old: Measured
    new: Measured
    comparison: Comparison
    changes: tuple[FactChange, ...]
    rule: AcrossRule
    damage: tuple[Finding, ...] = ()  # of the files of the stores

    @property
    def findings(self) -> tuple[Finding, ...]:
        probes = (f for one in self.new.evidence for f in one.evidence.findings)
        nodes = (f for f in probes if f.code == UNLIKE)  # which may be what became slower
        every = dict.fromkeys((*self.comparison.findings, *nodes, *self.damage))
        if self.new.campaign.created < self.old.campaign.created:
            turned = Finding.of("campaigns-turned", old=self.old.title, new=self.new.title)
            every[turned] = None
        return tuple(sorted(every, key=lambda f: ORDER[f.level]))

    @classmethod
    def load(cls, stores: tuple[Store, Store], names: tuple[str, str], rule: AcrossRule) -> Self:
        """Read the old and the new campaign and compare them. Raises what `load_measured` and
        `compare_campaigns` raise, UsageError for one campaign given twice."""
        old, new = (load_measured(store, name) for store, name in zip(stores, names, strict=True))
        if rule.partial:
            old, new = (
                replace(one, launches=tuple(x.without("maybe-cut") for x in one.launches))
                for one in (old, new)
            )
        if old.campaign.id == new.campaign.id:
            raise UsageError.of("campaigns-same", campaign=old.title)
        comparison = compare_campaigns(old, new, rule)
        damage = tuple(dict.fromkeys(f for store in stores for f in store.findings))
        return cls(old, new, comparison, list_changes(old, new, rule.chosen), rule, damage)

    @staticmethod
    def read(store: Store, name: str | None) -> Measured:
        """Read one campaign; see `load_measured`."""
        return load_measured(store, name)

    def show(self, console: Console, *, full: bool) -> None:
        """Print the comparison: all of it, or one screen."""
        if not full:
            print_screen(across_screen(self, console.width, signs_of(console)), console)
            return
        for line in across_lines(self, signs_of(console)):
            console.print(printable(line), soft_wrap=True)

    def json(self) -> str:
        """Write the document of schemas/across.json."""
        return document(**across_document(self))

    def markdown(self, *, brief: bool = False) -> str:
        """Write Markdown tables; `brief` without the tables per size."""
        return _markdown(self, brief=brief)

    def junit(self) -> bytes:
        """Give the curves as test cases of a CI system."""
        return junit(title(self), list(_cases(self)))

    @property
    def gone(self) -> tuple[str, ...]:
        """Configurations of the old campaign that have no value in the new one."""
        old, new = (labels_with_values(side) for side in (self.old, self.new))
        return unmatched(old, new, match_configurations(old, new, self.rule.chosen))[0]

    def refuse_worse(self) -> None:
        """Raise CheckFailed where a curve is slower, or a configuration is gone; NotJudged where
        no curve has a verdict."""
        curves = distinct_curves(self.comparison)
        slower = [g for g in curves if g.curve is Verdict.SLOWER]
        if not slower and not self.gone:
            refuse_unjudged(curves)
            return
        lines = [curve_line(group) for group in slower[:SHOWN]]
        more = len(slower) - SHOWN
        lines += [f"and {more} more curves"] if more > 0 else []
        lines += [f"{name}: it has no value any more" for name in self.gone]
        listed = Lines.below(lines)
        changed = join_some(what_changed(self.changes), SHOWN, "; ") or "nothing that was recorded"
        raise CheckFailed.of("recheck-worse", good=self.old.title, lines=listed, changed=changed)


# ------------------------------------------------------------------ text


def across_screen(data: Across, width: int, signs: Signs) -> Screen:
    """Say which curves are slower or faster than they were, and count what changed."""
    table = curve_table(data.comparison, width, signs)
    table += [*(legend(signs, width) if table else ()), []]
    changed: dict[str, dict[str, int]] = {}
    for row in data.changes:
        if row.changed and not row.name.startswith(CONTENTS):
            texts = changed.setdefault(row.name, {})
            texts[f"{row.old} -> {row.new}"] = texts.get(f"{row.old} -> {row.new}", 0) + 1
    facts = [_fact(name, texts) for name, texts in changed.items()]
    what = join_some(facts, SHOWN) or NOTHING.lower()
    return Screen(
        across_headline(data)[:ANSWER],
        [*table, *folded(printable(f"changed: {what}"), width)],
        finding_lines((f for f in data.findings if f.code != IN_THE_ANSWER), width),
        ["--full: every fact that changed, every size, every finding"],
        title=[printable(title(data))],
    )


def _fact(name: str, texts: Mapping[str, int]) -> str:
    """Write a short change as it is; others are counted."""
    first = next(iter(texts))
    if len(texts) == 1 and len(first) <= LONG:
        return f"{name} {first}"
    return f"{name} ({numbers.counted(sum(texts.values()), 'configuration')})"


def across_lines(data: Across, signs: Signs) -> list[str]:
    """Lay the comparison out for a terminal, at most 80 columns: what changed, the curves, the
    findings, the answer."""
    lines = fold(title(data))
    lines += ["", "What changed", *change_lines(data.changes)]
    for section in sections(data.comparison):
        for group in section.groups:
            lines += ["", *fold(_head(section)), *fold(group.configuration)]
            lines += size_table(section, group, narrow=True).lines()
    for section in sections(data.comparison):
        lines += ["", *fold(_head(section)), *_overview(section, signs)]
    lines += ["", *fold(tally(data.comparison))]
    for finding in data.findings:
        lines += fold(f"{finding.level} {finding.code}: {words.single_line(finding.message)}")
        lines += fold(finding.why, "  why: ", 4) if finding.why else []
        lines += fold(finding.fix, "  what to do: ", 4) if finding.fix else []
    lines += ["", *(line for text in data.comparison.summary for line in fold(text))]
    answer = across_headline(data)
    return [*lines, "", *(line for text in answer for line in fold(text))]


def title(data: Across) -> str:
    """Write `new 1a2b3c4d, 2026-02-03, against old 9f8e7d6c, 2026-01-02: 10 and 12 rounds,
    unpaired`."""
    sides = [f"{side.title}, {side.campaign.created[:10]}" for side in (data.new, data.old)]
    rounds = " and ".join(
        str(len({row.round for row in side.values})) for side in (data.new, data.old)
    )
    return f"{sides[0]}, against {sides[1]}: {rounds} rounds, unpaired"


def _head(section: Section) -> str:
    figures = words.in_unit(section.quantity, section.unit)
    better = words.better(section.better)
    name = f"{section.benchmark}: {figures}, {better}, {section.place}"
    return f"{name}; {section.repeats}" if section.repeats else name


def _overview(section: Section, signs: Signs) -> Iterator[str]:
    """List a line for each configuration: its verdict, ratio and interval, and a sign per size."""
    for group in section.groups:
        yield from fold(group.configuration)
        strip = "".join(signs[cell.verdict] for cell in group.cells)
        whole = f"{signs[group.curve]} {group.curve} {numbers.ratio(group.pooled)}"
        whole += f" {numbers.interval(group.pooled_low, group.pooled_high)}"
        yield from fold(f"{whole}  {strip}", "    ", 4)
        if note := words.curve_note(group):
            yield from fold(note, "    ", 4)
    if unlike := words.unlike_sizes(section.groups):
        yield from fold(unlike)


def _cases(data: Across) -> Iterator[Case]:
    for group in distinct_curves(data.comparison):
        suite = f"{group.benchmark} {group.metric} {group.layout}"
        ratio = f"ratio {numbers.ratio(group.pooled)} "
        ratio += numbers.interval(group.pooled_low, group.pooled_high)
        kind, text = "", ""
        if group.curve is Verdict.SLOWER:
            kind, text = "failure", f"slower than {data.old.title}: {ratio}"
        elif group.curve is Verdict.INCONCLUSIVE:
            kind, text = "skipped", words.no_verdict_reason(group) or f"inconclusive: {ratio}"
        yield Case(suite, group.configuration, kind, text)
    for name in data.gone:
        yield Case("configuration", name, "error", f"{data.new.title} has no value of it")


def change_lines(rows: Sequence[FactChange]) -> list[str]:
    """Describe what changed, fact by fact, then what is not recorded, then what stayed."""
    lines: list[str] = []
    changed: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.changed:
            changed.setdefault((row.name, row.old, row.new), []).append(row.scope)
    for (name, old, new), scopes in changed.items():
        where = "" if scopes == ["machine"] else f" ({join_some(scopes, 3, ', ')})"
        lines += fold(f"{name}: {_short(old)} -> {_short(new)}{where}", "  ", 4)
    if not changed:
        lines.append(f"  {NOTHING.lower()}")
    missing = {row.name: None for row in rows if not row.recorded}
    differing = {row.name for row in rows if row.changed or not row.recorded}
    alike = {row.name: None for row in rows if row.name not in differing}
    for label, every in (("not recorded", missing), ("same", alike)):
        names = [name for name in every if not name.startswith(CONTENTS)]
        if names:
            lines += labelled(f"  {label}:", join_some(names, SHOWN * 2, ", "), column=17)
    return lines


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:150]} ... ({len(text)} characters, see --json)"


def across_headline(data: Across) -> tuple[str, ...]:
    """Give the answer in a line or two: which curves are slower or faster than they were."""
    curves = distinct_curves(data.comparison)
    counts = Counter(group.curve for group in curves)
    lines = []
    for verdict in (Verdict.SLOWER, Verdict.FASTER):
        if called := [group for group in curves if group.curve is verdict]:
            worst = max(called, key=lambda g: abs(math.log(g.pooled)))
            at = f"{worst.benchmark.removeprefix('native:')} on {worst.layout}"
            most = f"most at {at} ({numbers.ratio(worst.pooled)})"
            names = join_some(list(dict.fromkeys(g.configuration for g in called)), 4, ", ")
            lines.append(
                f"{verdict.capitalize()} than {data.old.title} on {len(called)} of {len(curves)} "
                f"curves: {names}; {most}."
            )
    withheld = open_curves(curves)
    if not lines and (counts[Verdict.EQUIVALENT] or not withheld):
        every = numbers.counted(len(curves), "curve")
        text = f"No curve is faster or slower than in {data.old.title}: "
        reason = shared_reason(curves)
        lines.append(text + (reason or f"{counts[Verdict.EQUIVALENT]} of {every} equivalent") + ".")
    return (*lines, *withheld)


# ------------------------------------------------------------------ Markdown and JSON


def _markdown(data: Across, *, brief: bool) -> str:
    lines = [f"# {escape(title(data))}", "", *map(escape, across_headline(data)), ""]
    columns = (Column("what"), Column("of"), Column("old"), Column("new"))
    rows = tuple(
        (row.name, row.scope, row.old or NOT_RECORDED, row.new or NOT_RECORDED)
        for row in data.changes
        if row.changed or (not row.recorded and (row.old or row.new))
    )
    lines += ["## What changed", ""]
    lines += [*markdown_table(Table("", columns, rows)), ""] if rows else [f"{NOTHING}.", ""]
    for section in sections(data.comparison):
        lines += [f"## {escape(section.benchmark)} on {escape(section.place)}", ""]
        lines += [
            f"{words.in_unit(section.quantity, section.unit)}, {words.better(section.better)}.",
            "",
        ]
        curves = tuple(
            (
                group.configuration,
                Judged(group.curve, words.bracketed_note(group)),
                numbers.ratio(group.pooled),
                numbers.interval(group.pooled_low, group.pooled_high),
            )
            for group in section.groups
        )
        lines += markdown_table(Table("", CURVES, curves))
        if unlike := words.unlike_sizes(section.groups):
            lines += ["", f"{escape(unlike)}."]
        for group in () if brief else section.groups:
            lines += ["", f"### {escape(group.configuration)}", ""]
            lines += markdown_table(size_table(section, group))
        lines.append("")
    lines += ["## Findings", ""] if data.findings else []
    lines += [f"- **{f.level} {escape(f.code)}**: {escape(f.message)}" for f in data.findings]
    return "\n".join(lines).rstrip() + "\n"


class AcrossDocument(TypedDict):
    """Two campaigns, compared configuration by configuration. Their rounds did not alternate."""

    old: SideKeys
    new: SideKeys
    rounds: int  # of the campaign that has fewer
    margin: float
    level: float  # of the joint test: a curve with a p of at most this may be called
    comparisons: list[GroupKeys]  # baseline is the old value of a cell, value the new one
    changes: list[FactChange]
    noise: list[NoiseKeys]
    findings: list[Finding]
    headline: list[str]  # empty: no curve is called
    summary: list[str]


def across_document(data: Across) -> AcrossDocument:
    """Make the document of schemas/across.json, without the schema's number."""
    comparison = data.comparison
    return row_of(
        AcrossDocument,
        comparison,
        old=_campaign(data.old),
        new=_campaign(data.new),
        margin=data.rule.margin,
        level=data.rule.level,
        comparisons=list(map(group_keys, comparison.groups)),
        changes=without_homes(plain(data.changes)),
        noise=finite(plain(comparison.noise)),
        findings=without_homes(plain(data.findings)),
        headline=list(across_headline(data)),
    )


def _campaign(side: Measured) -> SideKeys:
    row = plain(side.campaign) | {"rounds": len({row.round for row in side.values})}
    row["allocations"] = len(side.allocations)
    row["tool"] = row.pop("tool")  # the last
    return {key: row[key] for key in row if key not in ("seed", "baseline", "plan")}
