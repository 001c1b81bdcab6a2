"""The bill of materials of wheels, as CycloneDX 1.6, from their own metadata.

Licences are those that a wheel states: as an expression, or by a classifier. What a wheel carries
of others is taken from the SBOMs in it, from the table in numpy's licence file, and from
carried.toml. A wheel without a licence, or with libraries that nobody lists, ends the make.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

Json = dict[str, Any]
CARRIED = tomllib.loads(Path(__file__).with_name("carried.toml").read_text(encoding="utf-8"))
CLASSIFIERS = {"MIT License": "MIT", "ISC License (ISCL)": "ISC"}
LISTED = re.compile(r"^Name: (.+)\nFiles: .+\n(?:.+\n)*?License: (.+)$", re.MULTILINE)


def licence(metadata: Message) -> str:
    """Give the SPDX expression of a distribution; "" where it states none."""
    for field in ("License-Expression", "License"):
        try:
            return str(canonicalize_license_expression(metadata.get(field, "")))
        except InvalidLicenseExpression:
            continue
    stated = (line.split(" :: ")[-1] for line in metadata.get_all("Classifier", []))
    return next((CLASSIFIERS[name] for name in stated if name in CLASSIFIERS), "")


def licences(expression: str) -> list[Json]:
    return [{"expression": expression}]


def carried(wheel: Path, name: str) -> Iterator[Json]:
    """Yield what a wheel carries of others."""
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        for file in files:
            if re.search(r"\.dist-info/sboms/.+\.json$", file):
                for part in json.loads(archive.read(file)).get("components", []):
                    kept = ("type", "name", "version", "purl", "licenses")
                    yield {key: part[key] for key in kept if key in part}
        texts = [f for f in files if re.search(r"\.dist-info/licenses/LICENSE[^/]*$", f)]
        rows = [row for f in texts for row in LISTED.findall(archive.read(f).decode())]
    rows += CARRIED.get(name, {}).items()
    if not rows and any(".libs/" in file for file in files):
        raise SystemExit(f"{wheel.name} carries libraries: list them in carried.toml")
    for part, expression in rows:
        yield {"type": "library", "name": part, "licenses": licences(expression)}


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
        return Parser().parsestr(archive.read(name).decode())


def component(wheels: list[Path], metadata: Message) -> Json:
    """Describe one version of a distribution, its files and what they carry."""
    name, version = metadata["Name"], metadata["Version"]
    expression = licence(metadata)
    if not expression:
        raise SystemExit(f"{name} states no licence that is known: see tools/release/sbom.py")
    parts = [part for wheel in wheels for part in carried(wheel, name)]
    purl = f"pkg:pypi/{canonicalize_name(name)}@{version}"
    files = [
        {
            "type": "file",
            "name": wheel.name,
            "hashes": [
                {"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}
            ],
        }
        for wheel in wheels
    ]
    return {
        "type": "application" if name == "mpigraft" else "library",
        "bom-ref": purl,
        "purl": purl,
        "name": name,
        "version": version,
        "licenses": licences(expression),
        "components": [*files, *unique(parts)],
    }


def unique(parts: Iterable[Json]) -> list[Json]:
    """Keep each once: the wheels of a version carry much the same."""
    return [json.loads(text) for text in sorted({json.dumps(p, sort_keys=True) for p in parts})]


def requires(metadata: Message) -> set[str]:
    """Name what a distribution needs without extras."""
    wanted = map(Requirement, metadata.get_all("Requires-Dist", []))
    return {canonicalize_name(w.name) for w in wanted if "extra" not in str(w.marker or "")}


def bill(wheels: Iterable[Path], epoch: int) -> Json:
    """Describe `wheels`: components with licences, hashes and what each needs."""
    versions: dict[tuple[str, str], list[Path]] = {}
    about: dict[tuple[str, str], Message] = {}
    for wheel in sorted(wheels, key=lambda path: path.name):
        metadata = metadata_of(wheel)
        key = (canonicalize_name(metadata["Name"]), metadata["Version"])
        versions.setdefault(key, []).append(wheel)
        about[key] = metadata
    components = {key: component(paths, about[key]) for key, paths in sorted(versions.items())}
    needs = [
        {
            "ref": one["bom-ref"],
            "dependsOn": [
                other["bom-ref"] for k, other in components.items() if k[0] in requires(about[key])
            ],
        }
        for key, one in components.items()
    ]
    (own,) = (one for key, one in components.items() if key[0] == "mpigraft")
    others = [one for one in components.values() if one is not own]
    content = json.dumps([own, others], sort_keys=True)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, content)}",
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z"),
            "component": own,
        },
        "components": others,
        "dependencies": needs,
    }
