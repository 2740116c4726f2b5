"""What a Python client saw, in a form that two runs can be compared by: transcript.mjs, in Python.

Unasked messages are noted from the wire (`tap`), so both SDK versions are heard alike.
"""

import base64
import hashlib
import json
import os
import re
import sys
from contextlib import asynccontextmanager

import anyio

WAIT_S_MAX = 60
LONG = 2000
# Announced before an HTTP client has a stream to hear it on, see everything.mjs.
UNHEARD = "notifications/tools/list_changed"
RULES = [
    (r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", "<uuid>"),
    (r"session undefined", "session <uuid>"),
    (r" (- SessionId|from session) <uuid>", ""),
    (r"(Debug|Info|Notice|Warning|Error|Critical|Alert|Emergency)[- ]level[- ]message", "<level> message"),
    (r"\d{1,2}:\d\d:\d\d [AP]M", "<time>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", "<time>"),
    (r"(127\.0\.0\.1|localhost):\d+", "<host>"),
]


class Transcript:
    def __init__(self, unheard=()):
        self.steps, self.notes, self.progress, self.unheard = [], [], [], unheard
        self.is_over = False  # set when the last step is done, and the client begins to close its session

    async def step(self, name, run):
        """Runs one step; what it returns or raises becomes its line."""
        try:
            result = await run()
            line = {"step": name, "result": plain(result)}
        except Exception as error:
            rpc = getattr(error, "error", error)
            line = {"step": name, "error": {"type": type(error).__name__, "code": getattr(rpc, "code", None), "message": str(error), "data": plain(getattr(rpc, "data", None))}}
            result = None
        self.steps.append(normalise(line))
        return result

    def hear(self, message):
        """Keeps a message that came unasked; progress apart, in its order."""
        method, params = message.get("method"), message.get("params")
        if method == "notifications/progress":
            self.progress.append({key: value for key, value in params.items() if key != "progressToken"})
        elif method and method not in self.unheard:
            if "level" in (params or {}) and "<level>" in normalise(str(params.get("data"))):
                params = {**params, "level": "<level>"}
            self.notes.append(normalise({"kind": method, "value": params}))

    def count(self, kind, text=""):
        return sum(note["kind"] == kind and text in json.dumps(note) for note in self.notes)

    async def until(self, what, condition):
        """Waits for something that comes unasked; its absence is a line too."""
        with anyio.move_on_after(WAIT_S_MAX):
            while not condition():
                await anyio.sleep(0.005)
            return
        self.steps.append({"step": f"missing: {what}"})

    def print(self):
        notes = sorted(self.notes, key=lambda note: json.dumps(note, sort_keys=True))
        json.dump({"steps": self.steps, "notes": notes}, sys.stdout, sort_keys=True, indent=1, ensure_ascii=False)
        print()


def plain(value):
    """A pydantic model as the JSON it came from."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value.model_dump(by_alias=True, mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def normalise(value, key=""):
    """Replaces what differs from run to run and nothing else; the rules are transcript.mjs's."""
    if isinstance(value, list):
        return [normalise(item) for item in value]
    if isinstance(value, dict):
        return {name: normalise(item, name) for name, item in value.items() if item is not None}
    if not isinstance(value, str):
        return value
    if key == "requestState":
        return "<state>"
    if key == "blob":
        text = base64.b64decode(value).decode("latin1")
        return f"base64 of {normalise(text)}" if " created at " in text else f"<blob, sha256 {sha256(value)}>"
    for pattern, replacement in RULES:
        value = re.sub(pattern, replacement, value)
    value = value.rstrip()
    return f"<{len(value)} characters, sha256 {sha256(value)}>" if len(value) > LONG else value


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Tapped:
    """One of a transport's two streams, with a listener."""

    def __init__(self, stream, hear):
        self.stream, self.hear = stream, hear

    def __getattr__(self, name):
        return getattr(self.stream, name)

    async def __aenter__(self):
        await self.stream.__aenter__()
        return self

    async def __aexit__(self, *exc):
        return await self.stream.__aexit__(*exc)

    def __aiter__(self):
        return self

    async def __anext__(self):
        item = await self.stream.__anext__()
        self.hear(item)
        return item

    async def receive(self):
        item = await self.stream.receive()
        self.hear(item)
        return item

    async def send(self, item):
        self.hear(item)
        await self.stream.send(item)


@asynccontextmanager
async def tap(transport, transcript, unsent=()):
    """`transport`, heard by `transcript` and written to the file that PEER_WIRE names.

    `unsent` are methods that the transport swallows: they never reach the wire.
    """
    wire = open(os.environ.get("PEER_WIRE", os.devnull), "a", buffering=1)

    def hear(direction):
        def keep(item):
            if isinstance(item, Exception):
                return
            root = getattr(item.message, "root", item.message)
            message = root.model_dump(by_alias=True, mode="json", exclude_unset=True)
            if direction == "s2c" or message.get("method") not in unsent:
                wire.write(json.dumps({"dir": direction, "msg": message}) + "\n")
            if direction == "s2c":
                transcript.hear(message)

        return keep

    try:
        async with transport as (read, write, *_):
            yield Tapped(read, hear("s2c")), Tapped(write, hear("c2s"))
    except BaseExceptionGroup as errors:
        # The SDK fails if the server says something just when the session is closed: it has nobody to give it to.
        if not transcript.is_over or errors.split((anyio.BrokenResourceError, anyio.ClosedResourceError))[1]:
            raise
    wire.close()
