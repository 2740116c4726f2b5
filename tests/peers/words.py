"""An MCP server on stdio with two tools: one sends progress, the other asks the client's model.

Only the standard library is used, so that it starts at once.
"""

import json
import sys

TOOLS = [
    {
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    for name, description in [
        ("count_words", "Counts the words of a text"),
        ("summarise", "Has the client's model sum up a text"),
    ]
]
# The id of the only request that this server sends.
SAMPLING_ID = "ask-1"


def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")), flush=True)


def text_result(text):
    return {"content": [{"type": "text", "text": text}]}


def call_tool(request_id, params):
    """Answers a call, unless its answer has to wait for the client's model."""
    text = params.get("arguments", {}).get("text", "")
    token = params.get("_meta", {}).get("progressToken")
    if params.get("name") == "summarise":
        message = {"role": "user", "content": {"type": "text", "text": text}}
        send(id=SAMPLING_ID, method="sampling/createMessage", params={"messages": [message], "maxTokens": 50})
        return False
    if token is not None:
        send(method="notifications/progress", params={"progressToken": token, "progress": 1, "total": 1})
    send(id=request_id, result=text_result(f"{len(text.split())} words"))
    return True


waiting = None
for line in sys.stdin:
    try:
        message = json.loads(line)
    except ValueError:
        continue
    if not isinstance(message, dict):
        continue
    method, request_id = message.get("method"), message.get("id")
    if request_id == SAMPLING_ID and method is None and waiting is not None:
        send(id=waiting, result=text_result(message["result"]["content"]["text"]))
        waiting = None
    elif method is None or request_id is None:
        continue
    elif method == "initialize":
        info = {"name": "words", "version": "1"}
        send(id=request_id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=request_id, result={"tools": TOOLS})
    elif method == "tools/call":
        if not call_tool(request_id, message.get("params", {})):
            waiting = request_id
    else:
        send(id=request_id, error={"code": -32601, "message": "no such method"})
