"""Follow each configuration of a machine from campaign to campaign, through updates of its MPI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mpigraft.analysis.overtime.matching import match_configurations, series_name


@dataclass(slots=True)
class Chain:
    """One configuration over time: its last key and label, and the campaign that had it last."""

    key: str
    label: str
    campaign: int
    members: list[tuple[int, str]]  # campaigns that have it, and its key there


def name_chains(campaigns: Sequence[Mapping[str, str]]) -> dict[tuple[int, str], str]:
    """Name each configuration by its chain, for the campaigns of one machine in the order of
    their dates (label by key): {(campaign, key): name}.

    A configuration goes on with what the campaign before had, as in `compare OLD NEW`, and else
    with what an earlier one had. A chain is named without versions, or by its last label where
    others have that name too.
    """
    chains: list[Chain] = []
    for number, labels in enumerate(campaigns):
        before = [chain for chain in chains if chain.campaign == number - 1]
        earlier = [chain for chain in chains if chain.campaign != number - 1]
        open_ = dict(labels)
        for group in (before, earlier):
            for chain, key in _continued(group, open_):
                chain.key, chain.label, chain.campaign = key, open_.pop(key), number
                chain.members.append((number, key))
        chains += [Chain(key, label, number, [(number, key)]) for key, label in open_.items()]
    counts = Counter(series_name(chain.label) for chain in chains)
    names = {}
    for chain in chains:
        name = series_name(chain.label)
        for member in chain.members:
            names[member] = name if counts[name] == 1 else chain.label
    return names


def _continued(chains: Iterable[Chain], labels: Mapping[str, str]) -> list[tuple[Chain, str]]:
    """Return the chains that go on in a campaign, each with its key there."""
    by_key = {chain.key: chain for chain in chains}
    old = {key: chain.label for key, chain in by_key.items()}
    return [(by_key[pair.old], pair.new) for pair in match_configurations(old, labels).pairs]
