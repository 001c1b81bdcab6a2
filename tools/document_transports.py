"""Write docs/transports.md from the rows, tells and known issues.

    tools/document_transports.py [--check]

`--check` writes nothing and ends with 1 if the page is not what the data says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.knowledge.loader import issues, rows  # noqa: E402
from mpigraft.knowledge.rows import Needs, Row, When  # noqa: E402
from mpigraft.model import Family, Kind, Peer  # noqa: E402

PAGE = ROOT / "docs" / "transports.md"
TITLES = {
    Family.OPENMPI: "Open MPI",
    Family.MPICH: "MPICH",
    Family.INTEL: "Intel MPI",
    Family.CRAY_MPICH: "Cray MPICH",
    Family.MVAPICH: "MVAPICH",
}
DEVICES = {
    "cxi": "a Slingshot NIC",
    "verbs": "an InfiniBand or RoCE device",
    "mellanox": "a Mellanox device",
    "efa": "an EFA device",
    "omnipath": "an Omni-Path device",
}
INTRO = """\
# Transports

What each transport name means: what is set to force it, when the row is meant, what the MPI must
have, and how a probe proves that it carried the bytes. Written by `tools/document_transports.py`
from `src/mpigraft/knowledge/`; change the data, not this page.

A name that a provider or netmod gave is forced for every peer. So MPICH's `ofi-tcp` and `ucx`
switch MPICH's own shared memory off (`MPIR_CVAR_NOLOCAL=1`); what MPICH does by default on a node,
shared memory for neighbours and the netmod for strangers, is `shm-ofi-tcp`, named as Intel's is.

## How a lane is proven

A probe launch moves a known number of bytes of each kind (p2p, one-sided, collective) while the
library is made to say what it uses. Each kind and peer class is one of:

- **proven**: every sign of the lane was seen, from every rank where ranks speak for themselves, no
  sign of another lane was, and the kernel counted what it should: the bytes of the ranks' own TCP
  connections, or those of interfaces where connections cannot tell ([nodes](nodes.md));
- **contradicted**: a sign of another lane was seen, or the kernel's counts say otherwise: tcp
  without its bytes, shared memory with them;
- **not exercised**: no such peers were there, so nothing used it;
- **no evidence**: the library did not say, or the kind did not run. Never a pass.

The answer is yes only if messages are proven and so is every other kind that moved bytes, apart
from one that MPI refused and from one that this MPI never tells of; both are warnings. The witness
must have seen the world that was asked for, and one libmpi, the right one by device and inode.

*Beside* marks a lane that is known not to be the transport: windows of one host are memory that its
ranks share, whatever carries Open MPI's messages. Benchmarks of put and get then measure that.

Over several nodes Open MPI's `han` does the part of a collective within a node by `coll sm`, in
memory that its ranks share, whatever the transport; what a probe says of collectives between nodes
covers both parts.

A *variant* is another way to have the lanes of a row (a single copy by CMA, UCX held to one kind of
device); it is offered to who asks for it by name, and not measured otherwise. On one node nothing
tells `shm-ucx-rc` from `shm-ucx-tcp`: the lanes there are the same shared memory, and that is what
the evidence names.

## Networks by modules

Some MPIs are chosen by module and not by a variable. Cray MPICH speaks OFI or UCX according to
`craype-network-*` and `cray-mpich*`, and a program linked to one runs on the other as it is.
So a configuration may load and unload modules (`--modules`, several sets give several
configurations):

```
mpigraft bench --modules craype-network-ofi,cray-mpich \\
    --modules=-craype-network-ofi,-cray-mpich,craype-network-ucx,cray-mpich-ucx
```

A set is worked off from left to right by Lmod or Environment Modules, whichever the shell has; a
word with a minus is unloaded. What that changes in the environment belongs to the configuration,
also what is gone, and is part of its key: values as they are, files by their contents, other places
not at all, since the libraries there count by theirs. What is only for compilers, manuals and the
module command is left out, and so is whatever looks like a secret. A module that is loaded already
is loaded anew, so that its settings are seen. The rows that need certain modules name them, and an
MPI without them says which to load.

`{interface}` is the first Ethernet interface that is up, else `lo`; `{lnx_cxi_links}` is one LNX
link for each Slingshot NIC.
"""


def page() -> str:
    """The whole page."""
    parts = [INTRO]
    for family, title in TITLES.items():
        parts.append(f"\n## {title}\n")
        parts += [section(row) for row in rows() if row.family is family]
    parts.append("\n## Known issues\n")
    parts.append(
        "\n| id | affects | what is seen | why | what to do |\n| --- | --- | --- | --- | --- |\n"
    )
    for issue in issues():
        cells = (issue.id, issue.affects, issue.symptom, issue.cause, issue.fix)
        parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


def section(row: Row) -> str:
    """One row, from what is set to its sources."""
    lines = [f"\n### {row.name}: {row.id}\n", f"Meant {meant(row.when)}; needs {needs(row.needs)}."]
    if row.broken:
        lines.append(f"Not offered: {row.broken}.")
    if row.variant:
        lines.append("A variant: only for who asks for it by name.")
    if row.historic:
        lines.append("Historic: the machines that it is for are gone.")
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
    words = [f"for version {when.mpi}" if when.mpi else "for every version"]
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
    words += [DEVICES[need.fabric]] if need.fabric else []
    words += [{"nvidia": "an NVIDIA GPU", "amd": "an AMD GPU"}[need.gpu]] if need.gpu else []
    words += [f"copies by {need.copy}"] if need.copy else []
    return ", ".join(words) or "nothing else"


def proofs(row: Row) -> Iterator[str]:
    """A table of the signs for each kind and peer class."""
    yield "| kind | peers | what the library has to say | wire |"
    yield "| --- | --- | --- | --- |"
    for kind in Kind:
        for peer in (p for p in row.peers if p is not Peer.SELF):
            signs = [s for s in row.signs if (s.kind, s.peer) == (kind, peer) and s.proves]
            told = "<br>".join(s.says.replace("{lane}", s.due) for s in signs)
            wire = ", ".join(dict.fromkeys(s.wire for s in signs if s.wire)) or "-"
            beside = " (beside)" if any(s.beside for s in signs) else ""
            yield f"| {kind}{beside} | {peer} | {told or 'never told'} | {wire} |"


def main(words: list[str]) -> int:
    text = page()
    if "--check" in words:
        return 0 if PAGE.exists() and PAGE.read_text() == text else 1
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
