"""A scripted agent for tests: each argument is a step, executed in order.

It reads client configs in JSON, starts the servers in them as a client does, and calls a tool of each.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time

# A signal that dumps core must not leave a file in the project, whatever the machine's limit is.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

servers = {}
# The config that replaces all others, if one is given as Claude Code takes it.
only_config = None
environment = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}


def entries(path, keys):
    node = json.load(open(only_config or os.path.expanduser(path)))
    for key in keys.split("/"):
        node = node.get(key, {})
    return node


def start(path, keys):
    """Starts the servers below these keys that are not disabled; a later one of the same name wins."""
    for name, entry in entries(path, keys).items():
        if entry.get("disabled") or entry.get("enabled") is False:
            continue
        argv = [entry["command"], *entry.get("args", [])]
        errors = open(os.path.join(os.environ["RUN_OF_TEST"], f"stderr-{name}"), "ab")
        servers[name] = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            env=environment | entry.get("env", {}),
        )


def call(name, tool):
    server = servers[name]
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
    server.stdin.write((json.dumps(message) + "\n").encode())
    server.stdin.flush()
    return server.stdout.readline().decode().strip()


def say(text):
    # Without a buffer: a signal handler may say something while the step before it still does.
    os.write(1, f"{text}\n".encode())


def step(verb, rest):
    if verb == "start":
        start(*rest.rsplit("#", 1))
    elif verb == "call":  # calls a tool of every server
        for name in sorted(servers):
            say(f"{name} {call(name, rest or 'x')}")
    elif verb == "send":  # calls a tool of every server without waiting
        for name in sorted(servers):
            threading.Thread(target=call, args=(name, rest), daemon=True).start()
    elif verb == "show":
        say(f"{rest}={os.environ.get(rest)}")
    elif verb == "cat":
        say(open(os.path.expanduser(rest) if rest else only_config).read())
    elif verb == "say":
        say(rest)
    elif verb == "replace":  # saves as editors do: a new file under the old name
        path, old, new = rest.split("|")
        text = open(path).read()
        assert old in text, f"{old} is not in {text}"
        with open(path + ".new", "w") as file:
            file.write(text.replace(old, new))
        os.rename(path + ".new", path)
    elif verb == "grow":  # another server in the config, which is written in place
        path, name = rest.split("|")
        config = json.load(open(path))
        config["mcpServers"][name] = {"command": "added"}
        json.dump(config, open(path, "w"), indent=2)
    elif verb == "remove":
        os.remove(rest)
    elif verb == "pipe":  # a named pipe in the place of a file
        os.remove(rest)
        os.mkfifo(rest)
    elif verb == "touch":
        open(rest, "w").close()
    elif verb == "ignore":
        signal.signal(getattr(signal, rest), signal.SIG_IGN)
    elif verb == "report":  # says when a signal comes
        signal.signal(getattr(signal, rest), lambda *_: say(f"got {rest}"))
    elif verb == "raise":
        os.kill(os.getpid(), getattr(signal, rest))
    elif verb == "size":
        size = os.get_terminal_size(0)
        say(f"{size.columns}x{size.lines}")
    elif verb == "line":  # waits for a line
        say(f"read {sys.stdin.readline().strip()}")
    elif verb == "linger":  # until a signal ends it
        while True:
            # `pause` would never return from a signal that came just before it.
            time.sleep(0.1)
    elif verb == "close":
        for server in servers.values():
            server.stdin.close()
        for server in servers.values():
            server.wait()
    elif verb == "stop":  # stops every server that it has just started, as far as that has come
        for server in servers.values():
            os.kill(server.pid, signal.SIGSTOP)
    elif verb == "leave":  # a process that outlives the agent and keeps the input of its servers open
        inputs = [server.stdin.fileno() for server in servers.values()]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.Popen(["sleep", "1000"], pass_fds=inputs, start_new_session=True, **streams)
    elif verb == "exit":
        os._exit(int(rest))
    else:
        sys.exit(f"no such step: {verb}")


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["--mcp-config"]:
        only_config = words[1]
        assert words[2] == "--strict-mcp-config"
        words = words[3:]
    for word in words:
        step(*word.split("=", 1) if "=" in word else (word, ""))
