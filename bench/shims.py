"""The policies that calls are governed by. Each is written when it is first wanted, and gone with the bench's folder."""

import json

RULES = """schema: 1
sources:
  - id: bench
    kind: mcp
    expose: { mode: blocklist, tools: ["admin_*", "secret_*"] }
governance:
  defaults: { action: deny }
  rules:
    - { match: "delete_*", action: deny }
    - { match: "write_*", action: approve }
    - { match: "fetch", action: forward, arguments: { $.url: "https://example.org/*" } }
    - { match: "echo", action: ACTION }
approval:
  people: { destination: { type: cli }, timeout: 5m }
"""

CEDAR = """permit (principal, action == Action::"tools/call", resource)
when { resource.name == "echo" };

forbid (principal, action == Action::"tools/call", resource)
when { resource.server == "elsewhere" };
"""


def policy(folder, name):
    """The path of a policy that lets every call of the load generators pass, after having looked at it."""
    path = folder / f"{name}-policy.yaml"
    if not path.exists():
        text = RULES
        if name == "cedar":
            (folder / "bench.cedar").write_text(CEDAR)
            text += "cedar: { policies: [bench.cedar] }\n"
        path.write_text(text.replace("ACTION", "policy, policy_id: bench" if name == "cedar" else "forward"))
    return str(path)


def commands(tapegate, folder, server):
    """What stands on the wire, as {subject: command}. All of them record, and log every decision."""
    alone = ["env", f"TAPEGATE_HOME={folder / 'state'}", str(tapegate), "shim", "--server-id", "bench"]
    governed = {name: [*alone, "--config", policy(folder, name), *server] for name in ("rules", "cedar")}
    return {"observe": [*alone, *server], "shim": governed["rules"], "shim+cedar": governed["cedar"]}


def hubs(tapegate, folder):
    """Services that are asked what they would decide."""
    places = ["--state", str(folder / "state"), "--token-file", str(folder / "hub-token")]
    hub = lambda name: [str(tapegate), "hub", *places, "--config", policy(folder, name)]
    return {"hub": hub("rules"), "hub+cedar": hub("cedar")}


def evaluation(folder):
    """What is posted, and what the answer must say."""
    body = folder / "evaluation.json"
    params = {"name": "echo", "arguments": {"text": "x" * 16}}
    asked = {"server_id": "bench", "direction": "agent_to_server", "method": "tools/call", "id": 1, "params": params}
    body.write_text(json.dumps(asked | {"message_type": "request", "profile": "production"}))
    token = folder / "hub-token"
    return ["--path", "/governance/evaluate", "--body", str(body), "--token", str(token), "--expect", '"forward"']
