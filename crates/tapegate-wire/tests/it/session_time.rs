//! Sessions that no time ends. The clock stands still, and hours pass when a test says so.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::time::Duration;

use tapegate_wire::child::ServerProcess;
use tapegate_wire::clock::Clock;
use tapegate_wire::port::StreamPort;
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{ClientPorts, ShutdownTimeouts, run};

use crate::waiting::{wait_for_pid, wait_for_the_end_of};

/// More than the pipe to the client holds, and less than together with the server's.
const LINES: usize = 600;

/// The client's ends of the pipes.
struct TimedClient {
    input: PipeWriter,
    output: BufReader<PipeReader>,
}

/// Runs a session in front of a shell script, and returns why it ended.
fn session(script: &str, client: impl AsyncFnOnce(TimedClient)) -> String {
    let (theirs_in, input) = pipe().unwrap();
    let (output, theirs_out) = pipe().unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    let mut recording = RecordedSession::without_recording(Clock::start());
    runtime.block_on(async {
        let ports = ClientPorts {
            input: StreamPort::reader(theirs_in.into()).unwrap(),
            output: StreamPort::writer(theirs_out.into()).unwrap(),
        };
        let argv = ["sh", "-c", script].map(str::to_owned);
        let server = ServerProcess::spawn(&argv).unwrap();
        let patience = ShutdownTimeouts::default();
        let signals = Signals::never();
        let session = run(&mut recording, ports, server, signals, 1 << 20, patience, &|_| ());
        let client = client(TimedClient { input, output: BufReader::new(output) });
        let (outcome, ()) = tokio::join!(session, client);
        format!("{:?}", outcome.cause)
    })
}

/// Waits for something outside, while the clock stands still.
async fn outside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // The runtime moves a stopped clock when it is idle, but not while such a task runs.
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn let_an_hour_pass() {
    // Step by step: a timer may be set again and again.
    for _ in 0..3600 {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
}

/// A script that writes many lines, and then its process id.
fn flood(before_end: &str, file: &std::path::Path) -> String {
    let line = format!(r#"{{"jsonrpc":"2.0","method":"n","params":"{}"}}"#, "x".repeat(100));
    format!("yes '{line}' | head -n {LINES}; {before_end} echo $$ >{}", file.display())
}

#[test]
fn an_idle_session_is_not_ended() {
    let cause = session("exec cat", async |client| {
        let TimedClient { mut input, mut output } = client;
        for number in 0..3 {
            (input, output) = outside(move || {
                let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n{number}\"}}\n");
                input.write_all(line.as_bytes()).unwrap();
                let mut got = String::new();
                output.read_line(&mut got).unwrap();
                assert_eq!(got, line);
                (input, output)
            })
            .await;
            let_an_hour_pass().await;
        }
    });
    assert_eq!(cause, "Client");
}

#[test]
fn a_client_that_reads_late_loses_nothing_of_a_server_that_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = flood("", &file);
    session(&script, async |client| {
        outside(move || wait_for_the_end_of(&wait_for_pid(&file))).await;
        let_an_hour_pass().await;
        assert_eq!(outside(|| client.output.lines().count()).await, LINES);
    });
}

#[test]
fn a_client_that_closed_its_end_and_reads_late_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = flood("cat >/dev/null;", &file);
    session(&script, async |client| {
        drop(client.input);
        outside(move || wait_for_the_end_of(&wait_for_pid(&file))).await;
        let_an_hour_pass().await;
        let output = client.output;
        assert_eq!(outside(|| output.lines().count()).await, LINES);
    });
}
