"""The Python SDK 1.x client (initialize era) through its full range.

    py1.py stdio CMD ARGS... | http URL | sse URL
"""

import sys
import warnings

import anyio
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl

import everything
from transcript import tap


class Peer:
    uri = staticmethod(AnyUrl)

    def __init__(self):
        self.client, self.answers = None, everything.Answers(types)

    @staticmethod
    def ref(kind, name):
        return types.PromptReference(type="ref/prompt", name=name) if kind == "prompt" else types.ResourceTemplateReference(type="ref/resource", uri=name)

    async def raw(self, method, params):
        request = types.ClientRequest.model_construct(root=types.Request(method=method, params=params))
        return await self.client.send_request(request, types.EmptyResult)

    async def task(self, name, arguments, created):
        tasks = self.client.experimental
        task_id = (await tasks.call_tool_as_task(name, arguments, ttl=60_000)).task.taskId
        created()
        async for status in tasks.poll_task(task_id):
            if status.status == "input_required":
                break  # the question is delivered on the stream of `tasks/result`
        return await tasks.get_task_result(task_id, types.CallToolResult)

    async def cancel(self, started, call):
        """This SDK tells nobody when a caller gives up, so the notice is sent by hand."""
        request_id = self.client._request_id
        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await started.wait()
            notice = types.CancelledNotification(params=types.CancelledNotificationParams(requestId=request_id, reason="enough"))
            await self.client.send_notification(types.ClientNotification(notice))
            group.cancel_scope.cancel()
        return "cancelled"


async def main(kind, target, *args):
    t, peer = everything.transcript(), Peer()
    transport = {
        "stdio": lambda: stdio_client(StdioServerParameters(command=target, args=list(args))),
        "http": lambda: streamablehttp_client(target),
        "sse": lambda: sse_client(target),
    }[kind]()
    answers = peer.answers
    async with tap(transport, t) as streams:
        async with ClientSession(
            *streams,
            sampling_callback=answers.sample,
            elicitation_callback=answers.elicit,
            list_roots_callback=answers.list_roots,
            client_info=types.Implementation(name="py1", version="1"),
        ) as session:
            peer.client = session
            await t.step("server", session.initialize)
            await everything.run(peer, t)
            t.is_over = True
    t.print()


warnings.simplefilter("ignore")  # a request that no model describes is the point of one step
anyio.run(main, *sys.argv[1:])
