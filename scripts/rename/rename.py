#!/usr/bin/env python3
"""Applies the tables of this folder: rename.py collect RUST_ANALYZER OUT | apply OUT | fix ROUNDS. README.md says how."""
import collections, difflib, glob, json, os, pathlib, queue, re, subprocess, sys, threading, time, urllib.parse
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LINES_COUNTED_AT = "2dee76f6"
STD_SOURCE = max(glob.glob("/usr/src/rustc-*/library"), default="")
WORD = r"[a-z_][a-z0-9_]*"


def rows(table):
    for line in (HERE / f"{table}.tsv").read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            yield line.split("\t")


class Server:
    """rust-analyzer, spoken to over its standard input and output."""

    CONFIG = {
        "checkOnSave": False,
        "cargo": {"buildScripts": {"enable": False}, "allTargets": True, "sysroot": "discover", "sysrootSrc": STD_SOURCE},
        "procMacro": {"enable": False},
        "cachePriming": {"enable": True, "numThreads": 2},
        "lru": {"capacity": 2048},
    }

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=ROOT)
        self.lock, self.waiting, self.last_id, self.ready = threading.Lock(), {}, 0, threading.Event()
        threading.Thread(target=self.read, daemon=True).start()
        edit = {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]}
        self.request("initialize", {
            "processId": os.getpid(), "rootUri": ROOT.as_uri(), "workspaceFolders": [{"uri": ROOT.as_uri(), "name": "w"}],
            "capabilities": {"workspace": {"workspaceEdit": edit, "configuration": True}, "experimental": {"serverStatusNotification": True},
                             "general": {"positionEncodings": ["utf-8"]}},
            "initializationOptions": self.CONFIG})
        self.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        self.ready.wait(1800)

    def send(self, message):
        body = json.dumps(message).encode()
        with self.lock:
            self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
            self.process.stdin.flush()

    def request(self, method, params, timeout=600):
        with self.lock:
            self.last_id += 1
            number = self.last_id
        self.waiting[number] = answer = queue.Queue()
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return answer.get(timeout=timeout)

    def read(self):
        stream = self.process.stdout
        while True:
            length = None
            while line := stream.readline().strip():
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            if length is None:
                return
            message = json.loads(stream.read(length))
            if "id" in message and "method" in message:
                result = [self.CONFIG] * len(message["params"]["items"]) if message["method"] == "workspace/configuration" else None
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
            elif "id" in message:
                self.waiting.pop(message["id"]).put(message)
            elif message.get("method") == "experimental/serverStatus" and message["params"].get("quiescent"):
                self.ready.set()


class Jobs:
    """One position and new name for each row of the tables; a row that fits nowhere is in `missing`."""

    def __init__(self):
        self.all, self.missing, self.texts = [], [], {}
        for row in rows("types"):
            self.definition(row, row[0], r"\s*(?:pub(?:\([^)]*\))? )?(?:struct|enum|trait|type|union) (%s)\b" % re.escape(row[1]), row[2])
        for row in rows("functions"):
            self.function(row)
        for row in rows("locals"):
            self.local(row)
        for row in rows("modules"):
            self.module(row)

    def lines(self, file):
        if file not in self.texts:
            self.texts[file] = (ROOT / file).read_text().split("\n") if (ROOT / file).exists() else []
        return self.texts[file]

    def add(self, kind, file, number, line, start, new):
        self.all.append((kind, file, number, len(line[:start].encode()), new))

    def definition(self, row, file, pattern, new):
        for number, line in enumerate(self.lines(file)):
            if found := re.match(pattern, line):
                return self.add("definition", file, number, line, found.start(1), new)
        self.missing.append(row)

    def function(self, row):
        file, _, owner, old, new = row[:5]
        current, found = "-", []
        for number, line in enumerate(self.lines(file)):
            block = re.match(r"\s*(?:unsafe )?(?:impl(?:<.*?>)?|(?:pub(?:\([^)]*\))? )?trait) (?:.*? for )?(?:[\w:]*::)?(\w+)", line)
            if block:
                current = block[1]
            elif line.startswith("}"):
                current = "-"
            if name := re.search(r"\bfn (%s)\b" % re.escape(old), line):
                found.append((current, number, line, name.start(1)))
        exact = [it for it in found if it[0] == owner] or (found if len(found) == 1 else [])
        if not exact:
            return self.missing.append(row)
        self.add("function", file, *exact[0][1:], new)

    def local(self, row):
        file, old, new = row[:3]
        only = None
        if len(row) > 4 and row[4].strip() not in ("*", ""):
            only = self.moved_lines(file, [int(it) for it in row[4].split(",")])
        for number, line in enumerate(self.lines(file)):
            if line.strip().startswith("//") or only is not None and number not in only:
                continue
            for name in re.finditer(r"(?<![\w\"'.])(%s)\b(?!\s*[(!]|::)" % re.escape(old), line):
                before, after = line[: name.start()], line[name.end():]
                binds = re.search(r"(\blet (mut )?\(?|\blet .*[(,{] ?|\||\bfor (\(.*)?|[(,{|] ?(&?mut |ref |&)?)$", before)
                if before.count('"') % 2 == 0 and (binds or after.startswith(": ")):
                    self.add("local", file, number, line, name.start(1), new)

    def moved_lines(self, file, numbers):
        old = subprocess.run(["git", "show", f"{LINES_COUNTED_AT}:{file}"], cwd=ROOT, capture_output=True, text=True).stdout.split("\n")
        moved = {}
        for a, b, size in difflib.SequenceMatcher(None, old, self.lines(file), autojunk=False).get_matching_blocks():
            moved.update({a + i + 1: b + i for i in range(size)})
        return {moved[it] for it in numbers if it in moved}

    def module(self, row):
        path = pathlib.PurePath(row[0])
        for parent in [path.parent / "mod.rs", path.parent / "lib.rs", path.parent / "main.rs", path.parent.with_suffix(".rs")]:
            for number, line in enumerate(self.lines(str(parent))):
                if found := re.match(r"\s*(?:pub(?:\([^)]*\))? )?mod (%s);" % re.escape(path.stem), line):
                    return self.add("module", str(parent), number, line, found.start(1), row[1])
        self.missing.append(row)


def collect(program, out):
    jobs, server = Jobs(), Server(program)
    edits, moves, failed, done = collections.defaultdict(dict), [], [], 0

    def run(job):
        nonlocal done
        kind, file, line, column, new = job
        uri, done = (ROOT / file).as_uri(), done + 1
        if done % 200 == 0:
            print(f"{done} of {len(jobs.all)}", file=sys.stderr)
        if kind == "local" and any(key[:2] == (line, column) for key in list(edits[uri])):
            return
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": column}, "newName": new}
        for _ in range(3):
            answer = server.request("textDocument/rename", place)
            if answer.get("error", {}).get("code") not in (-32801, -32802):
                break
            time.sleep(0.5)
        if not answer.get("result"):
            return failed.append((job, answer.get("error", {}).get("message")))
        for change in answer["result"].get("documentChanges", []):
            if change.get("kind") == "rename":
                moves.append((change["oldUri"], change["newUri"]))
                continue
            for edit in change["edits"]:
                start, end = edit["range"]["start"], edit["range"]["end"]
                key = (start["line"], start["character"], end["line"], end["character"])
                edits[change["textDocument"]["uri"]].setdefault(key, edit["newText"])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, jobs.all))
    server.process.kill()
    flat = {uri: [[*key, text] for key, text in it.items()] for uri, it in edits.items()}
    pathlib.Path(out).write_text(json.dumps({"edits": flat, "moves": moves}))
    for it in [*jobs.missing, *failed]:
        print("not found:", it, file=sys.stderr)


def join_shorthands(line):
    """`new: old: newer`, left where a field and the local in its shorthand were both renamed."""
    def joined(found):
        if re.sub(r"\\.", "", line[: found.start()]).count('"') % 2:
            return found[0]
        field, local = found[1], found[3]
        return field if field == local else f"{field}: {local}"
    return line if line.strip().startswith("//") else re.sub(rf"\b({WORD}): ({WORD}): ({WORD})\b(?!:)", joined, line)


def apply(out):
    change = json.loads(pathlib.Path(out).read_text())
    path = lambda uri: urllib.parse.unquote(urllib.parse.urlparse(uri).path).rstrip("/")
    for uri, edits in change["edits"].items():
        file = pathlib.Path(path(uri))
        data, starts = file.read_bytes(), [0]
        for line in data.split(b"\n"):
            starts.append(starts[-1] + len(line) + 1)
        for a, b, text in sorted(((starts[e[0]] + e[1], starts[e[2]] + e[3], e[4]) for e in edits), reverse=True):
            data = data[:a] + text.encode() + data[b:]
        file.write_text("\n".join(join_shorthands(line) for line in data.decode().split("\n")))
    # A module inside a folder that moves too goes first.
    for old, new in sorted(set(map(tuple, change["moves"])), key=lambda it: -path(it[0]).count("/")):
        subprocess.run(["git", "mv", path(old), path(new)], cwd=ROOT)


class Names:
    """What an old name became: in a file, in a crate, anywhere."""

    def __init__(self):
        self.modules = {row[0]: row[1] for row in rows("modules")}
        self.known = collections.defaultdict(set)
        for table, old, new in [("types", 1, 2), ("functions", 3, 4), ("locals", 1, 2)]:
            for row in rows(table):
                for scope in [self.moved(row[0]), row[0].split("/")[1], "*"]:
                    self.known[scope, row[old]].add(row[new])
        for file, new in self.modules.items():
            self.known["*", pathlib.PurePath(file).stem].add(new)

    def moved(self, file):
        parts, new = file[:-3].split("/"), []
        for end in range(1, len(parts) + 1):
            new.append(self.modules.get("/".join(parts[:end]) + ".rs", parts[end - 1]))
        return "/".join(new) + ".rs"

    def choose(self, file, old, suggested):
        for scope in [file, file.split("/")[1], "*"]:
            names = self.known.get((scope, old), set())
            if fitting := names & suggested:
                return next(iter(fitting))
            if len(names) == 1:
                return next(iter(names))
        return None


def fix(rounds):
    names = Names()
    for number in range(rounds):
        run = subprocess.run(["cargo", "check", "--workspace", "--all-targets", "--keep-going", "--message-format", "json"], cwd=ROOT, capture_output=True, text=True)
        fixes, left = collections.defaultdict(dict), []
        for line in run.stdout.splitlines():
            message = json.loads(line).get("message")
            if not isinstance(message, dict) or message.get("level") != "error":
                continue
            suggested = {span.get("suggested_replacement") for child in message["children"] for span in child["spans"]}
            spans = [span for span in message["spans"] if span["is_primary"] and span["text"] and not span["file_name"].startswith("/")]
            found = False
            for span in spans:
                text = span["text"][0]["text"][span["text"][0]["highlight_start"] - 1: span["text"][0]["highlight_end"] - 1]
                for old in re.findall(r"`([^`]+)`", message["message"]):
                    new = names.choose(span["file_name"], old, suggested)
                    if new and old in text:
                        start = span["byte_start"] + len(text[: text.find(old)].encode())
                        fixes[span["file_name"]][start] = (old.encode(), new.encode())
                        found = True
                        break
            if not found:
                left.append((spans[0]["file_name"], spans[0]["line_start"]) if spans else ("?", 0))
                left[-1] += (message["message"],)
        for file, places in fixes.items():
            data = (ROOT / file).read_bytes()
            for start, (old, new) in sorted(places.items(), reverse=True):
                if data[start: start + len(old)] == old:
                    data = data[:start] + new + data[start + len(old):]
            (ROOT / file).write_bytes(data)
        print(f"round {number + 1}: {sum(map(len, fixes.values()))} repaired, {len(left)} left", file=sys.stderr)
        if not fixes:
            print(*sorted(set(left)), sep="\n")
            return


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["collect", program, out]: collect(program, out)
        case ["apply", out]: apply(out)
        case ["fix", rounds]: fix(int(rounds))
        case _: sys.exit(__doc__)
