"""Values far from their own best sample: counted over launches where people look."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from mpigraft.core.model import Finding, Level
from mpigraft.report import findings
from tests.builders.messages import shows
from tests.builders.reports import small_data
from tests.unit.report.test_report_text import shown


def test_scattered_samples_are_counted_over_launches() -> None:
    """Whichever sizes had them: a finding of each launch would hide all others."""
    data = small_data()
    scattered = Finding(
        Level.WARNING, "samples-scattered", "native:allreduce: far", evidence=("8 B",)
    )
    first, second, *rest = data.launches
    other = replace(scattered, evidence=("64 B",))
    launches = (replace(first, findings=(scattered,)), replace(second, findings=(other,)), *rest)
    (found,) = (
        f for f in findings.report_findings(replace(data, launches=launches))
        if f.code == "samples-scattered"
    )  # fmt: skip
    name = next(c.id for c in data.configurations if c.key == first.configuration)
    started = sum(x.configuration == first.configuration for x in launches)
    assert second.configuration == first.configuration
    assert shows(found.message, name, f"of {started}", "native:allreduce 2")
    assert shows(" ".join(shown(replace(data, launches=launches)).split()), "native:allreduce", "2")


def test_scattered_samples_of_many_configurations_are_one_finding() -> None:
    """Those that have it most often are named, the others counted."""
    data = small_data()
    (one, launch) = data.configurations[0], data.launches[0]
    far = [
        Finding(Level.WARNING, "samples-scattered", f"native:{what}: far")
        for what in ("bw", "bcast")
    ]
    keys = [f"{n:064x}" for n in range(6)]
    launches = tuple(
        replace(launch, id=f"{key}{n}", configuration=key, findings=tuple(far if n < m else ()))
        for m, key in enumerate(keys)
        for n in range(6)
    )
    configurations = tuple(replace(one, key=key, id=f"mpi@k{n}") for n, key in enumerate(keys))
    (found,) = (
        f for f in findings.report_findings(
            replace(data, launches=launches, configurations=configurations, evidence=())
        )
        if f.code == "samples-scattered"
    )  # fmt: skip
    named = [(f"mpi@k{n}", f"native:bcast {n}", f"native:bw {n}") for n in (5, 4, 3, 2)]
    assert shows(found.message, *chain.from_iterable(named), "1 more")
