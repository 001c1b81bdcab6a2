"""Whether a job used up its memory, by the files of its cgroup."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.job_memory import is_out_of_memory

V1, V2 = "sys/fs/cgroup/memory/slurm/uid_0/job_7", "sys/fs/cgroup/system.slice/job_7"
LINES = "5:cpuset,cpu:/slurm/uid_0/job_7/step_0\n9:{}:/slurm/uid_0/job_7/step_0/task_0\n"
MEMORY, UNIFIED = LINES.format("memory"), "0::/system.slice/job_7/step_batch/user/task_0\n"
EVENTS = "low 0\nmax 9\noom 1\noom_kill {}\noom_group_kill 0\n"


def v1(most: int, kills: int = 0) -> dict[str, str]:
    return {
        "memory.max_usage_in_bytes": f"{most}\n",
        "memory.limit_in_bytes": "1000\n",
        "memory.oom_control": f"oom_kill_disable 0\nunder_oom 0\noom_kill {kills}\n",
    }


@pytest.mark.parametrize(
    ("lines", "folder", "files", "out"),
    [
        (UNIFIED, V2, {"memory.events": EVENTS.format(1)}, True),
        (UNIFIED, V2, {"memory.events": EVENTS.format(20)}, True),
        (UNIFIED, V2, {"memory.events": EVENTS.format(0)}, False),
        (UNIFIED, V2, {}, False),
        (UNIFIED.replace("job_7", "job_x"), V2, {"memory.events": EVENTS.format(1)}, False),
        (UNIFIED.replace("0::", "1:name=systemd:"), V2, {"memory.events": EVENTS.format(1)}, False),
        ("0::/job_7\n", V2.replace("system.slice/", ""), {"memory.events": EVENTS.format(1)}, True),
        (MEMORY, V1, v1(990), True),
        (MEMORY, V1, v1(989), False),
        (MEMORY, V1, v1(1, kills=1), True),
        (MEMORY, V1, {"memory.limit_in_bytes": "1000\n"}, False),
        (MEMORY, V1, {"memory.max_usage_in_bytes": "1000\n"}, False),
        # of a container, where the group's own end is below the mount
        (MEMORY, V1.replace("slurm/uid_0/", ""), v1(1000), True),
        (LINES.format("cpu"), V1, v1(1000), False),
        (LINES.format("cpu,memory"), V1, v1(1000), True),
        ("", V1, v1(1000), False),
    ],
)
def test_a_job_ran_out_of_memory(
    lines: str, folder: str, files: dict[str, str], out: bool, tmp_path: Path
) -> None:
    for name, text in {
        "proc/self/cgroup": lines,
        **{f"{folder}/{n}": t for n, t in files.items()},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert is_out_of_memory(tmp_path) is out


def test_nothing_is_known_without_proc(tmp_path: Path) -> None:
    assert not is_out_of_memory(tmp_path)
