"""Hydra: mpiexec of MPICH and of Intel MPI, which bind in different ways."""

from __future__ import annotations

from mpigraft.core.model import Command, EnvRow, Family, Order, Scope
from mpigraft.launch.launchers.parts import (
    bound,
    hexadecimal,
    joined,
    masked,
    named_hosts,
    slurm_rows,
)

MCA = ""


def command(order: Order) -> Command:
    """Return ranks talk to hydra through a file that it opens for them; where that does not reach
    them MPICH's can listen at a port instead. Intel's cannot."""
    first = [str(order.launcher), *_where(order), "-ppn", str(order.layout.ranks_per_node)]
    if not order.keeps and order.mpi.family is not Family.INTEL:
        first.append("-pmi-port")
    if order.mpi.family is not Family.INTEL and not order.allocation.here:
        first += ["-bind-to", _binding(order)]
    programs = joined(order, (), "-configfile")
    return Command((*first, *programs.words), programs.files)


def _where(order: Order) -> tuple[str, ...]:
    """Hosts and how to reach them. In a job proxies are started through the scheduler, by Intel's
    only if the word says so or no host is named. MPICH's cannot read each list of Slurm's."""
    agent, intel = order.allocation.agent, order.mpi.family is Family.INTEL
    slurm = order.allocation.scheduler == "slurm"
    named = named_hosts(order, job_too=slurm and not intel)
    reached: tuple[str, ...] = ()
    if agent:
        reached = ("-launcher", "ssh", "-launcher-exec", agent)
    elif named and slurm and intel:
        reached = ("-launcher", "slurm")
    return (*reached, "-hosts", ",".join(named)) if named else reached


def rows(order: Order) -> tuple[EnvRow, ...]:
    """Return the variables that bind ranks. MPICH's HYDRA_BINDING means what -bind-to does, but
    with the option no rank of MPICH 5.0.2 can spawn others ("duplicate setting: binding"). Proxies
    read it where they run, so it serves this node alone: neither ssh nor, with
    SLURM_EXPORT_ENV=NONE, srun passes it on, and the ranks would not be bound."""
    pins: dict[str, str] = {}
    if order.mpi.family is Family.INTEL:
        pins = _pins(order)
    elif order.allocation.here:
        pins = {"HYDRA_BINDING": _binding(order)}
    own = (EnvRow(name, value, Scope.LAUNCHER, "launcher") for name, value in pins.items())
    return (*own, *slurm_rows(order))


def _binding(order: Order) -> str:
    """core:T gives each rank T cores, user:0+1,2+3 the named CPUs, `none` leaves it free."""
    if masked(order):
        return "user:" + ",".join("+".join(map(str, mask)) for mask in order.masks)
    if bound(order):
        threads = order.layout.threads
        return "core" if threads == 1 else f"core:{threads}"
    return "none"


def _pins(order: Order) -> dict[str, str]:
    """Intel MPI: a domain of T cores for each rank, next to each other; or the named CPUs; or no
    pinning at all. Its hydra knows -bind-to too, but I_MPI_PIN, on by default, wins."""
    layout = order.layout
    if not bound(order):
        return {"I_MPI_PIN": "off"}
    if order.masks:  # without its 0x a mask is refused, and the default taken (2021.18)
        domains = ",".join(hexadecimal(mask) for mask in order.masks)
        return {"I_MPI_PIN": "on", "I_MPI_PIN_DOMAIN": f"[{domains}]"}
    domain = "core" if layout.threads == 1 else f"{layout.threads}:compact"
    return {"I_MPI_PIN": "on", "I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": domain}
