//! An actor for tests that follows textual commands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tapegate_core::actor::{
    Actor, ActorAction, ActorEvent, ActorSessionId, HandlerCall, HandlerTarget,
};
use tapegate_core::time::Timestamp;

/// All events of an actor, one line each.
pub(crate) type ActorLog = Arc<Mutex<Vec<String>>>;

/// Executes commands: `say WORD`, `huge BYTES`, `later MS WORD`, `stop`, `ask WORD`, `piece WORD`,
/// `end WORD`, `fill PIECES`, `hoard BYTES`, `run PROGRAM…`, `post URL`, `leave`, `break`. Anything
/// else is echoed.
#[derive(Default)]
pub(crate) struct ScriptedActor {
    log: ActorLog,
    heard: Arc<AtomicUsize>,
    later: BTreeMap<(ActorSessionId, u64, usize), String>,
    count: usize,
    /// How many pieces of a line are still to be sent.
    pieces: usize,
    /// How large a backlog it reports.
    hoard: usize,
}

impl ScriptedActor {
    /// A parrot that logs its events and counts the clients' lines.
    pub(crate) fn new(log: &ActorLog, heard: &Arc<AtomicUsize>) -> Rc<RefCell<Self>> {
        let (log, heard) = (Arc::clone(log), Arc::clone(heard));
        Rc::new(RefCell::new(Self { log, heard, ..Self::default() }))
    }

    fn obey(
        &mut self,
        at: Timestamp,
        seat: ActorSessionId,
        line: &[u8],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let text = std::str::from_utf8(line).unwrap();
        match text.split_once(' ').unwrap_or((text, "")) {
            ("say", word) => act(ActorAction::Say(&[word.as_bytes()])),
            ("huge", count) => {
                let text = "x".repeat(count.parse().unwrap());
                act(ActorAction::Say(&[b"\"", text.as_bytes(), b"\""]));
            }
            ("later", rest) => {
                let (ms, word) = rest.split_once(' ').unwrap();
                let due = at.mono_ns + ms.parse::<u64>().unwrap() * 1_000_000;
                self.count += 1;
                self.later.insert((seat, due, self.count), word.to_owned());
            }
            ("stop", _) => {
                act(ActorAction::Say(&[b"stopping"]));
                act(ActorAction::Stop);
            }
            ("ask", word) => act(ActorAction::Ask(&[word.as_bytes()])),
            ("piece", word) => {
                act(ActorAction::Raw { about: None, bytes: word.as_bytes(), ends: false });
            }
            ("end", word) => {
                act(ActorAction::Raw { about: None, bytes: word.as_bytes(), ends: true })
            }
            ("fill", count) => self.pieces = count.parse().unwrap(),
            ("hoard", count) => self.hoard = count.parse().unwrap(),
            ("run", command_text) => {
                let argv: Vec<String> = command_text.split(' ').map(str::to_owned).collect();
                let env = [("TAPEGATE_TEST".to_owned(), "yes".to_owned())];
                let by = HandlerTarget::Command { argv: &argv, env: &env, folder: Some("/") };
                act(ActorAction::Run { call_id: 7, handler_call: errand(by) });
            }
            ("post", url) => {
                let headers = [("x-key".to_owned(), "s3cret".to_owned())];
                let by = HandlerTarget::Http { url, headers: &headers };
                act(ActorAction::Run { call_id: 8, handler_call: errand(by) });
            }
            ("leave", _) => act(ActorAction::Leave { about: None, abrupt: false }),
            ("break", _) => act(ActorAction::Leave { about: None, abrupt: true }),
            _ => act(ActorAction::Say(&[line])),
        }
    }

    fn next(&self, seat: ActorSessionId) -> Option<(ActorSessionId, u64, usize)> {
        self.later.range((seat, 0, 0)..).map(|(key, _)| *key).next().filter(|key| key.0 == seat)
    }
}

/// A handler call with enough time on any machine, unless it is known to take longer.
fn errand(by: HandlerTarget<'_>) -> HandlerCall<'_> {
    let is_endless =
        matches!(by, HandlerTarget::Command { argv, .. } if argv[..] == ["sleep", "600"]);
    let timeout_ns = if is_endless { 500_000_000 } else { 60_000_000_000 };
    HandlerCall { by, body: b"{\"asked\":1}", bytes_max: 1000, timeout_ns }
}

impl Actor for ScriptedActor {
    fn handle(
        &mut self,
        at: Timestamp,
        seat: ActorSessionId,
        cue: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let shown = match &cue {
            ActorEvent::Said(line) => String::from_utf8_lossy(line).into_owned(),
            ActorEvent::Behind(line) => format!("behind {}", String::from_utf8_lossy(line)),
            ActorEvent::TooLarge { message, bytes_max } => {
                format!("too large {} {bytes_max}", message.bytes_total)
            }
            cue => format!("{cue:?}"),
        };
        if shown.len() < 100 {
            self.log.lock().unwrap().push(format!("{} {shown}", seat.0));
        }
        match cue {
            ActorEvent::Said(line) => {
                self.heard.fetch_add(1, Ordering::Relaxed);
                self.obey(at, seat, line, act);
            }
            ActorEvent::Behind(line) => act(ActorAction::Say(&[b"behind ", line])),
            ActorEvent::BehindGone { reason: why } => {
                act(ActorAction::Say(&[b"gone: ", why.as_bytes()]))
            }
            ActorEvent::TooLarge { .. } => act(ActorAction::Say(&[b"too large"])),
            ActorEvent::Done { call_id: ticket, outcome } => {
                let (sort, command_text) = match outcome {
                    Ok(bytes) => ("ok", String::from_utf8_lossy(bytes).into_owned()),
                    Err(reason) => ("failed", reason.to_owned()),
                };
                act(ActorAction::Say(&[format!("done {ticket} {sort} {command_text}").as_bytes()]));
            }
            ActorEvent::Due if self.pieces > 0 => {
                self.pieces -= 1;
                let ends = self.pieces == 0;
                act(ActorAction::Raw { about: None, bytes: &[b'x'; 32 * 1024], ends });
            }
            ActorEvent::Due => {
                let key = self.next(seat).expect("something was due");
                assert!(key.1 <= at.mono_ns, "woken too early");
                let word = self.later.remove(&key).unwrap();
                act(ActorAction::Say(&[word.as_bytes()]));
            }
            ActorEvent::Empty => self.later.retain(|key, _| key.0 != seat),
            ActorEvent::Taken { .. } | ActorEvent::Left => {}
        }
    }

    fn next_wakeup(&self, seat: ActorSessionId) -> Option<u64> {
        let filling = (self.pieces > 0).then_some(0);
        filling.or_else(|| self.next(seat).map(|key| key.1))
    }

    fn is_busy(&self, seat: ActorSessionId) -> bool {
        self.next(seat).is_some() || self.pieces > 0
    }

    fn backlog_bytes(&self, _: ActorSessionId) -> usize {
        self.hoard
    }
}
