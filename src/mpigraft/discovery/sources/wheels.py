"""MPIs that `mpigraft get` fetched."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.core.model import Family
from mpigraft.discovery.install.fetch import fetch_home, fetched_facts
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Candidate, Host, whole_prefix


def find(_: Host) -> Iterator[Candidate]:
    for prefix in files.entries(fetch_home()):
        facts = fetched_facts(prefix)
        if facts.get("family") not in set(Family):
            continue  # a marker of another release of this tool
        family = Family(facts["family"])
        origin = f"fetched by `mpigraft get`: {prefix}"
        yield whole_prefix("wheel", origin, prefix, family, facts["version"])
