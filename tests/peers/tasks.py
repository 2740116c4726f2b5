"""A client of the Python SDK 1.x that calls tools as tasks (2025-11-25).

    tasks.py stdio CMD ARGS...

Makes the calls in CALLS and prints the outcomes and the listed tasks as tasks.mjs does. The 2.x SDK has only
the types, and rejects a task as the answer to a call.
"""

import json
import os
import sys
import warnings

import anyio
import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

RELATED = "io.modelcontextprotocol/related-task"


def read(result):
    result = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    related = result.get("_meta", {}).get(RELATED, {}).get("taskId")
    return {"text": result["content"][0]["text"], "failed": result.get("isError", False), "related": related}


async def outcome(client, name, given, how):
    told = {"name": name, "how": how}
    try:
        if how == "plain":
            return told | read(await client.plain(name, given))
        task = await client.create(name, given)
        task_id, told["first"] = task["taskId"], task["status"]
        if how == "cancel":
            told["cancelled"] = (await client.cancel(task_id))["status"]
        if how == "poll":
            told["polled"] = await client.end(task_id)
        told |= read(await client.result(task_id))
    except Exception as raised:  # its class differs between the SDKs; that it carries an error does not
        if not hasattr(raised, "error"):
            raise
        told |= {"code": raised.error.code, "message": raised.error.message}
    told["last"] = await client.state(task_id)
    return told


def plain_json(result):
    return result.model_dump(by_alias=True, mode="json")


class TaskClient:
    def __init__(self, session):
        self.session, self.tasks = session, session.experimental

    async def plain(self, name, given):
        return await self.session.call_tool(name, given)

    async def create(self, name, given):
        return plain_json((await self.tasks.call_tool_as_task(name, given, ttl=60000)).task)

    async def end(self, task_id):
        async for state in self.tasks.poll_task(task_id):
            last = state.status
        return last

    async def state(self, task_id):
        return (await self.tasks.get_task(task_id)).status

    async def cancel(self, task_id):
        return plain_json(await self.tasks.cancel_task(task_id))

    async def result(self, task_id):
        return await self.tasks.get_task_result(task_id, types.CallToolResult)

    async def page(self, cursor):
        return plain_json(await self.tasks.list_tasks(cursor))


async def calls(client):
    outcomes = [await outcome(client, *call) for call in json.loads(os.environ["CALLS"])]
    listed, cursor = [], None
    while True:
        page = await client.page(cursor)
        listed += [{"taskId": task["taskId"], "status": task["status"]} for task in page["tasks"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    print(json.dumps({"outcomes": outcomes, "listed": listed}))


async def main(_kind, command, *args):
    streams = stdio_client(StdioServerParameters(command=command, args=list(args)))
    info = types.Implementation(name="tasks", version="1")
    async with streams as (read_end, write_end), ClientSession(read_end, write_end, client_info=info) as session:
        await session.initialize()
        await session.list_tools()
        await calls(TaskClient(session))


warnings.simplefilter("ignore")  # the SDK calls its own names deprecated
anyio.run(main, *sys.argv[1:])
