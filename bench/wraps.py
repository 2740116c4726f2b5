"""An agent with a few servers, alone and under `wrap`: when it starts, and when all is over after it."""

import json
import subprocess
import time

SERVERS = 3

# Prints when it runs and when it ends; in between it starts its servers, calls each, and leaves them.
AGENT = """
import json, os, subprocess, sys, time
begin = time.monotonic_ns()
config = json.load(open(os.path.expanduser("~/.claude.json")))
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}}
servers = []
for entry in config["mcpServers"].values():
    server = subprocess.Popen([entry["command"], *entry["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdin.write(json.dumps(call).encode() + b"\\n")
    server.stdin.flush()
    servers.append(server)
for server in servers:
    assert b"result" in server.stdout.readline()
print(json.dumps({"begin_ns": begin, "end_ns": time.monotonic_ns()}), flush=True)
os._exit(0)
"""


def commands(tapegate, folder, echo):
    """The agent alone and under `wrap`, as {subject: command}."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    servers = {f"s{n}": {"command": echo, "args": []} for n in range(SERVERS)}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": servers}, indent=2))
    (folder / "agent.py").write_text(AGENT)
    variables = ["env", f"HOME={home}", f"TAPEGATE_HOME={folder / 'state'}"]
    agent = ["python3", "-S", str(folder / "agent.py")]
    wrap = [str(tapegate), "wrap", "--agent-type", "claude-code", "--"]
    return {"direct": [*variables, *agent]} | ({"wrap": [*variables, *wrap, *agent]} if tapegate else {})


def measure(command, log, folder):
    """How long until the agent runs, and until everything is over after it."""
    begin = time.monotonic_ns()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=folder, timeout=60)
    end = time.monotonic_ns()
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}")
    agent = json.loads(done.stdout)
    return {"start_ms": (agent["begin_ns"] - begin) / 1e6, "gone_ms": (end - agent["end_ns"]) / 1e6}
