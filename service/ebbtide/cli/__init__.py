"""The command line: `ebbtide …`."""
