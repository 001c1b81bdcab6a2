"""Take of a host MPI its libfabric or its UCX alone, with what these need and open."""

from __future__ import annotations

from dataclasses import replace

from mpigraft.core.errors import CheckFailed
from mpigraft.core.model import AbiObject, MpiAbi, Role
from mpigraft.knowledge import Opened, is_network_library, opened_by


def network_part(abi: MpiAbi, holds: str) -> MpiAbi:
    """Give the libfabric or UCX of an MPI as what goes into an override, the libraries that a
    stack's MPI finds by name first. Raises CheckFailed for an MPI without it."""
    offered = {o.soname: o for o in abi.objects if not (o.opened and o.place)}
    public = [name for name in offered if is_network_library(name, holds)]
    if not public:
        raise CheckFailed.of("override-no-network", mpi=abi.mpi.id, library=holds)
    rows: dict[str, Opened] = {}
    inside: dict[str, AbiObject] = {}
    plugins: list[AbiObject] = []
    names = [*public]
    for name in names:  # grows while it is walked
        library = offered.get(name)
        if library is None or name in inside:
            continue
        inside[name] = library
        names += library.needed
        for row in opened_by(name, abi.mpi.family):
            rows[row.id] = row
            own = [o for o in abi.objects if o.opened and o.place and o.place == row.place]
            plugins += [o for o in own if o not in plugins]
            names += [n for o in own for n in o.needed]
    libc = [o for o in offered.values() if o.role is Role.LIBC and o.soname not in inside]
    sources = {f"opened.toml, {id_}" for id_ in rows}
    places = {one.place for row in rows.values() for one in row.data}
    return replace(
        abi,
        objects=(*inside.values(), *libc, *plugins),
        programs=(),
        data=tuple(d for d in abi.data if d.place.rpartition("/")[0] in places),
        environment=tuple(row for row in abi.environment if row.source in sources),
    )
