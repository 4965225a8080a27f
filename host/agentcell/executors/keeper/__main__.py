"""`python -P -m agentcell.executors.keeper`."""

from agentcell.executors.keeper.main import main

raise SystemExit(main())
