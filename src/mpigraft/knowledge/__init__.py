"""Facts about families, devices, GPUs, library names and spawning, as TOML with typed readers.

Takes the tables beside it; makes frozen rows, each with its source. Reads package data alone.
Rooms inside: `transports`, `engines`, `fit` (who starts whom), `files` (what an MPI opens and
reads), `cases`.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.devices import device_binds as device_binds
    from mpigraft.knowledge.gpus import gpu_variables as gpu_variables
    from mpigraft.knowledge.gpus import nearest_cpus as nearest_cpus
    from mpigraft.knowledge.sonames import Binding as Binding
    from mpigraft.knowledge.sonames import binding_of as binding_of
    from mpigraft.knowledge.sonames import role_of as role_of
    from mpigraft.knowledge.sonames import soname_table as soname_table
    from mpigraft.knowledge.spawn import Spawn as Spawn
    from mpigraft.knowledge.spawn import spawn_facts as spawn_facts
    from mpigraft.knowledge.spawn import spawns_of_mpi as spawns_of_mpi
    from mpigraft.knowledge.versions import Range as Range
    from mpigraft.knowledge.versions import version_numbers as version_numbers
else:
    __getattr__ = exports(__name__)
