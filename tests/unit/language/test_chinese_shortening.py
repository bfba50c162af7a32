"""A shortened Chinese text is made of whole statements, or it is openly a list of notes."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.keywords import keywords
from ebbtide.language.builtin.phrasing import phrase
from ebbtide.language.builtin.shortening import shorten


def lives(text: str) -> list[str]:
    """Return every text that a memory of `text` may become in one step or in two."""
    found = []
    for target in range(5, len(text)):
        once = shorten(text, target, text)
        found.append(once)
        found += [shorten(once, smaller, text) for smaller in range(5, len(once))]
    return found


@pytest.mark.parametrize(
    ("text", "predicate", "subject"),
    [
        (
            "我爸好像在跟一个阿姨吃饭，她姓闫，在菜市场卖豆腐的，我见过一次，豆腐挺好吃。",
            "卖豆腐",
            "她姓闫",
        ),
        (
            "我打算开春让六一七退了，老了飞不动了，让老姑娘那个黄眼睛的崽儿接班。",
            "崽儿接班",
            "让老姑娘",
        ),
        ("她讲你爷爷那阵是敲铜盆，一天敲到黑，讲你家是办喜事还是办丧事，天天敲。", "讲你家", "她讲你爷爷"),
        (
            "船六月十号拉回南岸上桐油，要晒三天；救生衣少了两件，是橘色那批，不是红的；",
            "橘色那批",
            "救生衣",
        ),
        ("我侄女秦朗，四十六公斤，学校田径队退下来的，吵得整栋楼都听见", "退下来", "秦朗"),
        ("王芳来了，我妈走了，她很难过，一直没说话。", "难过", "我妈"),
        ("我们班昨天出了点事，救护车来了，把李老师送去了医院，医生说不严重。", "送去了", "救护车"),
    ],
)
def test_a_clause_stays_with_the_clause_that_has_its_subject(text: str, predicate: str, subject: str) -> None:
    """No shortening gives the predicate of one person or thing to another."""
    assert not [short for short in lives(text) if predicate in short and subject not in short]


@pytest.mark.parametrize(
    ("text", "claim", "hedge"),
    [
        ("我爸好像在跟一个阿姨吃饭，我妈还不知道这件事。", "吃饭", "好像"),
        ("他可能下个月调到上海去工作，房子还没有找。", "调到", "可能"),
        ("听说，那家店下个月要关门了，老板回老家。", "关门", "听说"),
        ("她估计要到年底才能毕业，论文还差两章。", "毕业", "估计"),
        ("如果房东还不修热水器，我就自己找师傅修，费用从房租里扣。", "费用", "如果"),
    ],
)
def test_a_guess_never_becomes_a_fact(text: str, claim: str, hedge: str) -> None:
    """A statement keeps its hedge or its condition. Only notes name the matter without it."""
    for short in lives(text):
        assert claim not in short or hedge in short or ("，" not in short and "、" in short) or short == claim


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("我嗓子到现在没声。写字的", "到没声"),
        ("我弟还了一万五！说剩下的国庆", "还一万五"),
        ("对了发行那边定了，9月12号，全平台。", "对发行"),
        ("他把“纸鸢”翻成了纸做的老鹰，论坛上日本玩家笑疯了。", "翻成老鹰"),
        ("我拿到毕业证了，专科，十三门都过完了！", "都过完！"),
    ],
)
def test_a_verb_keeps_its_particles_and_complements(text: str, broken: str) -> None:
    """了, 过, prepositions and complements stay with their verb."""
    assert not [short for short in lives(text) if broken in short]


@pytest.mark.parametrize(
    ("text", "opening", "needed"),
    [
        ("怕虫来考古？蚯蚓不是比陶片多吗。", "不是比", "多吗"),
        ("算绝杀，不算数，哨响了零点二秒。", "算绝杀", "不算数"),
        ("不是楼上漏，是我们自己马桶的浮球坏了，换个配件三十块搞定。", "不是楼上", "浮球坏了"),
        ("可以包粽子……不是，炊年糕，今年炊了四笼。", "包粽子", "不是"),
        ("你奶奶要在，准得把茶叶给我扔了。我减了，现在一缸子。", "你奶奶要在", "准得"),
    ],
)
def test_a_statement_is_not_turned_round(text: str, opening: str, needed: str) -> None:
    """A comparison, a correction and a contrast keep what makes them true."""
    assert not [short for short in lives(text) if opening in short and needed not in short]


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("三个月！那我国庆的表演又没得我了。", 12, "我国庆的表演又没得我了。"),
        (
            "我算过了，火车站到省体坐地铁一号线再倒三号线，一共三十八分钟。",
            12,
            "火车站、省体、地铁一号线",
        ),
        ("丹麦那边说我的菌株四十三度还能活，比他们自己的高三度。", 12, "丹麦、菌株、四十三度"),
        ("木炭是第三层的，种子是第五层的，编号都写了。", 9, "木炭是第三层的"),
        ("热水又有人投诉，五楼，说放五分钟还是凉的。", 5, "热水、五楼"),
    ],
)
def test_the_room_is_filled_with_what_is_told(text: str, target: int, expected: str) -> None:
    """Where no telling statement fits, names, nouns and exact numbers do, in the order of the text."""
    assert shorten(text, target) == expected


def test_notes_are_never_denied_words() -> None:
    """A list of notes prefers what the text affirms."""
    text = "签到功能改用小程序，不做独立App，这样能省四个月的时间和两个人。"
    assert "App" not in shorten(text, 9)
    assert "过敏" not in shorten("我已经不再对花生过敏了，上周复查过。", 5)


def test_fewer_notes_are_notes_of_the_list() -> None:
    """A list of notes becomes a shorter list, in its order."""
    text = "丹麦那边说我的菌株四十三度还能活，比他们自己的高三度。"
    assert shorten("丹麦、菌株、四十三度", 7, text) in {"丹麦、菌株", "丹麦、四十三度", "菌株、四十三度"}


@pytest.mark.parametrize(
    ("text", "unwanted"),
    [
        ("她讲你爷爷那阵守田是敲铜盆。", "阵守田"),
        ("导师乐得给整组人发冰淇淋。", "整组人发"),
        ("哨响了零点二秒，不算数。", "零点"),
        ("现在好了，拉根线，鸟没拦住。", "拉根线"),
        ("医疗险能报医药费八成，误工不报。", "报医药费"),
        ("前天才下的鱼苗，三千五百尾鲤鱼。", "天才"),
    ],
)
def test_keywords_are_words(text: str, unwanted: str) -> None:
    """A keyword contains no verb, classifier or part of a number."""
    assert unwanted not in keywords(text)


def test_a_phrase_is_a_whole_statement() -> None:
    """The summary of a memory joins no clauses that do not belong together."""
    text = "还有件事，我爸好像在跟一个阿姨吃饭，她姓闫，在菜市场卖豆腐的，我见过一次。"
    assert phrase(text) == "我爸好像在跟一个阿姨吃饭，她姓闫"


def test_the_subject_of_a_decision_replaces_its_clause() -> None:
    """Only a decision takes the subject of an earlier clause, and only if no other person could have decided."""
    text = "我们在重构用户系统的登录模块，昨天开会讨论了一下午，最后决定采用JWT方案。"
    assert shorten(text, 14) == "我们决定采用JWT方案。"
    doubtful = "我让小王去问房东，昨天他们谈了一下午，最后决定下个月搬走。"
    assert not [short for short in lives(doubtful) if short.startswith("我决定")]


@pytest.mark.parametrize(
    ("text", "broken"),
    [
        ("唉，业主话租约八月底到期，要由四万二加到五万八，老豆谂住唔做喇。", "四万二加、"),
        ("我打算开春让六一七退了，老了飞不动了，让老姑娘那个黄眼睛的崽儿接班。", "、七退"),
        ("那我让小骆多干一天，他上周闲得在厦门学冲浪。", "、骆多干"),
        ("打算散三个月味，过年前搬。你过年回来住新房子。", "、月味、"),
        ("我给公司报一个月供补贴，每期八百，需要填。", "一个月、"),
        ("你爸把梯子拿走了。老徐的儿子替我上去放食，一天十块钱，孩子不要。", "上去、"),
        ("他说送给你了，他那把还是他师父给的，木把都磨出包浆了。", "送给、"),
    ],
)
def test_a_note_is_a_whole_word(text: str, broken: str) -> None:
    """No note contains a part of a number or of a word, or a verb that says nothing without its object."""
    marked = [f"、{short}、" for short in lives(text) if "，" not in short]
    assert not [short for short in marked if broken in short]


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("你讲到重点，医生说T值负二点九，要打一种半年一次的针，自费一万二。", "二点九", "负二点九"),
        ("他们那边还冷，早上零下十五度，车打不着，师傅来看了两次。", "十五度", "零下十五度"),
        ("昨天讲得行。郑教授问的那个铯-137你没答上", "137", "铯-137"),
        ("你爸把梯子拿走了。老徐的儿子替我上去放食，一天十块钱，孩子不要。", "老徐", "老徐的儿子"),
        ("我不接，我让老徐儿子接。", "老徐", "老徐儿子"),
        ("白色那个一天两次，饭后。别搞反了。", "两次", "一天两次"),
        ("每个坝打两根柱样，十米深，样品袋写铅笔，不写圆珠笔。", "柱样", "两根柱样"),
    ],
)
def test_a_note_keeps_what_changes_its_meaning(text: str, part: str, whole: str) -> None:
    """A number keeps its sign or bound, a code its letters, and a relative the person to whom he is related."""
    listed = [short for short in lives(text) if part in short]
    assert listed
    assert not [short for short in listed if whole not in short]


@pytest.mark.parametrize(
    ("text", "retracted"),
    [
        ("美华的手好了，可以包粽子……不是，炊年糕，今年炊了四笼，邻居阿嫂来看。", "粽子"),
        ("我本来想去桂林，但是请不到假，改成在家陪外婆，顺便修水管。", "桂林"),
        ("芝麻糊而家一公斤喇，医生话佢系仔，我叫咗佢两个月“乖女”。", "乖女"),
        ("上回坐的是绿皮，这回是高铁，到南站。你要是去北站，我就在南站变成腊肉。", "绿皮"),
        ("丹麦的菌株能活到四十三度，比杨姐的样品和云南的泥土都高三度。", "杨姐"),
    ],
)
def test_notes_leave_out_what_the_text_takes_back(text: str, retracted: str) -> None:
    """No list names a corrected word, a dropped plan, a former state, a standard or a form of address."""
    assert not [short for short in lives(text) if retracted in short and "、" in short]


@pytest.mark.parametrize(
    ("text", "said", "needed"),
    [
        ("火车站到省体坐地铁，一共三十八分钟，出站跑一跑三十五，她行李多我就扛着。", "三十五", "三十八分钟"),
        ("吴阿姨七十五了，去年跟一个拉二胡的认识，两个人规定只在公园里见面。", "规定", "二胡"),
        ("上回坐的是绿皮，这回是高铁，到南站。你要是去北站，我就在南站变成腊肉。", "绿皮", "高铁"),
        ("我跟我爸领证，就摆一桌，请我妈，我妈也去，她说豆腐白吃了一年了。", "也去", "请我妈"),
    ],
)
def test_a_clause_keeps_the_clause_to_which_it_refers(text: str, said: str, needed: str) -> None:
    """A bare number, a number of persons, 也 and a former state stay with the clause that completes them."""
    assert not [short for short in lives(text) if said in short and needed not in short and "、" not in short]


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("好。还有，我跟你坦白，4月18号可能不行。", 10, "4月18号可能不行。"),
        ("讲笑啫，我下个月二十号返香港，租咗间三百呎嘅屋。", 12, "我下个月二十号返香港"),
        ("我爸给我打视频，说他去医院复查，血压一百六。", 14, "医院、复查、血压、一百六"),
        ("三个都是。我弟借了四万", 8, "我弟借了四万"),
        ("剖面上次已经画完了，也照了三维", 11, "剖面上次已经画完了"),
    ],
)
def test_the_news_replaces_what_leads_to_it(text: str, target: int, expected: str) -> None:
    """An announcement, a call or an empty answer is not kept in place of names, figures and statements that fit."""
    assert shorten(text, target) == expected


@pytest.mark.parametrize("target", [15_000, 19_999, 22_000])
def test_a_very_long_text_is_not_cut_within_a_sentence(target: int) -> None:
    """A text of which only the beginning is read ends with a whole clause, also if more would fit."""
    text = "".join(f"第{day}天我们去了海边，买了{day}斤苹果。" for day in range(1, 1200))
    result = shorten(text, target)
    assert len(text) > target >= len(result) > 14_000
    assert not result.endswith("买了")


@pytest.mark.parametrize("name", ["أحمد", "Café", "Анна"])
def test_words_of_other_scripts_stay_apart(name: str) -> None:
    """Where Chinese words between two others are left out, the others do not become one word."""
    assert shorten(f"{name}要在12月15日之前完成，目标是5000万。", 15) == f"{name} 12月15日之前完成"
