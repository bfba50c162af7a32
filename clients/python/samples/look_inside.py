"""What an agent holds, page by page, and how to tell what was forgotten from what never was.

python look_inside.py [http://127.0.0.1:8420]
"""

import sys

from ebbtide_client import Client, NotFound

with Client(*sys.argv[1:]) as memory:
    memory.open_agent("sample-eve", {"focus_limit": 3})
    memory.remember("sample-eve", "The key is under the third stone.")
    memory.flush("sample-eve", passes=True)
    for node in memory.every_node("sample-eve"):
        print(node.id, f"{node.importance:.2f}", node.content)
    try:
        memory.get_node("sample-eve", "n999")
    except NotFound as error:
        print(error.reason)  # NODE_NOT_FOUND; of a forgotten memory it would be NODE_FORGOTTEN
    memory.delete_agent("sample-eve")
