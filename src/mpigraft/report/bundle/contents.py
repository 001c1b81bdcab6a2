"""What is in a bundle, file by file: results, inputs, evidence, scripts, analysis, versions."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

from mpigraft import __version__
from mpigraft.bench import write_export
from mpigraft.core.errors import MissingError
from mpigraft.core.model import AcrossRule, Measured
from mpigraft.core.serialize import document, parse_object
from mpigraft.native import sources
from mpigraft.report.bundle.archive import SUMS, safe_name, write_archive
from mpigraft.report.bundle.scripts import scripts
from mpigraft.report.contents import load_report
from mpigraft.report.html.page import render_html
from mpigraft.report.json import render_json
from mpigraft.report.markdown import render_markdown
from mpigraft.report.overtime.across import Across
from mpigraft.report.redaction import hosts_of, redactor, users_of
from mpigraft.report.stored import render_stored
from mpigraft.store import Store, flatten_evidence

SHARED = "programs/"  # our own sources, in which nothing is struck out
FOLDERS = (
    ("`results/`", "`values.csv`, `values.json`: values of all launches, which `mpigraft import` "
     "reads; `campaign.json`: configurations and launches; `output/`: what launches printed"),
    ("`inputs/`", "`plan.json`: what was requested and planned"),
    ("`evidence/`", "what really ran, for each configuration and layout"),
    ("`scripts/`", "job scripts that need no mpigraft: "
     "`MPI_PREFIX=/opt/openmpi sh scripts/NAME.sh`, with `PROGRAMS=FOLDER` for programs of other "
     "suites"),
    ("`programs/`", "the C sources of the benchmarks, which the scripts build"),
    ("`analysis/`", "`report.html` (opens offline), `compare.json`, `compare.md`; `across.json`, "
     "`across.md` where an earlier campaign was compared"),
    ("`versions.json`", "of MPIs, libraries, launchers and the machine"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Choice:
    """What a person asked to have in a bundle."""

    campaign: str | None
    old: str = ""  # an earlier campaign to compare with
    hosts: bool = True  # whether host names stay
    output: bool = True  # whether what launches printed goes in


def write_bundle(store: Store, choice: Choice, path: Path) -> tuple[str, int]:
    """Write a bundle of a campaign; returns its folder and the number of files. Raises what the
    store and `compare` raise, MissingError for an archive that cannot be written."""
    side = Across.read(store, choice.campaign)
    files = bundle_files(store, side, choice)
    folder = f"mpigraft-{safe_name(side.campaign.name)}-{safe_name(side.campaign.id[:8])}"
    write_archive(path, folder, files, side.campaign.created)
    return folder, len(files)


def bundle_files(store: Store, side: Measured, choice: Choice) -> dict[str, bytes]:
    """Return all files by name, redacted."""
    hosts = hosts_of(side)
    files = {
        **_results(store, side, choice),
        "inputs/plan.json": _pretty(side.campaign.plan),
        **_evidence(side),
        **{f"scripts/{name}": data for name, data in scripts(side).items()},
        **_analysis(store, side),
        "versions.json": _versions(side).encode(),
    }
    if choice.old:
        data = Across.load((store, store), (choice.old, side.campaign.id), AcrossRule())
        hosts |= hosts_of(data.old)
        files["analysis/across.json"] = data.json().encode()
        files["analysis/across.md"] = data.markdown().encode()
    files["README.md"] = _readme(side, choice).encode()
    users = users_of(side, files.values())
    strike = redactor(() if choice.hosts else hosts, users)
    files = {name: strike(data) for name, data in files.items()}
    if any(name.startswith("scripts/") for name in files):
        files |= {f"{SHARED}{name}": path.read_bytes() for name, path in sources().items()}
    return files


def _readme(side: Measured, choice: Choice) -> str:
    hosts = "" if choice.hosts else " Hosts are numbered."
    lines = [
        "# Results of mpigraft",
        f"Campaign {side.title}, {side.campaign.created[:10]}, mpigraft {side.campaign.tool}.",
        "",
        "| folder | what is in it |",
        "| --- | --- |",
        *(f"| {name} | {text} |" for name, text in FOLDERS),
        "",
        f"`sha256sum -c {SUMS}` checks that every file is whole. Secrets, home folders, names "
        f"of users and addresses of mail are struck out.{hosts}",
    ]
    return "\n".join(lines) + "\n"


def _results(store: Store, side: Measured, choice: Choice) -> dict[str, bytes]:
    campaign = side.campaign
    files = {"results/campaign.json": render_stored(store, campaign, as_json=True).encode()}
    for form in ("csv", "json"):
        with io.BytesIO() as table:
            write_export(store, campaign, form, table)
            files[f"results/values.{form}"] = table.getvalue()
    if choice.output:
        labels = {c.key: c.id for c in side.configurations}
        for launch in side.launches:
            label = safe_name(labels.get(launch.configuration, launch.configuration[:8]))
            head = f"results/output/{launch.round + 1:03}-{launch.slot + 1:02}-{label}"
            for what, sha in launch.artefacts:
                name = f"{head}-{safe_name(launch.layout)}.{safe_name(what)}"
                try:
                    if data := store.artefact(sha, campaign.id):
                        files[name] = data
                except MissingError:
                    continue
    return files


def _evidence(side: Measured) -> dict[str, bytes]:
    numbers = {c.key: (n, c.id) for n, c in enumerate(side.configurations, 1)}
    files = {}
    for record in side.evidence:
        number, label = numbers.get(record.configuration, (0, record.configuration[:8]))
        name = f"evidence/{number:02}-{safe_name(label)}-{safe_name(record.layout)}.json"
        evidence = flatten_evidence(record.evidence)
        text = document(configuration=label, layout=record.layout, evidence=evidence)
        files[name] = text.encode("utf-8", "surrogateescape")
    return files


def _analysis(store: Store, side: Measured) -> dict[str, bytes]:
    """Give the comparison with the baseline; nothing of a campaign without values."""
    if not side.values:
        return {}
    data = load_report(store, side.campaign.id, across="configurations")
    return {
        "analysis/compare.json": render_json(data).encode(),
        "analysis/compare.md": render_markdown(data, full=True).encode(),
        "analysis/report.html": render_html(data).encode(),
    }


def _versions(side: Measured) -> str:
    keys = ("mpi", "library_version", "libfabric", "ucx", "launcher", "transport", "environment",
            "libraries", "guest", "programs")  # fmt: skip
    rows = []
    for record in side.configurations:
        provenance = parse_object(record.provenance)
        known = {key: provenance[key] for key in keys if key in provenance}
        rows.append({"id": record.id, "key": record.key, **known})
    machines = [
        {"hosts": list(a.hosts or (a.host,)), "machine": parse_object(a.machine)}
        for a in side.allocations
    ]  # fmt: skip
    return document(
        mpigraft=__version__, measured_with=side.campaign.tool, machines=machines,
        configurations=rows,
    )  # fmt: skip


def _pretty(text: str) -> bytes:
    try:
        return (json.dumps(json.loads(text), indent=2) + "\n").encode()
    except ValueError:
        return text.encode("utf-8", "surrogateescape")
