"""The agent types a worker knows, and the flows that drive their sessions."""
