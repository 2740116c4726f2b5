"""Other MCP proxies, recorders and players, installed into .tools/ and compared in the same run.

A peer that does not install, or does not answer, is left out of the tables and named below them.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = Path(".tools/bench")

# name: (pip requirements, program). Starlette 1.0 took away what mcp-recorder calls.
PYTHON = {
    "mcp-rec": (["mcp-rec"], "mcp-rec"),
    "mcp-snoop": (["mcp-snoop"], "mcp-snoop"),
    "mcp-firewall": (["mcp-firewall"], "mcp-firewall"),
    "fastmcp": (["fastmcp"], "fastmcp"),
    "mcp-proxy": (["mcp-proxy"], "mcp-proxy"),
    "mcp-recorder": (["mcp-recorder", "starlette<1"], "mcp-recorder"),
    "agent-vcr": (["agent-vcr"], "agent-vcr"),
}

# Looked for, what for, and why they are not here.
ABSENT = {
    "mcpsnoop": ("record, replay", "a Go program that no package registry used here carries"),
    "mcp-reticle": ("record", "its wheel needs a newer C library than this machine's"),
    "mcp-debug": ("record, replay", "its wheel only downloads a binary from elsewhere"),
    "mcp-sniffer": ("record", "installs, but answers no call"),
    "mcpwall": ("record", "not in the npm registry"),
    "mcp-cassette": ("replay", "needs a newer Python than this machine's"),
    "mcp-flight-recorder": ("replay", "plays the client's side only"),
    "mcp-replay": ("replay", "not in the npm registry"),
    "mockmcp": ("replay", "a .NET program that no package registry used here carries"),
}


def run(*argv, **options):
    return subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)


def version(python, package):
    asked = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", asked], capture_output=True, text=True).stdout.strip()


def install_python(name):
    requirements, program = PYTHON[name]
    home = TOOLS / name
    if not (home / "installed").exists():
        run(sys.executable, "-m", "venv", str(home))
        run(str(home / "bin/pip"), "install", "--quiet", *requirements)
        (home / "installed").write_text(version(str(home / "bin/python"), name))
    return str((home / "bin" / program).absolute()), (home / "installed").read_text()


def install_socat():
    if not shutil.which("socat"):
        run("apt-get", "install", "--yes", "socat")
    said = subprocess.run(["socat", "-V"], capture_output=True, text=True).stdout
    return shutil.which("socat"), next((w[2] for w in map(str.split, said.splitlines()) if w[:2] == ["socat", "version"]), "?")


def install():
    """Installs what is missing. Gives {name: (program, version)} and {name: why it is absent}."""
    TOOLS.mkdir(parents=True, exist_ok=True)
    found, absent = {}, dict(ABSENT)
    for name in ["socat", *PYTHON]:
        try:
            found[name] = install_socat() if name == "socat" else install_python(name)
        except (OSError, subprocess.CalledProcessError) as error:
            absent[name] = ("record, replay", "does not install")
            print(f"bench: {name}: {getattr(error, 'stderr', None) or error}", file=sys.stderr)
    return found, absent


def stdio_commands(found, echo, scratch):
    """{name: command} of the peers that stand between a stdio client and a stdio server."""
    proxy = scratch / "fastmcp.json"
    proxy.write_text(json.dumps({"mcpServers": {"echo": {"command": echo[0], "args": echo[1:]}}}))
    firewall = scratch / "mcp-firewall.yaml"
    firewall.write_text("version: 1\ndefaultAction: allow\nglobalRateLimit: {maxCalls: 1000000000, windowSeconds: 60}\n")
    forms = {
        "socat": lambda p: [p, "STDIO", "EXEC:" + " ".join(echo)],
        "mcp-rec": lambda p: [p, "record", "-o", str(scratch / "peer-tape.jsonl"), "--", *echo],
        "mcp-snoop": lambda p: [p, "--no-color", "-o", str(scratch / "peer-tape.log"), "--", *echo],
        "mcp-firewall": lambda p: [p, "wrap", "--config", str(firewall), "--", *echo],
        "fastmcp": lambda p: [p, "run", str(proxy), "--no-banner", "--log-level", "ERROR"],
    }
    return {name: form(found[name][0]) for name, form in forms.items() if name in found}


def http_commands(found, upstream_port, port, scratch):
    """{name: command} of the peers that stand between an HTTP client and an HTTP server, on `port`."""
    forms = {
        "mcp-recorder": lambda p: [p, "record", "--target", f"http://127.0.0.1:{upstream_port}", "--port", str(port),
                                   "--output", str(scratch / "peer-tape.json")],
    }
    return {name: form(found[name][0]) for name, form in forms.items() if name in found}


def replay_commands(found, shelf, tape, match):
    """{name: command} of the peers that play a tape on stdio."""
    strategy = {"sequential": "sequential", "by-request": "method_and_params", "fuzzy": "subset"}[match]
    forms = {
        "mcp-rec": lambda p: [p, "replay", shelf.tape(tape, "mcp-rec")],
        "agent-vcr": lambda p: [p, "replay", "--file", shelf.tape(tape, "agent-vcr"), "--transport", "stdio",
                                "--match-strategy", strategy],
    }
    return {name: form(found[name][0]) for name, form in forms.items() if name in found}


def replay_http_commands(found, shelf, tape, port):
    """{name: command} of the peers that play a tape over HTTP, on `port`."""
    forms = {"mcp-recorder": lambda p: [p, "replay", "--cassette", shelf.tape(tape, "mcp-recorder"), "--port", str(port)]}
    return {name: form(found[name][0]) for name, form in forms.items() if name in found}


def bridge_commands(found, upstream_port):
    """{name: command} of the peers that give an HTTP server to a stdio client."""
    url = f"http://127.0.0.1:{upstream_port}/mcp"
    forms = {"mcp-proxy": lambda p: [p, "--log-level", "ERROR", "--transport", "streamablehttp", url]}
    return {name: form(found[name][0]) for name, form in forms.items() if name in found}
