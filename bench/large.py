#!/usr/bin/env python3
"""Time and peak memory of the commands that read a whole tape.

    python3 bench/large.py --tapegate target/dist/tapegate [--bytes 1.2e9]

Writes three tapes of that size (small answers, texts of 20 KB, texts of 11 MB), runs `check`, `stats`,
`show`, `convert` and `redact` on each, those of them that the build has, and prints a table. Memory is the
peak of the process, as the kernel counts it. docs/performance.md has the figures.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEADER = {
    "type": "header",
    "version": "1.0",
    "recorded_at": "2026-01-01T00:00:00.000000Z",
    "upstream": "bench",
    "thoughtjack_version": "0",
}
SIZES = {"200 B": 200, "20 KB": 20_000, "11 MB": 11_000_000}
COMMANDS = {
    "check": ["check", "{tape}"],
    "stats": ["stats", "{tape}"],
    "show": ["show", "{tape}"],
    "convert": ["convert", "-r", "{tape}", "-o", "{folder}/s.yaml"],
    "convert phased": ["convert", "-r", "{tape}", "-o", "{folder}/p.yaml", "--style", "phased"],
    "redact": ["redact", "{tape}", "-o", "{folder}/r.jsonl", "--redact", "secrets"],
}


def write_tape(path, bytes_total, text_bytes):
    """Calls of one tool whose answers have texts of this length, no two the same."""
    seq = 0
    filler = ("The quick brown fox jumps over the lazy dog. " * (text_bytes // 45 + 1))[:text_bytes]
    with open(path, "w", encoding="utf-8") as tape:
        def put(direction, msg):
            nonlocal seq
            seq += 1
            entry = {"type": "message", "seq": seq, "ts": "2026-01-01T00:00:00.000000Z"}
            entry |= {"dir": direction, "msg": msg}
            tape.write(json.dumps(entry, separators=(",", ":")) + "\n")

        tape.write(json.dumps(HEADER, separators=(",", ":")) + "\n")
        tool = {"name": "read", "inputSchema": {"type": "object"}}
        put("c2s", {"jsonrpc": "2.0", "id": 0, "method": "tools/list"})
        put("s2c", {"jsonrpc": "2.0", "id": 0, "result": {"tools": [tool]}})
        number = 0
        while tape.tell() < bytes_total:
            number += 1
            params = {"name": "read", "arguments": {"n": number}}
            put("c2s", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
            content = [{"type": "text", "text": f"{number}: {filler}"}]
            put("s2c", {"jsonrpc": "2.0", "id": number, "result": {"content": content}})


def has_command(program, name):
    done = subprocess.run([program, name, "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode == 0


def measure(program, args, folder):
    """Seconds and peak MB of a run, and its exit code."""
    started = time.monotonic()
    with open(os.devnull, "w") as nowhere, open(folder / "stderr", "w+") as errors:
        child = subprocess.Popen([program, *args], stdout=nowhere, stderr=errors)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - started
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 1):
            errors.seek(0)
            print(errors.read(), file=sys.stderr)
    return seconds, usage.ru_maxrss / 1024, code


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tapegate", default="target/dist/tapegate")
    parser.add_argument("--bytes", type=float, default=1.2e9)
    parser.add_argument("--folder", help="where the tapes go, with room for three times --bytes")
    options = parser.parse_args()
    program = str(Path(options.tapegate).resolve())
    names = [name for name in COMMANDS if has_command(program, COMMANDS[name][0])]
    print("| texts | command | seconds | peak MB | exit |\n|---|---|---:|---:|---:|")
    failed = False
    for label, text_bytes in SIZES.items():
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            folder = Path(folder)
            tape = folder / "tape.jsonl"
            write_tape(tape, options.bytes, text_bytes)
            for name in names:
                args = [part.format(tape=tape, folder=folder) for part in COMMANDS[name]]
                seconds, megabytes, code = measure(program, args, folder)
                failed |= code != 0
                row = f"| {label} | `{name}` | {seconds:.1f} | {megabytes:.0f} | {code} |"
                print(row, flush=True)
                for made in [*folder.glob("?.yaml.assets/*"), *folder.glob("?.*")]:
                    if made.is_file():
                        made.unlink()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
