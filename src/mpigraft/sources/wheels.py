"""MPIs that `mpigraft get` fetched."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft import fetch
from mpigraft.model import Family
from mpigraft.sources import look
from mpigraft.sources.candidate import Candidate, Here, find_libmpi


def find(_: Here) -> Iterator[Candidate]:
    for prefix in look.entries(fetch.home()):
        facts = fetch.marker(prefix)
        if facts.get("family") not in set(Family):
            continue  # a marker of another release of this tool
        family = Family(facts["family"])
        yield Candidate(
            source="wheel",
            found=f"fetched by `mpigraft get`: {prefix}",
            prefix=prefix,
            libmpi=find_libmpi(prefix, family),
            bins=(prefix / "bin",),
            family=family,
            version=facts["version"],
        )
