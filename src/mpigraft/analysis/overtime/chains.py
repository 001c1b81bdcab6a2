"""Follow each configuration of a machine from campaign to campaign, through updates of its MPI."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from mpigraft.analysis.overtime.matching import match_configurations, series_name

Chain = list[tuple[int, str]]  # campaigns that have a configuration, and its key there


def name_chains(campaigns: Sequence[Mapping[str, str]]) -> dict[tuple[int, str], str]:
    """Name each configuration by its chain, for the campaigns of one machine in the order of
    their dates (label by key): {(campaign, key): name}.

    A configuration goes on with what the campaign before had, as in `compare OLD NEW`, and else
    with what an earlier one had. A chain is named without versions, or by its last label where
    others have that name too.
    """
    chains: list[Chain] = []
    for number, labels in enumerate(campaigns):
        before = [chain for chain in chains if chain[-1][0] == number - 1]
        earlier = [chain for chain in chains if chain[-1][0] != number - 1]
        free = dict(labels)
        for group in (before, earlier):
            last = {chain[-1][1]: chain for chain in group}
            old = {key: campaigns[chain[-1][0]][key] for key, chain in last.items()}
            for pair in match_configurations(old, free):
                del free[pair.new]
                last[pair.old].append((number, pair.new))
        chains += [[(number, key)] for key in free]
    labels_of = [campaigns[number][key] for number, key in (chain[-1] for chain in chains)]
    counts = Counter(map(series_name, labels_of))
    names: dict[tuple[int, str], str] = {}
    for chain, label in zip(chains, labels_of, strict=True):
        name = series_name(label)
        names |= dict.fromkeys(chain, name if counts[name] == 1 else label)
    return names
