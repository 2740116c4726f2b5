//! The demo's agent: sends requests, answers those of the server, and prints what it sees.

use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::Context;
use tapegate_core::frame::{Frame, MessageKind};

/// The agent's messages, in order; each request waits for the answer to the one before.
const SCRIPT: [(&str, &str); 5] = [
    (
        "opens the session",
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"demo-agent","version":"1"}}}"#,
    ),
    ("is ready", r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
    ("asks for the list of tools", r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#),
    (
        "calls a tool and asks for progress",
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"count_words","arguments":{"text":"bytes are the truth"},"_meta":{"progressToken":"p1"}}}"#,
    ),
    (
        "calls a tool that asks the client a question",
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"summarise","arguments":{"text":"a tape of every message"}}}"#,
    ),
];

/// The agent's answer when the server asks for its model.
const SAMPLE: &str =
    r#"{"role":"assistant","model":"demo","content":{"type":"text","text":"Everything is kept."}}"#;

/// Runs the script against the server started by `command`.
pub(super) fn run(mut command: Command, out: &mut dyn Write) -> anyhow::Result<ExitStatus> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start tapegate")?;
    let to_server = child.stdin.take().context("it has no input")?;
    let from_server = child.stdout.take().context("it has no output")?;
    let played = run_session(to_server, BufReader::new(from_server), out);
    let status = child.wait()?;
    // If the process itself failed, that is the better reason.
    if status.success() { played.map(|()| status) } else { Ok(status) }
}

fn run_session(
    mut to_server: impl Write,
    from_server: impl BufRead,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut lines = from_server.lines();
    for (what, text) in SCRIPT {
        writeln!(out, "{} {what}", arrow("agent  →"))?;
        writeln!(to_server, "{text}")?;
        let request = Frame::read(text.as_bytes());
        if request.envelope().is_some_and(|envelope| envelope.kind() == MessageKind::Request) {
            await_answer(&request, &mut lines, &mut to_server, out)?;
        }
    }
    Ok(())
}

/// Reads until `request` is answered, answering requests of the server in the meantime.
fn await_answer(
    request: &Frame<'_>,
    lines: &mut dyn Iterator<Item = std::io::Result<String>>,
    to_server: &mut dyn Write,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    for line in lines {
        let line = line?;
        let frame = Frame::read(line.as_bytes());
        let Some(envelope) = frame.envelope() else { continue };
        let method = envelope.method.map(|method| method.decode().into_owned()).unwrap_or_default();
        match envelope.kind() {
            MessageKind::Request => {
                writeln!(out, "{} asks for {method}", arrow("server →"))?;
                writeln!(out, "{} answers", arrow("agent  →"))?;
                let id = String::from_utf8_lossy(envelope.id.unwrap_or(b"null")).into_owned();
                writeln!(to_server, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{SAMPLE}}}")?;
            }
            MessageKind::Notification => writeln!(out, "{} {method}", arrow("server →"))?,
            MessageKind::Response | MessageKind::Error => {
                let result =
                    String::from_utf8_lossy(envelope.result.or(envelope.error).unwrap_or_default());
                let short: String = result.chars().take(84).collect();
                let more = if short.len() < result.len() { "…" } else { "" };
                writeln!(out, "{} {short}{more}", arrow("server →"))?;
                if envelope.id == request.envelope().and_then(|request| request.id) {
                    return Ok(());
                }
            }
            MessageKind::Other => {}
        }
    }
    anyhow::bail!("the server closed the session before it answered")
}

/// The arrow at the start of a line, coloured on a terminal.
fn arrow(text: &str) -> String {
    if std::io::stdout().is_terminal() { format!("\x1b[36m{text}\x1b[0m") } else { text.to_owned() }
}
