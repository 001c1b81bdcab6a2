"""Values far from their own best sample: counted over launches where people look."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.model import Finding, Level
from mpigraft.report import trouble
from tests.unit.report_samples import small_data
from tests.unit.test_report_text import shown


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
        f for f in trouble.trouble(replace(data, launches=launches))
        if f.code == "samples-scattered"
    )  # fmt: skip
    name = next(c.id for c in data.configurations if c.key == first.configuration)
    started = sum(x.configuration == first.configuration for x in launches)
    assert second.configuration == first.configuration
    assert found.seen == f"{name}: in 2 of {started} launches native:allreduce: far"
    assert "in 2 of" in " ".join(shown(replace(data, launches=launches)).split())
