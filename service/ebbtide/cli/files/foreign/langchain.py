"""Read messages of LangChain, as `messages_to_dict` writes them. A file is one conversation."""

from __future__ import annotations

from collections.abc import Iterator

from ebbtide.cli.files.conversation import Placed, bad_input
from ebbtide.cli.files.foreign.chats import Chat, Notes, text_of, titled
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.files.foreign.whole import parsed, text_of_file
from ebbtide.cli.files.messages import BadMessage, read_message

FORM = "langchain"


def read_langchain(source: Source, notes: Notes) -> Iterator[Chat]:
    """Yield the conversation of a file. Its id is the name of the file, since the file contains none."""
    items = parsed(text_of_file(source), source.name)
    if not isinstance(items, list):
        raise bad_input(f"{source.name}: expected a list of messages.")
    messages = []
    for index, item in enumerate(items):
        place = f"{source.stem}[{index}]"
        try:
            message = read_message(item)
            if message is None or not (message["content"].strip() or "tool_calls" in message):
                notes.leave_out("messages without text")
                continue
            if message["content"].strip():
                text_of(message["content"], "content")
        except BadMessage as fault:
            notes.skip(place, str(fault))
            continue
        messages.append(Placed(message, place))
    yield Chat(source.stem, messages, titled(FORM, None), source.stem)
