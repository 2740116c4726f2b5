"""attack-server.mjs on FastMCP: keeps every tool that ran, one name a line, and the arguments of `write`.

attack-server.py LOG http | sse        (on loopback)
"""

import json
import socket
import sys

import uvicorn
from mcp.server.fastmcp import FastMCP

log, mode = sys.argv[1:]
mcp = FastMCP("attack-server", stateless_http=True)


def ran(name: str) -> str:
    with open(log, "a", encoding="utf-8") as file:
        file.write(f"{name}\n")
    return f"ran {name}"


@mcp.tool()
def safe() -> str:
    return ran("safe")


@mcp.tool()
def danger() -> str:
    return ran("danger")


@mcp.tool()
def write(path: str = "", force: bool = False, amount: int = 0) -> str:
    ran(f"write {json.dumps({'path': path, 'force': force, 'amount': amount})}")
    return "ran write"


app = mcp.streamable_http_app() if mode == "http" else mcp.sse_app()
listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
