"""The narration of the demo, in English and in Chinese."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Language = Literal["en", "zh"]


@dataclass(frozen=True, slots=True)
class Narration:
    """The texts in one language. The screen fills in the fields in braces."""

    title: str
    tagline: str
    opening: str
    pace: str
    remembering: str
    remembering_how: str
    conversation: str
    became: str
    more: str
    focus: str
    followed: str
    recalling: str
    recalling_how: str
    nothing: str
    others: str
    time: str
    time_how: str
    batches: str
    after: str
    said: str
    of: str
    returned: str
    returned_how: str
    gone: str
    gone_row: str
    dangling_row: str
    once: str
    once_how: str
    once_before: str
    once_after: str
    kept: str
    kept_how: str
    end: str
    seen: str
    next: str
    next_serve: str
    next_remember: str
    next_recall: str
    names: dict[str, str]


EN = Narration(
    title="Ebbtide",
    tagline="a memory that forgets gracefully, and knows what it forgot",
    opening=(
        "Lin Yue talks with her assistant for six weeks. You will see {count} conversations remembered, two "
        "recalls, a name that comes back, memories that are forgotten, and one that is pinned. The demo needs "
        "no model server and no network. It removes its temporary directory at the end. The running engine "
        "produces every memory and every answer below."
    ),
    pace="All parameters have their default values.",
    remembering="Remember",
    remembering_how=(
        "Ebbtide splits a conversation into memories. It links each memory to its neighbours, to the names in "
        "it, and to the memories that were in focus before. The newest memories move into focus."
    ),
    conversation="Conversation {number}: {topic}",
    became="{messages} messages became {memories} memories",
    more="… and {count} more",
    focus="in focus",
    followed="we follow this one: {name}",
    recalling="Recall",
    recalling_how=(
        "A recall starts at the names and memories that its keywords find, and at the focus, and follows the "
        "links. It returns plain text, ready for your language model, with the best match first."
    ),
    nothing="(no memory found)",
    others="{count} more conversations follow. The focus moves with each of them:",
    time="Time passes",
    time_how=(
        "Time is measured in batches, not in hours. Each everyday message is one batch. After each batch, a "
        "compression pass weakens the links outside the focus. A memory with a support below 1 is "
        "shortened. The bar shows its importance."
    ),
    batches="{count} batches",
    after="batch {count}",
    said="current message: {message}",
    of="{length} of {original} characters",
    returned="mentioned again",
    returned_how=(
        "Lin Yue writes: “{message}” The name is in focus again and supports {name}, whose importance was "
        "{before:.2f}."
    ),
    gone="forgotten",
    gone_row="{name} is forgotten. Its last words were: {last}",
    dangling_row="memories that still link to it: {count}",
    once="It knows what it forgot",
    once_how=(
        "A forgotten memory differs from one that never existed. The name outlives the memory for a while. "
        "A recall of the lighthouse returns:"
    ),
    once_before="The content of the memory when it was new:",
    once_after=(
        "The memory is forgotten, but the agent knows that there was one. It can answer “I knew that once” "
        "instead of inventing something."
    ),
    kept="It keeps what you ask it to keep",
    kept_how=(
        "Lin Yue said “please remember”, so the allergy is pinned. After {batches} more batches it has its "
        "full text:"
    ),
    end="Summary",
    seen=(
        "{batches} batches and {passes} passes; {made} memories created, {gone} forgotten, {left} left. "
        "Ebbtide keeps what you talk about and shortens the rest, step by step."
    ),
    next="Your turn",
    next_serve="Run the daemon:",
    next_remember="In a second terminal, remember something:",
    next_recall="Recall it:",
    names={
        "lighthouse": "the lighthouse",
        "bakery": "the bakery",
        "whistle": "the whistle",
        "allergy": "the allergy",
    },
)

ZH = Narration(
    title="Ebbtide",
    tagline="会从容地忘记，也知道自己忘了什么",
    opening=(
        "林月和她的助手聊了六个星期，时而中文，时而英文。接下来你会看到：{count} 次对话被记住，两个问题得到回答，"
        "然后时间流过：一个名字重新出现，几条记忆被遗忘，还有一条被钉住。不需要模型服务，不需要网络；数据放在临时目录，结束即删。"
        "下面的每条记忆、每个回答都来自正在运行的引擎。"
    ),
    pace="所有参数都是默认值。",
    remembering="记住",
    remembering_how="一次对话被切成若干条记忆，每条都与前后相邻的、以及先前焦点里的记忆相连，也与其中提到的名字相连；最新的几条进入焦点。",
    conversation="第 {number} 次对话：{topic}",
    became="{messages} 条消息成了 {memories} 条记忆",
    more="……还有 {count} 条",
    focus="焦点",
    followed="我们跟踪这一条：{name}",
    recalling="提问",
    recalling_how="回忆从关键词找到的名字和记忆、以及焦点出发，沿着链接走。返回的是一段纯文本，可以直接交给语言模型，最相关的排在最前。",
    nothing="（什么也没想起来）",
    others="接着又是 {count} 次对话，焦点随之移动：",
    time="时间流过",
    time_how=(
        "时间以批次计，不以小时计。日常闲聊一条就是一批，每批之后做一轮压缩：焦点之外的链接逐渐减弱，"
        "支撑不足 1 的记忆会被缩短。进度条表示记忆的重要度。"
    ),
    batches="{count} 批",
    after="第 {count} 批",
    said="此时在聊：{message}",
    of="{original} 字剩 {length} 字",
    returned="又被提到",
    returned_how="林月写道：“{message}” 这个名字回到焦点，重新支撑{name}；此前它的重要度是 {before:.2f}。",
    gone="已遗忘",
    gone_row="{name}被遗忘了。它最后剩下的是：{last}",
    dangling_row="还有 {count} 条记忆连着它",
    once="我曾经知道",
    once_how="遗忘和从不知道是两回事。名字比记忆活得久一些。回忆灯塔：",
    once_before="这条记忆当初说的是：",
    once_after="记忆已经没有了，“曾经有过”却还在。读到这句话的智能体会说“我以前知道”，而不是编一个答案。",
    kept="请它记住的，它就记住",
    kept_how="林月说过“请记住”，所以过敏这件事被钉住了。又过了 {batches} 批，它仍是原文：",
    end="你看到了什么",
    seen=(
        "{batches} 个批次，{passes} 轮压缩；记下 {made} 条，忘了 {gone} 条，还有 {left} 条。"
        "正在谈的事保持完整，其余的一步一步缩短。"
    ),
    next="轮到你了",
    next_serve="启动守护进程：",
    next_remember="在另一个终端里告诉它一件事：",
    next_recall="再问问看：",
    names={"lighthouse": "灯塔", "bakery": "面包店", "whistle": "铜哨", "allergy": "过敏"},
)

OF: dict[Language, Narration] = {"en": EN, "zh": ZH}
