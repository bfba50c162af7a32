"""The oracle of the memory model's second edition: plain dictionaries, written from the page alone.

Numbers in parentheses are sections of the page. A comment that starts with CHOICE names a reading that the page leaves
open. Nothing is cached: strengths, importance and paths are computed again on every request. The work of the language
model (segments, keywords, shortened texts, relation names) comes from the caller, so that the oracle and an engine get
the same.

records     parameters, messages, segments, memories, entities, links (1, 7)
names       normalised keys, names, occurrences (1, 6)
relations   relation names and the rules that choose them (4b)
network     links, focus, held links, strength, importance, forgetting (2, 3)
digestion   one batch (4)
changes     focus and pins by hand, deletion, correction, parameters (3, 4, 8)
compression one pass (5)
recall      cue, walk, match, order, loose ends (6)
wording     the text form (6)
oracle      the operations of one agent
histories   short ways to drive it in tests
"""
