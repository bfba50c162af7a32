"""The digest of one batch (4)."""

from __future__ import annotations

import random
from itertools import pairwise

from tests.support.oracle import has_han
from tests.support.second_edition import relations
from tests.support.second_edition.changes import make_room_for_pin, set_pin
from tests.support.second_edition.names import find_word, is_name, normalise
from tests.support.second_edition.network import Network
from tests.support.second_edition.records import Entity, Memory, Message, Relate, Segment

# CHOICE 50 (3c): an imperative is a request, in the words of the page and in "don't forget …", 别忘 and 不要忘. A
# report of a memory or of its failure ("I can't remember that", 没记住) is no request; its words are crossed out.
REQUESTS = [
    *("记住", "记牢", "请记得", "別忘", "别忘", "勿忘", "不要忘", "記住", "記牢", "請記得"),
    *("remember that", "remember this", "remember:", "please remember", "never forget"),
    *("don't forget", "do not forget"),
]
DENIALS = [
    *(
        f"{no}{who}记"
        for no in ("不用", "不必", "不需", "不需要", "无需", "没必要", "用不着")
        for who in ("", "帮我")
    ),
    *("别记住", "不要记", "no need to remember"),
    *(f"{no} {verb} to remember" for no in ("don't", "do not") for verb in ("need", "have", "bother")),
]
ADVERBS = ["", "really ", "even ", "quite ", "ever ", "always ", "clearly ", "exactly ", "still ", "never "]
REPORTS = [
    *(
        f"{no}{verb}"
        for no in ("没", "没有", "没能", "未能", "无法", "不能", "不会")
        for verb in ("记住", "记牢")
    ),
    *("记不住", "记不牢"),
    *(
        f"{who}{how}记住"
        for who in ("我", "他", "她", "我们", "他们", "大家")
        for how in ("", "已经", "都", "终于")
    ),
    *(
        f"{no} {adverb}remember"
        for no in (
            "can't",
            "cannot",
            "couldn't",
            "don't",
            "do not",
            "didn't",
            "doesn't",
            "won't",
            "do you",
            "hardly",
        )
        for adverb in ADVERBS
    ),
    *(f"{word} to remember" for word in ("unable", "failed", "hard", "difficult", "tried", "trying")),
    *(
        f"{who}{will} {adverb}{verb}"
        for who in ("i", "we", "he", "she", "they")
        for will in ("", "'ll", "'d", " will", " would", " can", " could", " do", " did")
        for adverb in ADVERBS
        for verb in ("remember", "forget", "don't forget")
    ),
]
HELPERS = "帮给替为让请"
ROLE_NAMES = {"zh": {"user": "用户", "assistant": "助手", "system": "系统"}, "en": {}}


def digest(
    network: Network,
    messages: list[Message],
    segments: list[Segment],
    accepted_at: int,
    relate: Relate,
    rng: random.Random,
) -> list[int]:
    """Digest one batch, its segments in text order; return the ids of the new memories."""
    if not any(makes_memory(network, segment) for segment in segments):
        # CHOICE 16 (4.1): a batch without any memory applies its mentions and nothing else: it applies no lowered limit
        # and no changed focus_policy.
        bring_to_mind(network, [m for s in segments for m in mentions_of_filler(network, s)])
        return []
    network.apply_limits()
    ids = create_memories(network, messages, segments, accepted_at, rng)
    locale = batch_locale(network, ids)
    link_neighbours(network, ids, locale)
    mentions = link_entities(network, segments, ids, locale, relate)
    pin_on_request(network, messages, segments, ids)
    link_to_focus(network, ids, locale, relate)

    # 5a: the newest new memories move to the front, the oldest leave.
    network.memory_focus[:0] = entering(network, ids)
    network.cut_focus(network.memory_focus)
    bring_to_mind(network, mentions)

    # 6: one pass more is owed; above max_owed_passes they merge (5.3).
    # CHOICE 17 (5.3): a pass is merged when it is added; passes owed before the limit was lowered stay owed.
    network.owed = max(network.owed, min(network.owed + 1, network.parameters.max_owed_passes))
    return ids


def makes_memory(network: Network, segment: Segment) -> bool:
    """Whether a segment makes a memory: it is no filler (4.1)."""
    if segment.kind == "question":
        return network.parameters.remember_questions
    return segment.kind == "statement"


def entering(network: Network, ids: list[int]) -> list[int]:
    """Return the new memories that enter focus, newest first (4.5a)."""
    return list(reversed(ids))[: network.parameters.focus_limit]


# ---- 3. Create ------------------------------------------------------------------------------------


def create_memories(
    network: Network, messages: list[Message], segments: list[Segment], accepted_at: int, rng: random.Random
) -> list[int]:
    """Create the memories of the batch (4.3)."""
    digested = [m for m in messages if m.role != "system" or network.parameters.digest_system]
    is_mixed = len({message.role for message in digested}) > 1
    ids: list[int] = []
    for segment in segments:
        if not makes_memory(network, segment):
            continue
        if network.parameters.strategy == "slots":
            evict(network, network.parameters.max_nodes - 1, ids, rng)
        own = [messages[index] for index in segment.messages]
        stamp = own[0].timestamp  # CHOICE 18 (1): of several messages, the first gives created_at
        memory_id = network.new_id()
        network.memories[memory_id] = Memory(
            content=segment.content,
            first_content=segment.content,
            keywords=list(segment.keywords),
            original_length=len(segment.content),
            phrase=segment.phrase,
            label=label_of(own, is_mixed, network.parameters.speaker_prefix),
            speaker=own[0].speaker if len({message.speaker for message in own}) == 1 else "",
            created_at=accepted_at if stamp is None else stamp,
        )
        ids.append(memory_id)
    return ids


def label_of(own: list[Message], is_mixed: bool, speaker_prefix: str) -> str:
    """Return the label of a memory of these messages (1)."""
    # CHOICE 19 (1): messages differ when their speakers differ, or, where none has a speaker, their roles.
    speakers = {message.speaker for message in own}
    roles = {message.role for message in own}
    if speaker_prefix == "never" or len(speakers) > 1:
        return ""
    speaker = own[0].speaker
    if speaker:
        return f"{speaker}: "
    if len(roles) > 1 or (speaker_prefix == "auto" and not is_mixed):
        return ""
    # CHOICE 20 (1): "the message's language" is zh if a message of the memory has Han, whatever `locale` says.
    if any(has_han(message.content) for message in own):
        return ROLE_NAMES["zh"][own[0].role] + "："
    return own[0].role + ": "


def evict(network: Network, most: int, batch: list[int], rng: random.Random) -> None:
    """Forget memories, one draw each, until at most `most` live or none may be taken (5.2, slots)."""
    # Knowledge page, 1: kept nodes are neither counted nor drawn.
    while len(network.memories.keys() - network.kept) > most:
        candidates = [
            memory_id
            for memory_id in sorted(network.memories)
            if memory_id not in network.memory_focus
            and memory_id not in batch
            and not network.memories[memory_id].pinned
            and memory_id not in network.kept
        ]
        if not candidates:
            return
        sample = rng.sample(candidates, min(network.parameters.slot_sample_size, len(candidates)))
        # CHOICE 21 (5.2): importances are compared as they are here, not rounded.
        network.forget(min(sample, key=lambda memory_id: (network.importance(memory_id), memory_id)))


def batch_locale(network: Network, ids: list[int]) -> str:
    """Return the batch's locale (4.3)."""
    if network.parameters.locale != "auto":
        return network.parameters.locale
    return "zh" if any(has_han(network.memories[memory_id].content) for memory_id in ids) else "en"


def link_neighbours(network: Network, ids: list[int], locale: str) -> None:
    """Link the memories of a batch in text order, as a chain (4.3)."""
    # CHOICE 22 (4.3): filler between two memories does not part them.
    initial = network.parameters.link_initial_strength
    for earlier, later in pairwise(ids):
        network.put_link((earlier, later, relations.in_locale(relations.NEXT, locale)), initial)
        network.put_link((later, earlier, relations.in_locale(relations.PREVIOUS, locale)), initial)


# ---- 3b. Entities ---------------------------------------------------------------------------------


def names_among(network: Network, keywords: list[str]) -> list[str]:
    """Return the keywords that are the entities of one segment (4.3b)."""
    # CHOICE 23 (4.3b): two keywords of one key take two of the places.
    if network.parameters.focus_policy == "nodes":
        return []
    return [keyword for keyword in keywords if is_name(keyword)][: network.parameters.entities_per_memory]


def find_or_make(network: Network, keyword: str, memory_id: int) -> int:
    """Return the living entity of a keyword's key; make it if there is none (4.3b)."""
    key = normalise(keyword)
    found = network.entity_of(key)
    if found is not None:
        return found
    entity_id = network.new_id()
    network.entities[entity_id] = Entity(keyword, key, memory_id)
    return entity_id


def link_entity(
    network: Network, memory_id: int, entity_id: int, keyword: str, locale: str, answer: str
) -> None:
    """Link a memory with an entity both ways at 1.0, by one name (4.3b, 4b)."""
    memory = network.memories[memory_id]
    is_first = normalise(memory.keywords[0]) == network.entities[entity_id].key
    rule = relations.memory_entity_rule(memory.content, keyword, is_first)
    name = relations.name_of_answer(answer, locale) or relations.in_locale(rule, locale)
    network.link_both_ways(memory_id, entity_id, name, 1.0)


def link_entities(
    network: Network, segments: list[Segment], ids: list[int], locale: str, relate: Relate
) -> list[int]:
    """Link the new memories with their entities; return all mentions of the batch in text order (4.3b, 4.1)."""
    mentions: list[int] = []
    remaining = iter(ids)
    for segment in segments:
        if not makes_memory(network, segment):
            # CHOICE 24 (4.1): an entity that an earlier segment of the batch made exists for a filler.
            mentions += mentions_of_filler(network, segment)
            continue
        memory_id = next(remaining)
        linked: set[int] = set()
        for keyword in names_among(network, segment.keywords):
            entity_id = find_or_make(network, keyword, memory_id)
            mentions.append(entity_id)
            if entity_id not in linked:  # 8: same entity twice, one link pair
                link_entity(network, memory_id, entity_id, keyword, locale, relate(memory_id, entity_id))
                linked.add(entity_id)
    return mentions


def mentions_of_filler(network: Network, segment: Segment) -> list[int]:
    """Return the existing entities that a filler mentions (4.1)."""
    # CHOICE 25 (4.1): "as in 3b" includes the limit entities_per_memory.
    found = [network.entity_of(normalise(keyword)) for keyword in names_among(network, segment.keywords)]
    return [entity_id for entity_id in found if entity_id is not None]


def bring_to_mind(network: Network, mentions: list[int]) -> None:
    """Move the mentioned entities to the front one by one, in order of their last mention (4.5b)."""
    last = {entity_id: place for place, entity_id in enumerate(mentions)}
    for entity_id in sorted(last, key=lambda entity_id: last[entity_id]):
        network.move_to_front(entity_id)


# ---- 3c. Pin on request ---------------------------------------------------------------------------


def pin_on_request(
    network: Network, messages: list[Message], segments: list[Segment], ids: list[int]
) -> None:
    """Pin the new memories that ask for it in words (4.3c)."""
    if not network.parameters.pin_on_request:
        return
    kept = [segment for segment in segments if makes_memory(network, segment)]
    for memory_id, segment in zip(ids, kept, strict=True):
        # CHOICE 26 (4.3c): a memory of several messages is a user's if all of them are.
        is_users = all(messages[index].role == "user" for index in segment.messages)
        if is_users and asks_to_remember(segment.content) and make_room_for_pin(network):
            set_pin(network, memory_id, "by_request")


def asks_to_remember(content: str) -> bool:
    """Whether a memory asks in words to be remembered (4.3c)."""
    # CHOICE 27 (4.3c): ’ is the apostrophe of "don't" too, because telephones write it.
    text = " ".join(content.casefold().replace("’", "'").split())
    for longer in ("特别", "分别", "个别", "区别", "告别", "离别", "级别", "类别", "性别", "各别"):
        text = text.replace(longer, "  ")
    if any(words in text for words in DENIALS):
        return False
    for report in sorted(REPORTS, key=len, reverse=True):
        text = cross_out(text, report)
    return any(find_word(text, words) >= 0 for words in REQUESTS)


def cross_out(text: str, report: str) -> str:
    """Return the text without a report of memory. "Help me remember" is none."""
    at = find_word(text, report)
    while at >= 0:
        is_help = text[:at].endswith(tuple(HELPERS)) and report[0] in "我他她大"
        text = (
            text[:at] + ("x" * len(report) if not is_help else "帮" + report[1:]) + text[at + len(report) :]
        )
        at = find_word(text, report)
    return text


# ---- 4. Link to focus -----------------------------------------------------------------------------


def link_to_focus(network: Network, ids: list[int], locale: str, relate: Relate) -> None:
    """Link the new memories with the memories in focus before the batch, both ways, 1.0 (4.4)."""
    partners, to_link = list(network.memory_focus), ids
    if not partners:
        # Those that step 5 puts in focus take that place towards the rest of the batch, not among themselves.
        # CHOICE 28 (4.4): so for any batch that finds no memory in focus, not only for the first.
        partners = entering(network, ids)
        to_link = [memory_id for memory_id in ids if memory_id not in partners]
    for memory_id in to_link:
        for partner in partners:
            link_with_memory(network, memory_id, partner, locale, relate(memory_id, partner))


def link_with_memory(network: Network, memory_id: int, partner: int, locale: str, answer: str) -> None:
    """Link a new memory with one in focus (4.4, 4b)."""
    pair = [memory_id, partner]
    common = set(network.entities_of(memory_id)) & set(network.entities_of(partner))
    first_keys = {normalise(k) for i in pair for k in network.memories[i].keywords[:1]}
    # CHOICE 29 (4b): the keywords of a memory in focus are its present ones.
    rule = relations.memory_memory_rule({network.entities[i].key for i in common}, first_keys)
    name = relations.name_of_answer(answer, locale) or (rule and relations.in_locale(rule, locale))
    if name:
        network.link_both_ways(memory_id, partner, name, 1.0)
        return
    earlier, later = sorted(pair)
    network.put_link((earlier, later, relations.in_locale(relations.AFTER, locale)), 1.0)
    network.put_link((later, earlier, relations.in_locale(relations.BEFORE, locale)), 1.0)
