"""`agentcell` with stand-in workers that are forked, for `serve`; argv is the command's."""

from functools import partial

from tests.faults.endurance import forking

import agentcell.resources
from agentcell import Host, reap
from agentcell.cli import main
from agentcell.serve import serving

if __name__ == "__main__":
    reap.GRACE_SECONDS = 3600  # so much patience that a test would notice if it were needed
    vars(agentcell.resources)["starting"] = forking
    vars(serving)["Host"] = partial(Host, max_starts=8)
    main()
