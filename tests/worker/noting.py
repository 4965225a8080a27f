"""The real fork server, whose cells append to a file what they imported after their fork."""

import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agentcell_worker import forkserver

FILE = "TEST_IMPORTED_FILE"


def main(worker_main: Callable[[], int]) -> int:
    file = Path(os.environ.pop(FILE))
    before = set(sys.modules)
    code = worker_main()
    with file.open("a") as imported:
        imported.writelines(f"{name}\n" for name in sorted(set(sys.modules) - before))
    return code


if __name__ == "__main__":
    forkserver.serve(partial(main, forkserver.load()))
