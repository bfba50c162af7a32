"""The daemon's process as a whole: its stop signals, its event loop under watch, its end in time."""
