"""`agentcell-worker` with the misbehaving worker that argv names inside it."""

import sys
from functools import partial

from agentcell import guard
from agentcell.resources import Resources
from agentcell.run import run_attempt
from agentcell.spawn import start_cold

if __name__ == "__main__":
    worker = partial(start_cold, command=(sys.executable, *sys.argv[1:]))
    vars(guard)["run_attempt"] = partial(run_attempt, resources=Resources(worker))
    del sys.argv[1:]
    sys.exit(guard.main())
