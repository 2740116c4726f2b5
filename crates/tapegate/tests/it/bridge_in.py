"""A server on pipes whose every oddity is a method."""
import json
import sys

held = []
cancelled = []


def out(message):
    text = message if isinstance(message, str) else json.dumps(message, separators=(",", ":"))
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def answer(message, result):
    out({"jsonrpc": "2.0", "id": message["id"], "result": result})


def notify(method, params):
    out({"jsonrpc": "2.0", "method": method, "params": params})


def handle(message, line):
    method, params = message.get("method"), message.get("params", {})
    meta = params.get("_meta", {})
    if method is None:
        return answer(held.pop(), {"told": message.get("result", message.get("error"))})
    if method == "notifications/cancelled":
        cancelled.append(params["requestId"])
    if method == "quiet/chat":
        for number in range(params["count"]):
            notify("notifications/resources/updated", {"uri": f"x:{number}", "pad": "p" * 1000})
    if method == "resume":
        paused = held.pop()
        notify("notifications/progress", {"progressToken": paused["params"]["_meta"]["progressToken"], "progress": 2})
        answer(paused, {"done": True})
    if "id" not in message:
        return
    if method == "initialize":
        answer(message, {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "echo":
        answer(message, {"line": line.rstrip("\n")})
    elif method == "work":
        for step in (1, 2):
            notify("notifications/progress", {"progressToken": meta["progressToken"], "progress": step})
        answer(message, {"done": True})
    elif method == "pause":
        held.append(message)
        notify("notifications/progress", {"progressToken": meta["progressToken"], "progress": 1})
    elif method == "log":
        notify("notifications/message", {"level": "info", "data": "hello"})
        answer(message, {})
    elif method == "changed":
        notify("notifications/tools/list_changed", {})
        answer(message, {})
    elif method == "ask":
        held.append(message)
        out({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
    elif method == "hold":
        held.append(message)
    elif method == "release":
        while held:
            one = held.pop()
            answer(one, {"held": one["params"]["who"]})
        answer(message, {})
    elif method == "cancelled":
        answer(message, cancelled)
    elif method == "subscriptions/listen":
        notify("notifications/subscriptions/acknowledged", {"_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}})
    elif method == "garbage":
        sys.stdout.write("this is no JSON\n")
        answer(message, {})
    elif method == "large":
        answer(message, {"pad": "x" * params["bytes"]})
    elif method == "spaced":
        out('{ "result" : { "n" : 1.0, "n" : 1e400 } , "id" : %s }' % json.dumps(message["id"]))
    elif method == "die":
        sys.exit(3)
    else:
        out({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})


for line in sys.stdin:
    message = json.loads(line)
    if isinstance(message, list):
        for one in message:
            handle(one, line)
    else:
        handle(message, line)
