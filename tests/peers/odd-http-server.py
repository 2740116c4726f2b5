"""An MCP server on HTTP for the tape tests: an `initialize` with an `x` opens a session of that name."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        body = b""
        if "id" in message:
            body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}, indent=2).encode()
        self.send_response(200 if body else 202)
        if "x" in message.get("params", {}):
            self.send_header("mcp-session-id", message["params"]["x"])
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listening on http://127.0.0.1:{server.server_port}/mcp", file=sys.stderr, flush=True)
server.serve_forever()
