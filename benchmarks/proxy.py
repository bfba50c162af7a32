"""Settings of the memory proxy, compared on a scripted chat of 30 turns in English and in Chinese.

`python -m benchmarks.proxy` prints two tables, in about three minutes:

* For each setting of `proxy.remember` and `proxy.token_budget`: how many of 12 later questions find their answer in
  the block, the tokens of the blocks, and the share of their memories that are questions. The chat has statements,
  questions and small talk. The answers of the model are scripted.
* The time to the first byte of an answer, direct and through the proxy, in turns within one run.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import httpx

from ebbtide.retrieval.questions import asks
from ebbtide.retrieval.tokenizers import count_tokens
from ebbtide.telemetry import configure_log
from ebbtide.verbs.batches import FlushRequest, flush
from ebbtide.verbs.service import Service
from tests.support.in_process import service_in
from tests.support.rest_in_process import served
from tests.support.scripted_upstream import ScriptedUpstream, completion, streamed

REMEMBER = ("all", "statements", "user")
BUDGETS = (100, 200, 800)
TIMED = 100
"""Requests of each kind whose time is measured."""


@dataclass(frozen=True)
class Script:
    """A chat: what the user says and the model answers; then questions, each with a word of its answer."""

    turns: Sequence[tuple[str, str]]
    probes: Sequence[tuple[str, str]]


ENGLISH = Script(
    (
        ("Hi! I want to plan my year a bit.", "Gladly. Where shall we start?"),
        ("I moved to Porto in May.", "Welcome to Porto!"),
        ("Which tea do I like?", "You have not told me yet."),
        ("My favourite tea is jasmine tea.", "Noted, jasmine it is."),
        ("My sister Clara plays the cello.", "A lovely instrument."),
        ("What does my sister play?", "She plays an instrument that you told me about."),
        ("I am allergic to walnuts.", "I will keep recipes without them in mind."),
        ("Thanks, that helps.", "You are welcome."),
        ("My bicycle is a green Brompton.", "A handy bicycle."),
        ("Where do I live now?", "You moved this year, as you said."),
        ("I start work at half past seven.", "That is early."),
        ("When do I start work?", "Early in the morning."),
        ("Can you recommend a book?", "Try a novel by Saramago."),
        ("My dentist is called Dr. Moreira.", "I have noted the name."),
        ("Which tea do I like?", "The one that you named before."),
        ("Good idea.", "I am glad."),
        ("My flight to Oslo leaves on the third of March.", "Enjoy Oslo."),
        ("When does my flight leave?", "In spring."),
        ("I keep the spare key under the blue flowerpot.", "Nobody will guess."),
        ("How is the weather usually in April?", "Mild, with showers."),
        ("My landlord is Mr. Teixeira.", "Noted."),
        ("Who is my landlord?", "You told me his name just now."),
        ("Ok.", "Anything else?"),
        ("I am reading a book about lighthouses.", "A fine subject."),
        ("What am I allergic to?", "To a kind of nut."),
        ("My old school friend Bento opened a bakery.", "How nice for him."),
        ("What is the capital of Norway?", "Oslo."),
        ("I swim on Thursdays.", "A good habit."),
        ("Where is my spare key?", "Where you put it."),
        ("Thank you, bye.", "Goodbye."),
    ),
    (
        ("Which city did I move to?", "Porto"),
        ("Which tea do I like?", "jasmine"),
        ("What does my sister play?", "cello"),
        ("What am I allergic to?", "walnuts"),
        ("What kind of bicycle do I have?", "Brompton"),
        ("When do I start work?", "half past seven"),
        ("What is my dentist called?", "Moreira"),
        ("When does my flight leave?", "third of March"),
        ("Where is my spare key?", "flowerpot"),
        ("Who is my landlord?", "Teixeira"),
        ("Which friend opened a bakery?", "Bento"),
        ("On which day do I swim?", "Thursdays"),
    ),
)

CHINESE = Script(
    (
        ("你好，我想规划一下今年。", "好的，从哪里开始？"),
        ("我五月搬到了青岛。", "欢迎来到青岛！"),
        ("我喜欢喝什么茶？", "你还没有告诉我。"),
        ("我最喜欢喝茉莉花茶。", "记住了。"),
        ("我妹妹小云拉大提琴。", "很美的乐器。"),
        ("我妹妹拉什么琴？", "是你说过的那种琴。"),
        ("我对核桃过敏。", "我会注意的。"),
        ("谢谢，很有帮助。", "不客气。"),
        ("我的自行车是绿色的凤凰牌。", "很经典。"),
        ("我现在住在哪里？", "你今年搬了家。"),
        ("我早上七点半上班。", "真早。"),
        ("我几点上班？", "很早。"),
        ("你能推荐一本书吗？", "可以读读老舍的小说。"),
        ("我的牙医姓莫。", "记住了。"),
        ("我喜欢喝什么茶？", "就是你之前说的那种。"),
        ("好主意。", "很高兴。"),
        ("我三月三号飞奥斯陆。", "旅途愉快。"),
        ("我什么时候飞？", "春天。"),
        ("备用钥匙在蓝色花盆下面。", "没人猜得到。"),
        ("四月的天气一般怎么样？", "温和，有阵雨。"),
        ("我的房东是田先生。", "记住了。"),
        ("我的房东是谁？", "你刚才说过。"),
        ("嗯。", "还有别的吗？"),
        ("我在读一本关于灯塔的书。", "很好的题材。"),
        ("我对什么过敏？", "一种坚果。"),
        ("我的老同学大伟开了一家面包店。", "真不错。"),
        ("挪威的首都是哪里？", "奥斯陆。"),
        ("我每周四游泳。", "好习惯。"),
        ("备用钥匙在哪里？", "在你放的地方。"),
        ("谢谢，再见。", "再见。"),
    ),
    (
        ("我搬到了哪个城市？", "青岛"),
        ("我喜欢喝什么茶？", "茉莉"),
        ("我妹妹拉什么琴？", "大提琴"),
        ("我对什么过敏？", "核桃"),
        ("我的自行车是什么牌子？", "凤凰"),
        ("我几点上班？", "七点半"),
        ("我的牙医姓什么？", "姓莫"),
        ("我什么时候飞奥斯陆？", "三月三号"),
        ("备用钥匙在哪里？", "花盆"),
        ("我的房东是谁？", "田先生"),
        ("哪个同学开了面包店？", "大伟"),
        ("我星期几游泳？", "周四"),
    ),
)

SCRIPTS = {"English": ENGLISH, "Chinese": CHINESE}


@contextlib.asynccontextmanager
async def proxied(
    upstream: ScriptedUpstream, **proxy: Any
) -> AsyncIterator[tuple[Service, httpx.AsyncClient]]:
    """Run a daemon in front of a scripted model server."""
    upstreams = {"openai": {"url": f"{upstream.url}/v1"}}
    given = {"upstreams": upstreams, "recall_timeout_ms": 20_000, **proxy}
    with tempfile.TemporaryDirectory() as folder:
        async with (
            service_in(Path(folder), proxy=given) as service,
            served(service) as url,
            httpx.AsyncClient(base_url=url, timeout=60) as client,
        ):
            yield service, client


async def hold(
    service: Service, client: httpx.AsyncClient, upstream: ScriptedUpstream, script: Script
) -> None:
    """Hold the chat: the client sends all turns before with each message, as clients do."""
    messages: list[dict[str, str]] = []
    for said, answered in script.turns:
        messages.append({"role": "user", "content": said})
        upstream.always = completion(answered)
        response = await client.post("/v1/agents/ann/openai/v1/chat/completions", json={"messages": messages})
        response.raise_for_status()
        messages.append({"role": "assistant", "content": answered})
    (close,) = service.at_stop
    await close.__self__.turns.settled()  # type: ignore[attr-defined]
    await flush(service, FlushRequest(agent_id="ann", passes=True, vectors=True, timeout_ms=60_000))


async def probed(
    client: httpx.AsyncClient, upstream: ScriptedUpstream, script: Script
) -> tuple[int, list[str]]:
    """Ask each later question in a chat of its own. Return the number of blocks with the answer, and the blocks."""
    found, blocks = 0, []
    headers = {"X-Ebbtide-Memory": "read-only"}
    for question, answer in script.probes:
        body = {"messages": [{"role": "user", "content": question}]}
        await client.post("/v1/agents/ann/openai/v1/chat/completions", json=body, headers=headers)
        first = upstream.requests[-1].json["messages"][0]
        block = first["content"] if first["role"] == "system" else ""
        blocks.append(block)
        found += answer in block
    return found, blocks


def share_of_questions(blocks: Sequence[str]) -> float:
    """Return the share of the memories in blocks that are questions."""
    lines = [line for block in blocks for line in block.split("\n") if line.startswith("[")]
    return mean(asks(line) for line in lines) if lines else 0.0


async def remembered_table() -> None:
    """Print what each setting finds."""
    print(
        "| chat | `remember` | `token_budget` | answers in the block | tokens | questions among the memories |"
    )
    print("|---|---|---|---|---|---|")
    for language, script in SCRIPTS.items():
        for remember in REMEMBER:
            async with (
                ScriptedUpstream().running() as upstream,
                proxied(upstream, remember=remember) as (service, client),
            ):
                await hold(service, client, upstream, script)
                for budget in BUDGETS:
                    proxy = service.settings.proxy.model_copy(update={"token_budget": budget})
                    service.settings = service.settings.model_copy(update={"proxy": proxy})
                    found, blocks = await probed(client, upstream, script)
                    tokens = mean(count_tokens(block, "estimate") for block in blocks)
                    print(
                        f"| {language} | `{remember}` | {budget} | {found} of {len(script.probes)} "
                        f"| {tokens:.0f} | {share_of_questions(blocks):.0%} |",
                        flush=True,
                    )


async def time_to_first_byte(client: httpx.AsyncClient, url: str, text: str) -> float:
    """Return the milliseconds to the first byte of a streamed answer."""
    body = {"messages": [{"role": "user", "content": text}], "stream": True, "store": False}
    begun_s = time.perf_counter()
    async with client.stream("POST", url, json=body) as response:
        await anext(response.aiter_raw())
        took_s = time.perf_counter() - begun_s
    return took_s * 1000


async def timed_table() -> None:
    """Print the time to the first byte, direct and through the proxy."""
    async with (
        ScriptedUpstream().running() as upstream,
        proxied(upstream, recall_timeout_ms=300) as (service, client),
    ):
        await hold(service, client, upstream, ENGLISH)
        upstream.always = streamed("One ", "two.")
        ways = {
            "direct": f"{upstream.url}/v1/chat/completions",
            "proxy, no memory": "/v1/agents/nobody/openai/v1/chat/completions",
            "proxy, 30 turns": "/v1/agents/ann/openai/v1/chat/completions",
        }
        times: dict[str, list[float]] = {way: [] for way in ways}
        for number in range(TIMED + 10):
            for way, url in ways.items():
                took_ms = await time_to_first_byte(client, url, ENGLISH.probes[number % 12][0])
                if number >= 10:
                    times[way].append(took_ms)
    print("\n| way | p50 ms | p95 ms |\n|---|---|---|")
    for way, taken in times.items():
        cuts = quantiles(taken, n=20)
        print(f"| {way} | {cuts[9]:.1f} | {cuts[18]:.1f} |")


async def main() -> None:
    """Print both tables."""
    configure_log("error", "json")
    await remembered_table()
    await timed_table()


if __name__ == "__main__":
    asyncio.run(main())
