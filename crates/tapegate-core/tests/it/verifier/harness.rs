//! Runs the verifier in virtual time on a tape and a server that repeats it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::time::Duration;

use serde_json::Value;
use tapegate_core::frame::MessageKind;
use tapegate_core::json::path::JsonPath;
use tapegate_core::side::Side;
use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeReader;
use tapegate_core::tape::index::{BodySource, Index, Indexer, NONE};
use tapegate_core::time::Timestamp;
use tapegate_core::verifier::{
    CallSelection, Verifier, VerifierAction, VerifierEvent, VerifierOptions, VerifyReport,
};

/// No test takes more steps than this.
const STEPS_MAX: usize = 100_000;

/// A tape to verify, and the options.
pub(super) struct VerifyHarness {
    /// Lines of the tape: `>` from the client, `<` from the server, then the message.
    lines: Vec<String>,
    calls: CallSelection,
    ignored: Vec<JsonPath>,
    shape_only: bool,
}

/// The result.
pub(super) struct HarnessResult {
    pub(super) report: VerifyReport,
    /// The messages that the server received, in all sessions.
    pub(super) sent: Vec<String>,
    /// How much time passed.
    pub(super) ms: u64,
    /// How many events there were.
    pub(super) steps: usize,
}

/// The messages that a live server sends in place of a recorded one.
pub(super) type ReplyOverride<'a> = &'a mut dyn FnMut(&str) -> Vec<String>;

/// The location of a notification's subscription.
const SUBSCRIPTION: &str = "/params/_meta/io.modelcontextprotocol~1subscriptionId";

struct VerifyBodies(Vec<u8>);

impl BodySource for VerifyBodies {
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]> {
        Ok(&self.0[offset as usize..][..length as usize])
    }
}

impl VerifyHarness {
    pub(super) fn new(tape: &str) -> Self {
        let lines = tape.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines = lines.map(str::to_owned).collect();
        Self { lines, calls: CallSelection::All, ignored: Vec::new(), shape_only: false }
    }

    pub(super) fn calls(mut self, calls: CallSelection) -> Self {
        self.calls = calls;
        self
    }

    pub(super) fn ignore(mut self, path: &str) -> Self {
        self.ignored.push(JsonPath::read(path).unwrap());
        self
    }

    pub(super) fn shape_only(mut self) -> Self {
        self.shape_only = true;
        self
    }

    /// Verifies the tape against a server that repeats it.
    pub(super) fn echo(&self) -> HarnessResult {
        self.altered(&mut |said| vec![said.to_owned()])
    }

    /// Verifies the tape against a server that deviates from it.
    pub(super) fn altered(&self, alter: ReplyOverride<'_>) -> HarnessResult {
        let tape = self.written();
        let index = indexed(&tape);
        let options = VerifierOptions {
            calls: self.calls,
            ignored: self.ignored.clone(),
            shape_only: self.shape_only,
            timeout: Duration::from_secs(30),
            mask: None,
            signer: Signer::default(),
        };
        let mut verifier = Verifier::new(&index, Box::new(VerifyBodies(tape.clone())), options);
        let mut run = HarnessRun { now_ns: 0, sent: Vec::new(), steps: 0 };
        while let Some(session) = verifier.session() {
            let mut echo = EchoServer::new(&index, &tape, session - 1);
            run.session(&mut verifier, &mut echo, alter);
        }
        let (sent, ms, steps) = (run.sent, run.now_ns / 1_000_000, run.steps);
        HarnessResult { report: verifier.finish(), sent, ms, steps }
    }

    /// The tape as a file. A line may begin with `@MS`, the time it was recorded, and `#N`, its session.
    fn written(&self) -> Vec<u8> {
        let mut out = String::new();
        let mut ms = 0;
        for (at, line) in self.lines.iter().enumerate() {
            let mut rest = line.as_str();
            let mut session = String::new();
            while let Some((word, more)) = rest.split_once(' ').filter(|(word, _)| word.len() > 1) {
                match word.split_at(1) {
                    ("@", number) => ms = number.parse().unwrap(),
                    ("#", name) => session = format!(",\"session\":\"{name}\""),
                    _ => panic!("{line}"),
                }
                rest = more;
            }
            let (side, msg) = rest.split_once(' ').unwrap();
            let dir = if side == ">" { "c2s" } else { "s2c" };
            let (seq, second, rest) = (at + 1, ms / 1000, ms % 1000);
            out += &format!(
                "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-01-01T00:00:{second:02}.{rest:03}Z\",\
                 \"dir\":\"{dir}\",\"msg\":{msg}{session}}}\n"
            );
        }
        out.into_bytes()
    }
}

struct HarnessRun {
    now_ns: u64,
    sent: Vec<String>,
    steps: usize,
}

impl HarnessRun {
    fn session(
        &mut self,
        verifier: &mut Verifier<'_>,
        echo: &mut EchoServer,
        alter: ReplyOverride<'_>,
    ) {
        let mut said: VecDeque<String> = VecDeque::new();
        let mut over = self.cue(verifier, VerifierEvent::Opened, echo, &mut said, alter);
        said.extend(echo.start(alter));
        while !over {
            self.steps += 1;
            assert!(self.steps < STEPS_MAX, "the verifier does not come to an end");
            while said.is_empty() && echo.next_owed().is_some() {
                said.extend(echo.past_silence(alter));
            }
            let line = said.pop_front();
            let cue = match &line {
                Some(line) if line == "gone" => VerifierEvent::Gone { reason: "it fell over" },
                Some(line) => VerifierEvent::Said(line.as_bytes()),
                None => {
                    let due = verifier.next_wakeup().expect("it waits for something");
                    self.now_ns = self.now_ns.max(due);
                    VerifierEvent::Due
                }
            };
            over = self.cue(verifier, cue, echo, &mut said, alter);
        }
    }

    fn cue(
        &mut self,
        verifier: &mut Verifier<'_>,
        cue: VerifierEvent<'_>,
        echo: &mut EchoServer,
        said: &mut VecDeque<String>,
        alter: ReplyOverride<'_>,
    ) -> bool {
        let at = Timestamp { wall_us: 0, mono_ns: self.now_ns };
        let (mut sent, mut over) = (Vec::new(), false);
        let mut act = |act: VerifierAction<'_>| match act {
            VerifierAction::Say(text) => sent.push(String::from_utf8(text.to_vec()).unwrap()),
            VerifierAction::Over => over = true,
        };
        verifier.handle(at, cue, &mut act).unwrap();
        for line in sent {
            assert!(!line.contains('\n'));
            said.extend(echo.hear(&line, alter));
            self.sent.push(line);
        }
        over
    }
}

/// A server that sends what the tape has, in order.
struct EchoServer {
    script: Vec<ScriptLine>,
    /// The client's requests received so far, by position, with their live id and token.
    heard: HashMap<usize, (Value, Option<Value>)>,
    /// Everything before this was sent or skipped.
    at: usize,
    /// The position after the client's last message.
    heard_to: usize,
    /// The last list of tools on the tape.
    tools: Option<Value>,
}

struct ScriptLine {
    from: Side,
    kind: MessageKind,
    msg: Value,
    text: String,
    /// For an answer, the line of its request.
    pair: Option<usize>,
    /// Whether it was sent before its turn.
    said: bool,
}

impl EchoServer {
    fn new(index: &Index, tape: &[u8], session: u32) -> Self {
        let slots: Vec<u32> =
            (0..index.len() as u32).filter(|slot| index.entry(*slot).session == session).collect();
        let place = |slot: u32| slots.iter().position(|one| *one == slot);
        let line = |slot: &u32| {
            let there = index.entry(*slot);
            let bytes = &tape[there.offset as usize..][..there.length as usize];
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let pair = (there.pair != NONE).then(|| place(there.pair).unwrap());
            let msg = serde_json::from_str(&text).unwrap();
            ScriptLine { from: there.from, kind: there.kind, msg, text, pair, said: false }
        };
        let script: Vec<ScriptLine> = slots.iter().map(line).collect();
        let tools = script.iter().rev().find_map(|line| line.msg["result"].get("tools")).cloned();
        Self { script, heard: HashMap::new(), at: 0, heard_to: 0, tools }
    }

    /// The messages before the client sends anything.
    fn start(&mut self, alter: ReplyOverride<'_>) -> Vec<String> {
        self.go_on(alter)
    }

    /// The response to a message of the client.
    fn hear(&mut self, text: &str, alter: ReplyOverride<'_>) -> Vec<String> {
        let live: Value = serde_json::from_str(text).unwrap();
        if live.get("method").is_none() {
            return Vec::new();
        }
        let asks = |line: &ScriptLine| {
            let begins = matches!(line.kind, MessageKind::Request | MessageKind::Notification);
            line.from == Side::Client && begins && same(&line.msg, &live)
        };
        let Some(place) = (self.heard_to..self.script.len()).find(|at| asks(&self.script[*at]))
        else {
            return self.own(&live, alter);
        };
        let token = live["params"]["_meta"].get("progressToken").cloned();
        self.heard.insert(place, (live["id"].clone(), token));
        self.heard_to = place + 1;
        self.go_on(alter)
    }

    /// The next message that belongs to a received request, or the server request before it, when the
    /// client skips what precedes them.
    fn past_silence(&mut self, alter: ReplyOverride<'_>) -> Vec<String> {
        let Some(owed) = self.next_owed() else { return Vec::new() };
        let asks = |at: &usize| {
            let line = &self.script[*at];
            line.from == Side::Server && line.kind == MessageKind::Request && !line.said
        };
        let next = (self.at..owed).find(asks).unwrap_or(owed);
        self.script[next].said = true;
        self.spoken(next).map(|text| alter(&text)).unwrap_or_default()
    }

    fn next_owed(&self) -> Option<usize> {
        let heard = |at: &usize| {
            let owner = self.owner(*at);
            !self.script[*at].said && owner.is_some_and(|owner| self.heard.contains_key(&owner))
        };
        (self.at..self.script.len()).find(heard)
    }

    /// The request that a line of the server belongs to.
    fn owner(&self, at: usize) -> Option<usize> {
        let line = &self.script[at];
        match (line.from, line.kind) {
            (Side::Server, MessageKind::Response | MessageKind::Error) => line.pair,
            (Side::Server, MessageKind::Notification) => {
                let progress = line.msg["method"] == "notifications/progress";
                let token = line.msg["params"].get("progressToken").filter(|_| progress);
                let subscription = line.msg.pointer(SUBSCRIPTION);
                let asks = |wanted: &dyn Fn(&Value) -> bool| {
                    self.script[..at].iter().rposition(|line| {
                        let asks = line.from == Side::Client && line.kind == MessageKind::Request;
                        asks && wanted(&line.msg)
                    })
                };
                let by_token = token.and_then(|token| {
                    asks(&|msg| msg["params"]["_meta"].get("progressToken") == Some(token))
                });
                by_token.or_else(|| {
                    let id = subscription?;
                    asks(&|msg| msg["method"] == "subscriptions/listen" && msg["id"] == *id)
                })
            }
            _ => None,
        }
    }

    /// The answer to a request that is not on the tape.
    fn own(&self, live: &Value, alter: ReplyOverride<'_>) -> Vec<String> {
        let Some(id) = live.get("id") else { return Vec::new() };
        let answer = match &self.tools {
            Some(tools) if live["method"] == "tools/list" => {
                serde_json::json!({"jsonrpc":"2.0","id":id,"result":{"tools":tools}})
            }
            _ => serde_json::json!({"jsonrpc":"2.0","id":id,"error":{"code":-32601,"message":"?"}}),
        };
        alter(&answer.to_string())
    }

    /// Sends everything up to the client's next turn.
    fn go_on(&mut self, alter: ReplyOverride<'_>) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(line) = self.script.get(self.at) {
            let begins = matches!(line.kind, MessageKind::Request | MessageKind::Notification);
            // A client need not repeat a redundant or late cancellation.
            let begins = begins && line.msg["method"] != "notifications/cancelled";
            if line.from == Side::Client && begins && self.at >= self.heard_to {
                break;
            }
            // Skip a notification that may have been caused by something the client skipped.
            let caused = self.at + 1 < self.heard_to
                && line.kind == MessageKind::Notification
                && self.owner(self.at).is_none();
            if line.from == Side::Server && !line.said && !caused {
                out.extend(self.spoken(self.at).map(|text| alter(&text)).unwrap_or_default());
            }
            self.at += 1;
        }
        out
    }

    /// A line of the server as it is sent live: with live ids, or not at all.
    fn spoken(&self, at: usize) -> Option<String> {
        let line = &self.script[at];
        let Some(owner) = self.owner(at) else { return Some(line.text.clone()) };
        let (id, token) = self.heard.get(&owner)?;
        let mut msg = line.msg.clone();
        match line.kind {
            MessageKind::Notification => {
                if let Some(token) = token {
                    msg["params"]["progressToken"] = token.clone();
                }
                if let Some(subscription) = msg.pointer_mut(SUBSCRIPTION) {
                    *subscription = id.clone();
                }
            }
            _ => msg["id"] = id.clone(),
        }
        Some(msg.to_string())
    }
}

/// Whether a live message equals this recorded one, apart from ids and tokens.
fn same(recorded: &Value, live: &Value) -> bool {
    let bare = |msg: &Value| {
        let mut msg = msg.clone();
        if let Some(members) = msg.as_object_mut() {
            members.remove("id");
        }
        if let Some(meta) = msg.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
            meta.remove("progressToken");
        }
        if msg["method"] == "notifications/cancelled" {
            msg["params"]["requestId"] = Value::Null;
        }
        msg
    };
    bare(recorded) == bare(live)
}

fn indexed(tape: &[u8]) -> Index {
    let mut reader = TapeReader::new(tape);
    let mut indexer = Indexer::new(Signer::default());
    while let Some(next) = reader.next() {
        indexer.push(&next.unwrap());
    }
    indexer.finish().0
}
