"""Results as JUnit XML, which CI systems show: a test case for each curve.

A curve that is slower fails. One without a verdict is skipped with the reason: inconclusive is no
pass. What was measured then and is gone is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from mpigraft.core.homes import hide_homes
from mpigraft.core.text import printable


@dataclass(frozen=True, slots=True)
class Case:
    """One line of results: a curve, or a configuration."""

    suite: str  # benchmark and layout
    name: str  # configuration
    kind: str = ""  # failure, skipped, error; empty: it passed
    text: str = ""


def junit(name: str, cases: Sequence[Case]) -> bytes:
    """Write a document of one test suite."""
    kinds = [case.kind for case in cases]
    counts = {
        "tests": len(cases),
        "failures": kinds.count("failure"),
        "errors": kinds.count("error"),
        "skipped": kinds.count("skipped"),
    }
    head = {key: str(count) for key, count in counts.items()}
    suites = ET.Element("testsuites", head)
    suite = ET.SubElement(suites, "testsuite", {"name": _clean(name), **head})
    for case in cases:
        row = ET.SubElement(
            suite, "testcase", {"classname": _clean(case.suite), "name": _clean(case.name)}
        )
        if case.kind:
            ET.SubElement(row, case.kind, {"message": _clean(case.text)})
    ET.indent(suites)
    return bytes(ET.tostring(suites, "utf-8", xml_declaration=True)) + b"\n"


def _clean(text: str) -> str:
    """Characters that XML does not know are escaped as on a terminal, and homes are hidden."""
    return hide_homes(printable(text))
