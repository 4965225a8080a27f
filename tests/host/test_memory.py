"""Free memory is the machine's, or the control group's if that is less."""

from pathlib import Path

import pytest

from agentcell.memory import MEBIBYTE, free_mb, has_room, is_scarce


def put(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MACHINE = {"proc/meminfo": "MemTotal: 9999999 kB\nMemFree: 1 kB\nMemAvailable:    4096000 kB\n"}


def v2(limit: str, used_mb: int, cache_mb: int) -> dict[str, str]:
    return {
        "memory.max": f"{limit}\n",
        "memory.current": f"{used_mb * MEBIBYTE}\n",
        "memory.stat": f"anon 12\nfile 99\ninactive_file {cache_mb * MEBIBYTE}\nactive_file 1\n",
    }


def below(folder: str, files: dict[str, str]) -> dict[str, str]:
    return {f"{folder}/{name}": text for name, text in files.items()}


def test_without_groups_it_is_what_the_machine_has_available(tmp_path: Path) -> None:
    assert free_mb(put(tmp_path, MACHINE)) == 4000


def test_a_group_leaves_its_limit_less_what_is_used_and_cannot_be_given_up(tmp_path: Path) -> None:
    group = below("sys/fs/cgroup/app", v2(str(1000 * MEBIBYTE), 800, 300))
    assert free_mb(put(tmp_path, {**MACHINE, "proc/self/cgroup": "0::/app\n", **group})) == 500


def test_a_group_without_a_limit_leaves_all(tmp_path: Path) -> None:
    group = below("sys/fs/cgroup/app", v2("max", 800, 300))
    assert free_mb(put(tmp_path, {**MACHINE, "proc/self/cgroup": "0::/app\n", **group})) == 4000


def test_the_groups_around_ours_count_too(tmp_path: Path) -> None:
    inner = below("sys/fs/cgroup/outer/inner", v2("max", 10, 0))
    outer = below("sys/fs/cgroup/outer", v2(str(600 * MEBIBYTE), 500, 0))
    files = {**MACHINE, "proc/self/cgroup": "0::/outer/inner\n", **inner, **outer}
    assert free_mb(put(tmp_path, files)) == 100


def test_a_container_that_sees_only_its_own_group_is_understood(tmp_path: Path) -> None:
    group = below("sys/fs/cgroup", v2(str(256 * MEBIBYTE), 128, 0))
    assert free_mb(put(tmp_path, {**MACHINE, "proc/self/cgroup": "0::/somewhere/outside\n", **group})) == 128


def test_the_first_version_of_groups_is_read_likewise(tmp_path: Path) -> None:
    group = {
        "memory.limit_in_bytes": f"{2000 * MEBIBYTE}\n",
        "memory.usage_in_bytes": f"{1500 * MEBIBYTE}\n",
        "memory.stat": f"cache 1\ntotal_inactive_file {100 * MEBIBYTE}\n",
    }
    lines = "9:cpuset:/\n4:memory:/docker/1\n0::/\n"
    files = {**MACHINE, "proc/self/cgroup": lines, **below("sys/fs/cgroup/memory/docker/1", group)}
    assert free_mb(put(tmp_path, files)) == 600


def test_a_group_over_its_limit_leaves_nothing(tmp_path: Path) -> None:
    group = below("sys/fs/cgroup/app", v2(str(100 * MEBIBYTE), 120, 0))
    assert free_mb(put(tmp_path, {**MACHINE, "proc/self/cgroup": "0::/app\n", **group})) == 0


def test_this_machine_has_some() -> None:
    assert free_mb() > 0
    assert free_mb(Path("/nowhere")) > 0


@pytest.mark.parametrize(("free", "room", "scarce"), [(1024, True, False), (1023, False, False), (511, False, True)])
def test_a_cell_starts_with_enough_and_one_goes_under_half(free: float, room: bool, scarce: bool) -> None:
    assert (has_room(free, 1024), is_scarce(free, 1024)) == (room, scarce)


def test_nothing_is_too_little_when_nothing_must_be_free() -> None:
    assert (has_room(0, 0), is_scarce(0, 0)) == (True, False)
