"""Every function that reads text from callers, models or files, and the hostile texts that test them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from itertools import count
from types import SimpleNamespace
from typing import Any, cast

from pydantic import ValidationError

from ebbtide import entity_names
from ebbtide.access import keys
from ebbtide.cli.console import without_controls
from ebbtide.cli.failures import Failure, in_options
from ebbtide.cli.files.conversation import read_conversation
from ebbtide.cli.files.foreign.chats import Notes
from ebbtide.cli.files.foreign.formats import read_chats
from ebbtide.cli.files.foreign.sources import Source
from ebbtide.cli.pictures import indented
from ebbtide.cli.plain_text import read_text
from ebbtide.errors import InvalidRequest
from ebbtide.fleet.deletion.selection import words_in
from ebbtide.fleet.deletion.words import without, word_bytes
from ebbtide.fleet.ingest.extraction import RULES_CHARS, _pieces
from ebbtide.fleet.ingest.gate import Gate, Said
from ebbtide.fleet.ingest.segments import ByteOffsets, memory_of, placed_start
from ebbtide.fleet.records import searching
from ebbtide.fleet.state.recall_filter import RecallFilter
from ebbtide.han import contains_han
from ebbtide.ids import parse_agent_id
from ebbtide.language.builtin import (
    chinese_links,
    chinese_notes,
    chinese_values,
    english_facts,
    english_values,
    extraction,
    negation,
    scripts,
    sentences,
    shortening,
    small_talk,
    static_embedder,
    tokens,
    trimming,
)
from ebbtide.language.builtin.model import process
from ebbtide.language.builtin.segmentation import segment
from ebbtide.language.multilingual import embedder as multilingual
from ebbtide.language.port import BadReply, Processed, ProposedStatement, Segment, Utterance
from ebbtide.language.served import chunks, embedder, fidelity, openai_compatible, parsing, prompts, replies
from ebbtide.language.served.connection import RequestRejected, retry_after_s
from ebbtide.language.served.model import Overflow
from ebbtide.language.tokens import estimate
from ebbtide.memory import (
    causes,
    merge_proposals,
    naming,
    pin_requests,
    reports,
    slot_names,
    subjects,
    topic_words,
    values,
)
from ebbtide.memory.texts import piece_of
from ebbtide.memory.wording import joined, speaker_labels, word_dangling, word_memory
from ebbtide.parameters import AgentParameters
from ebbtide.privacy import spans
from ebbtide.records import MessageRecord
from ebbtide.rest import http_checks
from ebbtide.rest.moving import is_file
from ebbtide.rest.problems import supports_head
from ebbtide.rest.proxy import agent_named
from ebbtide.rest.proxy_paths import api_of
from ebbtide.rest.view import preloads_of
from ebbtide.retrieval import (
    analysis,
    marks,
    packing,
    passages,
    query,
    questions,
    restating,
    times,
    tokenizers,
    topic,
)
from ebbtide.retrieval import sentences as key_sentences
from ebbtide.telemetry import request_id_from
from ebbtide.tools.reading import read_arguments
from ebbtide.tools.schema import TOOLS
from ebbtide.verbs import creation, erased, metadata, pii_policy, requests
from ebbtide.verbs.paging import to_token
from ebbtide.verbs.records import RecordOperation

Reader = Callable[[str], Any]

RECORD = MessageRecord(1, 1, 0, "user", "Ann", "", None, 0, "", b"k")


def _no_half_pairs(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _key_sentences(text: str) -> str:
    terms = {analysis.term_of(word): 1.0 for word in list(analysis.words_of(text))[:50]}
    return key_sentences.key_sentences(text, terms, lambda said: len(said) <= len(text) // 2)


def _topic_named(text: str) -> Any:
    words = topic.Topic("ann 中文")
    return words.is_named_in(text), words.stretches(text), topic.Topic("a").stretches(text)


def _topic_of(text: str) -> Any:
    with suppress(ValueError):
        words = topic.Topic(text[:200])
        return words.is_named_in(text), words.stretches(text)
    return None


def _question(text: str) -> Any:
    parsed = query.parse_query(
        text, speakers=["Ann", "小明", "Lee Ann", text[:30]], reference_ms=1_700_000_000_000
    )
    return parsed, parsed.has_code


def _parsed_reply(text: str) -> Any:
    with suppress(BadReply):
        return parsing.object_of(text, "segments")
    return None


def _json_reply(text: str) -> Any:
    with suppress(BadReply):
        return parsing.text_in(parsing.object_of(json.dumps({"content": text}), "content"), "content")
    return None


def _fields_of_reply(text: str) -> Any:
    values = {"names": {str(n): text for n in range(3)}, "keywords": [text]}
    return parsing.names_in(values, 3), parsing.texts_in(values, "keywords")


def _checked(text: str) -> Any:
    with suppress(BadReply):
        reply = Processed(text, text, tuple(text.split()[:50]))
        return replies.checked_processed(reply, text, int(len(text) * 0.9))
    return None


def _completed(text: str) -> Any:
    said = [Utterance("user", "Ann", line) for line in text.split("\n")]
    cut = [Segment(one.text, (index,), 0) for index, one in enumerate(said) if one.text.strip()][::2]
    return chunks.completed_by_rule(cut, said, 200)


def _values(text: str) -> Any:
    """Check a text as every kind of value. A form has matched it, so it is short in use."""
    modules = (chinese_values, english_values)
    checks = [
        one for module in modules for name, one in vars(module).items() if name.lstrip("_").startswith("is_")
    ]
    for check in checks:
        with suppress(ValueError, IndexError):  # a text that no form matches, such as an age without digits
            check(text[:80])
    about = [
        extraction.extract(f"{begin}{text[:12]}。") for begin in ("我妹妹叫", "我妹妹", "我养了一只狗，叫")
    ]
    about += [extraction.extract(f"{name}{text[:80]}", {"Clara", "小雨"}) for name in ("Clara", "小雨")]
    return about, english_facts.asks_for_reminder(text[:80])


def _day(text: str) -> Any:
    with suppress(BadReply):
        return replies._day_in({"since": text}, "since")
    return None


def _path_in_record(text: str) -> Any:
    put = {"op": "put", "namespace": ["n"], "key": "k", "value": {"a": 1}, "index": [text[:200]]}
    with suppress(ValidationError, InvalidRequest):
        RecordOperation.model_validate(put)
    return searching._at({"a": [text]}, text)


def _kind(text: str) -> Any:
    request = {"agent_id": "a", "content": "x", "kind": text}
    with suppress(ValidationError, InvalidRequest):
        return creation.CreateNodeRequest.model_validate(request)
    return None


def _echoes(text: str) -> Any:
    recall_filter = RecallFilter()
    recall_filter.note([text[: len(text) // 2]])
    return recall_filter.without(text, "assistant")


def _memories(text: str) -> Any:
    said = Utterance("user", "Ann", text, "Ann: ")
    made, offsets = segment([said], 200), ByteOffsets([said])
    return [memory_of(one, Processed(one.text, "", ()), [said], [RECORD], offsets) for one in made]


def _rephrased(text: str) -> Any:
    said = [Utterance("user", "Ann", text)]
    return [placed_start(Segment(text[at : at + 200], (0,), None), said) for at in range(0, len(text), 2000)]


def _withdrawn(text: str) -> Any:
    clean = _no_half_pairs(text)
    return without(clean, topic.Topic("a").stretches(clean)), word_bytes(clean)


def _shortened(text: str) -> Any:
    return process(text, len(text) // 2), shortening.shorten(text, 10)


def _prompts(text: str) -> Any:
    said = [Utterance("user", "Ann", text)]
    return (
        prompts.segment_prompt(said, 200),
        prompts.shorten_prompt(text, 100),
        prompts.process_prompt(text),
    )


def _packed(text: str) -> Any:
    stretches = [text[at : at + 500] for at in range(0, len(text), 500)][:200]
    candidates = [
        packing.Candidate(place, one, 1.0 / (place + 1), frozenset(analysis.analysed(one)[0].tolist()))
        # The numbers of near duplicates are compared: each stretch has one.
        for place, one in enumerate(text for stretch in stretches for text in (stretch, f"{stretch} "))
    ]
    return packing.pack(
        candidates,
        max_results=50,
        token_budget=2000,
        count=tokenizers.TOKENIZERS["estimate"],
        word=lambda texts: joined(word_memory(text, "auto") for text in texts),
    )


def _tagged(text: str) -> Any:
    return pii_policy._in_bytes(text, spans.find(text))


def _refused(text: str) -> Any:
    with suppress(Exception):
        requests.refuse(text[:500], text, text[:50])
    return requests.echo(text), requests.shown(text)


def _json_body(text: str) -> Any:
    with suppress(Exception):
        return requests.read_json(text.encode("utf-8", "replace"))
    return None


def _metadata(text: str) -> Any:
    text = _no_half_pairs(text)
    return metadata.metadata_json({"said": text, "list": list(text)}), list(words_in([text, {text: 1}]))


def _file(name: str) -> Reader:
    def read(text: str) -> Any:
        with suppress(Failure):
            return read_conversation(_no_half_pairs(text).encode(), name)
        return None

    return read


def _memory_file(form: str, document: Callable[[str], Any]) -> Reader:
    def read(text: str) -> Any:
        with suppress(Failure):
            file = BytesIO(json.dumps(document(text)).encode())
            return list(read_chats(Source("file.json", file), form, Notes()))
        return None

    return read


def _chatgpt_document(text: str) -> Any:
    content = {"content_type": "text", "parts": text.split("\n")}
    message = {"id": "m", "author": {"role": "user"}, "content": content}
    return [{"id": "c", "current_node": "m", "mapping": {"m": {"parent": None, "message": message}}}]


def _refusal_of_server(text: str) -> Any:
    refusal = RequestRejected(400, text)
    with suppress(Overflow, AttributeError):
        openai_compatible.OpenAICompatibleChat._handle_rejection(
            cast(Any, SimpleNamespace(_window=1 << 20)), refusal
        )
    server = SimpleNamespace(options=SimpleNamespace(name="m"), _http=SimpleNamespace(base_url="u"))
    return embedder.ServedEmbedder._meaning(cast(Any, server), refusal, 2), embedder.prefixes_of(text)


def _shortened_again(text: str) -> Any:
    once = shortening.shorten(text, len(text) // 2)
    return shortening.shorten(once, len(text) // 4, text)


def _gate(text: str) -> object:
    """Judge statements whose quotes are the beginning and the end of a text, as long as the longest that is judged."""
    gate, text, listed = Gate(), text[:RULES_CHARS], []
    for quote in (text[:150], text[-150:]):
        words = quote.split() or ["Ann"]
        listed += [
            ProposedStatement(0, quote, subject, "fact", "likes", words[-1]) for subject in ("I", words[0])
        ]
    gate.judge(Said("user", "", text, (text[:2000],)), listed)
    return gate.accepted


def _arguments(text: str) -> object:
    """Read a text as a list of types and as attributes, as a language model may send them."""
    sent = {"query": "x", "memory_types": text, "subject": "x", "topic": "x", "attributes": text}
    found = []
    for tool in ("search_memories", "create_memory"):
        with suppress(InvalidRequest):
            found.append(read_arguments(TOOLS[tool], sent, lambda _: None).noticed)
    return found


def _fillers(text: str) -> bool:
    return small_talk.is_filler(text) or small_talk.is_courtesy(text[:150])


def _relation_names(text: str) -> Any:
    names = [
        naming.entity_link_name(text, name, is_first=False, locale="en") for name in ("Ann", text[5:9], text)
    ]
    return names, naming.accepted_link_name(text, "zh"), entity_names.names_of([text], 1)


def _statement(text: str) -> Any:
    compared = [values.compare(text, other) for other in (text[5:], text[:9], "Lisbon")]
    cues = values.reports_change(text, negated=True), values.tells_of_past(text), values.is_done(text)
    said = values.tells_of_plan(text), negation.denial_of(text, text[-3:]), negation.denies_allergy(text)
    named = subjects.names_relative(text, "sister", text[:3]), subjects.relative_in(text)
    said = (
        *said,
        reports.values_of(text),
        reports.follows_correction(text),
        reports._is_meant(text[:9], text),
    )
    return compared, slot_names.canonical(text), cues, said, subjects.unqualified(text), named


def _cause(text: str) -> Any:
    size = len(text.encode("utf-8", "replace"))
    said = text.encode("utf-8", "replace").decode()
    return [
        causes.cause_between(
            f"{before}{said}因为{said}", (len(before.encode()), size), (len(before) + size, size)
        )
        for before in ("", "so ", "because ")
    ] + [causes.cause_between(f"Ann{said}Bob", (0, 3), (3 + size, 3))]


def _names(text: str) -> Any:
    one, other = (merge_proposals.Named(number, name) for number, name in ((1, text), (2, text[7:])))
    return merge_proposals.difference(one, other), merge_proposals.proposed(one, other, 0.9)


def _fidelity(text: str) -> Any:
    with suppress(BadReply):
        fidelity.check_fidelity(text, text[::-1])
    fidelity.check_fidelity("", text)


def _edges(text: str) -> Any:
    return [trimming.plain(text), trimming.trim(text), trimming.without_end_mark(text)]


def _path(text: str) -> dict[str, str]:
    return {"type": "http", "method": "POST", "path": f"/v1/agents/{text}"}


def _page_token(text: str) -> Any:
    with suppress(InvalidRequest):
        return erased._place(to_token(_no_half_pairs(text), "erased"))
    return None


def _retention(text: str) -> Any:
    with suppress(ValidationError):
        return AgentParameters(retention=text).kept_days
    return AgentParameters().kept_days


def _time_zone(text: str) -> Any:
    with suppress(ValidationError):
        return AgentParameters(time_zone=text)
    return AgentParameters()


def _stated(text: str) -> Any:
    return [times.stated_time(text, 1_700_000_000_000, reading) for reading in ("question", "event", "plan")]


READERS: Mapping[str, Reader] = {
    # A path in a request has no lone surrogates.
    "page of the view": lambda text: preloads_of(f"a/{text.encode(errors='replace').decode()}/m/{text}"),
    "sentences": key_sentences.sentences_of,
    "key sentences": _key_sentences,
    "topic named": _topic_named,
    "topic of the text": _topic_of,
    "parts of a question": query.parts_of,
    "question": _question,
    "words": lambda text: list(analysis.words_of(text)),
    "whole words": lambda text: list(analysis.whole_words_of(text)),
    "normalised": analysis.normalised,
    "passages": lambda text: passages.entries_of(text, "Ann"),
    "tokens: estimate": tokenizers.TOKENIZERS["estimate"],
    "tokens: words": tokenizers.TOKENIZERS["words"],
    "marks of a passage": marks.marks_of,
    "packing": _packed,
    "redacted": spans.redacted,
    "keyed": lambda text: spans.keyed(text, b"key"),
    "personal spans in bytes": _tagged,
    "wording": lambda text: (word_memory(text, "auto"), word_dangling(text, text, "auto")),
    "labels": lambda text: speaker_labels([("user", text, text), ("assistant", "", text)], "always", "auto"),
    "folded memory": lambda text: piece_of(text, text.split()[:50]),
    "reply of a model": _parsed_reply,
    "reply of a model, as JSON": _json_reply,
    "fields of a reply": _fields_of_reply,
    "checked reply": _checked,
    "checked names": lambda text: replies.checked_names([text], 1),
    "cut at a clause": lambda text: replies.cut_at_clause(text, len(text) - 1),
    "portions": lambda text: chunks.chunks_of([Utterance("user", "Ann", text)], 300),
    "parts for a model": lambda text: chunks.split_text(text, 300),
    "completed segments": _completed,
    "prompts": _prompts,
    "estimate": estimate,
    "cut for an embedder": lambda text: embedder.cut_to(text, 400),
    "refusal of a server": _refusal_of_server,
    "builtin: segment": lambda text: segment([Utterance("user", "Ann", text)], 200),
    "builtin: process": lambda text: process(text, None),
    "builtin: shorten": _shortened,
    "builtin: sentences": sentences.sentence_spans,
    "builtin: whole clauses": lambda text: shortening.whole_clauses(text, lambda said: len(said) <= 40),
    "builtin: notes": lambda text: chinese_notes.fewer_notes(text, 20, text, (0, len(text))),
    "builtin: pronouns": lambda text: chinese_links.linked_clauses(f"王伟来了，{text}，他很累。"),
    "builtin: tokens": tokens.tokenize,
    "builtin: fillers": _fillers,
    "builtin: extraction": lambda text: [
        extraction.extract(begin + text) for begin in ("", "I love ", "I am a ", "我喜欢", "我是一名")
    ],
    "builtin: values": _values,
    "pieces of a message": lambda text: list(_pieces(text, 20)),
    "day of a plan": _day,
    "kind of a memory": _kind,
    "path in a record": _path_in_record,
    "gate for statements": _gate,
    "arguments of a tool": _arguments,
    "topics of a question": lambda text: (
        topic_words.asked(text),
        topic_words.asks_for_the_past(text),
        topic_words.asks_only_for_the_past(text),
        topic_words.asks_why(text),
        topic_words.asks_for_everything(text[:80]),
        topic_words.topics_of_value(text),
        topic_words.are_same_relative(text, "sister"),
        topic_words.names("Ann", topic_words.asked(text)),
        topic_words.mentions(text, topic_words.asked("Where does my boss Ann live?")),
    ),
    "fidelity of a shortening": _fidelity,
    "names of links": _relation_names,
    "slots and values of statements": _statement,
    "causes between statements": _cause,
    "names that may be one": _names,
    "request to remember": pin_requests.asks_to_remember,
    "text for the embedder": multilingual.clean,
    "builtin: shorten again": _shortened_again,
    "builtin: edges": _edges,
    "builtin: clusters": lambda text: [scripts.cluster_cut(text, 0, at) for at in range(0, len(text), 50)],
    "builtin: width": lambda text: (scripts.width(text), scripts.is_dense(text), scripts.is_japanese(text)),
    "builtin: reads as English": static_embedder.reads_as_english,
    "echoes": _echoes,
    "questions": questions.split_questions,
    "only questions": questions.only_asks,
    "user of the memory proxy": agent_named,
    "announced change": restating.announces_change,
    "memories with sources": _memories,
    "rephrased segments": _rephrased,
    "withdrawn": _withdrawn,
    "refused value": _refused,
    "JSON body": _json_body,
    "metadata": _metadata,
    "request id": lambda text: bool(request_id_from(text)),
    "memory on a terminal": without_controls,
    "error of the daemon": lambda text: in_options(f"{text}: GET /v1/"),
    "paths of the memory proxy": lambda text: (
        api_of(f"/v1/agents/{text}/ollama/api/chat"),
        api_of(text),
    ),
    "paths without HEAD": lambda text: supports_head(f"/v1/agents/{text}/backup"),
    "agent id": lambda text: _agent_id(text),
    "holds Han": contains_han,
    "key in a header": lambda text: keys.presented([f"Bearer {text}"]) or keys.parsed(text),
    "headers": lambda text: (
        http_checks._host_name(text),
        retry_after_s(text),
        http_checks._is_upload(_path(text)),
        is_file(_path(text)),
    ),
    "page token": _page_token,
    "retention": _retention,
    "time zone": _time_zone,
    "stated times": _stated,
    "file: text": read_text,
    "file: conversation": _file("file"),
    "file: JSON": _file("file.json"),
    "file: JSON lines": _file("file.jsonl"),
    "file: mem0": _memory_file("mem0", lambda text: [{"memory": line} for line in text.split("\n")]),
    "file: MCP": _memory_file(
        "mcp-memory", lambda text: {"entities": [{"name": "Ann", "observations": text.split("\n")}]}
    ),
    "file: ChatGPT": _memory_file("chatgpt", _chatgpt_document),
    "folded for a terminal": lambda text: indented(text, 80, "  "),
}


def _agent_id(text: str) -> Any:
    with suppress(Exception):
        return parse_agent_id(text)
    return None


def _counted(form: str) -> str:
    """Return different pieces in a row, so that caches do not help."""
    numbers = count()
    return "".join(form.format(next(numbers)) for _ in range(20_000))


PIECES = (
    "tel 2345678901 ssn 123456789 ", "AKIA0123456789ABCDEF ", "exceeds the tokens ", ".", "...!?", "。", "…",
    "!", ";", "；", ",", "，", "、", ":", "-", "—", "_", "*", "#", "`", "'", '"', "’", "”", " ", "\t", "\u3000",
    "\n", "\n\n", " \n", "\r\n", "\x00", "\u200b", "\u200d", "\ufeff", "\u00ad", "\u0301", "\u0301\u0323",
    "\u0327\u0301\u0345", "e\u0301\u0323", "\u0344\u0323", "\uff9e\u0323", "\u1160", "\u1100\u1161", "1", "1.",
    "1,", "1-", "1 ", "1/", "1:", "1.2.", "a1", "1a", "a.", "a-", "a'", "a_", "a@", "@a.bc", "%40a.bc", "(",
    ")", ")(", "[", "]", "[]", "{", "{}", '{"a":', '[{"a":1},', '{"segments": [', '"', '\\"', "《", "「", "“",
    "“”", "（）", "<think>", "</think>", "<think></think>", "<think></thought>", "<a>", "</a", "```", "**",
    "- ", "1. ", "# ", "> ", "中", "中 ", "中文，", "吗？", "の", "カ", "한", "ก", "อำ", "ä", "ß", "ﬃ", "İ",
    "A", "a", "Ab", "aB", "é", "and ", " and ", ", and what ", " but", "when ", "who ", "because ", "if it ",
    "he said ", "Ann, ", "Ann: hi\n", "the dog ", "Yes.", "Yes. ", "Mr. ", "e.g. ", "hm...x", "so that ",
    "which ", "do you ", "please ", "what kind of ", "in May ", "on Monday ", "last week ", "2023-01-",
    "5/6/2023 ", "三月", "上周", "2023年", "3 days ago ", "12:30 ", "😀", "👩\u200d", "🇦", "\U00020000",
    "\ud800", "\u202e", "http://", "http://a.b/", "/a", "./", "a::", "0x", "E1", "aB1", "password is ",
    "authorization=", "bearer ", "sk-", "eyJ", "138.0013.", "4111 1111 ", "GB82 ", "::", "192.0.", "user@[",
    "exceeds ", "maximum ", "context length ", "[memory] ", "---\n", "[Memory] a\n", "如果", "因为", "但是，",
    "一个", "下周三", "call 212-555-0143 ", "+44 20 7946 0958 ", "DE89 3704 0044 0532 0130 00 ",
    "phone 01 42 68 53 00 12 ",
)  # fmt: skip
"""The pieces that hostile texts repeat."""


def families() -> dict[str, Callable[[int], str]]:
    """Return hostile texts by name, each as a function of the size."""
    found: dict[str, Callable[[int], str]] = {}
    for piece in PIECES:
        found[f"{piece!a} again and again"] = lambda size, piece=piece: (piece * (size // len(piece) + 1))[
            :size
        ]
    for begin, piece, end in (
        ("hm", ".", "x"), ("中", " ", "é"), ("a", "\u0301\u0323", ""), ("a ", "(", ")"), ("", "(", ")" * 999),
        ("what ", " ", "and"), ("“", "a ", "x"), ("ann 中文 ", "a", ""), ("when", " ", "x"), ("- ", "\n", "- x"),
        ('{"segments": "', "a", ""), ("<think>", "{", ""), ("{", '"a":{', ""),
    ):  # fmt: skip
        found[f"{piece!a} between {begin!a} and {end[:1]!a}"] = (
            lambda size, begin=begin, piece=piece, end=end: (
                begin + (piece * size)[: size - len(begin) - len(end)] + end
            )
        )
    found["long numbers"] = lambda size: (f"{'1' * 62} x " * (size // 65 + 1))[:size]
    for form in ("Line {} of many.\n", "第{}句话。", "ann{}@example.com ", "word{} ", "{}、", "(see {}) "):
        found[f"{form!a} with a number each"] = lambda size, form=form: _counted(form)[:size]
    return found
