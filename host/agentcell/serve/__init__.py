"""`agentcell serve`: lines in, lines out, and in between many runs of one host."""
