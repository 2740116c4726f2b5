"""Runs every probe on every subject, interleaved, several rounds, and reports medians and ratios.

A subject is something on the wire: nothing (direct), the bare relay, tapegate, a peer; or something
that plays a tape or a scenario. A probe is one question put to it.
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
from pathlib import Path

import approvals
import commands
import peers
import report
import scenarios
import shims
import tapes
import wraps
from probes import PROBES


# Below some thousand calls a second.
SLOW = {"agent-vcr", "fastmcp", "mcp-firewall", "mcp-proxy", "mcp-recorder"}
CORE = max(os.sched_getaffinity(0))


class Bench:
    def __init__(self, options):
        self.options = options
        self.bin = Path(options.bin).absolute()
        self.tapegate = Path(options.tapegate).absolute() if options.tapegate else None
        self.found, self.absent = ({}, {}) if options.no_peers else peers.install()
        self.scratch = Path(tempfile.mkdtemp(prefix="scratch-", dir=self.bin))
        self.log = open(self.scratch / "stderr.log", "w+b")
        self.shelf = tapes.Shelf(self.program("tape"), self.scratch / "played", options.quick)
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

    def replay(self, probe, *args):
        return [str(self.tapegate), "replay", "-r", self.shelf.tape(probe.tape), "--match-mode", probe.match, *args]

    def replay_subjects(self, probe):
        players = tapes.TAPES[probe.tape][2]
        subjects = {"wc -l": ["wc", "-l", self.shelf.tape(probe.tape)]} if "wc -l" in players else {}
        if "recall" in players:
            subjects["recall"] = [self.program("recall"), self.shelf.tape(probe.tape)]
        if self.tapegate:
            subjects["replay"] = self.replay(probe, "-q")
        tape = self.peers_tape(probe)
        if "peers" in tapes.TAPES[tape][2]:
            subjects |= peers.replay_commands(self.found, self.shelf, tape, probe.match)
        return subjects

    def replay_http_subjects(self, probe, port):
        subjects = {"echo": None}
        if self.tapegate:
            subjects["replay"] = self.replay(probe, "--http", "127.0.0.1:0")
        return subjects | peers.replay_http_commands(self.found, self.shelf, self.peers_tape(probe), port)

    def serve_subjects(self, probe):
        http = probe.wire == "http"
        subjects = {"echo": None if http else [self.program("echo")]}
        if self.tapegate:
            command = [str(self.tapegate), "serve", scenarios.scenario(self.scratch, probe.scenario)]
            subjects["serve"] = command + (["--http", "127.0.0.1:0"] if http else [])
        return subjects

    def shim_subjects(self, probe, upstream_port):
        if probe.wire == "hub":
            return shims.hubs(self.tapegate, self.scratch) if self.tapegate else {}
        if probe.wire == "once":
            policy = lambda name: shims.policy(self.scratch, name)
            tape = self.shelf.tape(probe.tape)
            ours = [str(self.tapegate), "policy", "backtest", tape, "--server-id", "bench", "--config"]
            return {name: [*ours, policy(name)] for name in ("rules", "cedar")} if self.tapegate else {}
        if probe.wire == "http":
            subjects = {"direct": None, "relay": [self.program("tcp_relay"), str(upstream_port)]}
            server = ["--http", "127.0.0.1:0", "--upstream-http", f"http://127.0.0.1:{upstream_port}/mcp"]
        else:
            echo = [self.program("echo")] + (["--hold", str(probe.hold)] if probe.hold else [])
            subjects = {"direct": echo, "relay": [self.program("relay"), *echo], "record": self.record("--", *echo)}
            server = ["--", *echo]
        return subjects | shims.commands(self.tapegate, self.scratch, server) if self.tapegate else subjects

    def peers_tape(self, probe):
        return tapes.FOR_PEERS.get(probe.tape, (probe.tape,))[0]

    # Running one probe on one subject.

    def arguments(self, probe, name):
        args = list(probe.args)
        changed = dict(probe.quick) if self.options.quick else {}
        if name in self.found and probe.tape in tapes.FOR_PEERS:
            changed |= {flag: value for flag, value in tapes.FOR_PEERS[probe.tape][1].items() if flag in args}
        for flag, value in changed.items():
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

    def run_stdio(self, probe, name, command):
        if name == "wc -l":
            begin = time.monotonic()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            return {"start_ms": (time.monotonic() - begin) * 1e3, "rss_kb": -1, "peak_kb": -1}
        return self.measure([self.program("load"), *self.arguments(probe, name), "--", *command])

    def run_once(self, probe, command):
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.log, cwd=self.scratch)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begin
        if os.waitstatus_to_exitcode(status) not in (0, 1):
            raise RuntimeError(f"exit code {os.waitstatus_to_exitcode(status)}")
        frames = self.shelf.facts[probe.tape, "tapegate"]["messages"]
        return {"per_s": frames / seconds, "peak_kb": used.ru_maxrss}

    def run_hub(self, probe, name, command):
        with Server(self, command, probe.core) as server:
            posted = shims.evaluation(self.scratch) + ["--pid", str(server.process.pid)]
            return self.measure([self.program("post_load"), str(server.port), *posted, *self.arguments(probe, name)])

    def run_http(self, probe, name, command, upstream):
        args = self.arguments(probe, name)
        if command is None:
            return self.measure([self.program("http_load"), str(upstream.port), *args])
        with Server(self, command, probe.core) as server:
            args += ["--pid", str(server.process.pid)]
            return self.measure([self.program("http_load"), str(server.port), *args])

    def subjects(self, probe, upstream):
        if probe.part == "approvals":
            return approvals.commands(self.tapegate)
        if probe.part == "bash":
            return commands.subjects(self.tapegate, self.scratch, probe.name)
        if probe.part == "wrap":
            return wraps.commands(self.tapegate, self.scratch, self.program("echo"))
        if probe.part == "shim":
            return self.shim_subjects(probe, upstream.port)
        if probe.part == "serve":
            return self.serve_subjects(probe)
        if probe.part == "replay":
            return self.replay_http_subjects(probe, free_port()) if probe.wire == "http" else self.replay_subjects(probe)
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

    def run_one(self, probe, name, command, upstream):
        self.warm_pages(probe.tape_mb)
        if probe.wire == "http":
            return self.run_http(probe, name, command, upstream)
        if probe.wire == "hub":
            return self.run_hub(probe, name, command)
        if probe.wire == "once":
            return self.run_once(probe, command)
        if probe.wire == "commands":
            return commands.measure(probe.name, name, command, self.log, self.scratch)
        if probe.wire == "person":
            return approvals.figures(command, self.log)
        if probe.wire == "agent":
            return wraps.measure(command, self.log, self.scratch)
        answer = self.run_stdio(probe, name, command)
        return answer | self.shelf.facts.get((probe.tape, "tapegate"), {})

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
                    answers[name] = self.run_one(probe, name, subjects[name], upstream)
                except (RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
                    self.failures.setdefault(name, {})[probe.name] = (probe.part, str(error))
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
        shutil.rmtree(self.scratch / "state", ignore_errors=True)

    def asked(self, probe):
        if self.options.probes:
            return probe.name in self.options.probes
        return probe.part in self.options.parts and not (self.options.no_big and probe.tape in tapes.BIG)

    def run(self):
        probes = [p for p in PROBES if self.asked(p)]
        results = {p.name: {} for p in probes}
        for turn in range(self.options.rounds):
            for probe in probes:
                if probe.rounds and turn >= probe.rounds:
                    continue
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
        for _ in range(3000):
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
    parser.add_argument("parts", nargs="*", metavar="PART", help="record, replay, serve, shim, approvals, wrap, bash (default: all)")
    parser.add_argument("--profile", metavar="NAME", help="cargo profile of the tapegate under test (default: dist)")
    parser.add_argument("--tapegate", metavar="PATH", help="test this binary and build nothing")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and samples")
    parser.add_argument("--rounds", type=int, help="rounds (default 6; 2 with --quick)")
    parser.add_argument("--peer-rounds", type=int, default=2, help="rounds that the slow peers take part in (default 2)")
    parser.add_argument("--only", type=lambda s: s.split(","), metavar="A,B", help="these subjects, direct and relay")
    parser.add_argument("--probes", type=lambda s: s.split(","), metavar="A,B", help="these probes: " + ", ".join(p.name for p in PROBES))
    parser.add_argument("--no-big", action="store_true", help="leave out the tapes of 2 GB")
    parser.add_argument("--no-peers", action="store_true", help="install and run no peers")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    parser.add_argument("--keep-log", metavar="FILE", help="keep what the subjects said on stderr")
    parser.add_argument("--bin", default="target/bench", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.parts = options.parts or list(report.PARTS)
    if unknown := set(options.parts) - set(report.PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")
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
        print(report.text(whole))
    if options.write:
        report.write(Path("docs/performance.md"), whole)


if __name__ == "__main__":
    main()
