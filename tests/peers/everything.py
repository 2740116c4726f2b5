"""The full range of a Python client against server-everything: everything.mjs, in Python.

`peer` hides what the 1.x and 2.x SDKs spell differently: `client`, `uri(text)`, `ref(kind, name)`,
`raw(method, params)`, `cancel(started, call)` and, where the SDK has them, `task(name, arguments, created)`.
"""

import base64
import json

import anyio

from transcript import UNHEARD, Transcript, plain

URI = "demo://resource/dynamic/text/1"
DATA = "data:text/plain;base64," + base64.b64encode(b"tapegate " * 50).decode()
ELICITED = {"name": "Ada", "check": True, "email": "ada@example.com", "integer": 7, "number": 2.5}
ROOTS = [("file:///srv/one", "one"), ("file:///srv/two", "two")]


def transcript():
    return Transcript(unheard=(UNHEARD,))


class Answers:
    """What the client answers the server; `types` is the SDK's types module."""

    def __init__(self, types):
        self.types, self.roots = types, ROOTS[:1]

    async def list_roots(self, context):
        return self.types.ListRootsResult(roots=[self.types.Root(uri=uri, name=name) for uri, name in self.roots])

    async def sample(self, context, params):
        content = params.messages[0].content
        text = (content[0] if isinstance(content, list) else content).text
        return self.types.CreateMessageResult(role="assistant", model="fixed", content=self.types.TextContent(type="text", text=f"sampled: {text}"))

    async def elicit(self, context, params):
        if getattr(params, "mode", "form") == "url":
            return self.types.ElicitResult(action="decline")
        schema = getattr(params, "requestedSchema", None) or params.requested_schema
        asked = "interpretation" in schema["properties"]
        return self.types.ElicitResult(action="accept", content={"interpretation": "snake"} if asked else ELICITED)


async def run(peer, t):
    await t.until("first roots", lambda: t.count("notifications/message", "Roots updated: 1"))
    async with anyio.create_task_group() as group:
        done = {}
        if peer.task:
            await group.start(background, peer, done)
        await tools(peer, t)
        await resources(peer, t)
        await prompts(peer, t)
        await server_requests(peer, t)
        await logging(peer, t)
        await errors(peer, t)
        await cancel(peer, t)
    for name, result in done.items():
        async def kept(result=result):
            return result
        await t.step(name, kept)
    await t.step("ping at the end", peer.client.send_ping)


async def background(peer, done, *, task_status):
    """A task takes seconds by design, so it runs beside everything else.

    The server has it before anything else is asked: two requests by HTTP arrive in any order, and a tape has one."""
    arguments = {"topic": "python", "ambiguous": True}
    done["task"] = plain(await peer.task("simulate-research-query", arguments, task_status.started))


async def call(peer, t, name, /, **arguments):
    return await t.step(f"call {name} {json.dumps(arguments)[:60]}", lambda: peer.client.call_tool(name, arguments))


async def tools(peer, t):
    await t.step("tools/list", peer.client.list_tools)
    await call(peer, t, "echo", message="plain")
    await call(peer, t, "echo", message='quoted " back \\ slash \u0000 \u2028 é ✓ 😀 \r\n tab\t')
    await call(peer, t, "echo", message="long " * 60_000)
    await call(peer, t, "get-sum", a=2, b=0.5)
    await call(peer, t, "get-tiny-image")
    await call(peer, t, "get-annotated-message", messageType="error", includeImage=True)
    await call(peer, t, "get-resource-links", count=5)
    await call(peer, t, "get-resource-reference", resourceType="Blob", resourceId=2)
    await call(peer, t, "get-structured-content", location="Chicago")

    async def long():
        async def ignore(progress, total, message):
            pass
        result = await peer.client.call_tool("trigger-long-running-operation", {"duration": 0.4, "steps": 4}, progress_callback=ignore)
        return {"result": plain(result), "progress": list(t.progress)}
    await t.step("long call", long)

    async def together():
        results = {}
        async def one(i):
            results[i] = plain(await peer.client.call_tool("echo", {"message": f"#{i}"}))
        async with anyio.create_task_group() as group:
            for i in range(20):
                group.start_soon(one, i)
        return [results[i] for i in range(20)]
    await t.step("twenty calls at once", together)


async def resources(peer, t):
    client = peer.client
    await t.step("resources/list", client.list_resources)
    await t.step("resources/templates/list", client.list_resource_templates)
    for uri in (URI, "demo://resource/dynamic/blob/2", "demo://resource/static/document/features.md"):
        await t.step(f"read {uri}", lambda: client.read_resource(peer.uri(uri)))
    await t.step("set level debug", lambda: client.set_logging_level("debug"))
    await t.step("subscribe", lambda: client.subscribe_resource(peer.uri(URI)))
    await call(peer, t, "toggle-subscriber-updates")
    await t.until("resource update", lambda: t.count("notifications/resources/updated"))
    await call(peer, t, "toggle-subscriber-updates")
    await t.step("unsubscribe", lambda: client.unsubscribe_resource(peer.uri(URI)))
    await t.until("log of unsubscribe", lambda: t.count("notifications/message", "Received Unsubscribe"))
    await call(peer, t, "gzip-file-as-resource", name="a.gz", data=DATA)
    await t.until("list_changed", lambda: t.count("notifications/resources/list_changed"))
    await t.step("read session resource", lambda: client.read_resource(peer.uri("demo://resource/session/a.gz")))


async def prompts(peer, t):
    client = peer.client
    await t.step("prompts/list", client.list_prompts)
    await t.step("simple prompt", lambda: client.get_prompt("simple-prompt"))
    await t.step("prompt with arguments", lambda: client.get_prompt("args-prompt", {"city": "Zürich", "state": "ZH"}))
    await t.step("prompt with resource", lambda: client.get_prompt("resource-prompt", {"resourceType": "Text", "resourceId": "3"}))
    prompt, template = peer.ref("prompt", "completable-prompt"), peer.ref("resource", "demo://resource/dynamic/text/{resourceId}")
    await t.step("complete department", lambda: client.complete(prompt, {"name": "department", "value": "S"}))
    await t.step("complete name", lambda: client.complete(prompt, {"name": "name", "value": ""}, {"department": "Engineering"}))
    await t.step("complete id", lambda: client.complete(template, {"name": "resourceId", "value": "12"}))


async def server_requests(peer, t):
    await call(peer, t, "trigger-sampling-request", prompt="say hi", maxTokens=10)
    await call(peer, t, "trigger-elicitation-request")
    url = {"url": "https://example.com/go", "message": "open it", "elicitationId": "e-1"}
    await call(peer, t, "trigger-url-elicitation", **url)
    await call(peer, t, "trigger-url-elicitation", **url, errorPath=True)
    await call(peer, t, "get-roots-list")
    peer.answers.roots = ROOTS
    await t.step("roots changed", peer.client.send_roots_list_changed)
    await t.until("second roots", lambda: t.count("notifications/message", "Roots updated: 2"))
    await call(peer, t, "get-roots-list")


async def logging(peer, t):
    await call(peer, t, "toggle-simulated-logging")
    await t.until("simulated log", lambda: t.count("notifications/message", "<level>"))
    await call(peer, t, "toggle-simulated-logging")
    await t.step("set level error", lambda: peer.client.set_logging_level("error"))
    # Below the level now: this subscription must leave no log line.
    await t.step("subscribe quietly", lambda: peer.client.subscribe_resource(peer.uri("demo://resource/dynamic/text/9")))


async def errors(peer, t):
    client = peer.client
    await call(peer, t, "no-such-tool")
    await call(peer, t, "get-sum", a="x")
    await t.step("unknown resource", lambda: client.read_resource(peer.uri("demo://resource/none")))
    await t.step("unknown prompt", lambda: client.get_prompt("none"))
    await t.step("missing prompt argument", lambda: client.get_prompt("args-prompt", {}))
    await t.step("unknown method", lambda: peer.raw("no/such/method", {"a": [1, {"b": "c"}]}))


async def cancel(peer, t):
    """Cancels a call at its first progress, long before the server would answer it."""
    async def cancelled():
        started = anyio.Event()
        async def progress(*_):
            started.set()
        return await peer.cancel(started, lambda: peer.client.call_tool("trigger-long-running-operation", {"duration": 3, "steps": 3}, progress_callback=progress))
    await t.step("cancelled call", cancelled)
