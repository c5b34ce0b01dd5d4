"""What tests, studies and benchmarks share."""
