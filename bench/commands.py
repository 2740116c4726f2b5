"""Shell commands one after the other, by bash itself and through `tapegate bash`: on its own, under a policy, and over
HTTP; and what the commands for recordings take over a large store."""

import http.client
import json
import os
import subprocess
import time

# Commands of one measurement, and entries of the store.
COMMANDS = 200
ENTRIES = 100_000
SESSIONS = 200
# It reads every command line, and forwards those that are measured.
POLICY = """schema: 1
sources: [{id: bash, kind: mcp}]
governance:
  defaults: {action: approve}
  rules:
    - {match: bash_recorder.execute, action: deny, command: {run: "rm *"}}
    - {match: bash_recorder.execute, action: forward, command: {class: read-only}}
"""
LINES = ["git status", "cargo test -q", "ls -la src", "cat README.md", "npm run build"]


def store(folder):
    """Recordings as a project has them after some weeks, written once."""
    sessions = folder / "store" / ".cuff" / "recordings" / "sessions"
    if sessions.exists():
        return folder / "store"
    sessions.mkdir(parents=True)
    each = ENTRIES // SESSIONS
    for session in range(SESSIONS):
        day = time.strftime("%Y%m%d", time.gmtime(time.time() - session * 3600))
        name = f"{day}_{session % 24:02}0000_{session:08x}-0000"
        with open(sessions / f"{name}.jsonl", "w") as file:
            for number in range(1, each + 1):
                file.write(json.dumps(entry(name, day, number)) + "\n")
    return folder / "store"


def entry(session, day, number):
    stamp = f"{day[:4]}-{day[4:6]}-{day[6:]}T{session[9:11]}:{number // 60 % 60:02}:{number % 60:02}.000000Z"
    return {
        "entry_id": f"e_{day}_000000_{number:03}", "session_id": session, "sequence_number": number, "timestamp": stamp,
        "duration_ms": number % 900, "command": LINES[number % len(LINES)], "description": None, "working_directory": "/w",
        "shell": "/bin/bash", "timeout_seconds": 120, "timed_out": False, "exit_code": number % 20 == 0 and 1 or 0,
        "stdout": "x" * 400, "stderr": "", "output_truncated": False, "output_truncated_bytes": None, "environment": None,
        "agent_id": None, "conversation_id": None, "tool_call_id": None, "opencuff_version": "1", "plugin_version": "1.0.0",
    }


def subjects(tapegate, folder, probe):
    """What is measured, as {subject: command}."""
    if not tapegate:
        return {} if probe == "recordings" else {"direct": ["/bin/bash", "-c", "true"]}
    if probe == "recordings":
        export = ["export", "all", "--format", "json"]
        reports = {"list": ["list"], "stats": ["stats"], "generate": ["generate"], "export json": export}
        return {name: [str(tapegate), "sessions", *words] for name, words in reports.items()}
    bash = [str(tapegate), "bash"]
    return {
        "direct": ["/bin/bash", "-c", "true"],
        "bash": [*bash, "--no-policy"],
        "bash, HTTP": [*bash, "--no-policy", "--http", "127.0.0.1:0"],
        "bash, policy": [*bash, "--policy", "commands.yml"],
        "bash, policy, HTTP": [*bash, "--policy", "commands.yml", "--http", "127.0.0.1:0"],
    }


def measure(probe, name, command, log, folder):
    if probe == "recordings":
        return measure_report(command, log, store(folder))
    ways = {"direct": direct_times, "bash, HTTP": http_times, "bash, policy, HTTP": http_times}
    times = sorted(ways.get(name, server_times)(command, log, folder))
    return {"p50_ms": times[len(times) // 2] / 1e6, "p99_ms": times[len(times) * 99 // 100] / 1e6}


def direct_times(command, log, _):
    for _ in range(COMMANDS):
        begin = time.monotonic_ns()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, check=True)
        yield time.monotonic_ns() - begin


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
CALL = {"name": "bash_recorder.execute", "arguments": {"command": "true"}}


def place(folder):
    """The folder of the server, which is also the home of its user."""
    place = folder / "commands"
    place.mkdir(exist_ok=True)
    (place / "commands.yml").write_text(POLICY)
    return {"cwd": place, "env": os.environ | {"HOME": str(place)}}


def server_times(command, log, folder):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, **place(folder))
    ask(server, 0, "initialize", HELLO)
    for number in range(1, COMMANDS + 1):
        begin = time.monotonic_ns()
        answer = ask(server, number, "tools/call", CALL)
        yield time.monotonic_ns() - begin
        check(answer)
    server.stdin.close()
    server.wait(timeout=30)


def http_times(command, log, folder):
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.PIPE, text=True, **place(folder))
    url = next(line.split("listening on http://")[1] for line in server.stderr if "listening on http://" in line)
    link = http.client.HTTPConnection(url.split("/")[0])
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def post(number, method, params):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        link.request("POST", "/mcp", json.dumps(message), headers)
        reply = link.getresponse()
        headers.setdefault("Mcp-Session-Id", reply.getheader("Mcp-Session-Id", ""))
        lines = (line.removeprefix("data: ") for line in reply.read().decode().splitlines())
        return next(answer for answer in (json.loads(line) for line in lines if line.startswith("{")) if answer.get("id") == number)

    try:
        post(0, "initialize", HELLO)
        for number in range(1, COMMANDS + 1):
            begin = time.monotonic_ns()
            answer = post(number, "tools/call", CALL)
            yield time.monotonic_ns() - begin
            check(answer)
    finally:
        link.close()
        server.terminate()
        server.stderr.close()
        server.wait(timeout=30)


def check(answer):
    if answer["result"]["structuredContent"]["recording_id"] is None:
        raise RuntimeError("a command was not recorded")


def ask(server, number, method, params):
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()
    while True:
        answer = json.loads(server.stdout.readline())
        if answer.get("id") == number:
            return answer


def measure_report(command, log, folder):
    """How long a report takes, with the index that it may have made itself. Each run has a fresh process."""
    begin = time.monotonic_ns()
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, cwd=folder, check=True)
    end = time.monotonic_ns()
    return {"ms": (end - begin) / 1e6}
