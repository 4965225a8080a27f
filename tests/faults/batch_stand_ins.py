"""`agentcell` with forked stand-ins for cells, each of which starts in milliseconds. argv: the command's own."""

from tests.faults.endurance import forking

import agentcell.resources
from agentcell.cli import main

if __name__ == "__main__":
    vars(agentcell.resources)["starting"] = forking
    main()
