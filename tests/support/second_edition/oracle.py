"""The operations of one agent's memory."""

from __future__ import annotations

import random

from tests.support.second_edition import changes, compression, digestion, recall
from tests.support.second_edition.names import normalise
from tests.support.second_edition.network import Network
from tests.support.second_edition.recall import Answer, Query
from tests.support.second_edition.records import Message, Relate, Segment, Shorten


def no_answer(memory_id: int, other: int) -> str:
    """The relation name of a model that names none: the rules name every link."""
    return ""


class SecondEdition(Network):
    """The memory of one agent."""

    def digest(
        self,
        messages: list[Message],
        segments: list[Segment],
        *,
        accepted_at: int = 0,
        relate: Relate = no_answer,
        rng: random.Random | None = None,
    ) -> list[int]:
        """Digest one batch (4). `relate` names a new memory's relation with a memory in focus or an entity."""
        return digestion.digest(self, messages, segments, accepted_at, relate, rng or random.Random(0))

    def compress(self, shorten: Shorten, rng: random.Random | None = None) -> None:
        """Run one complete pass (5)."""
        compression.compress(self, shorten, rng or random.Random(0))

    def recall(self, keywords: list[str], relation_names: list[str], depth: int, **options: object) -> Answer:
        """Return what comes to mind (6). `options` are the other fields of Query."""
        return recall.recall(self, Query(keywords, relation_names, depth, **options))

    def focus(self, node_id: int) -> None:
        """Focus a memory or an entity by hand (4)."""
        changes.focus_by_hand(self, node_id)

    def unfocus(self, node_id: int) -> None:
        """Unfocus a memory or an entity by hand (4)."""
        changes.unfocus_by_hand(self, node_id)

    def pin(self, memory_id: int) -> None:
        """Pin a memory by hand (4)."""
        changes.pin_by_hand(self, memory_id)

    def unpin(self, memory_id: int) -> None:
        """Unpin a memory (4)."""
        changes.unpin(self, memory_id)

    def delete(self, memory_id: int) -> None:
        """Delete or erase a memory (8)."""
        changes.delete(self, memory_id)

    def patch(self, **values: object) -> None:
        """Change parameters (3, 5.2, 8)."""
        changes.change_parameters(self, values)

    def correct(
        self, memory_id: int, content: str, keywords: list[str], phrase: str = "", relate: Relate = no_answer
    ) -> None:
        """Correct a memory: entities from the new keywords, links to those no longer named deleted (8)."""
        # CHOICE 49 (8): a correction gives the memory a new first content and original length; its scans, focus, pin
        # and other links stay. A link with an entity still named keeps its strength unless it is missing or broken. A
        # correction is no mention and brings nothing to mind; its locale is that of the new content. A name still
        # borne keeps its spelling.
        memory = self.memory(memory_id)
        memory.content = memory.first_content = content
        memory.original_length = len(content)
        memory.keywords, memory.phrase = list(keywords), phrase
        locale = digestion.batch_locale(self, [memory_id])
        names = digestion.names_among(self, keywords)
        # Links no longer named are deleted first: a new link can push an older one out of the held ones.
        known = {self.entity_of(normalise(keyword)) for keyword in names}
        changes.detach(self, memory_id, {entity_id for entity_id in known if entity_id is not None})
        for keyword in names:
            entity_id = digestion.find_or_make(self, keyword, memory_id)
            self.link_again(memory_id, entity_id, keyword, locale, relate)

    def link_again(self, memory_id: int, entity_id: int, keyword: str, locale: str, relate: Relate) -> None:
        """Link a corrected memory with an entity where no live pair of links joins them."""
        between = [k for k in self.links_from(memory_id) + self.links_to(memory_id) if entity_id in k[:2]]
        if len([key for key in between if self.is_live(key)]) == 2:
            return
        for key in between:
            self.delete_link(key)
        digestion.link_entity(self, memory_id, entity_id, keyword, locale, relate(memory_id, entity_id))

    def entity(self, name: str) -> int | None:
        """Return the living entity that bears a name."""
        return self.entity_of(normalise(name))
