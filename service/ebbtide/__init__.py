"""Ebbtide: a memory daemon for AI agents that forgets gracefully and knows what it forgot."""

__version__ = "0.1.0"
