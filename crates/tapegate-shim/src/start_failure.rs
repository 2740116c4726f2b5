//! Stands in for a session that could not be started.
//!
//! If a server closes the connection, clients show "failed" and no reason. So every request is
//! answered with the reason until the client leaves.

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel};
use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, elements, error_reply};
use tapegate_core::relay::CODE_GONE;
use tapegate_core::time::Timestamp;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_store::activity;

use crate::journal::{EventSink, ShimJournal};
use crate::plan::ShimPlan;

/// The JSON-RPC code for "no policy governs this session".
const CODE_UNGOVERNED: i32 = -32013;

/// Why a session cannot start.
#[derive(Debug, Clone)]
pub struct StartFailure {
    /// The message for the client.
    pub message: String,
    /// What is missing or wrong.
    pub kind: FailureKind,
}

/// What is missing or wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    Server,
    Hub,
    Policy,
    Tape,
    /// A folder for Tapegate's state or tapes.
    State,
    /// The environment or the command line.
    Settings,
}

impl FailureKind {
    /// The kind of the event in the activity log.
    fn event(self) -> ActivityKind {
        match self {
            Self::Policy => ActivityKind::Policy,
            Self::Server | Self::Hub | Self::Tape | Self::State | Self::Settings => {
                ActivityKind::Session
            }
        }
    }

    /// The code and the `error_type` of the answers.
    fn code(self) -> (i32, &'static str) {
        match self {
            Self::Server => (CODE_GONE, "upstream_connection_failed"),
            Self::Hub => (CODE_GONE, "service_unavailable"),
            Self::Policy => (CODE_UNGOVERNED, "policy_not_loaded"),
            Self::Tape => (CODE_UNGOVERNED, "recording_unavailable"),
            Self::State => (CODE_UNGOVERNED, "state_folder_refused"),
            Self::Settings => (CODE_UNGOVERNED, "settings_invalid"),
        }
    }
}

/// How many lines and characters of a reason are sent. Clients show little more.
const LINES_MAX: usize = 8;
const CHARS_MAX: usize = 1500;

/// A reason in the form that clients show: one line of limited length, with the hint at its end.
pub fn shorten_reason(message_text: &str, hint: Option<&str>) -> String {
    let lines: Vec<&str> = message_text.lines().filter(|line| !line.trim().is_empty()).collect();
    // The last line is the summary; the findings come before it.
    let (last, findings) = lines.split_last().map_or((&"", &[][..]), |(last, rest)| (last, rest));
    let folder = folder_in(last);
    let mut text = format!("Tapegate: {last}");
    for (index, finding) in findings.iter().take(LINES_MAX).enumerate() {
        text.push_str(if index == 0 { ": " } else { "; " });
        // The summary names the folder. Clients truncate long messages, so it is not repeated.
        text.push_str(folder.and_then(|folder| finding.strip_prefix(folder)).unwrap_or(finding));
    }
    if findings.len() > LINES_MAX {
        text.push_str(&format!("; and {} more", findings.len() - LINES_MAX));
    }
    if text.chars().count() > CHARS_MAX {
        text = text.chars().take(CHARS_MAX).collect();
        text.push('…');
    }
    // After the cut: the hint is what the reader can act on.
    if let Some(hint) = hint {
        let ends = text.ends_with(['.', '?', '!', '…']);
        text.push_str(if ends { " " } else { ". " });
        let mut letters = hint.chars();
        text.extend(letters.next().into_iter().flat_map(char::to_uppercase).chain(letters));
    }
    text
}

/// The folder, with its slash, of the first path in backticks on a line.
fn folder_in(line: &str) -> Option<&str> {
    let path = line.split('`').nth(1)?;
    path.rfind('/').map(|slash| &path[..=slash])
}

/// Logs why a session cannot start, before it has a journal.
pub fn log_failure(plan: &ShimPlan, kind: FailureKind, reason: &str) {
    let observing = ActivePolicy::observe_only(plan.wanted);
    let sink = EventSink::open(plan, &observing).unwrap_or_else(EventSink::Nowhere);
    note_failure(plan, &ShimJournal::open(plan, &observing, sink), kind, reason);
}

/// Logs why a session cannot start.
pub fn note_failure(plan: &ShimPlan, journal: &ShimJournal, kind: FailureKind, reason: &str) {
    let event = start_failed_event(plan.clock.now().wall_us, kind, reason);
    journal.log_event_quietly(event);
}

/// The event for a session that cannot start.
pub fn start_failed_event(wall_us: i64, kind: FailureKind, reason: &str) -> ActivityEvent<'static> {
    let faults: Vec<&str> = reason.lines().take(20).collect();
    ActivityEvent {
        wall_us,
        level: EventLevel::Error,
        kind: kind.event(),
        component: Some(EventComponent::Shim),
        policy_reason: Some(format!("the session cannot start: {reason}").into()),
        extra: activity::extra(&json!({ "event": "start_failed", "faults": faults })),
        ..ActivityEvent::default()
    }
}

/// Answers every request with the reason why the session cannot start.
#[derive(Debug)]
pub struct StartFailureActor(pub StartFailure);

impl StartFailureActor {
    fn send_error(&self, id: &[u8], act: &mut dyn FnMut(ActorAction<'_>)) {
        let (code, error_type) = self.0.kind.code();
        let data = json!({ "by": "tapegate", "error_type": error_type }).to_string();
        act(ActorAction::Say(&[&error_reply(id, code, &self.0.message, &data)]));
    }

    fn handle_message(&self, msg: Option<&Envelope<'_>>, act: &mut dyn FnMut(ActorAction<'_>)) {
        let Some(envelope) = msg.filter(|envelope| envelope.kind() == MessageKind::Request) else {
            return;
        };
        if let Some(id) = envelope.id {
            self.send_error(id, act);
        }
    }
}

impl Actor for StartFailureActor {
    fn handle(
        &mut self,
        _: Timestamp,
        _: ActorSessionId,
        event: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        match event {
            ActorEvent::Said(line) => {
                let frame = Frame::read(line);
                match frame.body() {
                    FrameBody::Batch => {
                        elements(line)
                            .iter()
                            .for_each(|one| self.handle_message(one.envelope(), act));
                    }
                    _ => self.handle_message(frame.envelope(), act),
                }
            }
            ActorEvent::TooLarge { message, .. } if message.envelope.method.is_some() => {
                message.envelope.id.iter().for_each(|id| self.send_error(id, act));
            }
            _ => {}
        }
    }

    fn next_wakeup(&self, _: ActorSessionId) -> Option<u64> {
        None
    }

    fn is_busy(&self, _: ActorSessionId) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &[u8]) -> Vec<String> {
        let at = Timestamp { wall_us: 0, mono_ns: 0 };
        let mut heard = Vec::new();
        let failure = StartFailure { message: "gone".to_owned(), kind: FailureKind::Server };
        StartFailureActor(failure).handle(
            at,
            ActorSessionId(1),
            ActorEvent::Said(line),
            &mut |act| {
                if let ActorAction::Say(parts) = act {
                    heard.push(String::from_utf8_lossy(&parts.concat()).into_owned());
                }
            },
        );
        heard
    }

    #[test]
    fn a_long_reason_is_cut_and_the_way_out_stays() {
        let many: Vec<String> =
            (0..30).map(|n| format!("finding {n} {}", "x".repeat(400))).collect();
        let text =
            shorten_reason(&format!("{}\nit does not load", many.join("\n")), Some("do this"));
        assert!(text.starts_with("Tapegate: it does not load: finding 0 "), "{text}");
        assert!(text.ends_with("… Do this") && text.chars().count() < CHARS_MAX + 50, "{text}");
        let few = shorten_reason("a\nb\nc", None);
        assert_eq!(few, "Tapegate: c: a; b");
        assert_eq!(shorten_reason("one", None), "Tapegate: one");
    }

    #[test]
    fn a_reason_names_the_folder_once_and_is_made_of_sentences() {
        let message_text = "/a/b/p.yaml:1:2: did you mean `x`?\n/a/b/c.cedar:3:1: no\n\
                     /a/else:1:1: no; did you mean `y`?\nthe policy `/a/b/p.yaml` does not load";
        assert_eq!(
            shorten_reason(message_text, Some("check it")),
            "Tapegate: the policy `/a/b/p.yaml` does not load: p.yaml:1:2: did you mean `x`?; \
             c.cedar:3:1: no; /a/else:1:1: no; did you mean `y`? Check it"
        );
        assert_eq!(
            shorten_reason("none", Some("`tapegate init`")),
            "Tapegate: none. `tapegate init`"
        );
    }

    #[test]
    fn requests_are_answered_and_nothing_else_is() {
        let ask = |id: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}");
        let heard = said(ask("\"a\"").as_bytes());
        assert_eq!(heard.len(), 1);
        assert!(heard[0].starts_with(r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"#));
        assert_eq!(said(format!("[{},{}]", ask("1"), ask("2")).as_bytes()).len(), 2);
        for quiet in [
            "",
            "x",
            r#"{"jsonrpc":"2.0","method":"n"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        ] {
            assert!(said(quiet.as_bytes()).is_empty(), "{quiet}");
        }
    }
}
