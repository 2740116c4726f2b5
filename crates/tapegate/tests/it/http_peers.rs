//! HTTP for tests: a scripted server, a client that shows every byte, and a recorder between them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{GUARD, wait_for_exit};

/// A request as received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    /// Request line and headers.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// A server that answers every request with one function, and remembers the requests.
pub(crate) struct WebServer {
    pub(crate) port: u16,
    seen: Arc<(Mutex<Vec<ReceivedRequest>>, Condvar)>,
}

impl WebServer {
    /// Starts a server. `reply` writes the whole reply; if it returns false, the connection is
    /// closed.
    pub(crate) fn start(
        reply: impl Fn(&ReceivedRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(0, reply)
    }

    /// The same on a given port.
    pub(crate) fn start_at(
        port: u16,
        reply: impl Fn(&ReceivedRequest, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<(Mutex<Vec<ReceivedRequest>>, Condvar)> = Arc::default();
        let (log, reply) = (Arc::clone(&seen), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, reply) = (Arc::clone(&log), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream.unwrap(), &log, &*reply));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.0.lock().unwrap().clone()
    }

    /// Waits until `count` requests have arrived.
    pub(crate) fn wait(&self, count: usize) -> Vec<ReceivedRequest> {
        let (lock, more) = &*self.seen;
        let seen = more
            .wait_timeout_while(lock.lock().unwrap(), GUARD, |seen| seen.len() < count)
            .unwrap()
            .0;
        assert!(seen.len() >= count, "only {} requests came", seen.len());
        seen.clone()
    }
}

fn serve(
    mut stream: TcpStream,
    log: &(Mutex<Vec<ReceivedRequest>>, Condvar),
    reply: &dyn Fn(&ReceivedRequest, &mut TcpStream) -> bool,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(head) = read_head(&mut reader) {
        let length = header(&head, "content-length").map_or(0, |text| text.parse().unwrap());
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let seen = ReceivedRequest { head, body };
        log.0.lock().unwrap().push(seen.clone());
        log.1.notify_all();
        if !reply(&seen, &mut stream) {
            return;
        }
    }
}

fn read_head(reader: &mut impl BufRead) -> Option<String> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            return Some(head);
        }
        head.push_str(&line);
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let matching =
        |line: &&str| line.split(':').next().is_some_and(|key| key.eq_ignore_ascii_case(name));
    head.lines()
        .skip(1)
        .find(matching)
        .and_then(|line| line.split_once(':'))
        .map(|(_, value)| value.trim())
}

/// A complete reply with a JSON body.
pub(crate) fn json(extra: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{extra}content-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// The head of an event stream that ends with its connection.
pub(crate) const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A reply as a client received it.
#[derive(Debug)]
pub(crate) struct ReceivedReply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl ReceivedReply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// Sends one request with the given header lines and reads the reply to its end.
pub(crate) fn ask(port: u16, request_line: &str, headers: &[&str], body: &str) -> ReceivedReply {
    got(send(port, request_line, headers, body))
}

/// Sends exact bytes and reads until the connection closes.
pub(crate) fn ask_raw(port: u16, request: &[u8]) -> ReceivedReply {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.write_all(request).unwrap();
    got(stream)
}

fn got(mut stream: TcpStream) -> ReceivedReply {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, rest) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let chunked = header(head, "transfer-encoding").is_some();
    let body = if chunked { unchunk(rest) } else { rest.to_owned() };
    ReceivedReply { status, head: head.to_owned(), body }
}

/// Sends one request and leaves the reply to the caller.
pub(crate) fn send(port: u16, request_line: &str, headers: &[&str], body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    let mut text = format!(
        "{request_line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    if !headers.iter().any(|line| line.to_ascii_lowercase().starts_with("host:")) {
        text.push_str(&format!("host: 127.0.0.1:{port}\r\n"));
    }
    headers.iter().for_each(|line| text.push_str(&format!("{line}\r\n")));
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
    stream
}

fn unchunk(mut rest: &str) -> String {
    let mut out = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap();
        if size == 0 {
            break;
        }
        out.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
    out
}

/// `tapegate record --http`, always ended however the test ends.
pub(crate) struct WebRecorder {
    pub(crate) port: u16,
    tape: PathBuf,
    process: Child,
    _folder: Option<TempDir>,
}

impl WebRecorder {
    /// Starts a recorder with these arguments besides `-o` and `--http`.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(arguments, |_| ())
    }

    /// The same, after `prepare` has changed the command.
    pub(crate) fn start_with(arguments: &[&str], prepare: impl Fn(&mut Command)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Self::start_at(folder.path().join("t.jsonl"), arguments, prepare);
        recorder._folder = Some(folder);
        recorder
    }

    /// The same, with a folder for the tape.
    pub(crate) fn start_in(
        folder: TempDir,
        arguments: &[&str],
        prepare: impl Fn(&mut Command),
    ) -> Self {
        let mut recorder = Self::start_at(folder.path().join("t.jsonl"), arguments, prepare);
        recorder._folder = Some(folder);
        recorder
    }

    /// The same, with its tape at a path chosen by the test.
    pub(crate) fn start_at(
        tape: PathBuf,
        arguments: &[&str],
        prepare: impl Fn(&mut Command),
    ) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
        command.arg("record").arg("-o").arg(&tape);
        command.args(["--http", "127.0.0.1:0"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        prepare(&mut command);
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut port = None;
        let mut said = String::new();
        for line in lines.by_ref() {
            let line = line.unwrap();
            let address = line.split_once("listening on http://127.0.0.1:").map(|(_, rest)| rest);
            port = address.and_then(|rest| rest.split('/').next()?.parse().ok());
            said.push_str(&format!("{line}\n"));
            if port.is_some() {
                break;
            }
        }
        // Keep reading, or the recorder would block on a full pipe.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        let port = port.unwrap_or_else(|| panic!("no listener: {said}"));
        Self { port, tape, process, _folder: None }
    }

    pub(crate) fn tape_path(&self) -> PathBuf {
        self.tape.clone()
    }

    /// The current content of the tape.
    pub(crate) fn tape(&self) -> String {
        std::fs::read_to_string(self.tape_path()).unwrap()
    }

    /// Waits for a recorder that exits by itself.
    pub(crate) fn wait(mut self) -> ExitStatus {
        wait_for_exit("the recorder", &mut self.process)
    }

    /// Ends the recorder with SIGTERM and returns its exit status and its tape.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let pid = Pid::from_raw(self.process.id() as i32).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        let status = wait_for_exit("the recorder", &mut self.process);
        assert_checks(&self.tape_path());
        (status, self.tape())
    }
}

impl Drop for WebRecorder {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Asserts that `tapegate check` accepts a tape.
pub(crate) fn assert_checks(tape: &Path) {
    let run = Command::new(env!("CARGO_BIN_EXE_tapegate")).arg("check").arg(tape).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
}
