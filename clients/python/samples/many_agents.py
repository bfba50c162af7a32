"""Many agents at once, from one event loop: each has a memory of its own.

python many_agents.py [http://127.0.0.1:8420]
"""

import asyncio
import sys

from ebbtide_client import AsyncClient


async def main() -> None:
    """Three agents remember at the same time; each recalls only its own."""
    homes = {"sample-bea": "Porto", "sample-cid": "Faro", "sample-林月": "青岛"}
    async with AsyncClient(*sys.argv[1:]) as memory:
        await asyncio.gather(
            *(
                memory.remember(agent, [{"role": "user", "content": f"I live in {home}."}])
                for agent, home in homes.items()
            )
        )
        for agent in homes:
            print(agent, "→", (await memory.recall(agent, query="Where do I live?")).text)


asyncio.run(main())
