"""Turns the answers of all rounds into medians, ratios, tables and the verdict on each target.

Ratios are taken within a round, where both sides met the same noise, and the median of the rounds
is shown.
"""

from statistics import median

YARDSTICKS = ("direct", "relay", "relay+file")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


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

    def share(self, probe, subject, key):
        return self.within_rounds(probe, key, [subject, "relay"], lambda x, relay: x / relay if relay else None)

    def wrong(self, probe, subject):
        """Calls of all rounds that were not answered exactly once and whole."""
        rounds = self.rounds(probe, subject).values()
        return sum(a["lost"] + a["twice"] + a["unknown"] + a["failed"] for a in rounds) if rounds else None

    def subjects(self, *probes):
        seen = {s: None for p in probes for s in self.answers.get(p, {})}
        first = [s for s in (*YARDSTICKS, "record") if s in seen]
        return first + sorted(s for s in seen if s not in first)


def sum_known(values):
    known = [v for v in values if v is not None]
    return sum(known) if known else None


STDIO_LOSS = ("latency", "small", "large", "flood", "burst", "memory")

# (table, first probe, [(column, how it is found, how it is shown)])
TABLES = [
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

# (what, how it is found, must, aim, how it is shown). A sign says which side is good.
TARGETS = [
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


def megabytes(kb):
    return None if kb is None or kb < 0 else kb * 1024 / 1e6


def verdict(value, sign, must, aim):
    good = (lambda limit: value <= limit) if sign == "≤" else (lambda limit: value >= limit)
    return "not measured" if value is None else "aim met" if good(aim) else "must met" if good(must) else "MISSED"


def build(machine, rounds, answers, versions, absent, failures):
    """Everything there is to say, as plain data."""
    r = Results(answers)
    tables = []
    for title, probes, columns in TABLES:
        rows = {s: [find(r, s) for _, find, _ in columns] for s in r.subjects(*probes)}
        tables.append({"title": title, "columns": [c for c, _, _ in columns], "forms": [f for _, _, f in columns], "rows": rows})
    targets = []
    for what, find, sign, must, aim, form in TARGETS:
        value = find(r)
        targets.append({"what": what, "sign": sign, "must": must, "aim": aim, "value": value,
                        "form": form, "verdict": verdict(value, sign, must, aim)})
    return {"machine": machine, "rounds": rounds, "tables": [t for t in tables if t["rows"]], "targets": targets,
            "versions": versions, "absent": absent, "failures": failures, "answers": answers}


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
        yield row([t["what"], f"{t['sign']} {t['must']}", f"{t['sign']} {t['aim']}", shown, t["verdict"]])


def markdown(whole):
    m = whole["machine"]
    lines = [
        f"Measured on {m['cores']} shared cores ({m['cpu']}, {m['memory_gb']} GB, Linux {m['kernel']}); other work ran beside it "
        f"(load {m['load_before']} before, {m['load_after']} after). Medians of {whole['rounds'][0]} rounds; peers took part in the first {min(whole['rounds'])}.",
        "",
        *target_lines(whole["targets"]),
    ]
    for table in whole["tables"]:
        lines += ["", f"### {table['title']}", "", *table_lines(table)]
    if whole["versions"]:
        lines += ["", "Peers: " + ", ".join(f"{n} {v}" for n, v in sorted(whole["versions"].items())) + "."]
    if whole["absent"]:
        lines += ["", "Not measured: " + "; ".join(f"{n} ({why})" for n, why in sorted(whole["absent"].items())) + "."]
    for subject, probes in sorted(whole["failures"].items()):
        lines += ["", f"No figure for {subject}: " + ", ".join(f"{p} ({why})" for p, why in probes.items()) + "."]
    return "\n".join(lines)


def write(page, whole):
    """Replaces what stands between the two marks of the page."""
    text = page.read_text()
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    page.write_text(f"{before}{BEGIN}\n{markdown(whole)}\n{END}{after}")
