"""Hybrid recall: parse a query, find and rank passages, and fit the results into a budget.

The package is pure: no I/O, no clock, no `async`, no log.
"""
