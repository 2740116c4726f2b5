"""A client of the Python SDK whose user is asked about calls.

    asked.py 1|legacy|auto|modern  stdio CMD ARGS... | http URL

`1` is the 1.x SDK, the rest are eras of 2.x. Makes the calls in CALLS, answers the questions as
ANSWERS says, and prints both as asked.mjs does.
"""

import json
import os
import sys
import warnings

import anyio
import mcp.types as types
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28"}
ANSWERS = json.loads(os.environ["ANSWERS"])
questions = []


async def answer(_context, params):
    given = ANSWERS[len(questions)] if len(questions) < len(ANSWERS) else "error"
    schema = getattr(params, "requestedSchema", None) or getattr(params, "requested_schema", None)
    question = {"message": params.message, "schema": schema}
    questions.append(question)
    if given == "error":
        return types.ErrorData(code=-32603, message="no user is here")
    if given == "never":
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            question["withdrawn"] = True
            raise
    return types.ElicitResult(**given)


async def outcome(client, name, given):
    try:
        result = await client.call_tool(name, given)
        failed = getattr(result, "is_error", None) or getattr(result, "isError", None) or False
        return {"name": name, "text": result.content[0].text, "failed": failed}
    except Exception as raised:  # its class differs between the SDKs; that it carries an error does not
        error = raised.error
        return {"name": name, "code": error.code, "message": error.message, "data": error.data}


async def calls(client):
    outcomes = [await outcome(client, name, given) for name, given in json.loads(os.environ["CALLS"])]
    print(json.dumps({"questions": questions, "outcomes": outcomes}))


async def first(kind, target, args):
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    info = types.Implementation(name="asked", version="1")
    streams = stdio_client(StdioServerParameters(command=target, args=args)) if kind == "stdio" else streamablehttp_client(target)
    async with streams as (read, write, *_), ClientSession(read, write, elicitation_callback=answer, client_info=info) as session:
        await session.initialize()
        await calls(session)


async def second(era, kind, target, args):
    from mcp import Client
    from mcp.client.streamable_http import streamable_http_client

    info = types.Implementation(name="asked", version="1")
    streams = stdio_client(StdioServerParameters(command=target, args=args)) if kind == "stdio" else streamable_http_client(target)
    async with Client(streams, mode=MODES[era], elicitation_callback=answer, client_info=info) as client:
        await calls(client)


async def main(era, kind, target, *args):
    await (first(kind, target, list(args)) if era == "1" else second(era, kind, target, list(args)))


warnings.simplefilter("ignore")  # the 1.x SDK calls its own names deprecated
anyio.run(main, *sys.argv[1:])
