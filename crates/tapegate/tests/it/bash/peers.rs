//! The official SDK clients use the tools, in both eras, on pipes and over HTTP.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::peers::{self, PeerClient, PeerTransport};

const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["bash.py", "legacy"] };
const PY2: PeerClient = PeerClient { python: Some("py2"), script: &["bash.py", "legacy"] };
const PY2_MODERN: PeerClient = PeerClient { python: Some("py2"), script: &["bash.py", "modern"] };
const TS1: PeerClient = PeerClient { python: None, script: &["bash.mjs", "sdk1"] };
const TS2: PeerClient = PeerClient { python: None, script: &["bash.mjs", "legacy"] };
const TS2_MODERN: PeerClient = PeerClient { python: None, script: &["bash.mjs", "modern"] };

/// What every client prints.
const EXPECTED: &str = "\
tools bash_recorder.execute bash_recorder.session_info bash_recorder.list_recent bash_recorder.read_output bash_recorder.stop
execute|out
|err
|3|False|e_
timeout|part
|None|True
background|up
|True|False|SIGTERM
wrong|True|Invalid working directory: /no/such does not exist
recent|echo up|echo part
session|3|True|True
";

/// A server over HTTP, which is killed when the test ends.
struct BashListener {
    child: Child,
    url: String,
}

impl BashListener {
    fn start(folder: &std::path::Path) -> Self {
        let mut command = Command::new(peers::tapegate());
        command.args(["bash", "--http", "127.0.0.1:0"]).current_dir(folder);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find_map(|line| Some(line.split_once("listening on ")?.1.to_owned()));
        // Read on, or the server's log would block it.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.unwrap() }
    }
}

impl Drop for BashListener {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn check(client: PeerClient, link: PeerTransport) {
    let folder = tempfile::tempdir().unwrap();
    let server = (link == PeerTransport::Http).then(|| BashListener::start(folder.path()));
    let target = match &server {
        Some(server) => vec![server.url.clone()],
        None => vec![peers::tapegate().to_owned(), "bash".to_owned()],
    };
    let mut command = client.command(link, &target);
    command.current_dir(folder.path());
    assert_eq!(peers::transcript(command), EXPECTED);
    let entries = super::client::entries(&folder.path().join(".cuff/recordings"));
    assert_eq!(entries.len(), 3);
}

macro_rules! checks {
    ($($name:ident: $client:ident, $link:ident;)*) => {
        $(#[test]
        fn $name() {
            check($client, PeerTransport::$link);
        })*
    };
}

checks! {
    py1_on_stdio: PY1, Stdio;
    py1_over_http: PY1, Http;
    py2_on_stdio: PY2, Stdio;
    py2_modern_on_stdio: PY2_MODERN, Stdio;
    py2_modern_over_http: PY2_MODERN, Http;
    ts1_on_stdio: TS1, Stdio;
    ts1_over_http: TS1, Http;
    ts2_on_stdio: TS2, Stdio;
    ts2_modern_on_stdio: TS2_MODERN, Stdio;
    ts2_modern_over_http: TS2_MODERN, Http;
}
