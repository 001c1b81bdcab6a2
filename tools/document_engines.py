"""Write the table of what a job sees into docs/reference/engines.md, from knowledge/engines.toml.

    tools/document_engines.py [--check]

`--check` writes nothing and ends with 1 if the page is not what the data says.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.graft import ENGINES  # noqa: E402
from mpigraft.knowledge.engines import job_aspects  # noqa: E402

PAGE = ROOT / "docs/reference/engines.md"
BEGIN, END = "<!-- begin: tools/document_engines.py -->\n", "<!-- end -->\n"


def table() -> str:
    """One row for each aspect: what is usual, and the engines that differ."""
    lines = ["| | under every engine | except |", "| --- | --- | --- |"]
    for row in job_aspects():
        if unknown := dict(row.exceptions).keys() - ENGINES.keys():
            raise SystemExit(f"engines.toml, {row.id}: unknown engine {sorted(unknown)[0]}")
        other = "; ".join(f"{engine}: {text}" for engine, text in row.exceptions)
        lines.append(f"| {row.what} | {row.usual} | {other} |")
    return "\n".join([*lines, ""])


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    new = f"{before}{BEGIN}{table()}{END}{after}"
    if "--check" in sys.argv[1:]:
        return int(new != text)
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
