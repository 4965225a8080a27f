"""What host and worker must agree on: the messages, how they are framed and coded, and the contract of a cell."""
