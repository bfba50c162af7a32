"""The command line, and the process behind `ebbtide serve`.

numpy's linear algebra starts a thread with buffers of its own for every processor, at its import. Vectors here
are short and agents' jobs run beside each other already, so one is enough. This must stand before anything that
imports numpy; whoever has set the variables keeps their say.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
