"""Which boot of the machine this is: what ran before it runs no more."""

from pathlib import Path

import psutil

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """The same for as long as the machine is up, and never again."""
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return f"{psutil.boot_time():.0f}"
