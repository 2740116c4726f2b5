//! A minimal HTTP server and client for tests: one function makes all replies.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long anything may take before the test fails.
const GUARD: Duration = Duration::from_secs(60);

/// A request or a reply: its head and its body.
#[derive(Debug, Clone)]
pub(crate) struct HttpMessage {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpMessage {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// The last message: the body, or the data of the last event of a stream.
    pub(crate) fn message(&self) -> String {
        let mut data = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let streams = self.header("content-type") == Some("text/event-stream");
        let message = if streams { data.next_back() } else { Some(&*self.body) };
        message.unwrap_or_else(|| panic!("{self:?}")).to_owned()
    }
}

/// A server that answers every request with one function, and logs the requests.
pub(crate) struct HttpTestServer {
    pub(crate) port: u16,
    seen: Arc<(Mutex<Vec<HttpMessage>>, Condvar)>,
}

impl HttpTestServer {
    /// Starts a server; `reply` returns header lines and a JSON body.
    pub(crate) fn start(
        reply: impl Fn(&HttpMessage) -> (String, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<(Mutex<Vec<HttpMessage>>, Condvar)> = Arc::default();
        let (log, reply) = (Arc::clone(&seen), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (log, reply) = (Arc::clone(&log), Arc::clone(&reply));
                std::thread::spawn(move || serve(stream.unwrap(), &log, &*reply));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// The bodies of all requests.
    pub(crate) fn bodies(&self) -> Vec<String> {
        self.seen.0.lock().unwrap().iter().map(|one| one.body.clone()).collect()
    }

    /// The request lines of all requests.
    pub(crate) fn lines(&self) -> Vec<String> {
        let first = |one: &HttpMessage| one.head.lines().next().unwrap_or_default().to_owned();
        self.seen.0.lock().unwrap().iter().map(first).collect()
    }

    /// Waits for a request whose head starts like this.
    pub(crate) fn wait(&self, start: &str) -> HttpMessage {
        let (lock, more) = &*self.seen;
        let find =
            |seen: &Vec<HttpMessage>| seen.iter().find(|one| one.head.starts_with(start)).cloned();
        let seen = more
            .wait_timeout_while(lock.lock().unwrap(), GUARD, |seen| find(seen).is_none())
            .unwrap()
            .0;
        find(&seen).unwrap_or_else(|| panic!("no {start} came: {seen:?}"))
    }
}

fn serve(
    mut stream: TcpStream,
    log: &(Mutex<Vec<HttpMessage>>, Condvar),
    reply: &dyn Fn(&HttpMessage) -> (String, String),
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while let Some(seen) = read(&mut reader) {
        let (headers, body) = reply(&seen);
        log.0.lock().unwrap().push(seen);
        log.1.notify_all();
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let text = format!("{head}{headers}content-length: {length}\r\n\r\n{body}");
        if stream.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request.
pub(crate) fn read(reader: &mut impl BufRead) -> Option<HttpMessage> {
    let mut seen = HttpMessage { head: String::new(), body: String::new() };
    while !seen.head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut seen.head).ok()? == 0 {
            return None;
        }
    }
    let length = seen.header("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    seen.body = String::from_utf8(body).unwrap();
    Some(seen)
}

/// Sends a request with these header lines and this body; the caller reads the reply.
pub(crate) fn send(
    port: u16,
    line: &str,
    headers: &[&str],
    body: &(impl AsRef<[u8]> + ?Sized),
) -> BufReader<TcpStream> {
    let body = body.as_ref();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    let length = body.len();
    let head = format!("{line} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-length: {length}");
    let headers: String = headers.iter().map(|line| format!("\r\n{line}")).collect();
    let head = format!("{head}{headers}\r\n\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    BufReader::new(stream)
}

/// A text as a compressed body.
pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(text.as_bytes()).unwrap();
    packer.finish().unwrap()
}

/// Reads the head of a reply.
pub(crate) fn head(reader: &mut impl BufRead) -> HttpMessage {
    let mut seen = HttpMessage { head: String::new(), body: String::new() };
    while !seen.head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut seen.head).unwrap() > 0, "no whole head: {seen:?}");
    }
    seen
}

/// Reads a whole reply: a body of known length, or chunks to their end.
pub(crate) fn reply(reader: &mut impl BufRead) -> HttpMessage {
    let mut seen = head(reader);
    if let Some(length) = seen.header("content-length").map(|text| text.parse().unwrap()) {
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        seen.body = String::from_utf8(body).unwrap();
    } else if seen.header("transfer-encoding").is_some() {
        while let Some(piece) = chunk(reader) {
            seen.body.push_str(&piece);
        }
    }
    seen
}

/// The next chunk of a body, unless it has ended.
pub(crate) fn chunk(reader: &mut impl BufRead) -> Option<String> {
    let mut size = String::new();
    reader.read_line(&mut size).unwrap();
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut piece = vec![0; size + 2];
    reader.read_exact(&mut piece).unwrap();
    piece.truncate(size);
    (size > 0).then(|| String::from_utf8(piece).unwrap())
}
