"""Runs every probe on every subject, interleaved, several rounds, and reports medians and ratios.

A subject is something on the wire: nothing (direct), the bare relay, tapegate, a peer. A probe is
one question put to it. Both are tables; a later command adds a row, not code.
"""

import argparse
import json
import os
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import peers
import report


@dataclass(frozen=True)
class Probe:
    """One question. `core` keeps every process on one core, so that no idle core has to be woken."""

    name: str
    wire: str  # stdio, bridge (stdio client, HTTP server) or http
    args: tuple
    quick: dict = field(default_factory=dict)
    hold: int = 0  # the server answers only when this many calls have come
    core: bool = False
    heavy: bool = False  # not for subjects below some thousand calls a second
    tape_mb: int = 0  # what a recorder writes, if it is much


def stdio(name, mode, quick=None, **options):
    extra = {k: options.pop(k) for k in ("hold", "core", "heavy", "tape_mb", "wire") if k in options}
    args = [mode] + [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    return Probe(name, extra.pop("wire", "stdio"), tuple(args), quick or {}, **extra)


def http(name, quick=None, **options):
    extra = {k: options.pop(k) for k in ("core", "tape_mb") if k in options}
    args = [w for k, v in options.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    return Probe(name, "http", tuple(args), quick or {}, **extra)


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
]

SLOW = {"fastmcp", "mcp-firewall", "mcp-proxy", "mcp-recorder"}
CORE = max(os.sched_getaffinity(0))


class Bench:
    def __init__(self, options):
        self.options = options
        self.bin = Path(options.bin).absolute()
        self.tapegate = Path(options.tapegate).absolute() if options.tapegate else None
        self.found, self.absent = ({}, {}) if options.no_peers else peers.install()
        self.scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.bin))
        self.log = open(self.scratch / "stderr.log", "w+b")
        self.failures = {}

    def program(self, name):
        return str(self.bin / name)

    def record(self, *args):
        return [str(self.tapegate), "record", "-o", str(self.scratch / "tape.jsonl"), "--force", *args]

    # What stands on the wire, as {subject: command}.

    def stdio_subjects(self, hold):
        echo = [self.program("echo")] + (["--hold", str(hold)] if hold else [])
        relay = self.program("relay")
        tee = [relay, "--tee", str(self.scratch / "tee-tape"), *echo]
        subjects = {"direct": echo, "relay": [relay, *echo], "relay+file": tee}
        if self.tapegate:
            subjects["record"] = self.record("--", *echo)
        return subjects | peers.stdio_commands(self.found, echo, self.scratch)

    def bridge_subjects(self, upstream_port):
        ours = {"record": self.record("--upstream-http", f"http://127.0.0.1:{upstream_port}/mcp")} if self.tapegate else {}
        return ours | peers.bridge_commands(self.found, upstream_port)

    def http_subjects(self, upstream_port, port):
        subjects = {"direct": None, "relay": [self.program("tcp_relay"), str(upstream_port)]}
        if self.tapegate:
            upstream = f"http://127.0.0.1:{upstream_port}/mcp"
            subjects["record"] = self.record("--http", "127.0.0.1:0", "--upstream-http", upstream)
        return subjects | peers.http_commands(self.found, upstream_port, port, self.scratch)

    # Running one probe on one subject.

    def arguments(self, probe):
        args = list(probe.args)
        for flag, value in probe.quick.items() if self.options.quick else ():
            args[args.index(flag) + 1] = str(value)
        return args + (["--core", str(CORE)] if probe.core else [])

    def measure(self, command):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=self.log, cwd=self.scratch, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"exit code {done.returncode}")
        answer = json.loads(done.stdout)
        if answer.get("sent") and answer["lost"] == answer["sent"]:
            raise RuntimeError("no call answered")
        return answer

    def run_stdio(self, probe, command):
        return self.measure([self.program("load"), *self.arguments(probe), "--", *command])

    def run_http(self, probe, command, upstream):
        if command is None:
            return self.measure([self.program("http_load"), str(upstream.port), *self.arguments(probe)])
        with Server(self, command, probe.core) as server:
            args = [str(server.port), *self.arguments(probe), "--pid", str(server.process.pid)]
            return self.measure([self.program("http_load"), *args])

    def subjects(self, probe, upstream):
        if probe.wire == "stdio":
            return self.stdio_subjects(probe.hold)
        if probe.wire == "bridge":
            return self.bridge_subjects(upstream.port)
        return self.http_subjects(upstream.port, free_port())

    def warm_pages(self, megabytes):
        """Has the page cache take and give back memory: the first use of fresh pages was seen to cost
        many times the copy itself, probably because the host of a virtual machine must find them."""
        page = bytes(1 << 20)
        with open(self.scratch / "warm-tape", "wb", buffering=0) as f:
            for _ in range(megabytes):
                f.write(page)
        (self.scratch / "warm-tape").unlink()

    def run_one(self, probe, command, upstream):
        self.warm_pages(probe.tape_mb)
        return self.run_http(probe, command, upstream) if probe.wire == "http" else self.run_stdio(probe, command)

    def run_probe(self, probe, turn):
        """Asks every subject in a row, starting with another one each round."""
        answers = {}
        with Server(self, [self.program("http_echo")], probe.core) as upstream:
            subjects = {n: c for n, c in self.subjects(probe, upstream).items() if self.wanted(n, probe, turn)}
            names = list(subjects)
            first = turn % max(len(names), 1)
            for name in names[first:] + names[:first]:
                begin = time.monotonic()
                try:
                    answers[name] = self.run_one(probe, subjects[name], upstream)
                except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                    self.failures.setdefault(name, {})[probe.name] = str(error)
                self.clear_tapes()
                print(f"bench:   {name}: {time.monotonic() - begin:.1f} s", file=sys.stderr)
        return answers

    def wanted(self, name, probe, turn):
        if name in self.found and turn >= self.options.peer_rounds:
            return False
        only = self.options.only
        if only and name not in only and name not in report.YARDSTICKS:
            return False
        return probe.name not in self.failures.get(name, {}) and not (probe.heavy and name in SLOW)

    def clear_tapes(self):
        for tape in self.scratch.glob("*tape*"):
            tape.unlink()
        for left in self.scratch.glob("*.audit.jsonl"):
            left.unlink()

    def run(self):
        probes = [p for p in PROBES if not self.options.probes or p.name in self.options.probes]
        results = {p.name: {} for p in probes}
        for turn in range(self.options.rounds):
            for probe in probes:
                print(f"bench: round {turn + 1} of {self.options.rounds}: {probe.name}", file=sys.stderr)
                for name, answer in self.run_probe(probe, turn).items():
                    results[probe.name].setdefault(name, []).append({"round": turn} | answer)
        return results

    def close(self):
        self.log.close()
        if self.options.keep_log:
            shutil.copy(self.scratch / "stderr.log", self.options.keep_log)
        shutil.rmtree(self.scratch)


class Server:
    """A listening process, ready once it says where it listens (or once its given port answers)."""

    def __init__(self, bench, command, one_core):
        self.said = open(bench.scratch / "listening.log", "w+b")
        pin = (lambda: os.sched_setaffinity(0, {CORE})) if one_core else None
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.said, cwd=bench.scratch, preexec_fn=pin
        )
        given = [int(w) for flag, w in zip(command, command[1:]) if flag == "--port"]
        self.port = given[0] if given else None

    def ready(self):
        if self.port:
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0
        self.said.seek(0)
        found = re.search(rb"listening on http://[^:/]+:(\d+)", self.said.read())
        self.port = int(found[1]) if found else None
        return False

    def __enter__(self):
        for _ in range(1000):
            if self.ready():
                return self
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        self.__exit__()
        raise RuntimeError("does not listen")

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.said.close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def machine():
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
    memory_kb = int(next(l.split()[1] for l in open("/proc/meminfo") if l.startswith("MemTotal")))
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu,
        "memory_gb": round(memory_kb / 1048576),
        "kernel": platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.split("\n")[0])
    parser.add_argument("--profile", metavar="NAME", help="cargo profile of the tapegate under test (default: dist)")
    parser.add_argument("--tapegate", metavar="PATH", help="test this binary and build nothing")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and samples")
    parser.add_argument("--rounds", type=int, help="rounds (default 6; 2 with --quick)")
    parser.add_argument("--peer-rounds", type=int, default=2, help="rounds that the slow peers take part in (default 2)")
    parser.add_argument("--only", type=lambda s: s.split(","), metavar="A,B", help="these subjects, direct and relay")
    parser.add_argument("--probes", type=lambda s: s.split(","), metavar="A,B", help="these probes: " + ", ".join(p.name for p in PROBES))
    parser.add_argument("--no-peers", action="store_true", help="install and run no peers")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    parser.add_argument("--keep-log", metavar="FILE", help="keep what the subjects said on stderr")
    parser.add_argument("--bin", default="target/bench", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 6)
    return options


def main():
    options = parse()
    bench = Bench(options)
    facts = machine()
    try:
        results = bench.run()
    finally:
        bench.close()
    facts["load_after"] = round(os.getloadavg()[0], 2)
    versions = {name: version for name, (_, version) in bench.found.items()}
    whole = report.build(facts, (options.rounds, options.peer_rounds), results, versions, bench.absent, bench.failures)
    if options.format == "json":
        print(json.dumps(whole, indent=2))
    else:
        print(report.markdown(whole))
    if options.write:
        report.write(Path("docs/performance.md"), whole)


if __name__ == "__main__":
    main()
