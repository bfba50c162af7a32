def curve() -> None:
    """Soon."""
