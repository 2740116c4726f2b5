"""From a person's decision to the call at the server, for each way to decide.

    python3 bench/approvals.py target/dist/tapegate [CALLS] [--only WAY]

A hub, a shim and a server are started for each. A decision is timed from just before it is sent or typed, or for a
notification from when the bus delivers the press of its button (dbus-monitor), to when the server has read the call.
Needs what `scripts/peers` installs. Prints a table for docs/performance.md; with --only, the figures as JSON.
"""

import argparse, fcntl, hashlib, hmac, http.server, json, os, pathlib, pty, re, socketserver, statistics, struct
import subprocess, sys, tempfile, termios, threading, time, urllib.parse, urllib.request

SERVER = """
import json, sys, time
for line in sys.stdin:
    at = time.time()
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {"at": at}}), flush=True)
"""
POLICY = """schema: 1
governance: { defaults: { action: approve } }
approval: { default: { timeout: 10m, channels: [CHANNELS], in_agent: [bench] } }
"""
SECRET = "bench-secret-1"
# At most, for a local way to decide.
TARGET_MS = 20
# Slack limits how fast messages are sent, so fewer calls are made.
SLACK_CALLS = 20


class Receiver:
    """A local server that takes what channels send: webhooks, ntfy pushes, and Slack's Web API."""

    def __init__(self):
        self.seen = []
        self.more = threading.Condition()
        # The message that people have reacted to.
        self.approved = None
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with outer.more:
                    outer.seen.append(body)
                    count = len(outer.seen)
                    outer.more.notify_all()
                self.answer({"ok": True, "id": "n", "channel": "C1", "ts": f"1774016531.{count:06}"})

            def do_GET(self):
                reaction = {"name": "+1", "users": ["U1"], "count": 1}
                shown = [{"type": "message", "ts": outer.approved, "reactions": [reaction]}] if outer.approved else []
                self.answer({"ok": True, "messages": shown})

            def answer(self, value):
                text = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def clear(self):
        time.sleep(0.05)

    def wait(self, holds):
        """The newest message for which this holds, and its number."""
        with self.more:
            found = lambda: next(((at, one) for at, one in reversed(list(enumerate(self.seen, 1))) if holds(one)), None)
            self.more.wait_for(lambda: found() is not None, timeout=60)
            return found()


class Desktop:
    """A session bus, a screen, dunst, and a monitor that tells when presses pass the bus."""

    def __init__(self, folder):
        self.folder, self.children = folder, []
        (folder / "bus.conf").write_text(
            f"<busconfig><type>session</type><listen>unix:path={folder}/bus</listen><auth>EXTERNAL</auth>"
            '<policy context="default"><allow send_destination="*"/><allow own="*"/><allow eavesdrop="true"/></policy></busconfig>'
        )
        rule = "[global]\n[tapegate]\n appname = Tapegate\n action_name = approve\n"
        (folder / "dunstrc").write_text(rule)
        screen = self.start(["Xvfb", "-displayfd", "1", "-screen", "0", "800x600x8", "-nolisten", "tcp"])
        display = ":" + screen.stdout.readline().strip()
        self.start(["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--print-address=1"]).stdout.readline()
        self.variables = {"DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": f"unix:path={folder}/bus"}
        self.start(["dunst", "-config", str(folder / "dunstrc")])
        rule = "type='signal',interface='org.freedesktop.Notifications',member='ActionInvoked'"
        self.monitor = self.start(["stdbuf", "-oL", "dbus-monitor", "--session", rule])
        while self.control("count", "displayed") is None:
            time.sleep(0.05)

    def start(self, command):
        environment = os.environ | getattr(self, "variables", {})
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment)
        self.children.append(child)
        return child

    def control(self, *words):
        done = subprocess.run(["dunstctl", *words], capture_output=True, text=True, env=os.environ | self.variables)
        return done.stdout.strip() if done.returncode == 0 else None

    def press(self):
        """Presses the button of the newest notification; returns when the bus delivered that."""
        while self.control("count", "displayed") == "0":
            time.sleep(0.01)
        self.control("action", "0")
        for line in self.monitor.stdout:
            if "member=ActionInvoked" in line:
                return float(re.search(r"time=([\d.]+)", line)[1])

    def clear(self):
        """Closes the notification of the outcome, so that the next one is the newest."""
        time.sleep(0.3)
        self.control("close-all")

    def stop(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait()


class Session:
    """A hub, a shim that has joined it, and a client; or a shim alone."""

    def __init__(self, binary, folder, channel, variables, has_hub=True):
        self.folder, self.binary, self.children = folder, binary, []
        self.state = state = folder / "state"
        self.environment = os.environ | variables | {"TAPEGATE_HOME": str(state), "XDG_CONFIG_HOME": str(folder), "SECRET": SECRET}
        policy = POLICY.replace("CHANNELS", "c" if channel else "")
        (folder / "tapegate.yaml").write_text(policy + (f"channels: {{ c: {channel} }}\n" if channel else ""))
        (folder / "server.py").write_text(SERVER)
        key = self.key(state)
        self.flags = flags = ["--non-interactive", "--key-file", str(key)]
        accepted = subprocess.run([binary, "policy", "accept", *flags], env=self.environment, cwd=folder, capture_output=True, text=True)
        if accepted.returncode:
            sys.exit(accepted.stderr)
        joined = []
        if has_hub:
            self.hub(state, flags)
            self.url = (state / "hub" / "endpoint").read_text().strip()
            self.token = next(state.glob("private/*/hub-approver-token")).read_text().strip()
            joined = ["--governance-endpoint", self.url]
        else:
            (state / "hub" / "endpoint").unlink(missing_ok=True)
        shim = [binary, "shim", *joined, "--server-id", "s", "--", sys.executable, "server.py"]
        self.shim = self.start(shim, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def key(self, state):
        """A copy of the project's key, which the first hub makes."""
        first = self.hub(state, [])
        first.terminate()
        first.wait()
        copy = self.folder / "key"
        copy.touch(mode=0o600)
        copy.write_bytes(next(state.glob("private/*/key")).read_bytes())
        return copy

    def hub(self, state, flags):
        (state / "hub" / "endpoint").unlink(missing_ok=True)
        hub = self.start([self.binary, "hub", "--port", "0", "--state", str(state), *flags])
        while not (state / "hub" / "endpoint").exists() or not (state / "hub" / "endpoint").read_text().strip():
            if hub.poll() is not None:
                sys.exit("the hub did not start")
            time.sleep(0.01)
        return hub

    def start(self, command, **more):
        child = subprocess.Popen(command, env=self.environment, cwd=self.folder, text=True, stderr=subprocess.DEVNULL, **more)
        self.children.append(child)
        return child

    def send(self, message):
        self.shim.stdin.write(json.dumps(message) + "\n")
        self.shim.stdin.flush()

    def call(self, number, more={}):
        params = {"name": f"tool_{number}", "arguments": {"number": number}} | more
        self.send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

    def receive(self, holds):
        """The next message for which this holds."""
        for line in self.shim.stdout:
            message = json.loads(line)
            if holds(message):
                return message
        sys.exit("the shim has ended")

    def arrived(self, number):
        """When the server has read the call."""
        return self.receive(lambda one: one.get("id") == number and "at" in one.get("result", {}))["result"]["at"]

    def requested(self, tool):
        """The id of the request about a tool."""
        while True:
            for path in self.state.glob("private/*/approvals/ap_*.request.json"):
                try:
                    if json.loads(path.read_text())["tool"] == tool:
                        return path.name.split(".")[0]
                except (OSError, ValueError):
                    pass
            time.sleep(0.005)

    def post(self, path, body=b"", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, headers=headers, method="POST")
        at = time.time()
        urllib.request.urlopen(request).read()
        return at

    def stop(self):
        for child in reversed(self.children):
            child.terminate()
            child.wait()


class Watch:
    """`approvals watch` at a terminal of its own."""

    def __init__(self, session):
        command = [session.binary, "approvals", "watch", "--state", str(session.state), "--by", "ann"]
        agents = ("CLAUDE", "CODEX", "CURSOR", "AI_AGENT", "AGENT", "GEMINI", "OPENCODE")
        environment = {name: value for name, value in session.environment.items() if not name.startswith(agents)}
        self.screen = ""
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(session.folder)
            os.execve(command[0], command, environment)
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while text := os.read(self.terminal, 65536):
                self.screen += text.decode(errors="replace")
        except OSError:
            pass

    def press(self, tool):
        while f"· {tool} ─" not in self.screen:
            if "refused" in self.screen:
                sys.exit(self.screen)
            time.sleep(0.005)
        # Keys do not count before.
        time.sleep(0.6)
        at = time.time()
        os.write(self.terminal, b"y")
        return at


def by_command(session, _, tool):
    """By the command, from its start."""
    found = session.requested(tool)
    command = [session.binary, "approvals", "approve", found, "--state", str(session.state), *session.flags]
    at = time.time()
    subprocess.Popen(command, env=session.environment, cwd=session.folder, stdout=subprocess.DEVNULL)
    return at


def by_watch(session, _, tool):
    if not hasattr(session, "watch"):
        session.watch = Watch(session)
    return session.watch.press(tool)


def by_elicitation(session, _, tool):
    """As the user of a client that was asked by a request."""
    question = session.receive(lambda one: one.get("method") == "elicitation/create")
    at = time.time()
    session.send({"jsonrpc": "2.0", "id": question["id"], "result": CHOICE})
    return at


def by_input(session, _, tool):
    """As the user of a client that was asked in the result of the call."""
    number = int(tool.removeprefix("tool_"))
    asked = session.receive(lambda one: one.get("id") == number)["result"]
    more = {"requestState": asked["requestState"], "inputResponses": {"tapegate-approval": CHOICE}}
    at = time.time()
    session.call(number, MODERN | more)
    return at


def by_reaction(session, receiver, tool):
    """A reaction in Slack, which is polled."""
    count, _ = receiver.wait(lambda body: body.get("text") == f"Approval needed: s {tool}")
    at = time.time()
    receiver.approved = f"1774016531.{count:06}"
    return at


CHOICE = {"action": "accept", "content": {"decision": "approve"}}
CLIENT = {"name": "bench", "version": "1"}
OLD = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": CLIENT}
NEW = "io.modelcontextprotocol/"
META = {"protocolVersion": "2026-07-28", "clientInfo": CLIENT, "clientCapabilities": {"elicitation": {}}}
MODERN = {"_meta": {NEW + name: value for name, value in META.items()}}


def by_api(session, _, tool):
    """As a program that holds the approvers' token."""
    head = {"Authorization": f"Bearer {session.token}"}
    while True:
        listed = json.loads(urllib.request.urlopen(urllib.request.Request(session.url + "/approvals", headers=head)).read())
        if found := [one["id"] for one in listed["approvals"] if one["tool"] == tool]:
            return session.post(f"/approvals/{found[0]}/approve", b'{"by":"ann"}', Content_Type="application/json", **head)
        time.sleep(0.005)


def by_webhook(session, receiver, tool):
    _, told = receiver.wait(lambda body: body.get("tool") == tool)
    return session.post(urllib.parse.urlparse(told["approve_url"]).path)


def by_ntfy(session, receiver, tool):
    _, told = receiver.wait(lambda body: body.get("title") == f"Approve s {tool}?")
    return session.post(urllib.parse.urlparse(told["actions"][0]["url"]).path)


def by_slack(session, receiver, tool):
    count, told = receiver.wait(lambda body: body.get("text") == f"Approval needed: s {tool}")
    buttons = next(block for block in told["blocks"] if block["type"] == "actions")["elements"]
    while not any((session.folder / "state").glob(f"private/*/channels/c/{buttons[0]['value']}")):
        time.sleep(0.005)
    action = {"type": "button", "action_id": buttons[0]["action_id"], "value": buttons[0]["value"]}
    message = {"channel_id": "C1", "message_ts": f"1774016531.{count:06}"}
    pressed = {"type": "block_actions", "user": {"id": "U1"}, "container": message, "actions": [action]}
    body = urllib.parse.urlencode({"payload": json.dumps(pressed)})
    now = str(int(time.time()))
    code = hmac.new(SECRET.encode(), f"v0:{now}:{body}".encode(), hashlib.sha256).hexdigest()
    kind = "application/x-www-form-urlencoded"
    return session.post("/approvals/channels/c", body.encode(), Content_Type=kind, X_Slack_Request_Timestamp=now, X_Slack_Signature=f"v0={code}")


def by_desktop(_, desktop, __):
    return desktop.press()


class Way:
    """A way to decide: who does it, through what, and what it needs."""

    def __init__(self, decide, peer=None, channel="", variables={}, hub=True, target=TARGET_MS, most=None, begin=None, more={}):
        self.decide, self.peer, self.channel, self.variables, self.hub = decide, peer, channel, variables, hub
        self.target, self.most, self.begin, self.more = target, most, begin, more

    def measure(self, binary, calls):
        """The latencies of calls that are decided one after the other, in ms."""
        with tempfile.TemporaryDirectory() as folder:
            session = Session(binary, pathlib.Path(folder), self.channel, self.variables, self.hub)
            try:
                if self.begin:
                    session.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": self.begin})
                latencies = []
                for number in range(1, min(calls, self.most or calls) + 1):
                    session.call(number, self.more)
                    at = self.decide(session, self.peer, f"tool_{number}")
                    latencies.append((session.arrived(number) - at) * 1000)
                    if self.peer:
                        self.peer.clear()
                return sorted(latencies)
            finally:
                session.stop()


def ways(receiver, desktop):
    slack = f"type: slack, url: '{receiver.url}/api', room: C1, secret_env: SECRET"
    hook = f"{{ type: webhook, url: '{receiver.url}/', secret_env: SECRET }}"
    push = f"{{ type: ntfy, url: '{receiver.url}/t', links: 'http://127.0.0.1:1' }}"
    buttons = f"{{ {slack}, signing_secret_env: SECRET }}"
    notified = "{ type: desktop, approve_button: true }"
    return {
        "API": Way(by_api),
        "terminal, command": Way(by_command),
        "terminal, watch": Way(by_watch, most=30),
        "elicitation": Way(by_elicitation, begin=OLD),
        "input_required": Way(by_input, more=MODERN),
        "no hub, command": Way(by_command, hub=False),
        "no hub, elicitation": Way(by_elicitation, begin=OLD, hub=False),
        "webhook, link": Way(by_webhook, receiver, hook),
        "ntfy, button": Way(by_ntfy, receiver, push),
        "Slack, button": Way(by_slack, receiver, buttons, most=SLACK_CALLS),
        "Slack, reaction": Way(by_reaction, receiver, f"{{ {slack} }}", target=None, most=SLACK_CALLS),
        "desktop, button": Way(by_desktop, desktop, notified, desktop and desktop.variables),
    }


WAYS = [name for name in ways(type("", (), {"url": ""}), None)]


def commands(tapegate):
    """Each way as a command that prints its figures."""
    return {name: [sys.executable, __file__, str(tapegate), "30", "--only", name] for name in WAYS} if tapegate else {}


def figures(command, log):
    """What such a command has measured."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tapegate")
    parser.add_argument("calls", nargs="?", type=int, default=100)
    parser.add_argument("--only", choices=WAYS)
    options = parser.parse_args()
    binary = str(pathlib.Path(options.tapegate).resolve())
    wanted = [options.only] if options.only else WAYS
    with tempfile.TemporaryDirectory() as folder:
        desktop = Desktop(pathlib.Path(folder)) if "desktop, button" in wanted else None
        try:
            if not options.only:
                print("|  | p50 ms | p99 ms | at most 20 ms |\n| --- | ---: | ---: | --- |")
            for name in wanted:
                way = ways(Receiver(), desktop)[name]
                found = way.measure(binary, options.calls)
                p50, p99 = statistics.median(found), found[min(len(found) - 1, len(found) * 99 // 100)]
                if options.only:
                    print(json.dumps({"p50_ms": p50, "p99_ms": p99}))
                    return
                met = "pass" if way.target and p99 <= way.target else "p50 only" if way.target and p50 <= way.target else "miss"
                met = met if way.target else "–"
                print(f"| {name} | {p50:.1f} | {p99:.1f} | {met} |", flush=True)
        finally:
            if desktop:
                desktop.stop()


if __name__ == "__main__":
    main()
