"""Measure structured memory: statements, times, names, tools and search."""
