"""The questions that are put to every subject. A later command adds a row, not code."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Probe:
    """One question. `core` keeps every process on one core, so that no idle core has to be woken."""

    name: str
    part: str  # record, replay, serve, shim, approvals, wrap or bash
    wire: str  # stdio, bridge (stdio client, HTTP server), http, or agent (with servers of its own)
    args: tuple
    quick: dict = field(default_factory=dict)
    hold: int = 0  # the server answers only when this many calls have come
    core: bool = False
    heavy: bool = False  # not for subjects below some thousand calls a second
    tape_mb: int = 0  # what a recorder writes, if it is much
    tape: str = ""  # what is played
    match: str = ""  # how calls are found on it
    scenario: str = ""  # what is served
    rounds: int = 0  # in how many rounds it is put, if not in all


FIELDS = ("hold", "core", "heavy", "tape_mb", "tape", "match", "scenario", "rounds")


def probe(name, part, wire, mode, quick, options):
    extra = {k: options.pop(k) for k in FIELDS if k in options}
    args = mode + [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    return Probe(name, part, wire, tuple(args), quick or {}, **extra)


def stdio(name, mode, quick=None, wire="stdio", **options):
    return probe(name, "record", wire, [mode], quick, options)


def http(name, quick=None, **options):
    return probe(name, "record", "http", [], quick, options)


def replay(name, mode, quick=None, **options):
    return probe(name, "replay", "stdio", [mode], quick, {"tape": "calls", "match": "sequential"} | options)


def replay_http(name, quick=None, **options):
    asked = {"numbered": 1, "sessions": 1, "tape": "calls", "match": "by-request"}
    return probe(name, "replay", "http", [], quick, asked | options)


def serve(name, mode, quick=None, **options):
    return probe(name, "serve", "stdio", [mode], quick, {"scenario": "fixed"} | options)


def serve_http(name, quick=None, **options):
    return probe(name, "serve", "http", [], quick, {"sessions": 1, "scenario": "fixed"} | options)


def shim(name, mode, quick=None, **options):
    return probe(name, "shim", "stdio", [mode], quick, options)


def shim_http(name, quick=None, **options):
    return probe(name, "shim", "http", [], quick, options)


def once(name, part="shim", **options):
    """Something that is run to its end and timed by itself."""
    return probe(name, part, "once", [], {}, options)


PROBES = [
    stdio("latency", "latency", count=20000, seconds_max=3, core=True, quick={"--count": 5000}),
    stdio("latency_free", "latency", count=20000, seconds_max=3, quick={"--count": 5000}),
    stdio("small", "flood", count=200000, window=1024, seconds_max=4),
    stdio("large", "flood", count=300, window=4, text=1_000_000, seconds_max=4, tape_mb=800, quick={"--count": 200}),
    stdio("flood", "flood", count=200000, window=200000, stall=10, heavy=True),
    stdio("burst", "flood", count=50000, window=50000, stall=10, hold=50000, heavy=True),
    stdio("memory", "memory", count=5, text=9_990_000, stall=20),
    stdio("start", "start", count=20, seconds_max=4, stall=20),
    stdio("bridge_latency", "latency", wire="bridge", count=20000, seconds_max=3, core=True, quick={"--count": 5000}),
    stdio("bridge_small", "flood", wire="bridge", count=20000, window=64, seconds_max=4),
    http("http_latency", count=20000, seconds_max=3, core=True, quick={"--count": 5000}),
    http("http_latency_free", count=20000, seconds_max=3, quick={"--count": 5000}),
    http("http_many", count=50000, connections=16, seconds_max=3, quick={"--count": 10000}),
    http("http_large", count=300, text=1_000_000, seconds_max=3, tape_mb=800, quick={"--count": 200}),
    replay("replay_order", "flood", count=200000, window=1024, seconds_max=4, stall=30, numbered=1),
    replay("replay_shuffled", "flood", count=200000, window=1024, seconds_max=4, stall=30, numbered=1, shuffled=1, match="by-request"),
    replay("replay_fuzzy", "flood", count=200000, window=1024, seconds_max=4, stall=30, numbered=1, shuffled=1, match="fuzzy"),
    replay("replay_latency", "latency", count=20000, seconds_max=3, stall=30, numbered=1, core=True, quick={"--count": 5000}),
    replay("replay_ready", "start", count=10, seconds_max=3, stall=30, tape="ready"),
    replay("replay_empty", "start", count=10, seconds_max=3, stall=30, tape="empty"),
    replay("load_small", "start", count=1, stall=60, tape="small", rounds=3),
    replay("load_large", "start", count=1, stall=60, tape="large", rounds=3),
    replay_http("replay_http_1", count=50000, connections=1, seconds_max=3, quick={"--count": 10000}),
    replay_http("replay_http_8", count=100000, connections=8, seconds_max=3, quick={"--count": 10000}),
    serve("serve_fixed", "flood", count=200000, window=1024, seconds_max=4),
    serve("serve_template", "flood", count=200000, window=1024, seconds_max=4, numbered=1, scenario="template"),
    serve("serve_many", "flood", count=200000, window=1024, seconds_max=4, scenario="many"),
    serve("serve_latency", "latency", count=20000, seconds_max=3, core=True, quick={"--count": 5000}),
    serve("serve_start", "start", count=10, seconds_max=3),
    serve("serve_start_many", "start", count=10, seconds_max=3, scenario="many"),
    serve_http("serve_http_1", count=50000, connections=1, seconds_max=3, quick={"--count": 10000}),
    serve_http("serve_http_8", count=100000, connections=8, seconds_max=3, quick={"--count": 10000}),
    shim("shim_latency", "latency", count=20000, seconds_max=3, core=True, quick={"--count": 5000}),
    shim("shim_latency_free", "latency", count=20000, seconds_max=3, quick={"--count": 5000}),
    shim("shim_small", "flood", count=200000, window=1024, seconds_max=4),
    shim("shim_some", "flood", count=200000, window=128, seconds_max=4),
    shim("shim_large", "flood", count=300, window=4, text=1_000_000, seconds_max=4, tape_mb=800, quick={"--count": 200}),
    shim("shim_flood", "flood", count=200000, window=200000, stall=10),
    shim("shim_burst", "flood", count=50000, window=50000, stall=10, hold=50000),
    shim("shim_memory", "memory", count=5, text=9_990_000, stall=20),
    shim("shim_start", "start", count=20, seconds_max=4, stall=20),
    shim_http("shim_http_latency", count=20000, seconds_max=3, core=True, quick={"--count": 5000}),
    shim_http("shim_http_many", count=50000, connections=16, seconds_max=3, quick={"--count": 10000}),
    once("backtest", tape="calls"),
    probe("evaluate", "shim", "hub", [], {"--count": 5000}, {"count": 20000, "core": True}),
    probe("approvals", "approvals", "person", [], {}, {}),
    probe("wrap", "wrap", "agent", [], {}, {}),
    probe("commands", "bash", "commands", [], {}, {}),
    probe("recordings", "bash", "commands", [], {}, {}),
    probe("evaluate_many", "shim", "hub", [], {"--count": 5000}, {"count": 50000, "connections": 8}),
]
