"""A fork server whose cells run what each one's environment names, in place of the worker."""

import gc
import json
import os
import runpy
import sys
from pathlib import Path

from agentcell_protocol import cell
from agentcell_worker.forkserver import serve

ARGV = "TEST_CELL_ARGV"
"""JSON: `["-c", program]`, or a script and its arguments."""


UNLISTED = "--unlisted"
"""First option: as on a kernel that lists no children."""


def main() -> int:
    program, *argv = json.loads(os.environ.pop(ARGV))
    if program == "-c":
        exec(argv[0], {"__name__": "__main__"})
    else:
        sys.argv = [program, *argv]
        sys.path.insert(0, str(Path(program).parent))
        runpy.run_path(program, run_name="__main__")
    return 0


if __name__ == "__main__":
    gc.disable()  # as the server of our workers does before it serves
    if UNLISTED in sys.argv:
        sys.argv.remove(UNLISTED)
        cell.children = lambda: None
    serve(main)
