"""An MCP server for the tape tests: it answers, and does whatever odd thing its client asks for."""

import json
import sys


def say(text):
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()


def answer(request, result=b"{}"):
    say(b'{"jsonrpc":"2.0","id":%s,"result":%s}\n' % (json.dumps(request["id"]).encode(), result))


def odd_bytes(request):
    say(b"\xff\xfe\x00\n\n42\n")
    say(b'{"jsonrpc":"2.0", "id" : %d,"result":{ "n":1e309 , "n":18446744073709551616}}\r\n' % request["id"])


def progress(request):
    say(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}\n')
    answer(request)


def ask(request):
    say(b'{"jsonrpc":"2.0","id":1,"method":"roots/list"}\n')
    json.loads(sys.stdin.buffer.readline())
    answer(request)


def leave(request):
    say(b'{"jsonrpc":"2.0","id":%d,"resu' % request["id"])
    sys.exit(0)


ODD = {
    "test/bytes": odd_bytes,
    "test/progress": progress,
    "test/ask": ask,
    "test/big": lambda request: answer(request, b'{"text":"%s"}' % (b"a" * 6000)),
    "test/leave": leave,
}


def main():
    for line in sys.stdin.buffer:
        try:
            message = json.loads(line)
        except ValueError:
            say(b"what?\n")
            continue
        if isinstance(message, list):
            asked = [one for one in message if isinstance(one, dict) and "id" in one]
            say(json.dumps([{"jsonrpc": "2.0", "id": one["id"], "result": {}} for one in asked]).encode() + b"\n")
        elif "method" in message and "id" in message:
            ODD.get(message["method"], answer)(message)


main()
