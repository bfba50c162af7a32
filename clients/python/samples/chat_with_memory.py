"""A conversation longer than its model's context: old turns become memories, and come back when they matter.

    python chat_with_memory.py [http://127.0.0.1:8420]

In place of `answer`, call your model.
"""

import sys
from typing import Any

from ebbtide_client import Client, ContextWindow

QUESTIONS = [
    "My sister Clara plays the cello in Porto.",
    "The weather has been fine all week.",
    "I am reading a long book about lighthouses.",
    "The tram was late again this morning.",
    "What does Clara play?",
]


def answer(messages: list[dict[str, Any]]) -> str:
    """What a language model would say; this one only looks whether it still knows of Clara's cello."""
    knows = any("cello" in message["content"] for message in messages)
    return "She plays the cello." if knows else "I do not know."


with Client(*sys.argv[1:]) as memory:
    window = ContextWindow(memory, "sample-dan", context_max_tokens=200, conversation_id="sample")
    window.add({"role": "system", "content": "You are a friend."})
    for question in QUESTIONS:
        window.add({"role": "user", "content": question})
        messages = window.prepare()  # what the agent remembers about the question comes first
        reply = answer(messages)
        window.add(
            {"role": "assistant", "content": reply + " Tell me more about it, I have all the time there is."}
        )
        print(f"{window.token_count:3} tokens in the window | {question} {reply}")
    window.submit(everything=True)  # the conversation is over: what is left becomes memories too
