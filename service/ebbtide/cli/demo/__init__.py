"""`ebbtide demo`: six weeks of an agent's memory in half a minute."""
