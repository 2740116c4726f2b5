"""A client of the Python SDK in front of a policy that does not let everything pass.

    governed.py 1|legacy|auto|modern  stdio CMD ARGS... | http URL

`1` is the 1.x SDK, the rest are eras of 2.x. Prints as JSON what it was offered and what came of
each call in CALLS, as governed.mjs does.
"""

import json
import os
import sys
import warnings

import anyio
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}


async def outcome(client, name, given):
    try:
        result = await client.call_tool(name, given)
        failed = getattr(result, "is_error", None) or getattr(result, "isError", None) or False
        return {"name": name, "text": result.content[0].text, "failed": failed}
    except Exception as raised:  # its class differs between the SDKs; that it carries an error does not
        error = raised.error
        return {"name": name, "code": error.code, "message": error.message, "data": error.data}


async def calls(client):
    listed = await client.list_tools()
    outcomes = [await outcome(client, name, given) for name, given in json.loads(os.environ["CALLS"])]
    print(json.dumps({"offered": [tool.name for tool in listed.tools], "outcomes": outcomes}))


async def first(kind, target, args):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    streams = stdio_client(StdioServerParameters(command=target, args=args)) if kind == "stdio" else streamablehttp_client(target)
    async with streams as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        await calls(session)


async def second(era, kind, target, args):
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    streams = stdio_client(StdioServerParameters(command=target, args=args)) if kind == "stdio" else streamable_http_client(target)
    async with Client(streams, mode=MODES[era]) as client:
        await calls(client)


async def main(era, kind, target, *args):
    await (first(kind, target, list(args)) if era == "1" else second(era, kind, target, list(args)))


warnings.simplefilter("ignore")  # the 1.x SDK calls its own names deprecated
anyio.run(main, *sys.argv[1:])
