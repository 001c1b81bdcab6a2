"""Write docs/reference/transports.md from the rows, signs and known issues.

    tools/document_transports.py [--check]

`--check` writes nothing and ends with 1 if the page is not what the data says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.core.model import Family, Kind, Peer  # noqa: E402
from mpigraft.knowledge.issues import known_issues  # noqa: E402
from mpigraft.knowledge.transports.fabrics import fabrics  # noqa: E402
from mpigraft.knowledge.transports.match import transport_rows  # noqa: E402
from mpigraft.knowledge.transports.rows import Needs, TransportRow, When  # noqa: E402

PAGE = ROOT / "docs/reference/transports.md"
TITLES = {
    Family.OPENMPI: "Open MPI",
    Family.MPICH: "MPICH",
    Family.INTEL: "Intel MPI",
    Family.CRAY_MPICH: "Cray MPICH",
    Family.MVAPICH: "MVAPICH",
}
INTRO = """\
# Transports

This page lists, for each transport name, what is set to force it, when the row applies, what the
MPI must have, and how a probe proves that it carried the bytes. `tools/document_transports.py`
writes it from `src/mpigraft/knowledge/`; change the data, not this page.

A transport named for a provider or netmod is forced for every peer. So MPICH's `ofi-tcp` and `ucx`
switch off MPICH's own shared memory (`MPIR_CVAR_NOLOCAL=1`). MPICH's default on a node is shared
memory between neighbours and the netmod between nodes. That transport is `shm-ofi-tcp`, named as
for Intel MPI.

## How a lane is proven

A probe launch moves a known number of bytes of each kind (p2p, one-sided, collective) and makes
the library print what it uses. The result for each kind and peer class is one of these:

- **proven**: every sign of the lane was printed, by every rank if ranks print it themselves; no
  sign of another lane was; and the kernel counted what it should: the bytes of the ranks' own TCP
  connections, or those of interfaces where connections cannot tell
  ([several nodes](../explanation/nodes.md));
- **contradicted**: a sign of another lane was printed, or the kernel counted otherwise: TCP without
  its bytes, shared memory with them;
- **not exercised**: there were no such peers, so nothing used the lane;
- **no evidence**: the library did not print it, or the kind did not run. This never counts as a
  pass.

The transport counts as proven only if messages are proven and so is every other kind that moved
bytes. Two exceptions are warnings: a kind that MPI refused, and a kind that this MPI never reports.
The witness must have recorded the requested world, and one libmpi, the right one by device and
inode.

*Other lane* marks traffic that is known not to use the transport: one-sided windows of one host are
memory that its ranks share, even if another lane carries messages. Benchmarks of put and get then
measure that memory.

Over several nodes, Open MPI's `han` does the part of a collective within a node by `coll sm`, in
memory that its ranks share, with any transport. The probe's result for collectives between
nodes covers both parts.

A *variant* is another way to have the lanes of a row (a single copy by CMA, UCX restricted to one
kind of device). It is used if you name it, and not measured otherwise. On one node nothing
distinguishes `shm-ucx-rc` from `shm-ucx-tcp`: the lanes there are the same shared memory, and the
evidence names that.

## Networks by modules

Some MPIs are chosen by module and not by a variable. Cray MPICH uses OFI or UCX according to
`craype-network-*` and `cray-mpich*`, and a program linked to one runs on the other unchanged.
So a configuration may load and unload modules (`--modules`; several sets give several
configurations):

```
mpigraft bench --modules craype-network-ofi,cray-mpich \\
    --modules=-craype-network-ofi,-cray-mpich,craype-network-ucx,cray-mpich-ucx
```

Lmod or Environment Modules, whichever the shell has, processes a set from left to right; a word
with a minus is unloaded. The changes to the environment, removals included, belong to the
configuration and to its key: values as they are, files by their contents, other locations not at
all, because the libraries there count by their contents. Settings that are only for compilers,
manuals and the module command are left out, and so is everything that looks like a secret. A module
that is already loaded is loaded again, so that its settings are recorded. The rows that need
certain modules name them, and an MPI without them says which to load.

`{interface}` is the first Ethernet interface that is up, else `lo`; `{lnx_cxi_links}` is one LNX
link for each Slingshot NIC.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRO]
    for family, title in TITLES.items():
        parts.append(f"\n## {title}\n")
        parts += [section(row) for row in transport_rows() if row.family is family]
    parts.append("\n## Known issues\n")
    parts.append("\n| id | affects | symptom | cause | fix |\n| --- | --- | --- | --- | --- |\n")
    for issue in known_issues():
        cells = (issue.id, issue.affects, issue.symptom, issue.cause, issue.fix)
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


def section(row: TransportRow) -> str:
    """One row, from what is set to its sources."""
    lines = [
        f"\n### {row.name}: {row.id}\n",
        f"Applies {meant(row.when)}; needs {needs(row.needs)}.",
    ]
    if row.broken:
        lines.append(f"Not offered: {row.broken}.")
    if row.variant:
        lines.append("A variant: used only if you name it.")
    if row.historic:
        lines.append("Historic: its machines no longer exist.")
    if row.modules:
        lines.append(f"Modules: `{','.join(row.modules)}`.")
    settings = [f"{name}={value}" for name, value in (*row.launcher, *row.env)]
    lines += ["", "```", *settings, "```"] if settings else []
    lines += ["", *proofs(row)]
    if row.issues:
        lines += ["", f"Known issues: {', '.join(row.issues)}."]
    lines += ["", f"Sources: {'; '.join(row.sources)}."]
    return "\n".join(lines) + "\n"


def meant(when: When) -> str:
    words = [f"to version {when.mpi}" if when.mpi else "to every version"]
    if when.libfabric:
        words.append(f"libfabric {when.libfabric}")
    if when.ucx:
        words.append(f"UCX {when.ucx}")
    words += [f"{'with' if wanted else 'without'} {name}" for name, wanted in when.flags]
    return ", ".join(words)


def needs(need: Needs) -> str:
    words = [f"component {name}" for name in need.components]
    words += [f"netmod {need.netmod}"] if need.netmod else []
    words += [f"provider {name}" for name in need.providers]
    words += [f"UCX transport {name}" for name in need.tls]
    words += [f.device for f in fabrics() if f.id == need.fabric]
    words += [{"nvidia": "an NVIDIA GPU", "amd": "an AMD GPU"}[need.gpu]] if need.gpu else []
    words += [f"copies by {need.copy}"] if need.copy else []
    return ", ".join(words) or "nothing else"


def proofs(row: TransportRow) -> Iterator[str]:
    """A table of the signs for each kind and peer class."""
    yield "| kind | peers | what the library must print | bytes at the interface |"
    yield "| --- | --- | --- | --- |"
    for kind in Kind:
        for peer in (p for p in row.peers if p is not Peer.SELF):
            signs = [s for s in row.signs if (s.kind, s.peer) == (kind, peer) and s.proves]
            told = "<br>".join(s.says.replace("{lane}", s.due) for s in signs)
            wire = ", ".join(dict.fromkeys(s.wire for s in signs if s.wire)) or "-"
            beside = " (other lane)" if any(s.unrequested for s in signs) else ""
            yield f"| {kind}{beside} | {peer} | {told or 'never printed'} | {wire} |"


def main(words: list[str]) -> int:
    text = page()
    if "--check" in words:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
