"""The process on a node that makes its attempts: it outlives nobody who wants them, and nothing outlives it."""
