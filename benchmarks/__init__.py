"""Measuring: how good a language model is for a memory, and how fast the daemon is."""
