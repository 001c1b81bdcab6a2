"""Make the kept files: what mpigraft wrote one day, and what later versions must read.

    python tests/data/kept/make.py

Run it to keep what is new, never because a test fails: a key that changes parts a user's results
from those of the day before.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.bench.schedule.campaign import Campaign, campaign_record, schedule_launches
from mpigraft.core import model as m
from mpigraft.core.serialize import canonical, document, plain
from mpigraft.evidence import keys as evidence_keys
from mpigraft.graft.stack.generations.reading import GenerationRecord
from mpigraft.graft.stack.override.content import SourceFile
from mpigraft.knowledge import Facts
from mpigraft.native import Natives
from mpigraft.native.programs import GPU_SELECT, RELAY
from mpigraft.request.options import settings_of
from mpigraft.request.site import KEYS, read_site
from mpigraft.request.spec import read_spec
from mpigraft.selection import MpiSelection, UserChoice, make_configuration
from mpigraft.store import Store
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.plans import a_plan, label, plan
from tests.builders.two_mpis import MACHINE, contents, make_up_transports, planned

HERE = Path(__file__).parent
MADE = 6  # of eight rounds
DAY = "2026-11-26T00:00"
SETTINGS = ("FI_LOG_LEVEL=warn", "OMP_STACKSIZE=8M")
SRUN = m.LaunchedBy("srun", Path("/usr/bin/srun"), "24.05", "pmix")
SIF, STACK = m.GuestKind.SIF, m.GuestKind.STACK
COPY = m.Copy("/x/libmpi.so.40", "lib/a", "ab")
GUESTS = {
    "image": plan(label("/a.sif", SIF, name="a.sif"), "apptainer"),
    "options": plan(label("/b.sif", SIF, name="b.sif"), "podman", options=("--ulimit=core=0",)),
    "copies": plan(label("/c.sif", SIF, name="c.sif"), "bwrap", copies=(COPY,)),
    "own": plan(label("/d.sif", SIF, name="d.sif"), "apptainer", replace=m.Replace.NOTHING),
    "stack": plan(label("/stack", STACK, name="stack"), "host"),
    "libfabric": plan(label("/stack", STACK, name="stack"), "host", replace=m.Replace.LIBFABRIC),
}
LAYOUTS = (
    m.Layout(), m.Layout(2, 56, 2), m.Layout(2, 8, 7, bind="numa", map_by="l3cache"),
    m.Layout(16, 4, gpus=True), m.Layout(1, 4, bind="none"), m.Layout(1, 4, explicit=True),
)  # fmt: skip
BENCHMARKS = (
    "latency", "native:latency", "native:bw,datatype=indexed", "osu:bibw,buffers=D D",
    "imb:PingPong", "mini:dirac,local=8x8x8x8", "app:gromacs", "alltoallv,counts=sparse,threads=2",
)  # fmt: skip
GENERATION = GenerationRecord(
    2, 1, "k" * 64, "openmpi@5.0.11", f"{DAY}:00+00:00", ("libmpi.so.40",),
    (SourceFile("/opt/mpi/lib/libmpi.so.40", "ab" * 32),),
    (SourceFile("lib/libmpi.so.40", "cd" * 32),),
    ("/stack/bin/solver",),
)  # fmt: skip


def the_campaign() -> Campaign:
    """Two MPIs over four transports with a setting, on two layouts."""
    return planned(
        name="kept", layout=("1x2", "1x2-none"), benchmark=("latency", "bw"), rounds=8,
        seed=11, max_size=64, env=SETTINGS, baseline="mpich@5.0.2/ucx",
    )  # fmt: skip


def guest_campaign() -> Campaign:
    """One MPI outside of guests, in an image, in a stack, and theirs."""
    outside = _configuration(MpiSelection(MACHINE.mpis[0]))
    inside = [_configuration(MpiSelection(MACHINE.mpis[0], plan=one)) for one in GUESTS.values()]
    campaign = replace(the_campaign(), configurations=(outside, *inside), baseline=outside)
    spec = replace(campaign.spec, name="guests", env=(), transport=("ofi-tcp",))
    return replace(campaign, spec=spec, layouts=campaign.layouts[:1])


def configuration_keys() -> dict[str, str]:
    """By what is special: an MPI, a transport, a launcher, buffers, modules, a guest."""
    ours, theirs = MACHINE.mpis
    module = m.EnvRow("PATH", "/opt/x/bin", m.Scope.RANK, "module")
    built = (("built", "by EasyBuild"), ("compiler", "gcc 12.2.0"))
    of_modules = replace(ours, modules="openmpi/5", environment=(module,))
    choices = {
        "openmpi": MpiSelection(ours),
        "mpich": MpiSelection(theirs),
        "compiler": MpiSelection(replace(ours, provenance=built)),
        "modules": MpiSelection(of_modules),
        **{name: MpiSelection(ours, plan=grafted) for name, grafted in GUESTS.items()},
    }
    made = {name: _configuration(choice) for name, choice in choices.items()}
    first = choices["openmpi"]
    made["another transport"] = _configuration(first, transport="ob1-sm")
    made["settings"] = _configuration(first, env=SETTINGS)
    made["buffers"] = _configuration(first, buffers="cuda")
    made["srun"] = _configuration(first, launcher=SRUN)
    return {name: f"{one.key} {one.id}" for name, one in made.items()}


def _configuration(
    choice: MpiSelection,
    transport: str = "ofi-tcp",
    env: tuple[str, ...] = (),
    buffers: str = "host",
    launcher: m.LaunchedBy | None = None,
) -> m.Configuration:
    user = UserChoice(settings_of(env), buffers)
    return make_configuration(choice, Facts.of(a_machine(*MACHINE.mpis)), transport, user, launcher)


def evidence_key(patch: pytest.MonkeyPatch) -> str:
    """The key of a proof, but for what is of one machine and one day."""
    for name, value in (("boot_id", "boot"), ("network_namespace", "network")):
        patch.setattr(evidence_keys, name, lambda value=value: value)
    patch.setattr(evidence_keys, "own_state", lambda: "0.1")
    patch.setattr("os.getuid", lambda: 1000)
    natives = Natives(Path("/n/bench"), Path("/n/witness"), Path("/n/guard"), "digest")
    one = _configuration(MpiSelection(an_mpi("openmpi@5.0.11")), env=SETTINGS)
    return evidence_keys.evidence_key(one, m.Layout(), natives)


def graft_plan(folder: Path) -> m.GraftPlan:
    """A plan of files that say no more than their names."""
    names = {
        name: name
        for name in ("libmpi", "dep", "help", "bench", "witness", "trace", "mpigraft-probe")
    }
    names |= {"gpu_select": GPU_SELECT, "relay": RELAY}
    files = {name: folder / file for name, file in names.items()}
    for name, path in files.items():
        path.write_text(f"{name}\n")
    return a_plan(files)


def keys(patch: pytest.MonkeyPatch, folder: Path) -> dict[str, object]:
    """Every key that results, proofs and grafts of the day before are kept under."""
    make_up_transports(patch)
    patch.setattr("mpigraft.selection.configurations.library_digests", contents)
    campaign = the_campaign()
    return {
        "configurations": configuration_keys(),
        "campaign": {c.id: c.key for c in campaign.configurations},
        "launches": ["|".join(map(str, s.place)) for s in schedule_launches(campaign)][:8],
        "layouts": [layout.key for layout in LAYOUTS],
        "benchmarks": [m.Benchmark.parse(text).key for text in BENCHMARKS],
        "evidence": evidence_key(patch),
        "graft": graft_plan(folder).key,
        "campaign file": json.loads(without(canonical(read_spec(HERE / "campaign.toml")), HERE)),
        "site profile": site_profile(),
    }


def site_profile() -> dict[str, object]:
    """What the kept profile says, without the paths of its lines."""
    site = read_site({"MPIGRAFT_SITE": str(HERE / "site.toml")})
    values = {key: site.value(key) for key, _ in site.lines if key in KEYS}
    builds = {"osu": site.osu, "imb": site.imb}
    said = {**values, "fixed": site.fixed, "images": site.images, "suites": builds}
    return dict(plain(said))


def fill(store: Store, campaign: Campaign, identity: str) -> None:
    """Store the first rounds of a campaign, of which some arms are 1.5 times slower."""
    record = replace(campaign_record(campaign), id=identity, created=f"{DAY}:00+00:00", tool="0.1")
    job = m.AllocationRecord("a0", identity, record.created, "n1", "{}", ("n1",), "42", "1/1", 0)
    job = replace(job, id=f"of-{campaign.spec.name}")
    proof = m.Proof(m.Peer.ON_NODE, m.Kind.P2P, m.ProofStatus.PROVEN, "sm", "btl: sm")
    ranks = tuple(m.RankRecord(n, 2, "n1", 11 + n, "an MPI", (n,), (), (0,)) for n in (0, 1))
    proven = m.Evidence("ob1-sm", "ob1-sm", (proof,), (), ranks)
    with store.writer() as writer:
        writer.add_campaign(record)
        writer.add_allocation(job)
        for one in campaign.configurations:
            writer.add_configuration(m.ConfigurationRecord(identity, one.key, one.id, "{}"))
            for layout in campaign.layouts:
                row = m.EvidenceRecord(identity, one.key, layout.key, proven, job.id)
                writer.add_evidence(row)
        for step in (s for s in schedule_launches(campaign) if s.round < MADE):
            slow = 1.5 if "ofi-tcp" in step.configuration.id.partition("@5")[2] else 1.0
            slow = slow if step.configuration != campaign.baseline else 1.0
            at = f"{DAY}:{step.round:02}+00:00"
            launch = m.LaunchRecord(
                f"{campaign.spec.name}-{step.round}-{step.layout.key}-{step.slot}", identity,
                job.id, step.configuration.key, step.layout.key, step.round, step.slot,
                step.replica, at, 1.0, 0, m.LaunchState.OK, (), ended=at, program=step.program,
            )  # fmt: skip
            noise = (step.round * 7 + step.slot * 3) % 5 / 500
            sizes = {size: slow * (2 + size / 64 + noise) for size in (1, 8, 64)}
            latency = m.Benchmark("native", "latency")
            values = [m.Measurement(latency, "latency", *one) for one in sizes.items()]
            writer.add_launch(launch, values, {})


def without(text: str, folder: Path) -> str:
    """A document without the folder that it was made in."""
    return text.replace(str(folder), "/opt/kept")


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        folder = Path(scratch)
        patch.setenv("MPIGRAFT_HOME", f"{scratch}/home")
        found: Mapping[str, object] = keys(patch, folder)
        texts = {
            "keys.json": json.dumps(found, indent=1) + "\n",
            "graft.json": without(document(plan=graft_plan(folder)), folder) + "\n",
            "generation.json": document(generation=GENERATION) + "\n",
        }
        for name, text in texts.items():
            if not (HERE / name).exists():
                (HERE / name).write_text(text)
        if not any(HERE.glob("store*.sqlite")):
            store = Store(folder / "store")
            fill(store, the_campaign(), "00000000-0000-4000-8000-00000000000a")
            fill(store, guest_campaign(), "00000000-0000-4000-8000-00000000000b")
            for number, made in enumerate(sorted((folder / "store").glob("*.sqlite"))):
                (HERE / f"store{number}.sqlite").write_bytes(made.read_bytes())


if __name__ == "__main__":
    main()
