"""Find for each configuration of a campaign the one of another campaign that it continues.

After an update a configuration has another key, since the contents of its libraries differ, and
often another id, since the version is in it. It is still the same line of results: what a person
asks for by `openmpi` and `ofi-cxi`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from mpigraft.analysis.grouping import labels_of
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Measured

VERSION = re.compile(r"@v?\d[^/+@:\[\s]*")


@dataclass(frozen=True, slots=True)
class MatchedConfiguration:
    """One configuration in two campaigns: keys, and labels of each."""

    old: str
    new: str
    old_label: str
    new_label: str

    @property
    def name(self) -> str:
        """Its label, with both where they differ."""
        if self.old_label == self.new_label:
            return self.new_label
        return f"{self.new_label} (was {self.old_label})"


def labels_with_values(side: Measured) -> dict[str, str]:
    """Return the label of each configuration of a campaign that has values, by key."""
    labels = labels_of(side.configurations, side.values)
    used = {row.configuration for row in side.values}
    return {key: label for key, label in labels.items() if key in used}


def series_name(label: str) -> str:
    """`openmpi@5.0.11/ofi-lnx` -> `openmpi/ofi-lnx`: what stays when versions change."""
    return VERSION.sub("", label)


def match_configurations(
    old: Mapping[str, str], new: Mapping[str, str], chosen: Sequence[str] = ()
) -> tuple[MatchedConfiguration, ...]:
    """Match configurations (label by key): those of `chosen` (OLD=NEW, each an id or its
    beginning), then by key, by label, and by series, each where it fits one of both sides only.
    Raises UsageError for a word of `chosen` that names none or several."""
    pairs = dict(_chosen(word, old, new) for word in chosen)
    rules: tuple[Callable[[str, str], str], ...] = (
        lambda key, _: key,
        lambda _, label: label,
        lambda _, label: series_name(label),
    )
    for rule in rules:
        used = set(pairs.values())
        free_old = {k: rule(k, label) for k, label in old.items() if k not in pairs}
        free_new = {k: rule(k, label) for k, label in new.items() if k not in used}
        by_name = {name: k for k, name in free_new.items()}
        single = _single(free_old.values()) & _single(free_new.values())
        pairs |= {k: by_name[name] for k, name in free_old.items() if name in single}
    return tuple(
        MatchedConfiguration(k, pairs[k], label, new[pairs[k]])
        for k, label in old.items()
        if k in pairs
    )


def unmatched(
    old: Mapping[str, str], new: Mapping[str, str], pairs: Iterable[MatchedConfiguration]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """List the labels that only the old side has, and those that only the new one has."""
    ours, theirs = {pair.old for pair in pairs}, {pair.new for pair in pairs}
    return (
        tuple(sorted(label for key, label in old.items() if key not in ours)),
        tuple(sorted(label for key, label in new.items() if key not in theirs)),
    )


def _single(names: Iterable[str]) -> set[str]:
    return {name for name, count in Counter(names).items() if count == 1}


def _chosen(word: str, old: Mapping[str, str], new: Mapping[str, str]) -> tuple[str, str]:
    """Read OLD=NEW; an id may have `=` in it, so each place of one is tried."""
    places = [n for n, letter in enumerate(word) if letter == "="]
    hits = {
        (one, other)
        for place in places
        if (one := _key(word[:place], old)) and (other := _key(word[place + 1 :], new))
    }
    if len(hits) != 1:
        known = "; ".join(", ".join(sorted(side.values())) for side in (old, new))
        raise UsageError.of("match-unknown", word=word, known=known)
    return hits.pop()


def _key(name: str, labels: Mapping[str, str]) -> str:
    """Return the key of that id, or of the only one that begins so; else empty."""
    same = [k for k, label in labels.items() if name in (k, label)]
    near = [k for k, label in labels.items() if name and label.startswith(name)]
    hits = same or near
    return hits[0] if len(hits) == 1 else ""
