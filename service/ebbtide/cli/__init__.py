"""The command line, and the process behind `ebbtide serve`.

On import, numpy's linear algebra starts one thread with its own buffers for each processor. One thread is enough here,
because vectors are short and agents' jobs already run in parallel. The variables must be set before the first import of
numpy. Values from the environment take precedence.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
