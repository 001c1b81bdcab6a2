"""Launchers: mpirun, srun, PALS and their kin, and which of them can start an MPI.

Takes placements and hosts; makes argument lists, pure functions all. One module for each launcher.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.launch.launchers.hardware import hardware_order as hardware_order
    from mpigraft.launch.launchers.hardware import in_order as in_order
    from mpigraft.launch.launchers.parts import format_cpus as format_cpus
    from mpigraft.launch.launchers.registry import LAUNCHERS as LAUNCHERS
    from mpigraft.launch.launchers.registry import Launcher as Launcher
    from mpigraft.launch.launchers.select import FIX as FIX
    from mpigraft.launch.launchers.select import launcher_name as launcher_name
    from mpigraft.launch.launchers.select import launchers_for as launchers_for
    from mpigraft.launch.launchers.select import split_reason as split_reason
else:
    __getattr__ = exports(__name__)
