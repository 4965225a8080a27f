"""Placeholder until the flow is built."""
