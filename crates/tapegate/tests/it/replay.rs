//! `tapegate replay`: a tape in place of a server, with clients of every kind.
//!
//! A tape is a script: `> TEXT` is a message of the client, `< TEXT` one of the server, and a
//! preceding `@MS` is its time.

mod allowed_hosts;
mod clients;
mod edge_cases;
mod http;
mod leniency;
mod matching;
mod notification_order;
mod passthrough;
mod record_to;
mod redacted_tapes;
mod replies;
mod reports;
mod restarts;
mod roundtrip;
mod server_messages;
mod sessions;
mod shutdown;
mod tapes;
mod timing;
mod usage;

use std::fmt::Display;
use std::io::Write;
use std::process::{Command, Stdio};

use tapegate_core::time::{SubSecond, write_rfc3339};

/// The first line of a tape.
const HEADER: &str = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"u","thoughtjack_version":"0"}"#;

/// The match modes, as named on the command line.
const MODES: [&str; 3] = ["sequential", "by-request", "fuzzy"];

/// The flags with which a mode accepts only the recorded params.
fn exactly(mode: &'static str) -> Vec<&'static str> {
    let more: &[&str] = match mode {
        "sequential" => &["--strict-params"],
        "fuzzy" => &["--fuzzy-threshold", "1"],
        _ => &[],
    };
    [&["--match-mode", mode], more].concat()
}

/// The messages of a script: time, direction and text.
fn said(script: &str) -> impl Iterator<Item = (String, bool, &str)> {
    let mut at_ms = 0;
    script.lines().map(str::trim).filter(|line| !line.is_empty()).map(move |line| {
        let mut rest = line;
        if let Some((ms, text)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) {
            (at_ms, rest) = (ms.parse().unwrap(), text);
        }
        let (dir, text) = rest.split_once(' ').unwrap();
        assert!(matches!(dir, "<" | ">"), "{line}");
        let mut ts = Vec::new();
        write_rfc3339(&mut ts, 1_767_225_600_000_000 + at_ms * 1000, SubSecond::Micros);
        (String::from_utf8(ts).unwrap(), dir == ">", text)
    })
}

/// The messages of a script, without header and footer.
fn messages(script: &str) -> String {
    let lines = said(script).enumerate().map(|(place, (ts, client, text))| {
        let (seq, dir) = (place + 1, if client { "c2s" } else { "s2c" });
        format!(r#"{{"type":"message","seq":{seq},"ts":"{ts}","dir":"{dir}","msg":{text}}}"#) + "\n"
    });
    lines.collect()
}

/// A complete tape of the thoughtjack dialect.
fn tape(script: &str) -> String {
    let (total, client) = (said(script).count(), said(script).filter(|said| said.1).count());
    let server = total - client;
    let footer = format!(
        r#"{{"type":"footer","total_messages":{total},"duration_ms":1,"client_messages":{client},"server_messages":{server}}}"#
    );
    format!("{HEADER}\n{}{footer}\n", messages(script))
}

/// A tape of the overwatch dialect.
fn overwatch(script: &str) -> String {
    let lines = said(script).map(|(ts, client, text)| {
        let direction = if client { "client_to_server" } else { "server_to_client" };
        format!(r#"{{"ts":"{ts}","direction":"{direction}","parsed":{text}}}"#) + "\n"
    });
    lines.collect()
}

/// The output of a program for `input`.
fn piped(program: &str, args: &[&str], input: impl AsRef<[u8]>) -> Vec<u8> {
    let mut command = Command::new(program);
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut pipe, input) = (child.stdin.take().unwrap(), input.as_ref().to_vec());
    let writer = std::thread::spawn(move || pipe.write_all(&input).unwrap());
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(done.status.success(), "{program} {args:?}");
    done.stdout
}

fn gzip(tape: impl AsRef<[u8]>) -> Vec<u8> {
    piped("gzip", &["-c"], tape)
}

/// A request without params.
fn ask(id: impl Display, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

/// A call of a tool with one argument.
fn call(id: impl Display, tool: &str, argument: impl Display) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":{argument}}}}}}}"#
    )
}

/// The answer to it.
fn answer(id: impl Display, text: impl Display) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

/// The answer to a request that is not on the tape, up to its message.
fn refusal(id: impl Display) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":""#)
}

/// Messages as a client sends and receives them.
fn lines<Text: AsRef<str>>(texts: &[Text]) -> String {
    texts.iter().map(|text| format!("{}\n", text.as_ref())).collect()
}
