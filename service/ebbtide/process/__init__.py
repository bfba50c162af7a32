"""The daemon's process: stop signals, supervision of the event loop, and a timely end."""
