"""Benchmarks: the suitability of a language model, and the speed of the daemon."""
