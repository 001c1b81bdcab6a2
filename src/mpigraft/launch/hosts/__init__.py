"""The nodes that launches may use.

Takes host lists, host files and the environment of a scheduler; makes an `Allocation`. May ask the
scheduler, and nodes whether they answer.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.launch.hosts.allocation import THIS_HOST as THIS_HOST
    from mpigraft.launch.hosts.allocation import find_allocation as find_allocation
    from mpigraft.launch.hosts.comparison import compare_nodes as compare_nodes
    from mpigraft.launch.hosts.hostlist import fold_hosts as fold_hosts
    from mpigraft.launch.hosts.hostlist import slurm_hosts as slurm_hosts
    from mpigraft.launch.hosts.partitions import discover_partition as discover_partition
    from mpigraft.launch.hosts.partitions import keep_document as keep_document
    from mpigraft.launch.hosts.partitions import node_differences as node_differences
    from mpigraft.launch.hosts.reachability import Nodes as Nodes
else:
    __getattr__ = exports(__name__)
