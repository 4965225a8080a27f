"""What is measured, one module per topic: each has a `run()` that gives rows. `python -m benchmarks` prints them."""
