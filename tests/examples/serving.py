"""`agentcell` whose `serve` runs the worker that argv names first, in place of ours."""

import sys
from functools import partial

from agentcell import Host
from agentcell.cli import main
from agentcell.serve import serving

if __name__ == "__main__":
    vars(serving)["Host"] = partial(Host, worker_command=(sys.executable, sys.argv.pop(1)))
    main()
