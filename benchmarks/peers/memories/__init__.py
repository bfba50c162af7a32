"""One module for each memory. `Memory` implements the protocol of `driver.py`."""
