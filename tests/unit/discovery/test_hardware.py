"""CPU, network, GPUs and scheduler of machines that are not at hand."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Family, NetDevice
from mpigraft.discovery import inventory
from mpigraft.discovery.sources import cpu, fabrics, files, gpus, probe, schedulers
from mpigraft.discovery.sources.candidate import Host
from tests.builders.machine_trees import launcher, plant, put
from tests.builders.messages import shows


def by_name(host: Host) -> dict[str, NetDevice]:
    return {d.name: d for d in fabrics.devices(host)}


# ------------------------------------------------------------------ CPU


def test_two_threads_are_one_core(tmp_path: Path) -> None:
    found = cpu.cpu(plant("slingshot-amd", tmp_path))
    assert found.core_cpus[:2] == ((0, 64), (1, 65))
    assert [len(socket) for socket in found.socket_cpus] == [128]
    assert (found.cores, found.threads, found.sockets) == (64, 128, 1)
    assert shows(found.model, "AMD EPYC 7A53")
    assert len(found.numa) == 4
    assert found.numa[1] == (*range(16, 32), *range(80, 96))
    assert len(found.l3) == 8
    assert found.l3[0] == (*range(8), *range(64, 72))


def test_arm_names_no_model_and_memory_has_no_cpus(tmp_path: Path) -> None:
    found = cpu.cpu(plant("grace-hopper", tmp_path))
    assert found.model == "Neoverse V2"
    assert found.architecture == "aarch64"
    assert (found.cores, found.sockets) == (288, 4)
    assert [len(group) for group in found.numa] == [72, 72, 72, 72]


def test_an_unknown_arm_part_is_named_by_its_numbers(tmp_path: Path) -> None:
    host = plant("grace-hopper", tmp_path)
    put(tmp_path, {"/proc/cpuinfo": "CPU implementer\t: 0x99\nCPU part\t: 0x123\n"})
    assert shows(cpu.cpu(host).model, "Arm", "0x99", "0x123")


def test_a_machine_that_tells_nothing_is_no_error(tmp_path: Path) -> None:
    host = Host({}, tmp_path)
    assert cpu.cpu(host).threads == 0
    assert cpu.memory_mib(host) == 0
    assert cpu.os_name(host) == ""
    assert fabrics.devices(host) == ()
    assert gpus.gpus(host) == ()
    assert schedulers.scheduler(host) is None


@pytest.mark.parametrize(
    ("folders", "rate"),
    [
        ({"node0/access1": "240000\n", "node1/access1": "250000\n"}, 250_000),
        ({"node0/access0": "700000\n", "node0/access1": "240000\n"}, 240_000),
        ({"node0/access0": "230000\n"}, 230_000),  # kernels before 5.12
        ({"node2/access1": "900000\n"}, None),  # memory of no CPU
        ({"node0/access1": "0\n"}, None),
        ({"node0/access1": "fast\n"}, None),
        ({}, None),
    ],
)
def test_the_rate_of_memory_is_what_the_firmware_says(
    folders: dict[str, str], rate: int | None, tmp_path: Path
) -> None:
    nodes = "/sys/devices/system/node"
    lists = {f"{nodes}/node{n}/cpulist": text for n, text in enumerate(("0-3\n", "4-7\n", "\n"))}
    rates = {f"{nodes}/{k}/initiators/read_bandwidth": text for k, text in folders.items()}
    put(tmp_path, lists | rates)
    assert cpu.memory_read_mib_s(Host({}, tmp_path)) == rate


def test_memory_and_system(tmp_path: Path) -> None:
    host = plant("slingshot-amd", tmp_path)
    assert cpu.memory_mib(host) == 527863080 // 1024
    assert shows(cpu.os_name(host), "SUSE", "15 SP5")


@given(st.lists(st.integers(0, 500), max_size=40))
def test_a_cpulist_says_which_numbers_it_was_made_of(numbers: list[int]) -> None:
    words = ",".join(f"{n}-{n + 1}" if n % 2 else str(n) for n in numbers)
    expected = set(numbers) | {n + 1 for n in numbers if n % 2}
    assert files.cpu_list(words) == tuple(sorted(expected))


@given(st.text(max_size=60))
def test_any_text_is_a_cpulist_or_part_of_one(words: str) -> None:
    assert all(n >= 0 for n in files.cpu_list(words))


# ------------------------------------------------------------------ network


def test_slingshot(tmp_path: Path) -> None:
    found = by_name(plant("slingshot-amd", tmp_path))
    assert [n for n in found if n.startswith("cxi")] == ["cxi0", "cxi1", "cxi2", "cxi10"]
    nic = found["cxi0"]
    assert (nic.kind, nic.state, nic.address) == ("cxi", "up", "0x542b1")
    details = dict(nic.details)
    assert details["firmware"] == "1.5.41"
    assert details["driver"].split() == ["cxi_ss1", "1.0.0"]
    assert details["libcxi"] == "1.5.0"
    assert details["interface"] == "hsn0"
    assert "device" not in details
    assert found["cxi1"].state == "down"
    assert shows(dict(found["cxi1"].details)["device"], "/dev/cxi1", "missing")


def test_libcxi_by_its_package_file(tmp_path: Path) -> None:
    host = plant("slingshot-amd", tmp_path)
    put(tmp_path, {"/usr/lib64/pkgconfig/libcxi.pc": "Name: libcxi\nVersion: 1.8.2\n"})
    assert dict(by_name(host)["cxi0"].details)["libcxi"] == "1.8.2"


def test_real_interfaces_come_before_bridges(tmp_path: Path) -> None:
    found = fabrics.devices(plant("slingshot-amd", tmp_path))
    plain = [d.name for d in found if d.kind == "ethernet"]
    assert plain == ["hsn0", "docker0"]
    assert dict(found[-1].details)["virtual"] == "yes"


def test_infiniband_is_up_when_any_port_is(tmp_path: Path) -> None:
    found = by_name(plant("infiniband", tmp_path))
    hca = found["mlx5_0"]
    assert (hca.kind, hca.state) == ("infiniband", "up")
    details = dict(hca.details)
    assert details["firmware"] == "20.31.1014"
    assert shows(details["driver"], "mlx5_core", "23.10-0.5.5")
    assert shows(details["speed"], "200 Gb/sec", "HDR")
    assert found["mlx5_1"].state == "down"


def test_kinds_and_states_of_interfaces(tmp_path: Path) -> None:
    found = by_name(plant("infiniband", tmp_path))
    assert (found["ib0"].kind, found["ib0"].state) == ("ethernet", "up")
    assert dict(found["ib0"].details)["link"] == "InfiniBand"
    assert found["eno1"].state == "down"
    assert found["tun0"].kind == "other"
    assert (found["lo"].kind, found["lo"].state) == ("loopback", "up")


def test_single_copy_devices(tmp_path: Path) -> None:
    found = {c.name: c for c in fabrics.single_copy(plant("slingshot-amd", tmp_path))}
    assert found["xpmem"].usable
    assert "2.6" in found["xpmem"].reason
    assert not found["knem"].usable
    assert shows(found["knem"].reason, "no /dev/knem")
    assert found["cma"].reason


@pytest.mark.parametrize(
    ("offers", "usable", "why"),
    [
        (("cma",), True, "read another's memory"),
        (("cma-when-allowed",), False, "ptrace_scope"),
        ((), False, "Operation not permitted"),
    ],
)
def test_cma_is_what_siblings_may_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offers: tuple[str, ...], usable: bool, why: str
) -> None:
    answer = probe.LibraryAnswer(offers=offers, reason="Operation not permitted")
    monkeypatch.setattr(probe, "single_copy_permitted", lambda: answer)
    cma = fabrics.single_copy(Host({}, tmp_path))[-1]
    assert (cma.name, cma.usable) == ("cma", usable)
    assert why in cma.reason


@pytest.mark.mpi
def test_cma_is_permitted_when_ucx_finds_it(fresh_home: Path) -> None:
    machine = inventory.discover_machine(Host({"PATH": "/nowhere"}))
    wheel = next(m for m in machine.mpis if m.family is Family.MPICH)
    assert wheel.ucx is not None
    assert machine.single_copy[-1].usable == ("cma" in wheel.ucx.offers)


def test_a_tools_answer_is_kept_until_the_tool_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    script = f"#!/bin/sh\necho x >> {tmp_path}/asked\necho version 1.0\n"
    put(tmp_path, {"bin/tool": script})
    assert [probe.tool_output([tmp_path / "bin/tool"], {}) for _ in range(2)] == [
        "version 1.0\n"
    ] * 2
    assert (tmp_path / "asked").read_text() == "x\n"
    put(tmp_path, {"bin/tool": script.replace("1.0", "2.0")})
    assert probe.tool_output([tmp_path / "bin/tool"], {}) == "version 2.0\n"


def test_a_tool_that_fails_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    put(tmp_path, {"bin/tool": f"#!/bin/sh\necho x >> {tmp_path}/asked\nexit 1\n"})
    for _ in range(2):
        probe.tool_output([tmp_path / "bin/tool"], {})
    assert (tmp_path / "asked").read_text() == "x\nx\n"


# ------------------------------------------------------------------ GPUs


def test_amd(tmp_path: Path) -> None:
    found = gpus.gpus(plant("slingshot-amd", tmp_path))
    assert [(g.index, g.memory_mib) for g in found] == [(0, 65520), (1, 65520)]
    for gpu, model in zip(found, ("MI250X", "0x7408"), strict=True):
        assert shows(gpu.name, "AMD", model)
    assert dict(found[0].details) == {"driver": "6.3.6", "rocm": "6.0.3-98"}
    assert [gpu.cpus[:1] for gpu in found] == [(48,), ()]


def test_nvidia_without_its_tool(tmp_path: Path) -> None:
    found = gpus.gpus(plant("grace-hopper", tmp_path))
    assert len(found) == 2
    assert all(shows(gpu.name, "NVIDIA GH200") for gpu in found)
    assert dict(found[0].details) == {"driver": "550.54.15", "gdrcopy": "2.4"}
    assert [(gpu.cpus[0], gpu.cpus[-1]) for gpu in found] == [(0, 71), (72, 143)]


def test_nvidia_with_its_tool(tmp_path: Path) -> None:
    host = plant("grace-hopper", tmp_path)
    name = "NVIDIA GH200 120GB"
    rows = f"0, {name}, 97871, 550.54.15, 00000019:01:00.0"
    launcher(tmp_path / "bin/nvidia-smi", rows + "\n| Driver 550.54.15  CUDA Version: 12.4 |")
    found = gpus.gpus(Host({"PATH": str(tmp_path / "bin")}, host.root))
    assert [(g.name, g.memory_mib) for g in found] == [(name, 97871)]
    assert dict(found[0].details) == {"driver": "550.54.15", "cuda": "12.4", "gdrcopy": "2.4"}
    assert found[0].cpus == tuple(range(72, 144))


def test_a_tool_that_fails_gives_way_to_the_kernel(tmp_path: Path) -> None:
    host = plant("grace-hopper", tmp_path)
    tool = launcher(tmp_path / "bin/nvidia-smi", "Failed to initialize NVML")
    tool.write_text(tool.read_text() + "exit 9\n")
    assert len(gpus.gpus(Host({"PATH": str(tool.parent)}, host.root))) == 2


def test_unknown_memory_is_not_guessed() -> None:
    rows = "0, NVIDIA GB200, [N/A], 580.65.06, [N/A]"
    (found,) = gpus.nvidia_rows(Host({}, Path("/no/such")), rows, "13.0", "")
    assert (found.memory_mib, found.cpus) == (0, ())


@given(st.text(max_size=200))
def test_any_output_is_rows_or_none(text: str) -> None:
    for gpu in gpus.nvidia_rows(Host({}, Path("/no/such")), text, "", ""):
        assert gpu.index >= 0


# ------------------------------------------------------------------ scheduler


def test_an_allocation_is_known_by_its_job(tmp_path: Path) -> None:
    slurm = schedulers.scheduler(plant("slingshot-amd", tmp_path / "a"))
    assert slurm is not None
    assert (slurm.name, slurm.in_allocation, slurm.job) == ("slurm", True, "4711")
    pbs = schedulers.scheduler(plant("infiniband", tmp_path / "b"))
    assert pbs is not None
    assert (pbs.name, pbs.in_allocation) == ("pbs", True)


def test_a_login_node_has_a_scheduler_and_no_job(tmp_path: Path) -> None:
    host = plant("slingshot-amd", tmp_path)
    launcher(tmp_path / "bin/sinfo", "slurm 23.02.7")
    login = Host({"PATH": str(tmp_path / "bin")}, host.root)
    found = schedulers.scheduler(login)
    assert found is not None
    assert (found.version, found.in_allocation) == ("23.02.7", False)


def test_client_programs_alone_are_no_scheduler(tmp_path: Path) -> None:
    tool = launcher(tmp_path / "bin/sinfo", "slurm_load_partitions: Unable to contact")
    tool.write_text(tool.read_text() + "exit 1\n")
    assert schedulers.scheduler(Host({"PATH": str(tool.parent)}, tmp_path)) is None


@pytest.mark.parametrize("name", ["FLUX_JOB_ID", "FLUX_ENCLOSING_ID"])
def test_flux_knows_a_task_and_what_a_batch_job_starts(tmp_path: Path, name: str) -> None:
    launcher(tmp_path / "bin/flux", "commands:    0.61.2\nlibflux-core:    0.61.2")
    found = schedulers.scheduler(
        Host({"PATH": str(tmp_path / "bin"), "FLUX_URI": "local:///tmp/x", name: "f1"},
             tmp_path)
    )  # fmt: skip
    assert found is not None
    assert (found.name, found.version, found.in_allocation) == ("flux", "0.61.2", True)


OLD_LIST = "srun: MPI types are...\nsrun: none\nsrun: pmi2\nsrun: cray_shasta\n"
NEW_LIST = (
    "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\n"
    "specific pmix plugin versions available: pmix_v4,pmix_v5\n"
)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (OLD_LIST, ["none", "pmi2", "cray_shasta"]),
        (NEW_LIST, ["pmix", "none", "cray_shasta", "pmi2", "pmix_v4", "pmix_v5"]),
        ("", []),
        ("slurm_mpi: error: plugin dir is empty", []),
    ],
)
def test_what_srun_offers(text: str, names: list[str]) -> None:
    assert list(schedulers.pmi_plugins(text)) == names


def test_what_srun_offers_is_only_offered(tmp_path: Path) -> None:
    tool = tmp_path / "bin/srun"
    launcher(tool, "slurm 23.02.7")
    tool.write_text(f"#!/bin/sh\n[ $1 = --version ] && echo slurm 23.02.7 || printf '{NEW_LIST}'\n")
    (found,) = schedulers.launchers(Host({"PATH": str(tool.parent)}, tmp_path))
    assert (found.name, found.version) == ("srun", "23.02.7")
    assert "pmix_v5" in found.pmi_offered


# ------------------------------------------------------------------ a step of a job

STEP = {"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(
    ("environ", "named"),
    [
        (STEP | {"SLURM_JOB_CPUS_PER_NODE": "2"}, True),
        (STEP | {"SLURM_JOB_CPUS_PER_NODE": "72(x2),2"}, True),
        (STEP | {"SLURM_JOB_CPUS_PER_NODE": "72(x2),1"}, False),
        (STEP | {"SLURM_JOB_CPUS_PER_NODE": "?"}, False),
        ({"SLURM_JOB_ID": "7", "SLURM_JOB_CPUS_PER_NODE": "2"}, False),  # the job's script
        ({}, False),
    ],
)
def test_a_step_with_fewer_cpus_than_its_job_is_named(
    environ: dict[str, str], *, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    host, narrow = Host(environ=environ), replace(cpu.cpu(Host()), threads=1)
    assert [f.code for f in schedulers.step_findings(host, narrow)] == ["step-cpus"] * named
    assert not schedulers.step_findings(host, replace(narrow, threads=2))
