"""Slurm over a cluster: munge and the controller on this machine, a daemon in each node.

Nothing of it is the system's: sockets, keys, logs and states lie in the cluster's folder, and
the controller has a port of its own, so any number can run at once. Nodes find the configuration
in /etc/slurm, as they would on a real cluster; the host finds it by `environ`.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence

from mpigraft.core.process.command import Completed, run_command
from testbed.cluster import HOST, PACKAGE, SYSTEM_PATH, Cluster, Service, until

NEEDED = {"slurmctld": "slurmctld", "slurmd": "slurmd", "munged": "munge", "srun": "slurm-client"}
CONTROLLER_PORTS = 6900  # and the cluster's number
CONFIGURATION = """\
ClusterName=testbed
SlurmctldHost={host}({address})
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
EnforcePartLimits=ALL
MpiDefault=none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.txt
JobAcctGatherType=jobacct_gather/none
MinJobAge=3600
SlurmctldTimeout=30
SlurmdTimeout={node_timeout_s}
KillWait=2
InactiveLimit=0
BatchStartTimeout=30
NodeName={names} NodeAddr={subnet}.[1-{nodes}] CPUs={cpus} RealMemory=4000 State=UNKNOWN
"""
CGROUPS = """\
CgroupPlugin=cgroup/v1
CgroupAutomount=no
CgroupMountpoint=/sys/fs/cgroup
ConstrainCores=no
ConstrainRAMSpace=yes
"""
PARTITION = """\
PartitionName={name} Nodes={nodes} Default={default} MaxTime={max_time} State=UP \
OverSubscribe=YES PriorityTier={tier}"""


def why_not() -> str:
    """Why Slurm cannot be had here, or ""."""
    for program, package in NEEDED.items():
        if not shutil.which(program, path=SYSTEM_PATH):
            return PACKAGE + package
    return ""


class Slurm:
    """A Slurm whose nodes are a cluster's, up when the constructor returns.

    `cpus` is what Slurm believes each node to have, whatever it has. `partitions` are name and
    nodes ("ALL", "n[1-2]"), the first being the default; `max_time` is theirs, in Slurm's
    notation. A node counts as down after `node_timeout_s` of silence. `names` are the nodes' own
    names, where these are not the cluster's. `task` is the plugin that binds: affinity on hard
    nodes, whose jobs have limits of memory too, else none. `preempt` is what becomes of a job
    when one of a later partition wants its nodes, as "REQUEUE" or "CANCEL".
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        cpus: int = 4,
        partitions: Sequence[tuple[str, str]] = (("all", "ALL"),),
        max_time: str = "INFINITE",
        node_timeout_s: int = 15,
        names: Sequence[str] = (),
        task: str = "",
        preempt: str = "",
    ) -> None:
        self.cluster, self.folder = cluster, cluster.folder / "slurm"
        self.names = tuple(names) or cluster.nodes
        self.environ: Mapping[str, str] = {
            **cluster.environ,
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PMIX_MCA_psec": "native",  # PMIx would ask for a munge of the system
        }
        text = CONFIGURATION.format(
            host=socket.gethostname(), address=cluster.host_address, folder=self.folder,
            port=CONTROLLER_PORTS + cluster.number, nodes=len(cluster.nodes), cpus=cpus,
            subnet=cluster.subnet.rpartition(".")[0], node_timeout_s=node_timeout_s,
            names=",".join(self.names),
            task=task or ("affinity" if cluster.hard else "none"),
        )  # fmt: skip
        rows = [
            PARTITION.format(name=name, nodes=nodes, max_time=max_time,
                             default="NO" if index else "YES", tier=index + 1)
            for index, (name, nodes) in enumerate(partitions)
        ]  # fmt: skip
        if preempt:
            text += f"PreemptType=preempt/partition_prio\nPreemptMode={preempt}\n"
        if (cluster.folder / "nodes/n1/memory").exists():
            text = text.replace("task/affinity", "task/affinity,task/cgroup")
            text = text.replace("CR_Core", "CR_Core_Memory") + "DefMemPerCPU=500\n"
            (self.folder / "cgroup.conf").write_text(CGROUPS)
        (self.folder / "slurm.conf").write_text("\n".join([text, *rows, ""]))
        (self.folder / "state").mkdir()
        self.daemons: dict[str, Service] = {}
        try:
            self._start_munge()
            self._start(HOST, "slurmctld", "-D", "-i")
            for node in cluster.nodes:
                (self.folder / f"spool-{node}").mkdir()
                self.start_node(node)
            self.idle()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> Slurm:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start(self, node: str, program: str, *words: str) -> None:
        found = shutil.which(program, path=SYSTEM_PATH)
        assert found, why_not()
        env = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "HOME": self.environ["HOME"]}
        env |= {name: self.environ[name] for name in ("SLURM_CONF", "PMIX_MCA_psec")}
        name = program if node == HOST else node
        log = self.folder / f"{name}.log"
        self.daemons[name] = Service(self.cluster, node, [found, *words], env, log)

    def _start_munge(self) -> None:
        """It refuses folders that others may write to, so all lies in Slurm's own."""
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        options = {"key-file": key, "socket": self.folder / "munge.socket",
                   "pid-file": self.folder / "munge.pid", "log-file": self.folder / "munge.log",
                   "seed-file": self.folder / "munge.seed"}  # fmt: skip
        words = [f"--{name}={value}" for name, value in options.items()]
        self._start(HOST, "munged", "--foreground", *words)
        self._until((self.folder / "munge.socket").exists, "munged's socket")

    def start_node(self, node: str) -> None:
        """Start the daemon of a node, at first or again."""
        self._start(node, "slurmd", "-D")

    def stop_node(self, node: str) -> None:
        """End the daemon of a node, as an update of it does; jobs go on."""
        self.daemons.pop(node).stop()

    def restart_controller(self, *, down_s: float = 0.0) -> None:
        """End the controller, wait, and start it again with the state that it saved."""
        self.daemons.pop("slurmctld").stop()
        time.sleep(down_s)
        self._start(HOST, "slurmctld", "-D")

    def kill_node(self, node: str) -> None:
        """A power cut, of which Slurm hears when the node has been silent for long enough."""
        self.cluster.kill(node)
        self.daemons.pop(node).stop()

    def ask(self, *argv: str) -> Completed:
        """Run a command of Slurm on the host: squeue, scontrol, sinfo."""
        return run_command(argv, env=self.environ, cwd=self.cluster.shared)

    def states(self) -> dict[str, str]:
        """The state of each node, in Slurm's words: "idle", "alloc", "down*"; empty while the
        controller does not answer."""
        done = self.ask("sinfo", "--noheader", "--Node", "--format=%N %t")
        rows = done.stdout.decode().split("\n") if done.ok else []
        return {row.split()[0]: row.split()[1] for row in rows if row}

    def idle(self, nodes: Sequence[str] = ()) -> None:
        """Wait until these nodes, or all, are idle."""
        wanted = nodes or self.names
        self._until(lambda: all(self.states().get(n) == "idle" for n in wanted), "idle nodes")

    def _until(self, true: Callable[[], bool], what: str) -> None:
        try:
            until(true, what)
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {self.states()}\n{self.logs()}") from None

    def jobs_ended(self) -> str:
        """What the controller noted of jobs that ended, a line each."""
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "jobs.txt").read_text()
        return ""

    def logs(self) -> str:
        """The last words of every daemon."""
        parts = []
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-15:]
            parts.append("\n".join([f"== {log.name}", *lines]))
        return "\n".join(parts)

    def stop(self) -> None:
        """End all daemons; the nodes', which would see to their jobs, at once."""
        for name in reversed([*self.daemons]):
            hard = name in self.cluster.nodes
            self.daemons.pop(name).stop(signal.SIGKILL if hard else signal.SIGTERM)
