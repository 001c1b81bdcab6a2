"""Whether the nodes of a job are alike, before anything is started on all of them.

Each node is asked once for the bytes of the MPI, its kernel, room in /dev/shm, limits and networks:
by a step of Slurm, else by the agent or ssh.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from mpigraft.core.hostlist import fold_hosts, slurm_hosts
from mpigraft.core.model import Allocation, Finding
from mpigraft.core.process import Completed, clean, run_command
from mpigraft.core.shared_memory import ENOUGH_MIB, PLACE
from mpigraft.launch.schedulers.slurm import STEP_OPTIONS

LIMIT_S = 20.0
FEW = 8  # nodes that are named
SOME = 4  # files and facts that are
MARK = "mpigraft-node"
MISSING = "missing"
NETWORK = "network "  # then its address: what the interfaces of a node in it are about
DOWN = "no interface that is up"
# One line, without words that csh reads in another way: ssh gives it to the user's shell.
SCRIPT = (
    f"say() {{ echo {MARK} $(uname -n) $*; }}; "
    "say kernel $(uname -sr); say memlock $(ulimit -l); say nofile $(ulimit -n); "
    f"say shm $(df -Pk {PLACE} | tail -n 1); "
    # The kernel's routes to networks of the node's own, without bridges and links to one address.
    "while read -r net to by flags ref use metric mask rest; do state=up; "
    "read -r state </sys/class/net/$net/operstate; case $state.$to.$by.$mask in "
    "down.* | *.FFFFFFFF | *.00000000 | *FEA9.*) ;; *.00000000.*) "
    "[ -e /sys/class/net/$net/bridge ] || say net $to $mask $net;; esac; "
    "done 2>/dev/null </proc/net/route; "
    "for file; do if [ -e $file ]; then sum=$(sha256sum <$file); else sum=missing; fi; "
    "say file ${sum%% *} $file; done"
)
EACH = (  # of the remaining words, the hosts; 64 connections at once
    'own=$1 agent=$2 script=$3; shift 3; count=0; for host; do if [ "$host" = "$own" ]; '
    'then sh -c "$script" & else (out=$($agent "$host" "$script" </dev/null); echo "$out") & fi; '
    "count=$((count + 1)); [ $((count % 64)) -ne 0 ] || wait; done; wait"
)
NAMES = {"kernel": "its kernel is", "memlock": "its limit of locked memory (ulimit -l) is",
         "nofile": "its limit of open files (ulimit -n) is", "shm": f"{PLACE} has"}  # fmt: skip
Facts = Mapping[str, Mapping[str, str]]  # of each node, by what they are about


def compare_nodes(allocation: Allocation, nodes: int, files: Sequence[str]) -> tuple[Finding, ...]:
    """Report the nodes that are unlike this one, or unlike most. `files` are the MPI's."""
    hosts = allocation.hosts[:nodes]
    plain = [file for file in files if shlex.quote(file) == file]
    script = shlex.join(["sh", "-c", SCRIPT, "sh", *plain])
    if allocation.scheduler == "slurm" and not allocation.agent:
        step = ("srun", "--mpi=none", f"--nodes={nodes}", f"--ntasks={nodes}",
                "--ntasks-per-node=1", f"--nodelist={slurm_hosts(hosts)}", "--input=none",
                "--cpu-bind=none")  # fmt: skip
        words = (*step, *shlex.split(script))
    else:
        agent = allocation.agent or "ssh -o BatchMode=yes -o ConnectTimeout=10"
        words = ("sh", "-c", EACH, "sh", os.uname().nodename, agent, script, *hosts)
    # A Slurm before 20.11 refuses --overlap, and does not read the variable.
    env = {n: v for n, v in os.environ.items() if n not in STEP_OPTIONS} | {"SLURM_OVERLAP": "1"}
    answer = run_command(words, env=env, limit_s=LIMIT_S)
    facts = read_facts(answer)
    return (*_differences(facts), *_missing(answer, nodes - len(facts), nodes))


def _missing(answer: Completed, count: int, nodes: int) -> Iterator[Finding]:
    """Report nodes that did not answer, with what was printed instead."""
    if count <= 0:
        return
    lines = clean(answer.stderr).split("\n")
    reason = next((line.strip() for line in reversed(lines) if line.strip()), "no answer")
    reason = f"no answer within {LIMIT_S:g} s" if answer.timed_out else reason
    yield Finding.of("nodes-not-compared", count=count, nodes=nodes, reason=reason)


def read_facts(answer: Completed) -> Facts:
    """Read the lines of all nodes; others are of a site's greetings."""
    facts: dict[str, dict[str, str]] = defaultdict(dict)
    for line in clean(answer.stdout).splitlines():
        mark, host, kind, *values = [*line.split(), "", "", ""]
        value = " ".join(filter(None, values))
        if mark != MARK or not value:
            continue
        if kind == "file":
            facts[host][values[1]] = values[0]
        elif kind == "net":
            name = _network(values[0], values[1])
            facts[host][name] = " ".join(sorted([*facts[host].get(name, "").split(), values[2]]))
        elif kind == "shm":
            free_mib = int(values[3]) >> 10 if values[3:] and values[3].isdecimal() else ENOUGH_MIB
            facts[host][kind] = f"{free_mib} MiB free" if free_mib < ENOUGH_MIB else "room"
        else:
            facts[host][kind] = value
    return facts


def _network(address: str, mask: str) -> str:
    """Name a network of /proc/net/route, which prints numbers as they are in memory."""
    try:
        there = socket.inet_ntoa(int(address, 16).to_bytes(4, sys.byteorder))
        return f"{NETWORK}{there}/{int(mask, 16).bit_count()}"
    except (ValueError, OverflowError):
        return f"{NETWORK}{address}"


def _values(facts: Facts, name: str) -> dict[str, str]:
    """Return each node's value of `name`; a node that has networks, but not this one, says so."""
    lack = DOWN if name.startswith(NETWORK) else ""
    able = (host for host, own in facts.items() if any(n.startswith(NETWORK) for n in own))
    values = dict.fromkeys(able, lack) if lack else {}
    return values | {host: own[name] for host, own in facts.items() if name in own}


def _differences(facts: Facts) -> list[Finding]:
    here = os.uname().nodename
    differing: dict[tuple[str, str, str], list[str]] = {}
    for name in dict.fromkeys(name for own in facts.values() for name in own):
        values = _values(facts, name)
        usual = values[here] if here in values else Counter(values.values()).most_common(1)[0][0]
        for value in sorted({*values.values()} - {usual}):
            # what lacks something is unlike the others, whoever is first
            pair = (usual, value) if usual in (MISSING, DOWN) else (value, usual)
            nodes, others = (
                fold_hosts((h for h, v in values.items() if v == which), FEW) for which in pair
            )
            code, what = _difference(name, *pair)
            differing.setdefault((code, nodes, others), []).append(what)
    return [_finding(*key, _listed(what)) for key, what in differing.items()]


def _difference(name: str, value: str, usual: str) -> tuple[str, str]:
    """Return the finding's code, and what of a node is unlike."""
    if name in NAMES:
        return "node-unlike", f"{NAMES[name]} {value}, not {usual}"
    if name.startswith(NETWORK):
        return "node-unlike", f"its {name} is on {value}, not on {usual}"
    if value == MISSING:
        return "node-lacks", name
    return "node-build", f"{name} (SHA-256 {value[:12]}, not {usual[:12]})"


def _listed(what: Sequence[str]) -> str:
    more = f" and {len(what) - SOME} more" if len(what) > SOME else ""
    return ", ".join(what[:SOME]) + more


def _finding(code: str, nodes: str, others: str, what: str) -> Finding:
    match code:
        case "node-lacks":
            return Finding.of("node-lacks", nodes=nodes, others=others, libraries=what)
        case "node-build":
            return Finding.of("node-build", nodes=nodes, others=others, libraries=what)
        case _:
            return Finding.of("node-unlike", nodes=nodes, others=others, libraries=what)
