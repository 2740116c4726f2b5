"""Turns the answers of all rounds into medians, ratios, tables and the verdict on each target.

Ratios are taken within a round, where both sides met the same noise, and the median of the rounds
is shown.
"""

from statistics import median

import approvals

YARDSTICKS = ("direct", "relay", "relay+file", "wc -l", "recall", "echo")
PARTS = ("record", "replay", "serve", "shim", "approvals", "wrap", "bash")


class Results:
    """The answers, by probe, subject and round."""

    def __init__(self, answers):
        self.answers = answers

    def rounds(self, probe, subject):
        return {a["round"]: a for a in self.answers.get(probe, {}).get(subject, [])}

    def mid(self, probe, subject, key):
        values = [a[key] for a in self.rounds(probe, subject).values()]
        return median(values) if values else None

    def within_rounds(self, probe, key, subjects, combine):
        """The median over the rounds of `combine(values of the subjects)`, in rounds that have all."""
        rounds = [self.rounds(probe, s) for s in subjects]
        both = set(rounds[0]).intersection(*rounds[1:])
        values = [combine(*(r[turn][key] for r in rounds)) for turn in sorted(both)]
        values = [v for v in values if v is not None]
        return median(values) if values else None

    def added(self, probe, subject, key):
        return self.within_rounds(probe, key, [subject, "direct"], lambda x, direct: x - direct)

    def multiple(self, probe, subject, key):
        """What the subject adds to the direct figure, as a multiple of what the bare relay adds."""
        ratio = lambda x, direct, relay: (x - direct) / (relay - direct) if relay > direct else None
        return self.within_rounds(probe, key, [subject, "direct", "relay"], ratio)

    def share(self, probe, subject, key, of="relay"):
        return self.within_rounds(probe, key, [subject, of], lambda x, limit: x / limit if limit else None)

    def best(self, probe, subject, key, pick):
        """The best round: other work on the machine only ever makes a figure worse."""
        values = [a[key] for a in self.rounds(probe, subject).values()]
        return pick(values) if values else None

    def gb_per_s(self, probe, subject, of=median):
        """How fast a tape was read."""
        values = [a["bytes"] / a["start_ms"] / 1e6 for a in self.rounds(probe, subject).values()]
        return of(values) if values else None

    def bytes_a_message(self, probe):
        """What a message of a tape costs in memory, over a tape without calls."""
        empty_kb = self.mid("replay_empty", "replay", "rss_kb")
        rounds = [a for a in self.rounds(probe, "replay").values() if empty_kb]
        return median((a["rss_kb"] - empty_kb) * 1024 / a["messages"] for a in rounds) if rounds else None

    def wrong(self, probe, subject):
        """Calls of all rounds that were not answered exactly once and whole."""
        rounds = self.rounds(probe, subject).values()
        return sum(a["lost"] + a["twice"] + a["unknown"] + a["failed"] for a in rounds) if rounds else None

    def subjects(self, *probes):
        seen = {s: None for p in probes for s in self.answers.get(p, {})}
        first = [s for s in (*YARDSTICKS, *PARTS) if s in seen]
        return first + sorted(s for s in seen if s not in first)


def sum_known(values):
    known = [v for v in values if v is not None]
    return sum(known) if known else None


STDIO_LOSS = ("latency", "small", "large", "flood", "burst", "memory")

REPLAYS = ("replay_order", "replay_shuffled", "replay_fuzzy", "replay_latency")

# (table, first probe, [(column, how it is found, how it is shown)])
RECORD_TABLES = [
    ("Stdio", ("latency", "small", "start"), [
        ("p50 µs", lambda r, s: r.mid("latency", s, "p50_us"), "{:.1f}"),
        ("p99 µs", lambda r, s: r.mid("latency", s, "p99_us"), "{:.1f}"),
        ("added p50, × relay", lambda r, s: r.multiple("latency", s, "p50_us"), "{:.2f}"),
        ("p50 µs, cores free", lambda r, s: r.mid("latency_free", s, "p50_us"), "{:.1f}"),
        ("small calls/s", lambda r, s: r.mid("small", s, "per_s"), "{:,.0f}"),
        ("share of relay", lambda r, s: r.share("small", s, "per_s"), "{:.3f}"),
        ("1 MB calls/s", lambda r, s: r.mid("large", s, "per_s"), "{:,.0f}"),
        ("share of relay", lambda r, s: r.share("large", s, "per_s"), "{:.3f}"),
        ("CPU µs a small call", lambda r, s: r.mid("small", s, "cpu_us"), "{:.2f}"),
        ("start ms", lambda r, s: r.mid("start", s, "start_ms"), "{:.1f}"),
    ]),
    ("Stdio: memory of the proxy, and calls not answered exactly once", ("memory", "flood", "burst"), [
        ("MB at rest", lambda r, s: megabytes(r.mid("memory", s, "rest_kb")), "{:.1f}"),
        ("MB after 10 MB calls", lambda r, s: megabytes(r.mid("memory", s, "after_kb")), "{:.1f}"),
        ("MB at the peak", lambda r, s: megabytes(r.mid("memory", s, "peak_kb")), "{:.1f}"),
        ("MB peak, 50,000 outstanding", lambda r, s: megabytes(r.mid("burst", s, "peak_kb")), "{:.1f}"),
        ("flood of 200,000", lambda r, s: r.wrong("flood", s), "{:,.0f}"),
        ("50,000 outstanding", lambda r, s: r.wrong("burst", s), "{:,.0f}"),
        ("all other probes", lambda r, s: sum_known(r.wrong(p, s) for p in STDIO_LOSS if p not in ("flood", "burst")), "{:,.0f}"),
    ]),
    ("HTTP", ("http_latency", "http_many"), [
        ("p50 µs", lambda r, s: r.mid("http_latency", s, "p50_us"), "{:.1f}"),
        ("p99 µs", lambda r, s: r.mid("http_latency", s, "p99_us"), "{:.1f}"),
        ("added p50 µs", lambda r, s: r.added("http_latency", s, "p50_us"), "{:.1f}"),
        ("× relay", lambda r, s: r.multiple("http_latency", s, "p50_us"), "{:.2f}"),
        ("p50 µs, cores free", lambda r, s: r.mid("http_latency_free", s, "p50_us"), "{:.1f}"),
        ("added p50 µs, cores free", lambda r, s: r.added("http_latency_free", s, "p50_us"), "{:.1f}"),
        ("calls/s, 16 connections", lambda r, s: r.mid("http_many", s, "per_s"), "{:,.0f}"),
        ("share of relay", lambda r, s: r.share("http_many", s, "per_s"), "{:.3f}"),
        ("1 MB calls/s", lambda r, s: r.mid("http_large", s, "per_s"), "{:,.0f}"),
        ("MB peak", lambda r, s: megabytes(r.mid("http_large", s, "peak_kb")), "{:.1f}"),
        ("not answered once", lambda r, s: sum_known(r.wrong(p, s) for p in ("http_latency", "http_many", "http_large")), "{:,.0f}"),
    ]),
    ("Bridge: stdio client, HTTP server", ("bridge_latency", "bridge_small"), [
        ("p50 µs", lambda r, s: r.mid("bridge_latency", s, "p50_us"), "{:.1f}"),
        ("p99 µs", lambda r, s: r.mid("bridge_latency", s, "p99_us"), "{:.1f}"),
        ("small calls/s", lambda r, s: r.mid("bridge_small", s, "per_s"), "{:,.0f}"),
        ("not answered once", lambda r, s: r.wrong("bridge_small", s), "{:,.0f}"),
    ]),
]

REPLAY_TABLES = [
    ("Loading: a tape of 2 GB until the first answer", ("load_small", "load_large"), [
        ("300-byte messages, GB/s", lambda r, s: r.gb_per_s("load_small", s), "{:.2f}"),
        ("× the time of wc -l", lambda r, s: r.share("load_small", s, "start_ms", "wc -l"), "{:.1f}"),
        ("100 KB messages, GB/s", lambda r, s: r.gb_per_s("load_large", s), "{:.2f}"),
        ("× the time of wc -l", lambda r, s: r.share("load_large", s, "start_ms", "wc -l"), "{:.1f}"),
        ("MB, 300-byte messages", lambda r, s: megabytes(r.mid("load_small", s, "rss_kb")), "{:.1f}"),
        ("MB at the peak", lambda r, s: megabytes(r.mid("load_small", s, "peak_kb")), "{:.1f}"),
        ("MB, 100 KB messages", lambda r, s: megabytes(r.mid("load_large", s, "rss_kb")), "{:.1f}"),
        ("MB at the peak", lambda r, s: megabytes(r.mid("load_large", s, "peak_kb")), "{:.1f}"),
    ]),
    ("Stdio: 200,000 calls, 1,024 outstanding", (*REPLAYS, "replay_ready"), [
        ("in order, calls/s", lambda r, s: r.mid("replay_order", s, "per_s"), "{:,.0f}"),
        ("share of recall", lambda r, s: r.share("replay_order", s, "per_s", "recall"), "{:.3f}"),
        ("shuffled, calls/s", lambda r, s: r.mid("replay_shuffled", s, "per_s"), "{:,.0f}"),
        ("share of recall", lambda r, s: r.share("replay_shuffled", s, "per_s", "recall"), "{:.3f}"),
        ("fuzzy, calls/s", lambda r, s: r.mid("replay_fuzzy", s, "per_s"), "{:,.0f}"),
        ("CPU µs a call, in order", lambda r, s: r.mid("replay_order", s, "cpu_us"), "{:.2f}"),
        ("shuffled", lambda r, s: r.mid("replay_shuffled", s, "cpu_us"), "{:.2f}"),
        ("p50 µs, one at a time", lambda r, s: r.mid("replay_latency", s, "p50_us"), "{:.1f}"),
        ("100,000 calls ready, ms", lambda r, s: r.mid("replay_ready", s, "start_ms"), "{:.0f}"),
        ("MB then", lambda r, s: megabytes(r.mid("replay_ready", s, "rss_kb")), "{:.1f}"),
        ("not answered once, or not with their answer", lambda r, s: sum_known(r.wrong(p, s) for p in REPLAYS), "{:,.0f}"),
    ]),
    ("HTTP: one call at a time on each connection", ("replay_http_1", "replay_http_8"), [
        ("1 client, calls/s", lambda r, s: r.mid("replay_http_1", s, "per_s"), "{:,.0f}"),
        ("share of echo", lambda r, s: r.share("replay_http_1", s, "per_s", "echo"), "{:.3f}"),
        ("p50 µs", lambda r, s: r.mid("replay_http_1", s, "p50_us"), "{:.1f}"),
        ("8 clients, calls/s", lambda r, s: r.mid("replay_http_8", s, "per_s"), "{:,.0f}"),
        ("share of echo", lambda r, s: r.share("replay_http_8", s, "per_s", "echo"), "{:.3f}"),
        ("CPU µs a call", lambda r, s: cpu_us(r.mid("replay_http_8", s, "cpu_us")), "{:.2f}"),
        ("MB peak", lambda r, s: megabytes(r.mid("replay_http_8", s, "peak_kb")), "{:.1f}"),
        ("not answered once, or not with their answer", lambda r, s: sum_known(r.wrong(p, s) for p in ("replay_http_1", "replay_http_8")), "{:,.0f}"),
    ]),
]

SERVES = ("serve_fixed", "serve_template", "serve_many", "serve_latency", "serve_http_1", "serve_http_8")
SERVE_TABLES = [
    ("Stdio: 200,000 calls, 1,024 outstanding", (*SERVES[:4], "serve_start", "serve_start_many"), [
        ("fixed answer, calls/s", lambda r, s: r.mid("serve_fixed", s, "per_s"), "{:,.0f}"),
        ("share of echo", lambda r, s: r.share("serve_fixed", s, "per_s", "echo"), "{:.3f}"),
        ("from a template, calls/s", lambda r, s: r.mid("serve_template", s, "per_s"), "{:,.0f}"),
        ("share of echo", lambda r, s: r.share("serve_template", s, "per_s", "echo"), "{:.3f}"),
        ("among 1,000 tools, calls/s", lambda r, s: r.mid("serve_many", s, "per_s"), "{:,.0f}"),
        ("CPU µs a call, fixed", lambda r, s: r.mid("serve_fixed", s, "cpu_us"), "{:.2f}"),
        ("p50 µs, one at a time", lambda r, s: r.mid("serve_latency", s, "p50_us"), "{:.1f}"),
        ("start ms", lambda r, s: r.mid("serve_start", s, "start_ms"), "{:.1f}"),
        ("start ms, 1,000 tools", lambda r, s: r.mid("serve_start_many", s, "start_ms"), "{:.1f}"),
        ("MB then", lambda r, s: megabytes(r.mid("serve_start_many", s, "rss_kb")), "{:.1f}"),
        ("not answered once, or not with their answer", lambda r, s: sum_known(r.wrong(p, s) for p in SERVES[:4]), "{:,.0f}"),
    ]),
    ("HTTP: one call at a time on each connection", ("serve_http_1", "serve_http_8"), [
        ("1 client, calls/s", lambda r, s: r.mid("serve_http_1", s, "per_s"), "{:,.0f}"),
        ("share of echo", lambda r, s: r.share("serve_http_1", s, "per_s", "echo"), "{:.3f}"),
        ("p50 µs", lambda r, s: r.mid("serve_http_1", s, "p50_us"), "{:.1f}"),
        ("8 clients, calls/s", lambda r, s: r.mid("serve_http_8", s, "per_s"), "{:,.0f}"),
        ("share of echo", lambda r, s: r.share("serve_http_8", s, "per_s", "echo"), "{:.3f}"),
        ("MB peak", lambda r, s: megabytes(r.mid("serve_http_8", s, "peak_kb")), "{:.1f}"),
        ("not answered once, or not with their answer", lambda r, s: sum_known(r.wrong(p, s) for p in SERVES[4:]), "{:,.0f}"),
    ]),
]

SHIM_LOSS = ("shim_latency", "shim_small", "shim_some", "shim_large", "shim_flood", "shim_burst", "shim_http_latency", "shim_http_many")
SHIM_TABLES = [
    ("Stdio", ("shim_latency", "shim_small", "shim_large", "shim_memory", "shim_start"), [
        ("p50 µs", lambda r, s: r.mid("shim_latency", s, "p50_us"), "{:.1f}"),
        ("p99 µs", lambda r, s: r.mid("shim_latency", s, "p99_us"), "{:.1f}"),
        ("added p50, × relay", lambda r, s: r.multiple("shim_latency", s, "p50_us"), "{:.2f}"),
        ("p50 µs, cores free", lambda r, s: r.mid("shim_latency_free", s, "p50_us"), "{:.1f}"),
        ("small calls/s", lambda r, s: r.mid("shim_small", s, "per_s"), "{:,.0f}"),
        ("share of relay", lambda r, s: r.share("shim_small", s, "per_s"), "{:.3f}"),
        ("128 outstanding", lambda r, s: r.mid("shim_some", s, "per_s"), "{:,.0f}"),
        ("share of relay", lambda r, s: r.share("shim_some", s, "per_s"), "{:.3f}"),
        ("1 MB calls/s", lambda r, s: r.mid("shim_large", s, "per_s"), "{:,.0f}"),
        ("share of relay", lambda r, s: r.share("shim_large", s, "per_s"), "{:.3f}"),
        ("CPU µs a small call", lambda r, s: r.mid("shim_small", s, "cpu_us"), "{:.2f}"),
        ("MB at rest", lambda r, s: megabytes(r.mid("shim_memory", s, "rest_kb")), "{:.1f}"),
        ("MB after 10 MB calls", lambda r, s: megabytes(r.mid("shim_memory", s, "after_kb")), "{:.1f}"),
        ("start ms", lambda r, s: r.mid("shim_start", s, "start_ms"), "{:.1f}"),
        ("not answered once", lambda r, s: sum_known(r.wrong(p, s) for p in SHIM_LOSS[:6]), "{:,.0f}"),
    ]),
    ("HTTP", ("shim_http_latency", "shim_http_many"), [
        ("p50 µs", lambda r, s: r.mid("shim_http_latency", s, "p50_us"), "{:.1f}"),
        ("p99 µs", lambda r, s: r.mid("shim_http_latency", s, "p99_us"), "{:.1f}"),
        ("added p50 µs", lambda r, s: r.added("shim_http_latency", s, "p50_us"), "{:.1f}"),
        ("calls/s, 16 connections", lambda r, s: r.mid("shim_http_many", s, "per_s"), "{:,.0f}"),
        ("not answered once", lambda r, s: sum_known(r.wrong(p, s) for p in SHIM_LOSS[6:]), "{:,.0f}"),
    ]),
    ("Hub: POST /governance/evaluate", ("evaluate", "evaluate_many"), [
        ("p50 µs", lambda r, s: r.mid("evaluate", s, "p50_us"), "{:.1f}"),
        ("p99 µs", lambda r, s: r.mid("evaluate", s, "p99_us"), "{:.1f}"),
        ("a second, 8 connections", lambda r, s: r.mid("evaluate_many", s, "per_s"), "{:,.0f}"),
        ("MB", lambda r, s: megabytes(r.mid("evaluate_many", s, "rss_kb")), "{:.1f}"),
        ("wrong", lambda r, s: sum_known(r.wrong(p, s) for p in ("evaluate", "evaluate_many")), "{:,.0f}"),
    ]),
    ("Backtest: what a policy would have done to a tape of 200,000 calls", ("backtest",), [
        ("frames/s", lambda r, s: r.mid("backtest", s, "per_s"), "{:,.0f}"),
        ("MB at the peak", lambda r, s: megabytes(r.mid("backtest", s, "peak_kb")), "{:.1f}"),
    ]),
]

APPROVALS_TABLES = [
    ("From a decision to the call at the server", ("approvals",), [
        ("p50 ms", lambda r, s: r.mid("approvals", s, "p50_ms"), "{:.1f}"),
        ("p99 ms", lambda r, s: r.mid("approvals", s, "p99_ms"), "{:.1f}"),
    ]),
]

WRAP_TABLES = [
    ("An agent with three servers", ("wrap",), [
        ("agent runs after, ms", lambda r, s: r.mid("wrap", s, "start_ms"), "{:.1f}"),
        ("all over after it, ms", lambda r, s: r.mid("wrap", s, "gone_ms"), "{:.1f}"),
    ]),
]

BASH_TABLES = [
    ("A command", ("commands",), [
        ("p50 ms", lambda r, s: r.mid("commands", s, "p50_ms"), "{:.2f}"),
        ("p99 ms", lambda r, s: r.mid("commands", s, "p99_ms"), "{:.2f}"),
    ]),
    ("A store of 100,000 entries", ("recordings",), [
        ("ms", lambda r, s: r.mid("recordings", s, "ms"), "{:.0f}"),
    ]),
]

# (what, how it is found, must, aim, how it is shown). A sign says which side is good.
RECORD_TARGETS = [
    ("latency added at p50, × relay", lambda r: r.multiple("latency", "record", "p50_us"), "≤", 2, 1.25, "{:.2f}"),
    ("latency added at p99, × relay", lambda r: r.multiple("latency", "record", "p99_us"), "≤", 2, 1.25, "{:.2f}"),
    ("small calls/s, share of relay", lambda r: r.share("small", "record", "per_s"), "≥", 0.3, 0.8, "{:.3f}"),
    ("1 MB calls/s, share of relay", lambda r: r.share("large", "record", "per_s"), "≥", 0.4, 0.8, "{:.3f}"),
    ("HTTP added p50, µs, one core", lambda r: r.added("http_latency", "record", "p50_us"), "≤", 200, 100, "{:.1f}"),
    ("HTTP added p50, µs, cores free", lambda r: r.added("http_latency_free", "record", "p50_us"), "≤", 200, 100, "{:.1f}"),
    ("resident at rest, MB", lambda r: megabytes(r.mid("memory", "record", "rest_kb")), "≤", 12, 6, "{:.1f}"),
    ("resident after 10 MB calls, MB", lambda r: megabytes(r.mid("memory", "record", "after_kb")), "≤", 32, 16, "{:.1f}"),
    ("start to first reply, over direct, ms", lambda r: r.added("start", "record", "start_ms"), "≤", 15, 5, "{:.1f}"),
    ("calls lost, flood and 50,000 outstanding", lambda r: sum_known(r.wrong(p, "record") for p in ("flood", "burst")), "≤", 0, 0, "{:.0f}"),
]

# These are no ratios, so the best round is shown.
REPLAY_TARGETS = [
    ("load rate, 300-byte messages, GB/s", lambda r: r.gb_per_s("load_small", "replay", max), "≥", 0.5, 1.5, "{:.2f}"),
    ("load rate, 100 KB messages, GB/s", lambda r: r.gb_per_s("load_large", "replay", max), "≥", 0.5, 1.5, "{:.2f}"),
    ("memory, bytes a message", lambda r: r.bytes_a_message("load_small"), "≤", 64, 40, "{:.1f}"),
    ("100,000 calls ready, ms", lambda r: r.best("replay_ready", "replay", "start_ms", min), "≤", 100, 30, "{:.0f}"),
    ("calls/s on stdio, in order", lambda r: r.best("replay_order", "replay", "per_s", max), "≥", 150_000, 500_000, "{:,.0f}"),
    ("calls/s on stdio, shuffled", lambda r: r.best("replay_shuffled", "replay", "per_s", max), "≥", 150_000, 500_000, "{:,.0f}"),
    ("calls not answered with their own answer", lambda r: sum_known(r.wrong(p, "replay") for p in REPLAYS), "≤", 0, 0, "{:.0f}"),
]
SERVE_TARGETS = [
    ("1,000 tools ready, ms", lambda r: r.best("serve_start_many", "serve", "start_ms", min), "≤", 1000, 50, "{:.1f}"),
    ("calls/s on stdio", lambda r: r.best("serve_fixed", "serve", "per_s", max), "≥", 150_000, 500_000, "{:,.0f}"),
    ("calls/s on stdio, from a template", lambda r: r.best("serve_template", "serve", "per_s", max), "≥", 150_000, 500_000, "{:,.0f}"),
    ("calls not answered with their own answer", lambda r: sum_known(r.wrong(p, "serve") for p in SERVES), "≤", 0, 0, "{:.0f}"),
]
SHIM_TARGETS = [
    ("latency added at p50, × relay", lambda r: r.multiple("shim_latency", "shim", "p50_us"), "≤", 2.5, 1.5, "{:.2f}"),
    ("latency added at p99, × relay", lambda r: r.multiple("shim_latency", "shim", "p99_us"), "≤", 2.5, 1.5, "{:.2f}"),
    ("small calls/s, 1,024 outstanding, share of relay", lambda r: r.share("shim_small", "shim", "per_s"), "≥", 0.2, 0.5, "{:.3f}"),
    ("small calls/s, 128 outstanding, share of relay", lambda r: r.share("shim_some", "shim", "per_s"), "≥", 0.2, 0.5, "{:.3f}"),
    ("1 MB calls/s, share of relay", lambda r: r.share("shim_large", "shim", "per_s"), "≥", 0.4, 0.8, "{:.3f}"),
    ("HTTP added p50, µs, one core", lambda r: r.added("shim_http_latency", "shim", "p50_us"), "≤", 200, 100, "{:.1f}"),
    ("resident at rest, MB", lambda r: megabytes(r.mid("shim_memory", "shim", "rest_kb")), "≤", 12, 6, "{:.1f}"),
    ("resident after 10 MB calls, MB", lambda r: megabytes(r.mid("shim_memory", "shim", "after_kb")), "≤", 32, 16, "{:.1f}"),
    ("start to first reply, over direct, ms", lambda r: r.added("shim_start", "shim", "start_ms"), "≤", 15, 5, "{:.1f}"),
    ("backtest, frames/s", lambda r: r.best("backtest", "rules", "per_s", max), "≥", 300_000, 1_000_000, "{:,.0f}"),
    ("calls not answered exactly once", lambda r: sum_known(r.wrong(p, "shim") for p in SHIM_LOSS), "≤", 0, 0, "{:.0f}"),
]
LOCAL_WAYS = [way for way in approvals.WAYS if way != "Slack, reaction"]
APPROVALS_TARGETS = [
    (f"{way}: p99, ms", lambda r, way=way: r.mid("approvals", way, "p99_ms"), "≤", approvals.TARGET_MS, 10, "{:.1f}")
    for way in LOCAL_WAYS
]
WRAP_TARGETS = [
    ("start of the agent, over direct, ms", lambda r: r.added("wrap", "wrap", "start_ms"), "≤", 200, 80, "{:.1f}"),
    ("end after the agent, over direct, ms", lambda r: r.added("wrap", "wrap", "gone_ms"), "≤", 300, 50, "{:.1f}"),
]
BASH_TARGETS = [
    ("a command at p50, over bash -c, ms", lambda r: r.added("commands", "bash", "p50_ms"), "≤", 15, 5, "{:.1f}"),
    ("the same over HTTP, ms", lambda r: r.added("commands", "bash, HTTP", "p50_ms"), "≤", 20, 7, "{:.1f}"),
    ("the same under a policy, ms", lambda r: r.added("commands", "bash, policy", "p50_ms"), "≤", 20, 7, "{:.1f}"),
    ("list, 100,000 entries, ms", lambda r: r.mid("recordings", "list", "ms"), "≤", 1000, 200, "{:.0f}"),
    ("stats, 100,000 entries, ms", lambda r: r.mid("recordings", "stats", "ms"), "≤", 3000, 1000, "{:.0f}"),
    ("generate, 100,000 entries, ms", lambda r: r.mid("recordings", "generate", "ms"), "≤", 5000, 2000, "{:.0f}"),
    ("export, 100,000 entries, ms", lambda r: r.mid("recordings", "export json", "ms"), "≤", 5000, 2000, "{:.0f}"),
]
TABLES = {"record": RECORD_TABLES, "replay": REPLAY_TABLES, "serve": SERVE_TABLES, "shim": SHIM_TABLES, "approvals": APPROVALS_TABLES, "wrap": WRAP_TABLES, "bash": BASH_TABLES}
TARGETS = {"record": RECORD_TARGETS, "replay": REPLAY_TARGETS, "serve": SERVE_TARGETS, "shim": SHIM_TARGETS, "approvals": APPROVALS_TARGETS, "wrap": WRAP_TARGETS, "bash": BASH_TARGETS}


def cpu_us(value):
    """Nothing where no process was watched."""
    return value or None


def megabytes(kb):
    return None if kb is None or kb < 0 else kb * 1024 / 1e6


def verdict(value, sign, must, aim):
    good = (lambda limit: value <= limit) if sign == "≤" else (lambda limit: value >= limit)
    return "not measured" if value is None else "aim met" if good(aim) else "must met" if good(must) else "MISSED"


def build(machine, rounds, answers, versions, absent, failures):
    """Everything there is to say, as plain data."""
    r = Results(answers)
    parts = {part: {"tables": tables(r, part), "targets": targets(r, part)} for part in PARTS}
    return {"machine": machine, "rounds": rounds, "parts": {n: p for n, p in parts.items() if p["tables"]},
            "versions": versions, "absent": absent, "failures": failures, "answers": answers}


def tables(r, part):
    found = []
    for title, probes, columns in TABLES[part]:
        rows = {s: [find(r, s) for _, find, _ in columns] for s in r.subjects(*probes)}
        if rows:
            found.append({"title": title, "columns": [c for c, _, _ in columns], "forms": [f for _, _, f in columns], "rows": rows})
    return found


def targets(r, part):
    found = []
    for what, find, sign, must, aim, form in TARGETS[part]:
        value = find(r)
        found.append({"what": what, "sign": sign, "must": must, "aim": aim, "value": value,
                      "form": form, "verdict": verdict(value, sign, must, aim)})
    return found


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table_lines(table):
    show = lambda value, form: "–" if value is None else form.format(value)
    yield row(["", *table["columns"]])
    yield row(["---", *["---:"] * len(table["columns"])])
    for subject, values in table["rows"].items():
        yield row([subject, *map(show, values, table["forms"])])


def target_lines(targets):
    yield row(["target", "must", "aim", "measured", ""])
    yield row(["---", "---:", "---:", "---:", "---"])
    for t in targets:
        shown = "–" if t["value"] is None else t["form"].format(t["value"])
        yield row([t["what"], f"{t['sign']} {t['must']:,}", f"{t['sign']} {t['aim']:,}", shown, t["verdict"]])


def markdown(whole, part):
    m, of = whole["machine"], whole["parts"][part]
    lines = [
        f"Measured on {m['cores']} shared cores ({m['cpu']}, {m['memory_gb']} GB, Linux {m['kernel']}); other work ran beside it "
        f"(load {m['load_before']} before, {m['load_after']} after). Medians of {whole['rounds'][0]} rounds; peers took part in the first {min(whole['rounds'])}.",
        "",
        *target_lines(of["targets"]),
    ]
    for table in of["tables"]:
        lines += ["", f"### {table['title']}", "", *table_lines(table)]
    named = {subject for table in of["tables"] for subject in table["rows"]}
    versions = {n: v for n, v in whole["versions"].items() if n in named}
    if versions:
        lines += ["", "Peers: " + ", ".join(f"{n} {v}" for n, v in sorted(versions.items())) + "."]
    absent = {n: why for n, (of_part, why) in whole["absent"].items() if part in of_part}
    if absent:
        lines += ["", "Not measured:", ""] + [f"- {n}: {why}." for n, why in sorted(absent.items())]
    for subject, probes in sorted(whole["failures"].items()):
        failed = ", ".join(f"{p} ({why})" for p, (of_part, why) in probes.items() if of_part == part)
        lines += ["", f"No figure for {subject}: {failed}."] if failed else []
    return "\n".join(lines)


def text(whole):
    return "\n\n".join(f"## {part}\n\n{markdown(whole, part)}" for part in whole["parts"])


def write(page, whole):
    """Replaces what stands between the two marks of each part that was measured."""
    written = page.read_text()
    for part in whole["parts"]:
        begin, end = f"<!-- bench:{part}:begin -->", f"<!-- bench:{part}:end -->"
        before, rest = written.split(begin, 1)
        after = rest.split(end, 1)[1]
        written = f"{before}{begin}\n{markdown(whole, part)}\n{end}{after}"
    page.write_text(written)
