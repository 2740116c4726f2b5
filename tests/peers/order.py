"""The order in which a Python client hears of progress and of answers that overtake each other: order.mjs, in Python.

    order.py 1|legacy|modern  stdio CMD ARGS... | http URL
"""

import sys
from contextlib import asynccontextmanager

import anyio
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

from transcript import Transcript


@asynccontextmanager
async def connect(era, kind, target, args):
    server = StdioServerParameters(command=target, args=list(args))
    if era == "1":
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        transport = stdio_client(server) if kind == "stdio" else streamablehttp_client(target)
        async with transport as (read, write, *_), ClientSession(read, write) as client:
            await client.initialize()
            yield client
    else:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        transport = stdio_client(server) if kind == "stdio" else streamable_http_client(target)
        async with Client(transport, mode="2026-07-28" if era == "modern" else "legacy") as client:
            yield client


class Heard:
    """What calls hear, in the order in which they hear it."""

    def __init__(self, client):
        self.client, self.order = client, []

    async def wait(self, name, gaps):
        result = await self.client.call_tool("wait", {"name": name, "gaps": gaps})
        self.order.append(result.content[0].text)

    async def steps(self, name, first):
        async def progress(progress, total, message):
            self.order.append(f"{name} at {progress:g}")

        result = await self.client.call_tool("steps", {"name": name, "first": first}, progress_callback=progress)
        self.order.append(result.content[0].text)


async def together(*calls):
    async with anyio.create_task_group() as group:
        for call, *arguments in calls:
            group.start_soon(call, *arguments)


async def main(era, kind, target, *args):
    t = Transcript()
    async with connect(era, kind, target, args) as client:

        async def heard(name, run):
            async def step():
                kept = Heard(client)
                await run(kept)
                return kept.order

            await t.step(name, step)

        async def rest(kept):
            for name in ("one", "two", "three"):
                await kept.wait(name, 1)

        await t.step("tools/list", client.list_tools)
        await heard("progress", lambda kept: kept.steps("alone", 0))
        await heard("answers overtake", lambda kept: together((kept.wait, "slow", 5), (kept.wait, "quick", 1), (kept.wait, "middle", 3)))
        await heard("calls while one is open", lambda kept: together((kept.wait, "open", 8), (rest, kept)))
        await heard("progress of two", lambda kept: together((kept.steps, "even", 0), (kept.steps, "odd", 1), (kept.wait, "quick", 2.5)))
        await heard("progress again", lambda kept: kept.steps("again", 0))
    t.print()


anyio.run(main, *sys.argv[1:])
