//! What it costs to make a tape ready to be played: time against counting its lines, and memory.
//!
//! `cargo bench -p tapegate-store` loads a tape of 100,000 calls with lines of some 300 bytes;
//! `-- MEGABYTES LINE_BYTES` one of that size. The file is in the page cache. Times are the best
//! of several rounds, because the machines this runs on are shared; memory is that of the first.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::time::Instant;

use tapegate_core::signature::Signer;
use tapegate_store::loaded_tape::LoadedTape;

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let mut number =
        |otherwise: u64| words.next().and_then(|word| word.parse().ok()).unwrap_or(otherwise);
    let (megabytes, line_bytes) = (number(0), number(300));
    let calls = if megabytes == 0 { 100_000 } else { megabytes * 1_000_000 / line_bytes / 2 };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("tape.jsonl");
    write(&path, calls, line_bytes as usize).expect("a tape");
    let bytes = path.metadata().expect("a tape").len();
    println!("{calls} calls, {bytes} bytes, {} a line", bytes / calls / 2);
    let rounds = if bytes > 500_000_000 { 3 } else { 10 };
    let counted = best(rounds, || count(&path).expect("lines"));
    println!(
        "counting lines {:>10.1} ms {:>8.2} GB/s",
        counted * 1e3,
        bytes as f64 / counted / 1e9
    );
    let before = resident("VmRSS:");
    let loaded = load(&path);
    let (after, most) = (resident("VmRSS:"), resident("VmHWM:"));
    let messages = loaded.index.len() as f64;
    println!("{:?} findings", loaded.findings.len());
    println!(
        "memory kept {:>10.1} bytes a message, at most {:.1}",
        (after - before) / messages,
        (most - before) / messages
    );
    drop(loaded);
    let cpu = cpu_seconds();
    let took = best(rounds, || load(&path));
    let cpu = (cpu_seconds() - cpu) / f64::from(rounds);
    println!(
        "loading {:>17.1} ms {:>8.2} GB/s, {:.0} ns a message, {:.2} times counting",
        took * 1e3,
        bytes as f64 / took / 1e9,
        took * 1e9 / messages,
        took / counted
    );
    println!("of all processors {:>7.1} ms {:.0} ns a message", cpu * 1e3, cpu * 1e9 / messages);
}

fn load(path: &Path) -> LoadedTape {
    LoadedTape::open(path, Signer::default(), Box::new(|_, _| ())).expect("a good tape")
}

fn best<T>(rounds: u32, mut work: impl FnMut() -> T) -> f64 {
    (0..rounds).fold(f64::MAX, |best, _| {
        let start = Instant::now();
        std::hint::black_box(work());
        best.min(start.elapsed().as_secs_f64())
    })
}

/// What `wc -l` does.
fn count(path: &Path) -> io::Result<usize> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 256 * 1024];
    let mut lines = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(lines),
            count => lines += buffer[..count].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}

fn write(path: &Path, calls: u64, line_bytes: usize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(
        out,
        r#"{{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00.000000Z","upstream":"bench","thoughtjack_version":"0"}}"#
    )?;
    // Half of the rest of a line is text in the call's arguments, half of it in the answer.
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(line_bytes / 45 + 1);
    let (asked, told) =
        (&text[..line_bytes.saturating_sub(240)], &text[..line_bytes.saturating_sub(210)]);
    for n in 1..=calls {
        let (first, second) = (2 * n - 1, 2 * n);
        let (minute, second_of, micros) = (n / 60_000 % 60, n / 1000 % 60, n % 1000 * 1000);
        let ts = format!("2026-01-01T00:{minute:02}:{second_of:02}.{micros:06}Z");
        writeln!(
            out,
            r#"{{"type":"message","seq":{first},"ts":"{ts}","dir":"c2s","msg":{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"write_file","arguments":{{"path":"/srv/data/{n}.txt","mode":420,"append":false,"text":"{asked}"}}}}}}}}"#
        )?;
        writeln!(
            out,
            r#"{{"type":"message","seq":{second},"ts":"{ts}","dir":"s2c","msg":{{"jsonrpc":"2.0","id":{n},"result":{{"content":[{{"type":"text","text":"{told}"}}],"isError":false}}}},"latency_ms":0}}"#
        )?;
    }
    let total = 2 * calls;
    writeln!(
        out,
        r#"{{"type":"footer","total_messages":{total},"duration_ms":1,"client_messages":{calls},"server_messages":{calls}}}"#
    )?;
    out.flush()
}

/// How long this process has been computing, in all its threads.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat.split(' ').map(|field| field.parse().unwrap_or_default()).collect();
    // User and system time, in hundredths.
    fields.get(13..15).map_or(f64::NAN, |ticks| ticks.iter().sum::<f64>() / 100.0)
}

/// A figure of this process's memory, in bytes.
fn resident(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let kilobytes: f64 =
        line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN);
    kilobytes * 1024.0
}
