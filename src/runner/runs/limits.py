"""How much memory a process may fill: what machine, container, scheduler and shell set."""

import os
import resource
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

STATM = Path("/proc/self/statm")
"""Where Linux tells a process how much memory it has; other systems do not."""

MEBIBYTE = 2**20


@dataclass(frozen=True)
class Occupied:
    """Bytes of this process now: of its addresses, in memory, and of its addresses for data."""

    addresses: int
    resident: int
    data: int

    @classmethod
    def now(cls) -> "Occupied":
        """As Linux says; zeros on other systems."""
        pages = STATM.read_text().split() if STATM.exists() else ["0"] * 7
        return cls(*(int(pages[column]) * resource.getpagesize() for column in (0, 1, 5)))


def host_bytes(root: Path = Path("/"), environment: Mapping[str, str] = os.environ) -> int:
    """Bytes that the processes of this job may fill together: the smallest limit there is.

    That of the machine, of the process's cgroup and all above it, and of Slurm's job on this node.
    root: the folder that holds `proc` and `sys`.
    """
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *_of_cgroups(root), *_of_slurm(environment)])


def process_bytes() -> int | None:
    """Bytes of addresses that this process may have (`ulimit -v`), None where it may have any."""
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


@contextmanager
def capped(data: int) -> Iterator[None]:
    """Have what would take this process above so many bytes of data raise an exception.

    Without it a system that promises more memory than it has kills the process at a later time.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = [limit for limit in (data, soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _of_cgroups(root: Path) -> Iterator[int]:
    """The limits of the process's own cgroup and of those that it is nested in, v1 and v2."""
    for folder, mount in _cgroups(root):
        for level in (folder, *folder.parents):
            for name in ("memory.max", "memory.limit_in_bytes"):
                with suppress(OSError, ValueError):  # there is none, or it is "max"
                    yield int((level / name).read_text())
            if level == mount:
                break


def _cgroups(root: Path) -> Iterator[tuple[Path, Path]]:
    """The folder of the process in each hierarchy that governs memory, and where that is mounted.

    A container may see the hierarchy from its own cgroup on alone, and the process's path from the
    root of all: then its folder is where the hierarchy is mounted.
    """
    try:
        own = (root / "proc/self/cgroup").read_text().splitlines()
        mounts = (root / "proc/self/mountinfo").read_text().splitlines()
    except OSError:  # no Linux
        return
    paths = {}
    for line in own:
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    for line in mounts:
        place, _, kind = line.partition(" - ")
        system, _, options = kind.split(" ", 2)
        controller = {"cgroup": "memory", "cgroup2": ""}.get(system)
        if controller not in paths or (controller and controller not in options.split(",")):
            continue
        seen, mount = place.split()[3:5]
        path = PurePosixPath(paths[controller])
        inside = path.relative_to(seen) if path.is_relative_to(seen) else PurePosixPath()
        at = root / mount.lstrip("/")
        yield at / inside, at


def _of_slurm(environment: Mapping[str, str]) -> Iterator[int]:
    """What Slurm gives a job on this node, by `--mem` or for each CPU or GPU; in MiB there."""
    for names in (
        ["SLURM_MEM_PER_NODE"],
        ["SLURM_MEM_PER_CPU", "SLURM_CPUS_ON_NODE"],
        ["SLURM_MEM_PER_GPU", "SLURM_GPUS_ON_NODE"],
    ):
        with suppress(KeyError, ValueError):
            product = MEBIBYTE
            for name in names:
                product *= int(environment[name])
            if product > 0:  # 0: all that the node has
                yield product
