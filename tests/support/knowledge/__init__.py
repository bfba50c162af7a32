"""Shared parts of tests of statements: an oracle written from the specification, and random histories."""
