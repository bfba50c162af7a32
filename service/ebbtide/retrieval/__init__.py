"""Hybrid recall, pure: what a question means, what it finds, in which order, and what of it fits.

Texts and numbers go in, values come out, the same ones every time. No I/O, no clock, no `async`, no log: where
passages are stored, and how answers reach their callers, is for others to know.
"""
