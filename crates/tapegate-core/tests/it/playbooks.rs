//! Tests the relay with playbooks: `>>` is an event, `<<` an action, `#` a comment.
//!
//! Events: `client TEXT`, `server TEXT` (a line), `client~ TEXT` (a last line without a line ending),
//! `client! BYTES LIMIT TEXT` (a message over the limit, of which TEXT is skimmed), `gone server WHY`,
//! `wait MS`. With a gate also `tick`, `withdrawn TICKET`, `approve TICKET`, `deny TICKET`,
//! `question TICKET` (the client's user is asked), `read-only TICKET` (and cannot approve), `input TICKET`
//! (the same in a result), `failed ID ERROR`, `unheld WHY` and `dismissed WHY` (`-` for no reason). `UPDATE_GOLDEN=1`
//! rewrites the actions.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tapegate_core::frame::{EnvelopeSkimmer, Frame};
use tapegate_core::gate::{
    Approval, Gate, GateInput, Hold, HoldEnd, HoldId, HoldOutcome, InputQuestion, ListFirst,
    ListMethod, ListStep, MessagePlace, OwnRequest, PermitAllGate, Refusal, TASKS_EXTENSION,
    TaskDialect, TaskHandle, UserChoice, UserQuestion, Verdict,
};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::{HoldsEndedCause, Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{EntryBody, EntryElement, GateOutcome};
use tapegate_core::time::Timestamp;

#[test]
fn the_relay_keeps_to_its_playbooks() {
    check("relay", |book| play(book, &mut PermitAllGate));
}

#[test]
fn the_relay_keeps_to_its_playbooks_with_a_gate() {
    check("gate", |book| play(book, &mut KeywordGate::default()));
}

/// A gate that reacts to words in a message: `deny`, `cut`, `hold` (a minute), `trust` (held for a minute,
/// then sent on), `task` (if the call is held, it is a task; with `io.modelcontextprotocol/tasks`, one of the extension), `list` (the server is asked first, and again if it answers `more`; the call is refused if
/// that fails). An approved call passes, unless it contains `drift` or `twice`.
#[derive(Debug, Default)]
struct KeywordGate {
    tickets: u64,
    /// How many requests of its own it has made, and whether the last failed.
    requests: u64,
    failed: bool,
    /// The calls it received, other than for verdicts.
    heard: Vec<String>,
}

impl KeywordGate {
    fn hold(&mut self, on_timeout: Option<Refusal>, task: Option<TaskDialect>) -> Verdict {
        self.tickets += 1;
        let ticket = HoldId(self.tickets);
        let task = task.map(|dialect| TaskHandle {
            task_id: format!("task-{}", ticket.0),
            request_id: format!("call-{}", ticket.0),
            ttl_ms: 120_000,
            keep_ms: 60_000,
            poll_ms: 1000,
            dialect,
        });
        let progress = "waiting for approval".to_owned();
        Verdict::Hold(Box::new(Hold {
            hold_id: ticket,
            timeout_ms: 60_000,
            on_timeout,
            progress,
            replacement: None,
            task,
        }))
    }

    fn request(&mut self) -> OwnRequest {
        self.requests += 1;
        OwnRequest::new(&format!("own-{}", self.requests), ListMethod::Tools, None, None)
    }

    fn list_first(&mut self) -> Verdict {
        self.tickets += 1;
        let (ticket, request) = (HoldId(self.tickets), self.request());
        Verdict::ListFirst(Box::new(ListFirst { hold_id: ticket, timeout_ms: 10_000, request }))
    }
}

fn refusal(code: i32, message: &str) -> Refusal {
    let (data, reason) = ("{\"gate\":\"porter\"}".to_owned(), format!("porter: {message}"));
    Refusal { code, message: message.to_owned(), data, reason }
}

impl Gate for KeywordGate {
    fn judge(&mut self, case: &GateInput<'_>) -> Verdict {
        let text = String::from_utf8_lossy(case.frame.bytes()).into_owned();
        let has = |word: &str| text.contains(&format!("\"{word}\""));
        let task = match has(TASKS_EXTENSION) {
            true => Some(TaskDialect::Extension),
            false => has("task").then_some(TaskDialect::Core),
        };
        if let Some(topic) = case.topic {
            self.heard.push(format!("topic {topic:?}"));
        }
        if let Some(ticket) = case.listed {
            self.heard.push(format!("listed {}", ticket.0));
            if std::mem::take(&mut self.failed) {
                return Verdict::Refuse(Box::new(refusal(-32014, "not compared")));
            }
            return match has("always") {
                true => self.list_first(),
                false if has("hold") && case.approved.is_none() => self.hold(None, task),
                false => Verdict::Forward,
            };
        }
        match case.approved {
            Some(_) if has("late") => return self.list_first(),
            Some(_) if has("drift") => {
                return Verdict::Refuse(Box::new(refusal(-32011, "policy has changed")));
            }
            Some(approval) if has("twice") && approval.by == "one" => {
                return self.hold(None, task);
            }
            Some(_) => return Verdict::Forward,
            None => {}
        }
        if has("list") && case.from == Side::Client {
            self.list_first()
        } else if has("deny") {
            Verdict::Refuse(Box::new(refusal(-32014, "denied")))
        } else if has("hold") || has("drift") || has("twice") {
            self.hold(Some(refusal(-32008, "nobody decided")), task)
        } else if has("trust") {
            self.hold(None, task)
        } else if has("cut") {
            Verdict::Rewrite(text.replace("\"cut\"", "\"\"").into_bytes())
        } else {
            Verdict::Forward
        }
    }

    fn own_request_answered(
        &mut self,
        _: Timestamp,
        ticket: HoldId,
        answer: &Frame<'_>,
    ) -> ListStep {
        let text = String::from_utf8_lossy(answer.bytes()).into_owned();
        self.heard.push(format!("own answer for {}: {text}", ticket.0));
        match text.contains("more") {
            true => ListStep::Next(self.request()),
            false => ListStep::Done,
        }
    }

    fn own_request_failed(&mut self, _: Timestamp, ticket: HoldId, reason: &str) {
        self.heard.push(format!("own failed for {}: {reason}", ticket.0));
        self.failed = true;
    }

    fn user_answered(&mut self, _: Timestamp, ticket: HoldId, choice: Option<UserChoice>) {
        self.heard.push(format!("user answered {}: {choice:?}", ticket.0));
    }

    fn hold_ended(&mut self, _: Timestamp, ticket: HoldId, how: HoldEnd) {
        self.heard.push(format!("ended {} {how:?}", ticket.0));
    }

    fn note_oversize(&mut self, place: MessagePlace, bytes_total: u64, _: &[u8]) {
        self.heard.push(format!("oversized {:?} {bytes_total}", place.from));
    }

    fn note_unsent(&mut self, place: MessagePlace, _: &Frame<'_>, reason: &str) {
        self.heard.push(format!("unsent {:?} {reason}", place.from));
    }

    fn reject_ambiguous(&mut self, place: MessagePlace, _: &Frame<'_>, reason: &str) -> bool {
        self.heard.push(format!("rejects {:?} {reason}", place.from));
        true
    }

    fn commit(&mut self) -> Result<(), tapegate_core::tape::RecordError> {
        Ok(())
    }
}

/// A gate that can report the calls it received.
trait ReportingGate: Gate {
    fn heard(&mut self) -> Vec<String>;
}

impl ReportingGate for PermitAllGate {
    fn heard(&mut self) -> Vec<String> {
        Vec::new()
    }
}

impl ReportingGate for KeywordGate {
    fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.heard)
    }
}

/// Compares every playbook of a folder with the actions that its events cause.
#[expect(clippy::disallowed_methods, reason = "the playbooks are files")]
pub(crate) fn check(folder: &str, play: fn(&str) -> String) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/playbooks").join(folder);
    let mut paths: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let book = fs::read_to_string(&path).unwrap();
        let played = play(&book);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &played).unwrap();
        }
        assert_eq!(played, fs::read_to_string(&path).unwrap(), "{}", path.display());
    }
}

/// The playbook with the actions that its events cause.
fn play<G: ReportingGate>(book: &str, gate: &mut G) -> String {
    let mut relay = Relay::default();
    let mut ms = 0;
    let mut out = String::new();
    for line in book.lines().filter(|line| !line.starts_with("<<")) {
        writeln!(out, "{line}").unwrap();
        let Some(event) = line.strip_prefix(">> ") else { continue };
        let (verb, rest) = event.split_once(' ').unwrap_or((event, ""));
        if verb == "wait" {
            ms += rest.parse::<u64>().unwrap();
            continue;
        }
        let at = Timestamp { wall_us: 0, mono_ns: ms * 1_000_000 };
        let frame = Frame::read(rest.as_bytes());
        let event = read(verb, rest, &frame);
        relay.handle(at, event, gate, &mut |action| {
            writeln!(out, "<< {}", show(&action)).unwrap();
        });
        gate.heard().iter().for_each(|line| writeln!(out, "<< gate {line}").unwrap());
    }
    out
}

fn unheld(cause: HoldsEndedCause, reason: &str) -> RelayEvent<'_> {
    RelayEvent::HoldsEnded { lane: None, reason, cause, keeps_lists: false }
}

/// The event of a line; `frame` is the rest of the line, scanned.
fn read<'a>(verb: &str, rest: &'a str, frame: &'a Frame<'a>) -> RelayEvent<'a> {
    // `client@7` is a sessionless client in exchange 7.
    let (verb, exchange) = verb.split_once('@').unwrap_or((verb, "0"));
    let lane = Lane { exchange: exchange.parse().unwrap(), ..Lane::ONLY };
    let settled =
        |settlement| RelayEvent::HoldSettled { hold_id: HoldId(ticket(rest)), outcome: settlement };
    match verb {
        "tick" => return RelayEvent::Tick,
        "withdrawn" => return RelayEvent::HoldWithdrawn { hold_id: HoldId(ticket(rest)) },
        "approve" => {
            let (number, by) = rest.split_once(' ').unwrap_or((rest, "somebody"));
            let approval = Approval { hold_id: HoldId(ticket(number)), by: by.to_owned() };
            return settled(HoldOutcome::Approved(approval));
        }
        "question" | "read-only" | "input" => {
            let question =
                UserQuestion::new(&format!("q-{}", ticket(rest)), "may it?", verb != "read-only");
            return settled(match verb {
                "input" => {
                    HoldOutcome::AskInResult(Box::new(InputQuestion::new(question, "state".into())))
                }
                _ => HoldOutcome::AskUser(Box::new(question)),
            });
        }
        "deny" => return settled(HoldOutcome::Refused(refusal(-32007, "a person said no"))),
        "unheld" => return unheld(HoldsEndedCause::SessionEnded, rest),
        "unserved" => return unheld(HoldsEndedCause::ServiceGone, rest),
        "failed" => {
            let (id, error) = rest.split_once(' ').unwrap();
            let (id, error) = (id.as_bytes(), error.as_bytes());
            return RelayEvent::RequestFailed { lane, asker: Side::Client, id, error };
        }
        "dismissed" => {
            let reason = Some(rest).filter(|reason| *reason != "-");
            return RelayEvent::RequestsDropped { lane, asker: Side::Client, ids: None, reason };
        }
        _ => {}
    }
    let from = if verb.starts_with("client") { Side::Client } else { Side::Server };
    match verb.trim_start_matches("client").trim_start_matches("server") {
        "" => RelayEvent::Received { lane, from, frame, terminated: true },
        "~" => RelayEvent::Received { lane, from, frame, terminated: false },
        "!" => {
            let mut words = rest.splitn(3, ' ');
            let bytes_total = words.next().unwrap().parse().unwrap();
            let bytes_max = words.next().unwrap().parse().unwrap();
            let text = words.next().unwrap();
            let mut skim = EnvelopeSkimmer::default();
            skim.feed(text.as_bytes());
            let head = text.as_bytes()[..text.len().min(16)].to_vec();
            let message = OversizeMessage { head, bytes_total, envelope: skim.finish() };
            RelayEvent::TooLarge { lane, from, message, bytes_max }
        }
        _ => {
            let (who, reason) = rest.split_once(' ').unwrap();
            let side = if who == "client" { Side::Client } else { Side::Server };
            RelayEvent::SideGone { lane: Some(lane), side, reason, error_type: None }
        }
    }
}

fn ticket(text: &str) -> u64 {
    text.split(' ').next().unwrap().parse().unwrap()
}

fn show(action: &RelayAction<'_, '_>) -> String {
    let name = |side: &Side| format!("{side:?}").to_lowercase();
    match action {
        RelayAction::Record(entry) => {
            let mut text = format!("record {} {}", name(&entry.from), what(&entry.body));
            if entry.ours {
                text.push_str(" ours");
            }
            if !entry.terminated {
                text.push_str(" unterminated");
            }
            if entry.gate_outcome != GateOutcome::Sent {
                write!(text, " {:?}", entry.gate_outcome).unwrap();
            }
            text
        }
        RelayAction::Forward { to, message, .. } => {
            format!("forward {} {}", name(to), String::from_utf8_lossy(message.bytes()))
        }
        RelayAction::Held { hold_id: ticket, .. } => format!("held {}", ticket.0),
        RelayAction::HeldAgain { was, hold_id: ticket } => {
            format!("held again {} {}", was.0, ticket.0)
        }
        RelayAction::Consumed => "consumed".to_owned(),
        RelayAction::Answer { to, message, .. } => {
            format!("answer {} {}", name(to), String::from_utf8_lossy(message.bytes()))
        }
    }
}

fn what(what: &EntryBody) -> String {
    let element = |element: &EntryElement| match element.reply {
        Some(reply) => format!("#{} to #{} after {}ms", element.n, reply.to, reply.latency_ms),
        None => format!("#{}", element.n),
    };
    match what {
        EntryBody::Message(one) => element(one),
        EntryBody::Batch(all) => {
            let all: Vec<String> =
                all.iter().map(|one| one.as_ref().map_or("-".to_owned(), element)).collect();
            format!("[{}]", all.join(", "))
        }
        EntryBody::Garbage(reason) => format!("garbage ({reason})"),
        EntryBody::TooLarge { bytes_total } => format!("too large ({bytes_total} bytes)"),
    }
}
