"""The full range of a Python 2026-07-28 client against modern-server.mjs: modern.mjs, in Python."""

import anyio
import mcp_types as types

from everything import call
from transcript import plain

WATCHED = "test://watched-resource"
ANSWERS = {"name": "Ada", "ok": True, "color": "green", "context": "a test"}


async def elicit(context, params):
    return types.ElicitResult(action="accept", content={key: ANSWERS[key] for key in params.requested_schema["properties"]})


async def run(peer, t):
    await lists(peer, t)
    await tools(peer, t)
    await input_rounds(peer, t)
    await subscriptions(peer, t)
    await cancel(peer, t)
    await errors(peer, t)


async def lists(peer, t):
    client = peer.client
    await t.step("tools/list", client.list_tools)
    await t.step("resources/list", client.list_resources)
    await t.step("resources/templates/list", client.list_resource_templates)
    await t.step("prompts/list", client.list_prompts)
    for uri in ("test://static-text", "test://static-binary", "test://template/77/data"):
        await t.step(f"read {uri}", lambda: client.read_resource(uri))
    await t.step("prompt", lambda: client.get_prompt("test_prompt_with_arguments", {"arg1": "ä", "arg2": "2"}))
    await t.step("prompt with image", lambda: client.get_prompt("test_prompt_with_image"))
    await t.step("complete", lambda: client.complete(peer.ref("prompt", "test_prompt_with_arguments"), {"name": "arg1", "value": "par"}))


async def tools(peer, t):
    for name in ("simple_text", "image_content", "audio_content", "embedded_resource", "multiple_content_types", "error_handling", "tool_with_logging"):
        await call(peer, t, f"test_{name}")
    await call(peer, t, "echo", message='é ✓ 😀 \u0000 \u2028 "\\')
    await call(peer, t, "echo", message="long " * 60_000)
    await call(peer, t, "with_headers", region="eu-west 1 ü", priority=7, dry=False, note="not a header")

    async def progress():
        async def ignore(*_):
            pass
        result = await peer.client.call_tool("test_tool_with_progress", {}, progress_callback=ignore)
        return {"result": plain(result), "progress": list(t.progress)}
    await t.step("progress", progress)


async def input_rounds(peer, t):
    for name in ("elicitation", "sampling", "list_roots", "request_state", "multiple_inputs", "multi_round", "capabilities"):
        await call(peer, t, f"test_input_required_result_{name}")
    await t.step("input for a prompt", lambda: peer.client.get_prompt("test_input_required_result_prompt"))
    await call(peer, t, "test_streaming_elicitation")


async def subscriptions(peer, t):
    async def listened():
        events = set()
        async with peer.client.listen(tools_list_changed=True, resource_subscriptions=[WATCHED]) as subscription:
            await peer.client.call_tool("change", {})
            with anyio.fail_after(10):
                async for event in subscription:
                    events.add(repr(event))
                    if len(events) == 2:
                        break
        return sorted(events)
    await t.step("listen", listened)


async def cancel(peer, t):
    """The server counts the calls that were cancelled on it, so a cancellation that got lost shows."""
    async def cancelled():
        started = anyio.Event()
        async def progress(*_):
            started.set()
        return await peer.cancel(started, lambda: peer.client.call_tool("slow", {}, progress_callback=progress))
    await t.step("cancelled call", cancelled)
    await call(peer, t, "cancelled")


async def errors(peer, t):
    client = peer.client
    await call(peer, t, "no-such-tool")
    await call(peer, t, "echo", message=7)
    await t.step("unknown resource", lambda: client.read_resource("test://none"))
    await t.step("unknown prompt", lambda: client.get_prompt("none"))
    await t.step("unknown method", lambda: peer.raw("no/such/method", {"a": [1, {"b": "c"}]}))
