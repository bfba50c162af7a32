"""Adapters for frameworks. Each module imports its framework, which is no dependency of this package."""
