"""Remember a few sentences and recall them: the shortest use there is.

python first_recall.py [http://127.0.0.1:8420]
"""

import sys

from ebbtide_client import Client

with Client(*sys.argv[1:]) as memory:
    memory.remember(
        "sample-ann",
        [
            {
                "role": "user",
                "speaker": "Ann",
                "content": "I moved to Lisbon in May. My flat is near the river.",
            },
            {"role": "assistant", "content": "How do you like Lisbon so far?"},
        ],
    )
    print(memory.recall("sample-ann", query="Where did Ann move?").text)
