"""Batches: many requests from a file, in a run directory from which the same command goes on whatever ended it."""
