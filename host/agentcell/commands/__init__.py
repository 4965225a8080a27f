"""The commands of `agentcell`, one a module; each imports what it needs when it runs."""
