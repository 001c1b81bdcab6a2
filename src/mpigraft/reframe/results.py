"""What a campaign's comparison means for ReFrame: performance variables by name, and what failed.

This file needs no ReFrame. A document is what `mpigraft compare --json` printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERDICTS = {"slower": -1.0, "equivalent": 0.0, "inconclusive": 0.0, "faster": 1.0}
# Scales of the EESSI test suite: nodes, and CPUs of each or the part of a node.
SCALES: dict[str, dict[str, int]] = {
    "1_core": {"num_nodes": 1, "num_cpus_per_node": 1},
    "2_cores": {"num_nodes": 1, "num_cpus_per_node": 2},
    "4_cores": {"num_nodes": 1, "num_cpus_per_node": 4},
    "1cpn_2nodes": {"num_nodes": 2, "num_cpus_per_node": 1},
    "1cpn_4nodes": {"num_nodes": 4, "num_cpus_per_node": 1},
    "1_8_node": {"num_nodes": 1, "node_part": 8},
    "1_4_node": {"num_nodes": 1, "node_part": 4},
    "1_2_node": {"num_nodes": 1, "node_part": 2},
    "1_node": {"num_nodes": 1, "node_part": 1},
    "2_nodes": {"num_nodes": 2, "node_part": 1},
    "4_nodes": {"num_nodes": 4, "node_part": 1},
    "8_nodes": {"num_nodes": 8, "node_part": 1},
    "16_nodes": {"num_nodes": 16, "node_part": 1},
}
CI_TAG = "CI"


def layout_of(scale: str, cores: int) -> tuple[int, int]:
    """Return nodes and ranks on each for a scale on nodes of so many cores; 0 ranks where such a
    node is too small. Raises KeyError for an unknown scale."""
    row = SCALES[scale]
    if "node_part" in row:
        return row["num_nodes"], cores // row["node_part"]
    each = row["num_cpus_per_node"]
    return row["num_nodes"], each if each <= cores else 0


def read_document(path: Path) -> dict[str, Any]:
    """Read what `compare --json` wrote. Raises ValueError for anything else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    if not isinstance(document, dict) or not isinstance(document.get("comparisons"), list):
        raise ValueError(f"{path} is no document of mpigraft compare --json")
    return document


def read_error(path: Path) -> str:
    """Read the message with which mpigraft ended from what it wrote to stderr, ready for a format
    of ReFrame's."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    messages = [line for line in lines if line.startswith("mpigraft: ")]
    text = (messages or lines[-1:] or [f"see {path.name}"])[0]
    return text.replace("{", "{{").replace("}", "}}")


def performance_variables(document: Mapping[str, Any]) -> dict[str, tuple[float, str]]:
    """Name each figure: medians at the smallest and the largest size, the ratio to the baseline
    over all sizes, and the verdict (-1 slower, 0, 1 faster), each with its unit."""
    figures: dict[str, tuple[float, str]] = {}
    for row in document["comparisons"]:
        head = variable_name(row["configuration"], row["benchmark"], row["metric"])
        for cell in (row["cells"][0], row["cells"][-1]) if row["cells"] else ():
            figures[f"{head}_{cell['size']}"] = (float(cell["value"]), row["unit"])
            base = variable_name(document["baseline"], row["benchmark"], row["metric"])
            figures.setdefault(f"{base}_{cell['size']}", (float(cell["baseline"]), row["unit"]))
        figures[f"{head}_ratio"] = (float(row["pooled"]), "x")
        figures[f"{head}_verdict"] = (VERDICTS[row["curve"]], "")
    for row in document.get("baseline_only", ()):
        head = variable_name(document["baseline"], row["benchmark"], row["metric"])
        for figure in (row["figures"][0], row["figures"][-1]) if row["figures"] else ():
            figures[f"{head}_{figure['size']}"] = (float(figure["value"]), row["unit"])
    return figures


def variable_name(configuration: str, benchmark: str, metric: str) -> str:
    """`openmpi_5_0_11_ob1_sm_latency_latency`: letters, digits and underscores alone, as names of
    references are written."""
    words = (configuration, benchmark.removeprefix("native:"), metric)
    return re.sub(r"\W+", "_", "_".join(words), flags=re.ASCII).strip("_")


def slower_curves(document: Mapping[str, Any]) -> list[str]:
    """Name the curves that are slower than the baseline."""
    return [
        f"{row['configuration']} at {row['benchmark']} on {row['layout']}"
        for row in document["comparisons"]
        if row["curve"] == "slower"
    ]
