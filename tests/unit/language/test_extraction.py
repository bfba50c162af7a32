"""Extraction by rules: forms of words that state a fact, and sentences that only seem to."""

from __future__ import annotations

import pytest

from ebbtide.language.builtin.extraction import MAX_STATEMENTS, extract
from ebbtide.language.builtin.unsaid import asks_for_reminder, contains_pronoun, why_unsaid
from ebbtide.memory.slot_names import SLOTS, slot_of
from ebbtide.memory.subjects import subject_name

NO_PLACES = [
    "一楼",
    "学校",
    "朋友家",
    "这里",
    "公司附近",
    "敬老院",
    "希尔顿",
    "腾讯",
    "小明那里",
    "王阿姨那",
    "新房子",
    "隔壁",
    "上铺",
    "市场部",
]
"""Words after 住在 and 搬到 that name no place to live in."""

PLACES = [
    "波尔图",
    "苏黎世",
    "清迈",
    "拉各斯",
    "图卢兹",
    "班加罗尔",
    "伊斯坦布尔",
    "张江",
    "哈瓦那",
    "格但斯克",
]
"""Places of which most are in no list of the rules."""

STATED = [
    ("I live in Porto, near the river.", "residence", "Porto"),
    ("We moved to York last autumn.", "residence", "York"),
    ("I've been living in Ghent since 2018.", "residence", "Ghent"),
    ("I'm originally from the UK.", "hometown", "the UK"),
    ("I work for Siemens as an electrician.", "employer", "Siemens"),
    ("I work for a small bakery in Bath.", "employer", "a small bakery"),
    ("I'm a nurse and I work nights.", "occupation", "nurse"),
    ("I'm a project manager.", "occupation", "project manager"),
    ("My birthday is on 7 May.", "birthday", "7 May"),
    ("I'm 34 and I love it.", "age", "34"),
    ("I’m allergic to penicillin, so please note that.", "allergy", "penicillin"),
    ("I have type 2 diabetes.", "health", "type 2 diabetes"),
    ("I take 20mg of omeprazole before breakfast.", "medication", "omeprazole"),
    ("I'm on a keto diet.", "diet", "keto diet"),
    ("My sister's name is Clara.", "sister", "Clara"),
    ("Tom is my boss.", "boss", "Tom"),
    ("I was walking with my brother Theo.", "brother", "Theo"),
    ("We have two dogs and a tortoise.", "pet", "two dogs and a tortoise"),
    ("We adopted a greyhound called Pixel.", "pet", "Pixel"),
    ("I love bowling too!", "likes", "bowling"),
    ("My favourite colour is green.", "favourite:colour", "green"),
    ("I speak fluent Welsh.", "language", "Welsh"),
    ("I drive a Skoda.", "vehicle", "Skoda"),
    ("Please remind me to renew the passport.", "reminder", "renew the passport"),
    ("I have a dentist appointment on Friday.", "appointment", "a dentist appointment on Friday"),
    ("I passed my driving test.", "event", "passed my driving test"),
    ("我住在苏州，离公司很近。", "residence", "苏州"),
    ("我五月搬到了青岛。", "residence", "青岛"),
    ("我老家在湖南。", "hometown", "湖南"),
    ("我在顺丰上班。", "employer", "顺丰"),
    ("我在杭州工作。", "workplace", "杭州"),
    ("我是一名护士。", "occupation", "护士"),
    ("我是做外贸的。", "occupation", "外贸"),
    ("我今年三十五岁。", "age", "三十五岁"),
    ("我对青霉素过敏，记一下。", "allergy", "青霉素"),
    ("我有高血压。", "health", "高血压"),
    ("我在吃二甲双胍。", "medication", "二甲双胍"),
    ("我妹妹叫小雨。", "younger_sister", "小雨"),
    ("我结婚了，老婆叫李娜。", "partner", "李娜"),
    ("老婆叫李娜。", "partner", "李娜"),
    ("I eat meat again.", "diet", "meat"),
    ("我又开始吃肉了。", "diet", "肉"),
    ("我一月要搬到奥斯陆。", "appointment", "一月要搬到奥斯陆"),
    ("我一月搬到奥斯陆。", "appointment", "一月搬到奥斯陆"),
    ("我3月15日入职华为。", "appointment", "3月15日入职华为"),
    ("I'm joining Acme in March.", "appointment", "joining Acme in March"),
    ("I am starting at Acme in March.", "appointment", "starting at Acme in March"),
    ("I'm starting as a nurse on Monday.", "appointment", "starting as a nurse on Monday"),
    ("Clara, my sister, lives in Porto.", "residence", "Porto"),
    ("小明是我表弟。", "cousin", "小明"),
    ("我养了两只猫。", "pet", "两只猫"),
    ("我的手机号是13800001234。", "phone", "13800001234"),
    ("我喜欢游泳。", "likes", "游泳"),
    ("我最喜欢的颜色是蓝色。", "favourite:颜色", "蓝色"),
    ("提醒我明天交房租。", "reminder", "明天交房租"),
    ("我周四下午三点看牙医。", "appointment", "周四下午三点看牙医"),
    ("我考过了驾照。", "event", "考过了驾照"),
    ("My favourite film is still Alien.", "favourite:film", "Alien"),
    ("I live in Portland, Maine.", "residence", "Portland, Maine"),
    ("I take 20mg of omeprazole, two in the evening.", "medication", "omeprazole"),
    ("One correction: I live in York.", "residence", "York"),
    ("更正：我住在苏州。", "residence", "苏州"),
    ("自我介绍：我是一名护士。", "occupation", "护士"),
    ("提醒我：护照四月到期，提前换。", "reminder", "护照四月到期，提前换"),
    ("我出生在青岛。", "hometown", "青岛"),
    ("我妹吃纯素。", "diet", "纯素"),
    ("I start at 7:30 and I live in York.", "residence", "York"),
    ("We moved from Lisbon to Porto last month.", "residence", "Porto"),
    *((f"我住在{place}。", "residence", place) for place in PLACES),
    *((f"我搬到{place}了。", "residence", place) for place in PLACES),
    ("我搬家到上海了。", "residence", "上海"),
    ("我上个月从里斯本搬到了波尔图。", "residence", "波尔图"),
    ("我在伊斯坦布尔定居了。", "residence", "伊斯坦布尔"),
    ("My favorite color is green now.", "favourite:color", "green"),
    ("My new favourite colour is green.", "favourite:colour", "green"),
    ("我现在最喜欢的颜色是绿色。", "favourite:颜色", "绿色"),
    ("我的邮箱改成b@y.cn了。", "email", "b@y.cn"),
    ("我的邮箱从a@x.cn改成b@y.cn了。", "email", "b@y.cn"),
    ("我现在的邮箱是b@y.cn。", "email", "b@y.cn"),
    ("我的电话换成13900000002了。", "phone", "13900000002"),
    ("我的手机号更新为13900000002。", "phone", "13900000002"),
    ("I have a new phone number: 555-0202.", "phone", "555-0202"),
    ("I've changed my number to 555 0202.", "phone", "555 0202"),
    ("My email changed to b@y.org.", "email", "b@y.org"),
    ("My email is now b@y.org.", "email", "b@y.org"),
    ("My email: b@y.org", "email", "b@y.org"),
    ("My doctor examined me today: I have asthma.", "health", "asthma"),
    ("我跳槽到阿里了。", "employer", "阿里"),
    ("我加入腾讯了。", "employer", "腾讯"),
    ("我上个月搬去重庆了。", "residence", "重庆"),
]


DOSES = {
    "二甲双胍": [
        "我每天吃两次二甲双胍。",
        "我每天两次吃二甲双胍。",
        "我每天吃二甲双胍两次。",
        "我吃二甲双胍500毫克。",
        "我每天吃1000毫克二甲双胍。",
        "我每天吃两次500毫克的二甲双胍。",
    ],
    "阿司匹林": ["我早晚各吃一片阿司匹林。", "我每天早上吃半片阿司匹林。"],
    "布洛芬": ["我一天吃三次布洛芬。"],
    "胰岛素": ["我每天打两针胰岛素。"],
    "褪黑素": ["我每晚吃一粒褪黑素。", "我每周吃一次褪黑素。"],
    "metformin": [
        "I take two metformin.",
        "I take two metformin every day.",
        "I take my two metformin with breakfast.",
        "I take metformin twice a day.",
        "I take one metformin a day.",
        "I take two tablets of metformin daily.",
        "I take 500 mg metformin every morning.",
        "I take metformin 500mg.",
        "I'm taking 500 mg of metformin.",
        "I've been taking 500mg of metformin since 2020.",
        "My mum takes half a tablet of metformin at night.",
    ],
}


@pytest.mark.parametrize(
    ("value", "text"), [(value, text) for value, texts in DOSES.items() for text in texts]
)
def test_a_dose_is_no_part_of_the_name_of_a_medicine(value: str, text: str) -> None:
    """Numbers of times, tablets and milligrams, before and after the name, are the dose."""
    assert [each.object for each in extract(text) if each.slot == "medication"] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "I take two ibuprofen when my head hurts.",
        "I take two buses every day.",
        "我吃了两片布洛芬。",
        "我每天吃两次水果。",
        "我每天打两次篮球。",
    ],
)
def test_what_is_taken_once_is_no_medication(text: str) -> None:
    """Doses of an occasion, and other things that are taken, eaten or played, are no medication."""
    assert [each for each in extract(text) if each.slot == "medication"] == []


@pytest.mark.parametrize(("text", "slot", "value"), STATED)
def test_a_stated_fact_is_extracted_with_its_words(text: str, slot: str, value: str) -> None:
    """The topic is a known one, the value is in the quote, and the quote is a range of the message."""
    message = f"Well! {text}" if text.isascii() else text
    [one] = [each for each in extract(message) if each.slot == slot]
    assert one.object == value
    assert value in message[one.offset : one.offset + one.length]
    assert one.slot in SLOTS or slot_of(one.slot).cardinality == "one" or slot in ("event", "appointment")


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Porto?",
        "I live in Porto, right?",
        "I might move. If I lived in Porto I would swim.",
        "Maybe I live in Porto by then.",
        "She said I live in Porto.",
        'He wrote "I live in Porto".',
        "I used to live in Porto.",
        "I live in a small flat.",
        "I live in January.",
        "We moved to Linux.",
        "I work at it every day.",
        "I'm a bit tired.",
        "I'm a terrible driver.",
        "I'm 15 minutes late.",
        "I'm married to my job.",
        "I'm allergic to Mondays.",
        "I have a question.",
        "I love how these poses challenge my body.",
        "I love getting lost in stories.",
        "I like that idea.",
        "I like mac and cheese.",
        "The things I love makes writing even more fun.",
        "I adopted this one last week.",
        "Translate: my name is Peter and I live in London.",
        "Let's do a role play: I am a baker and I live in Prague.",
        "My doctor says I have asthma.",
        "My brother's girlfriend moved to Perth.",
        "我住在哪里？",
        "我住在苏州对吧？",
        "如果我住在苏州就好了。",
        "他说我住在苏州。",
        "我以前住在苏州。",
        "我想搬到青岛。",
        "我住在心里。",
        "我在乡下工作。",
        "那是我喜欢的手机。",
        "我是这样想的。",
        "我是个急性子。",
        "我干妈是医生。",
        "我导师是王教授。",
        "我老板周三就要报告。",
        "我对加班过敏。",
        "我周末一般加班。",
        "我元旦戒的烟。",
        "我昨天不喝酒。",
        "我去年住在深圳。",
        "我六月搬去重庆，现在住在渝中。",
        "我六月搬去重庆的。",
        "我每年六月搬去重庆。",
        "I'm starting at the bottom in March.",
        "我住在北京的朋友家。",
        "我是欧大夫。",
        "我是第一次当老师。",
        "我老板叫开会。",
        "我喜欢方案B。",
        "提醒我为什么要做这个。",
        "I'm from HR.",
        "I like option B.",
        "I'm engaged in a project.",
        "I should have gone yesterday.",
        "Write a limerick: I'm a baker from Leeds.",
        "我今天很倒霉。",
        "I'm having a bad day today.",
        "I'm running late today.",
        "我妈马上就到。",
        "我爸高兴就好。",
        "提醒我那件事。",
        "我知道他喜欢旅游，喜欢画画。",
        "翻译一下：我是一名学生。",
        "我们来角色扮演吧，我是护士。",
        "Someone on a forum: I'm a vegan and I love Oslo.",
        "bob: i'm allergic to shellfish\nme: noted",
        "My reply to the client: I live in Leeds.",
        "招聘启事：会英语，坐标苏州",
        "情景对话：A：你住哪？B：我住罗马。",
        "我的例句：我喜欢春天",
        "翻成英文，我姐姐住在成都。",
        "The doctor told me: I'm not allergic to nuts.",
        "My doctor examined me and wrote: I'm fine, I live in York.",
        "Bob's email: bob@example.org",
        "I take two aspirin before a concert.",
        "I like nothing at all.",
        "I love salsa - the dance - a lot.",
        "I'm from Georgia, the country.",
        "I got married at 19 and divorced at 21.",
        "I'm left-handed.",
        "我左撇子。",
        "我就是个打工人。",
        "我喜欢拼图、数独这类。",
        "我一米六，穿鞋的话。",
        "写简介：2020年入职，坐标成都",
        "I'm a pilot but a paraglider pilot.",
        "I'm a lawyer by training.",
        "My favourite cousin is coming.",
        "我最喜欢停电了。",
        "我1月20号回老家过年。",
        "我出生在新疆，十岁回了河南。",
        "你是我的教练，我是拳击手，住在拉斯维加斯。",
        "I moved from sales to Marketing.",
        *(f"我住在{words}。" for words in NO_PLACES),
        *(f"我搬到{words}了。" for words in NO_PLACES),
        "",
    ],
)
def test_a_sentence_that_states_nothing_gives_nothing(text: str) -> None:
    """Questions, guesses, wishes, reports, quotations, conditions, the past, jokes and roles give no statement."""
    assert extract(text) == []


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("I'm not allergic to nuts.", "allergy", "nuts"),
        ("I don't eat pork.", "diet", "pork"),
        ("I don't like jazz.", "likes", "jazz"),
        ("I no longer work at Siemens.", "employer", "Siemens"),
        ("I don't live in Dublin anymore.", "residence", "Dublin"),
        ("我对青霉素不过敏。", "allergy", "青霉素"),
        ("I stopped taking ibuprofen.", "medication", "ibuprofen"),
        ("我不喜欢香菜。", "likes", "香菜"),
        ("我不吃牛肉。", "diet", "牛肉"),
        ("我已经不住在广州了。", "residence", "广州"),
        ("我上个月从腾讯离职了。", "employer", "腾讯"),
        ("I gave up coffee last month.", "diet", "coffee"),
        ("I stopped eating meat.", "diet", "meat"),
        ("I no longer have a dog.", "pet", "a dog"),
        ("We don't have a cat any more.", "pet", "a cat"),
        ("I divorced Tom.", "partner", "Tom"),
        ("我不养狗了。", "pet", "狗"),
        ("我不喝咖啡了。", "diet", "咖啡"),
        ("我戒咖啡了。", "diet", "咖啡"),
        ("我和小林分手了。", "partner", "小林"),
        ("我不再吃素了。", "diet", "素"),
        ("我现在不吃素了。", "diet", "素"),
        ("我不再对花生过敏了。", "allergy", "花生"),
        ("我对花生不再过敏了。", "allergy", "花生"),
        ("The doctor tested me: I'm not allergic to penicillin after all.", "allergy", "penicillin"),
    ],
)
def test_a_denial_is_negated(text: str, slot: str, value: str) -> None:
    """A denial, a dislike or an end is a negated statement on the same topic."""
    assert [(one.slot, one.object, one.negated) for one in extract(text)] == [(slot, value, True)]


@pytest.mark.parametrize(
    ("text", "others"),
    [
        ("We split up.", []),
        ("I broke up with my girlfriend.", ["event"]),
        ("We got divorced last year.", ["marital_status"]),
        ("Tom and I are divorced now.", ["marital_status"]),
        ("我离婚了。", ["marital_status"]),
        ("我们分手了。", []),
        ("我和老婆离婚了。", []),
    ],
)
def test_a_parting_denies_every_partner(text: str, others: list[str]) -> None:
    """The end of a partnership without a name is a denial without a value, next to what else is said."""
    *rest, partner = extract(text)
    assert (partner.slot, partner.object, partner.negated) == ("partner", "", True)
    assert partner.subject in ("I", "我")
    assert [one.slot for one in rest] == others


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("Started at Bosch today, and it is great.", "employer", "Bosch"),
        ("Got a new job at Bosch!", "employer", "Bosch"),
        ("上个月搬去重庆了。", "residence", "重庆"),
        ("刚跳槽到阿里了。", "employer", "阿里"),
    ],
)
def test_a_message_may_begin_without_its_subject(text: str, slot: str, value: str) -> None:
    """A change without a subject is the speaker's at the beginning of a message only."""
    assert [(one.slot, one.object) for one in extract(text)] == [(slot, value)]
    assert [one for one in extract(f"Bob is great. {text}") if one.slot == slot] == []


@pytest.mark.parametrize(
    ("text", "slot", "value"),
    [
        ("Clara moved to Vienna.", "residence", "Vienna"),
        ("Clara works for Bosch.", "employer", "Bosch"),
        ("小雨搬到广州了。", "residence", "广州"),
        ("小雨毕业了，现在在深圳工作。", "workplace", "深圳"),
    ],
)
def test_a_person_whom_the_user_has_named_is_a_subject(text: str, slot: str, value: str) -> None:
    """A name is a subject if the user has said who that is; other names and guesses are not."""
    people = {"Clara", "小雨"}
    [found] = extract(text, people)
    assert (found.subject in people, found.slot, found.object) == (True, slot, value)
    assert extract(text) == extract(text, {"Bob", "大卫"}) == []
    for guess in (f"Maybe {text}", f"可能{text}"):
        assert extract(guess, people) == []


@pytest.mark.parametrize(
    "text",
    [
        "I started at Lisbon and walked to Porto.",
        "I started at Oxford in September.",
        "I started at 6 today.",
        "I went vegan for a month.",
        "I gave up coffee for Lent.",
        "I married into money.",
        "We split up the work.",
        "We split up into two teams.",
        "I'm divorced.",
        "We got divorced in 2015.",
        "我离婚三年了。",
        "我2018年离婚了。",
        "我打算离婚了。",
        "我父母离婚了。",
        "Moved to Kubernetes.",
        "昨天搬到二楼了。",
        "我今天不喝咖啡了。",
        "我今天不吃素了。",
        "我打算跳槽到阿里了。",
        "我不吃早饭了。",
        "我升到十级了。",
        "我和公司分手了。",
    ],
)
def test_words_near_a_change_are_no_fact(text: str) -> None:
    """A journey, a school, a time, a short trial, one day, and a person without a name change nothing that lasts."""
    assert [one for one in extract(text) if one.slot in ("employer", "diet", "partner", "occupation")] == []


@pytest.mark.parametrize(
    ("text", "subject", "slot", "value"),
    [
        ("My husband is allergic to shellfish.", "user's partner", "allergy", "shellfish"),
        ("my mom just turned 70", "user's mother", "age", "70"),
        ("My cousin Farid works for Siemens.", "Farid", "employer", "Siemens"),
        ("Mum's birthday is July 19.", "user's mother", "birthday", "July 19"),
        ("我妈今年六十。", "user's mother", "age", "六十"),
        ("李婷是我的表妹，其身高是164cm。", "李婷", "height", "164cm"),
        ("我男友叫阿杰，做健身教练。", "阿杰", "occupation", "健身教练"),
    ],
)
def test_a_fact_about_a_relative_is_about_the_relative(
    text: str, subject: str, slot: str, value: str
) -> None:
    """The subject is the named person, or the speaker's relative, never the speaker."""
    [one] = [each for each in extract(text) if each.slot == slot]
    assert (subject_name(one.subject), one.object) == (subject, value)


def test_a_second_marriage_in_one_sentence_is_read() -> None:
    """The clause after the end of a partnership has the same subject."""
    found = extract("I divorced Tom last year and married Ben in May.")
    assert [(one.slot, one.object, one.negated) for one in found] == [
        ("partner", "Tom", True),
        ("partner", "Ben", False),
    ]
    assert [one.object for one in extract("I divorced Tom and the priest married Ben.")] == ["Tom"]


def test_in_laws_are_relatives() -> None:
    """A named one is a relative and a subject, and one without a name is a subject if there is one of them."""
    found = extract("My mother-in-law Rosa lives in Porto.")
    assert [(one.subject, one.slot, one.object) for one in found] == [
        ("I", "mother_in_law", "Rosa"),
        ("Rosa", "residence", "Porto"),
    ]
    [one] = extract("My father-in-law lives in Porto.")
    assert subject_name(one.subject) == "user's father in law"
    assert extract("My brother-in-law lives in Porto.") == []


def test_a_relative_belongs_to_the_speaker() -> None:
    """In a message of a named person, "I" and "my sister" mean that person and the sister of that person."""
    assert subject_name("I", "Ann") == "Ann"
    assert subject_name("my sister", "Ann") == "Ann's sister"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("user's mother", "my mum, my Mom, my mummy, 我妈, 我的老妈, 我妈妈"),
        ("user's father", "my dad, my daddy, 我爸, 我老爸, 用户的爸爸"),
        ("user's elder sister", "my big sister, my older sister, 我姐, 我大姐"),
        ("user's younger brother", "my little brother, my baby brother, 我弟, 我小弟"),
        ("user's grandmother", "my gran, my granny, my grandma, 我奶奶"),
        ("user's partner", "my hubby, my wife, 我女友, 我媳妇"),
        ("user's mother in law", "my mother-in-law, my mother in law, 我婆婆, 我的岳母"),
        ("user's former partner", "my ex, my ex-wife, 我前夫"),
    ],
)
def test_a_relative_is_one_person_in_every_word(name: str, words: str) -> None:
    """Informal words of both languages mean the same relative of the user."""
    assert {subject_name(one) for one in words.split(", ")} == {name}


@pytest.mark.parametrize(
    "words", ["我娘家", "我哥们", "我妈的同事", "my mummy bear", "my granny flat", "Gran"]
)
def test_words_that_begin_like_a_relative_are_other_names(words: str) -> None:
    """Only the whole word for a relative, with its owner, means the relative."""
    assert subject_name(words) == words


@pytest.mark.parametrize("text", ["My cousin lives in Perth.", "我同事在杭州工作。"])
def test_a_relative_who_may_be_one_of_several_needs_a_name(text: str) -> None:
    """Facts about two cousins must not become facts about one."""
    assert extract(text) == []


def test_a_clause_after_a_pet_is_not_about_the_speaker() -> None:
    """The name of a pet is a pet, and not the name of the user."""
    for text, values in {
        "我养了一只猫，叫小白。": ["一只猫", "小白"],
        "我们养了只仓鼠叫涡轮，它很胖。": ["仓鼠", "涡轮"],
        "我养了一只狗，它名字叫旺财，我很爱它。": ["一只狗", "旺财"],
        "我养了一只狗，叫得很凶。": ["一只狗"],
        "我养了一只猫，叫声很大。": ["一只猫"],
        "我养了一只狗，叫人头疼。": ["一只狗"],
        "我养了一只狗，叫朋友照顾。": ["一只狗"],
        "我养了两只猫，叫白和黑。": ["两只猫"],
    }.items():
        assert [(one.slot, one.object) for one in extract(text)] == [("pet", value) for value in values]
    assert extract("我不再养狗了，叫旺财。")[0].negated
    assert len(extract("我不再养狗了，叫旺财。")) == 1
    assert extract("我养了一只鬃狮蜥，叫谢尔顿。") == []


def test_a_list_gives_each_item() -> None:
    """Each item of a list is a statement, unless an item only describes a later one."""
    assert [one.object for one in extract("I like jazz, blues and bossa nova.")] == [
        "jazz",
        "blues",
        "bossa nova",
    ]
    assert [one.object for one in extract("I don't eat dairy or eggs.")] == ["dairy", "eggs"]
    assert [one.object for one in extract("我喜欢喜剧和爱情片。")] == ["喜剧", "爱情片"]
    assert extract("I'm into electronic and rock music.") == []
    assert [one.object for one in extract("我喜欢晴朗、温暖的天气。")] == ["晴朗、温暖的天气"]


def test_a_statement_before_a_question_counts() -> None:
    """The clause before a question is stated, and the question is not."""
    [one] = extract("I'm allergic to eggs, what can I bake?")
    assert (one.slot, one.object) == ("allergy", "eggs")
    assert extract("我对花生过敏，能吃沙茶吗？")[0].object == "花生"


def test_the_quote_is_a_clause_with_its_time() -> None:
    """A quote has the words of its statement and of its time, and no other clause."""
    text = "Yesterday I submitted my thesis, so remember the party. My dog ate it."
    [one] = [each for each in extract(text) if each.slot == "event"]
    assert text[one.offset : one.offset + one.length] == "Yesterday I submitted my thesis"
    text = "我周五拔智齿，周四提醒我买粥"
    [one] = extract(text)
    assert text[one.offset : one.offset + one.length] == "周四提醒我买粥"
    assert one.planned


def test_a_message_gives_few_statements() -> None:
    """At most four statements come from one message, each once."""
    names = ("Porto", "York", "Leeds", "Ghent", "Bruges", "Lyon")
    found = extract(" ".join(f"I live in {name}." for name in (*names, *names)))
    assert len(found) == MAX_STATEMENTS
    assert len({one.object for one in found}) == MAX_STATEMENTS


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Do I live in Porto?", "question"),
        ("我住在哪里？", "question"),
        ("He wrote “I live in Porto”.", "quotation"),
        ("She said I live in Porto.", "unsaid"),
        ("If it rains I live in Porto.", "unsaid"),
        ("我也许住在苏州。", "unsaid"),
        ("I may live in Porto.", "unsaid"),
        ("I live in Porto since May.", ""),
        ("我住在苏州。", ""),
    ],
)
def test_the_reason_why_a_sentence_states_nothing(sentence: str, why: str) -> None:
    """The tests that the rules apply to a sentence are available to others by themselves."""
    assert why_unsaid(sentence) == why


def test_a_reminder_may_contain_words_of_plans() -> None:
    """A sentence that asks to be reminded states a task, though it contains a word of a wish."""
    for sentence in ("Please remind me to plan the trip.", "提醒我准备发言。"):
        assert asks_for_reminder(sentence)
        assert why_unsaid(sentence) == "unsaid"
        assert why_unsaid(sentence, is_reminder=True) == ""
    assert not asks_for_reminder("That reminds me of home.")


def test_pronouns_name_nothing() -> None:
    """A value with a pronoun can be recognised."""
    assert contains_pronoun("my old flat")
    assert contains_pronoun("那个东西")
    assert not contains_pronoun("Porto")
