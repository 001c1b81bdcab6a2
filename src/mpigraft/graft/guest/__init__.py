"""What was built elsewhere: a program, a container image, and what a command in it starts.

Takes a path or an image's name; makes a `Guest` and the MPI that it carries. Reads files; asks
podman and registries for images by name.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.guest.command import GuestCommand as GuestCommand
    from mpigraft.graft.guest.commands import command_of as command_of
    from mpigraft.graft.guest.examination import PODMAN_PREFIX as PODMAN_PREFIX
    from mpigraft.graft.guest.examination import Guest as Guest
    from mpigraft.graft.guest.examination import default_mpi as default_mpi
    from mpigraft.graft.guest.examination import examine_command as examine_command
    from mpigraft.graft.guest.examination import examine_guest as examine_guest
    from mpigraft.graft.guest.examination import own_mpi_of as own_mpi_of
    from mpigraft.graft.guest.examination import own_mpis_of as own_mpis_of
    from mpigraft.graft.guest.host_commands import job_words as job_words
    from mpigraft.graft.guest.own_mpi import GuestMpi as GuestMpi
    from mpigraft.graft.guest.own_mpi import loaded_objects as loaded_objects
else:
    __getattr__ = exports(__name__)
