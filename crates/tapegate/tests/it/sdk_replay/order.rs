//! Clients get messages from the tape in the order in which they got them live, although nothing
//! takes time: answers that overtook each other do so again, and no progress callback is lost.

use super::*;

const TS1: PeerClient = PeerClient { python: None, script: &["order.mjs", "1"] };
const TS2: PeerClient = PeerClient { python: None, script: &["order.mjs", "legacy"] };
const TS2_MODERN: PeerClient = PeerClient { python: None, script: &["order.mjs", "modern"] };
const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["order.py", "1"] };
const PY2: PeerClient = PeerClient { python: Some("py2"), script: &["order.py", "legacy"] };
const PY2_MODERN: PeerClient = PeerClient { python: Some("py2"), script: &["order.py", "modern"] };

same_from_the_tape! {
    ts1_hears_in_order: TS1, Order, Stdio => plays_in_order;
    ts2_hears_in_order: TS2, Order, Stdio => plays_in_order;
    ts2_modern_hears_in_order: TS2_MODERN, Order, Stdio => plays_in_order;
    py1_hears_in_order: PY1, Order, Stdio => plays_in_order;
    py2_hears_in_order: PY2, Order, Stdio => plays_in_order;
    py2_modern_hears_in_order: PY2_MODERN, Order, Stdio => plays_in_order;
}

impl SdkRecording {
    /// On stdio and over HTTP in every mode.
    fn plays_in_order(&self) {
        assert!(self.live.contains("\"odd at 3\""), "{}", self.live);
        for mode in MODES {
            let (line, report) = self.replay(mode);
            self.is_same(PeerTransport::Stdio, &line);
            assert_clean(&report, Some(1));
            self.plays_at(mode, |url| {
                let run =
                    self.client.run(PeerTransport::Http, &[url.to_owned()], Path::new("/dev/null"));
                peers::assert_same(&each_call(&self.live), &each_call(&run));
            });
        }
        self.is_untouched();
    }
}

/// The messages of each call. Over HTTP each call has its own stream, and which one the client
/// reads first is random.
fn each_call(transcript: &str) -> String {
    let mut transcript = read(transcript);
    for step in transcript["steps"].as_array_mut().expect("steps") {
        if let Some(heard) = step["result"].as_array_mut() {
            let call = |line: &Value| {
                let text = line.as_str().unwrap_or_default();
                text.split(' ').next().unwrap_or_default().to_owned()
            };
            heard.sort_by_key(call);
        }
    }
    format!("{transcript:#}")
}
