"""The Python SDK clients (1.x and 2.x) use the tools of `tapegate bash`.

    bash.py legacy|modern  stdio CMD ARGS... | http URL

Prints one line for each step. The SDK checks every result against the tool's output schema. If BASH_STEPS names a file,
the steps are those of the file, and each line is the result as JSON:

    {"call": TOOL, "arguments": {...}, "meta": {...}, "save": NAME}    $NAME.key in later arguments is a key of the result
    {"cancel": TOOL, "arguments": {...}, "once": FILE}                 cancels the call once the file exists
    {"list": true}                                                     the tools
    {"list_until": MAXIMUM}                                            lists tools until the longest timeout is that
    {"write": FILE, "text": TEXT}                                      replaces a file
    {"changed": true}                                                  how often the server said that its tools have changed
"""

import json
import os
import sys

import anyio
from mcp import StdioServerParameters, types
from mcp.client.stdio import stdio_client


def facts(result):
    """What a result says, under the names of both SDKs."""
    error = getattr(result, "isError", None) or getattr(result, "is_error", False)
    structured = getattr(result, "structuredContent", None) or getattr(result, "structured_content", None)
    text = result.content[0].text
    if structured is not None:
        assert json.loads(text) == structured, (text, structured)
    return bool(error), structured, text


async def steps(client):
    names = [tool.name for tool in (await client.list_tools()).tools]
    print("tools", *names)

    async def call(name, arguments, **options):
        return facts(await client.call_tool(f"bash_recorder.{name}", arguments, **options))

    _, done, _ = await call("execute", {"command": "echo out; echo err >&2; exit 3", "description": "a test"})
    print("execute", done["stdout"], done["stderr"], done["exit_code"], done["timed_out"], done["recording_id"][:2], sep="|")
    reports = []

    async def progress(value, total, message):
        reports.append((value, message))

    _, late, _ = await call("execute", {"command": "echo part; exec tail -f /dev/null", "timeout": 2}, progress_callback=progress)
    assert reports and all(message == "part" for _, message in reports), reports
    print("timeout", late["stdout"], late["exit_code"], late["timed_out"], sep="|")
    _, started, _ = await call("execute", {"command": "echo up; exec tail -f /dev/null", "run_in_background": True})
    _, read, _ = await call("read_output", {"process_id": started["process_id"], "wait_seconds": 60})
    _, stopped, _ = await call("stop", {"process_id": started["process_id"]})
    print("background", read["stdout"], read["running"], stopped["running"], stopped["signal"], sep="|")
    print("wrong", *(await call("execute", {"command": "pwd", "working_directory": "/no/such"}))[::2], sep="|")
    _, recent, _ = await call("list_recent", {"count": 2})
    print("recent", *[one["command"].split(";")[0] for one in recent["recordings"]], sep="|")
    _, info, _ = await call("session_info", {})
    print("session", info["entry_count"], info["recording_enabled"], info["health"]["healthy"], sep="|")


class StepRunner:
    def __init__(self, client, changes):
        self.client, self.changes, self.saved = client, changes, {}

    def filled(self, value):
        if isinstance(value, dict):
            return {key: self.filled(inner) for key, inner in value.items()}
        if isinstance(value, str) and value.startswith("$") and "." in value:
            name, key = value[1:].split(".")
            return self.saved[name][key]
        return value

    async def call(self, name, step):
        name = name if "bash_recorder" in name else f"bash_recorder.{name}"
        try:
            result = await self.client.call_tool(name, self.filled(step.get("arguments", {})), meta=step.get("meta"))
        except Exception as error:
            return {"exception": str(error)}
        error, structured, text = facts(result)
        self.saved[step.get("save")] = structured
        meta = getattr(result, "meta", None) or {}
        return {"error": error, "text": text, "recording_error": meta.get("recording_error"), **(structured or {})}

    async def cancel(self, step):
        request_id = None

        async def cancelled():
            nonlocal request_id
            request_id = getattr(self.client, "_request_id", None)
            await self.call(step["cancel"], step)

        async with anyio.create_task_group() as group:
            group.start_soon(cancelled)
            await self.call("execute", {"arguments": {"command": f"until [ -e {step['once']} ]; do :; done"}})
            if request_id is not None:
                # The 1.x SDK tells nobody when a caller gives up.
                notice = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=request_id))
                await self.client.send_notification(types.ClientNotification(notice))
            group.cancel_scope.cancel()
        return {"cancelled": True}

    async def tools(self):
        return [tool.model_dump(by_alias=True, mode="json") for tool in (await self.client.list_tools()).tools]

    async def run(self, step):
        if "call" in step:
            return await self.call(step["call"], step)
        if "cancel" in step:
            return await self.cancel(step)
        if "list" in step:
            return {"tools": await self.tools()}
        if "list_until" in step:
            for _ in range(100_000):
                tools = await self.tools()
                if tools[0]["inputSchema"]["properties"]["timeout"]["maximum"] == step["list_until"]:
                    return {"tools": tools}
        if "write" in step:
            with open(step["write"] + ".half", "w") as half:
                half.write(step["text"])
            os.replace(step["write"] + ".half", step["write"])
            return {}
        return {"changed": self.changes.count("notifications/tools/list_changed")}


async def play(client, changes):
    if "BASH_STEPS" not in os.environ:
        return await steps(client)
    runner = StepRunner(client, changes)
    with open(os.environ["BASH_STEPS"]) as file:
        for step in json.load(file):
            print(json.dumps(await runner.run(step)))


async def main(era, kind, target, *args):
    stdio = lambda: stdio_client(StdioServerParameters(command=target, args=list(args)))
    changes = []

    async def note(message):
        changes.append(getattr(getattr(message, "root", message), "method", None))

    try:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client
    except ImportError:
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with (stdio() if kind == "stdio" else streamablehttp_client(target)) as streams:
            async with ClientSession(*streams[:2], message_handler=note) as session:
                await session.initialize()
                await play(session, changes)
        return
    transport = stdio() if kind == "stdio" else streamable_http_client(target)
    async with Client(transport, mode={"legacy": "legacy", "modern": "2026-07-28"}[era], message_handler=note) as client:
        await play(client, changes)


anyio.run(main, *sys.argv[1:])
