//! Channels over HTTPS: the certificate is checked against the roots of the system.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::{fs, io::BufRead, io::BufReader};

use tempfile::TempDir;

use super::super::super::setup::{answer, call};
use super::{policy, start_accepted_with};
use crate::support::wait_for;

/// An HTTPS server with a certificate for 127.0.0.1, which keeps the requests that it gets.
struct TlsReceiver {
    folder: TempDir,
    process: Child,
    port: u16,
}

const SERVER: &str = r#"
import http.server, ssl, sys
class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        with open("seen", "ab") as seen:
            seen.write(body + b"\n")
        answer = b'{"id":"n1"}'
        self.send_response(200)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("leaf.pem", "leaf.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Makes `root.pem`, and `leaf.pem` with its key, for this address.
fn make_certificates(folder: &Path, address: &str) {
    let script = format!(
        "set -e
        openssl req -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -days 2 -subj /CN=root-of-{address}
        openssl req -newkey rsa:2048 -nodes -keyout leaf.key -out leaf.csr -subj /CN=leaf
        printf 'subjectAltName=IP:{address}\nbasicConstraints=CA:FALSE\n' > leaf.ext
        openssl x509 -req -in leaf.csr -CA root.pem -CAkey root.key -CAcreateserial -out leaf.pem -days 2 -extfile leaf.ext"
    );
    let done = Command::new("sh").args(["-c", &script]).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

impl TlsReceiver {
    fn start(address: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        make_certificates(folder.path(), address);
        let mut command = Command::new("python3");
        command.args(["-c", SERVER]).current_dir(folder.path());
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Self { folder, process, port: line.trim().parse().unwrap() }
    }

    fn section(&self) -> String {
        format!("  phone: {{ type: ntfy, url: \"https://127.0.0.1:{}/topic\" }}\n", self.port)
    }

    fn roots(&self) -> String {
        self.folder.path().join("root.pem").to_string_lossy().into_owned()
    }

    fn seen(&self) -> String {
        fs::read_to_string(self.folder.path().join("seen")).unwrap_or_default()
    }
}

impl Drop for TlsReceiver {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn a_server_with_a_known_certificate_is_told() {
    let phone = TlsReceiver::start("127.0.0.1");
    let environment = [("SSL_CERT_FILE", &*phone.roots())];
    let hub = start_accepted_with(&policy("channels: [phone]", &phone.section()), &environment);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    wait_for("the push", || phone.seen().contains("Approve s ask?").then_some(()));
    let id = hub.pending(1).remove(0);
    assert_eq!(hub.ask(&format!("POST /approvals/{id}/deny"), r#"{"by":"bob"}"#).status, 200);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
}

#[test]
fn a_server_with_an_unknown_certificate_or_another_name_is_told_nothing() {
    let (unknown, misnamed) = (TlsReceiver::start("127.0.0.1"), TlsReceiver::start("127.0.0.2"));
    let roots = format!("{}/other.pem", misnamed.folder.path().display());
    fs::copy(misnamed.roots(), &roots).unwrap();
    for (receiver, reason) in [(&unknown, "UnknownIssuer"), (&misnamed, "not valid for")] {
        let section = receiver.section();
        let environment = [("SSL_CERT_FILE", roots.as_str())];
        let hub = start_accepted_with(&policy("channels: [phone]", &section), &environment);
        let mut run = hub.shim(&["log=log", "serve"]).start();
        run.send(call(1, "ask").as_bytes());
        hub.says("channel `phone` does not work: cannot reach 127.0.0.1");
        assert!(hub.errors().contains(reason), "{}", hub.errors());
        assert_eq!(receiver.seen(), "");
    }
}
