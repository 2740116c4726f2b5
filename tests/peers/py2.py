"""The Python SDK 2.x client, both eras.

    py2.py legacy|auto|modern  stdio CMD ARGS... | http URL | sse URL
    py2.py servers  stdio CMD ARGS...

`legacy` runs the full range against server-everything, `modern` and `auto` against
modern-server.mjs, and `servers` the little that mcp-server-time and mcp-server-git have.
"""

import sys
import warnings

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

import everything
import modern
from transcript import Transcript, plain, tap

MODES = {"legacy": "legacy", "auto": "auto", "modern": "2026-07-28", "servers": "auto"}


class Peer:
    uri = staticmethod(str)
    task = None  # of the initialize era, and gone from this SDK

    def __init__(self):
        self.client, self.answers = None, everything.Answers(types)

    @staticmethod
    def ref(kind, name):
        return types.PromptReference(type="ref/prompt", name=name) if kind == "prompt" else types.ResourceTemplateReference(type="ref/resource", uri=name)

    async def raw(self, method, params):
        return await self.client.session.send_request(types.Request(method=method, params=params), types.EmptyResult)

    async def cancel(self, started, call):
        """The SDK tells the server itself when its caller gives up."""
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await started.wait()
            group.cancel_scope.cancel()
        return "cancelled"


async def servers(peer, t):
    """Whatever the server has: its tools, and each called without arguments."""
    listed = await t.step("tools/list", peer.client.list_tools)
    for tool in listed.tools:
        await t.step(f"call {tool.name} without arguments", lambda: peer.client.call_tool(tool.name, {}))
    await t.step("convert", lambda: peer.client.call_tool("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}))
    await t.step("unknown method", lambda: peer.raw("no/such/method", {}))


async def main(era, kind, target, *args):
    t, peer = everything.transcript() if era == "legacy" else Transcript(), Peer()
    transport = {
        "stdio": lambda: stdio_client(StdioServerParameters(command=target, args=list(args))),
        "http": lambda: streamable_http_client(target),
        "sse": lambda: sse_client(target),
    }[kind]()
    answers = peer.answers
    # On modern HTTP the SDK cancels a call by closing its stream.
    unsent = ("notifications/cancelled",) if kind == "http" and era != "legacy" else ()
    async with Client(
        tap(transport, t, unsent),
        mode=MODES[era],
        sampling_callback=answers.sample,
        elicitation_callback=answers.elicit if era == "legacy" else modern.elicit,
        list_roots_callback=answers.list_roots,
        log_level=None if era == "legacy" else "debug",
        client_info=types.Implementation(name="py2", version="1"),
    ) as client:
        peer.client = client

        async def server():
            return {"version": client.protocol_version, "info": plain(client.server_info), "capabilities": plain(client.server_capabilities)}

        await t.step("server", server)
        await {"legacy": everything.run, "servers": servers}.get(era, modern.run)(peer, t)
        t.is_over = True
    t.print()


warnings.simplefilter("ignore")  # sampling, roots and logging are deprecated; here they are the subject
anyio.run(main, *sys.argv[1:])
