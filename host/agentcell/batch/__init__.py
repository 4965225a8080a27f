"""Batches: many requests, one run directory, and what became of each."""
