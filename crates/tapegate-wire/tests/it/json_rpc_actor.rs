//! An actor for tests that speaks JSON-RPC.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::time::Timestamp;

use crate::scripted_actor::ActorLog;

/// Answers requests: `late` after a while, `never` not at all, `progress` after a notification,
/// `ask` after a request of its own, `news` with a notification that belongs to no request, `part`
/// after the end of its stream, `behind` with the passthrough server's answer, `stop` as the last,
/// `drip` a few bytes at a time, `endless` without an end, `batch` and `twice` after events that
/// are not single messages, `leave` and `break` before it disconnects, `flood` before more requests
/// of its own than fit, until one of them is answered, and all others at once.
#[derive(Default)]
pub(crate) struct JsonRpcActor {
    log: ActorLog,
    late: BTreeMap<(ActorSessionId, u64), Vec<u8>>,
    asking: BTreeMap<ActorSessionId, Vec<u8>>,
    drips: BTreeMap<(ActorSessionId, u64, u32), SlowAnswer>,
    count: u32,
    flooding: Option<ActorSessionId>,
}

/// An answer sent in small pieces: the request, and the rest of the answer.
type SlowAnswer = (Vec<u8>, Vec<u8>);

const DRIP_NS: u64 = 2_000_000;
const DRIP_BYTES: usize = 8;

/// More than may be queued for a client that does not read.
const FLOOD_MESSAGES: usize = 300;
const FLOOD_MESSAGE_BYTES: usize = 16 * 1024;

const LATE_NS: u64 = 150_000_000;
const PROGRESS: &[u8] =
    br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#;

impl JsonRpcActor {
    pub(crate) fn new(log: &ActorLog) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { log: Arc::clone(log), ..Self::default() }))
    }

    fn hear(
        &mut self,
        at: Timestamp,
        seat: ActorSessionId,
        line: &[u8],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let frame = Frame::read(line);
        let Some(envelope) = frame.envelope() else { return };
        let (Some(id), MessageKind::Request) = (envelope.id, envelope.kind()) else {
            self.flooding.take_if(|_| envelope.kind() == MessageKind::Error);
            if let (Some(id), true) = (self.asking.remove(&seat), envelope.result.is_some()) {
                answer(seat, &id, act);
            }
            return;
        };
        if envelope.is_method("late") {
            self.late.insert((seat, at.mono_ns + LATE_NS), id.to_vec());
        } else if envelope.is_method("ask") {
            act(ActorAction::Say(&[br#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#]));
            self.asking.insert(seat, id.to_vec());
        } else if envelope.is_method("progress") {
            let token = envelope.progress_token.unwrap_or(b"0");
            act(ActorAction::Say(&[PROGRESS, token, b"}}"]));
            answer(seat, id, act);
        } else if envelope.is_method("news") {
            answer(seat, id, act);
            let text = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            act(ActorAction::Say(&[text]));
        } else if envelope.is_method("part") {
            let token = envelope.progress_token.unwrap_or(b"0");
            act(ActorAction::Say(&[PROGRESS, token, b"}}"]));
            act(ActorAction::Part(id));
            act(ActorAction::Say(&[PROGRESS, token, b"}}"]));
            self.late.insert((seat, at.mono_ns + LATE_NS), id.to_vec());
        } else if envelope.is_method("drip") {
            self.count += 1;
            let text = answer_text(seat, id).concat();
            self.drips.insert((seat, at.mono_ns, self.count), (id.to_vec(), text));
        } else if envelope.is_method("endless") {
            let text = answer_text(seat, id).concat();
            act(ActorAction::Raw { about: Some(id), bytes: &text, ends: false });
            act(ActorAction::Raw { about: Some(id), bytes: &[b'A'; 1000], ends: false });
        } else if envelope.is_method("batch") {
            act(ActorAction::Raw { about: None, bytes: b"[{\"jsonrpc\":\"2.0\",", ends: false });
            act(ActorAction::Say(&[
                br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
            ]));
            act(ActorAction::Raw { about: None, bytes: b"\"method\":\"a\"},7]", ends: true });
            answer(seat, id, act);
        } else if envelope.is_method("twice") {
            let question = br#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
            act(ActorAction::Raw { about: None, bytes: question, ends: true });
            act(ActorAction::Raw { about: None, bytes: question, ends: true });
            answer(seat, id, act);
        } else if envelope.is_method("leave") || envelope.is_method("break") {
            answer(seat, id, act);
            act(ActorAction::Leave { about: Some(id), abrupt: envelope.is_method("break") });
        } else if envelope.is_method("flood") {
            answer(seat, id, act);
            self.flooding = Some(seat);
        } else if envelope.is_method("behind") {
            act(ActorAction::Ask(&[line]));
        } else if envelope.is_method("stop") {
            answer(seat, id, act);
            act(ActorAction::Stop);
        } else if !envelope.is_method("never") {
            answer(seat, id, act);
        }
    }

    fn next(&self, seat: ActorSessionId) -> Option<u64> {
        let mut later = self.late.range((seat, 0)..).map(|(key, _)| *key);
        let late = later.next().filter(|key| key.0 == seat).map(|key| key.1);
        late.into_iter().chain(self.next_drip(seat).map(|key| key.1)).min()
    }

    fn flood(&self, act: &mut dyn FnMut(ActorAction<'_>)) {
        let text = "x".repeat(FLOOD_MESSAGE_BYTES);
        let request = br#"{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage","params":""#;
        for _ in 0..FLOOD_MESSAGES {
            act(ActorAction::Say(&[request, text.as_bytes(), b"\"}"]));
        }
    }

    fn next_drip(&self, seat: ActorSessionId) -> Option<(ActorSessionId, u64, u32)> {
        self.drips.range((seat, 0, 0)..).map(|(key, _)| *key).next().filter(|key| key.0 == seat)
    }

    fn drip(
        &mut self,
        at: Timestamp,
        key: (ActorSessionId, u64, u32),
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let (id, mut text) = self.drips.remove(&key).unwrap();
        let rest = text.split_off(DRIP_BYTES.min(text.len()));
        act(ActorAction::Raw { about: Some(&id), bytes: &text, ends: rest.is_empty() });
        if !rest.is_empty() {
            self.drips.insert((key.0, at.mono_ns + DRIP_NS, key.2), (id, rest));
        }
    }
}

fn answer_text(seat: ActorSessionId, id: &[u8]) -> [Vec<u8>; 3] {
    let result = format!(",\"result\":{{\"seat\":{}}}}}", seat.0);
    [b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec(), id.to_vec(), result.into_bytes()]
}

fn answer(seat: ActorSessionId, id: &[u8], act: &mut dyn FnMut(ActorAction<'_>)) {
    let [head, id, tail] = answer_text(seat, id);
    act(ActorAction::Say(&[&head, &id, &tail]));
}

impl Actor for JsonRpcActor {
    fn handle(
        &mut self,
        at: Timestamp,
        seat: ActorSessionId,
        cue: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let shown = match &cue {
            ActorEvent::Said(line) => String::from_utf8_lossy(line).into_owned(),
            cue => format!("{cue:?}"),
        };
        self.log.lock().unwrap().push(format!("{} {shown}", seat.0));
        match cue {
            ActorEvent::Said(line) => self.hear(at, seat, line, act),
            ActorEvent::Due if self.flooding == Some(seat) => self.flood(act),
            ActorEvent::Behind(line) => act(ActorAction::Say(&[line])),
            ActorEvent::Due if self.next_drip(seat).is_some_and(|key| key.1 <= at.mono_ns) => {
                let key = self.next_drip(seat).unwrap();
                self.drip(at, key, act);
            }
            ActorEvent::Due => {
                let due = self.next(seat).unwrap();
                let id = self.late.remove(&(seat, due)).unwrap();
                answer(seat, &id, act);
            }
            _ => {}
        }
    }

    fn next_wakeup(&self, seat: ActorSessionId) -> Option<u64> {
        let flooding = self.flooding.filter(|of| *of == seat).map(|_| 0);
        flooding.or_else(|| self.next(seat))
    }

    fn is_busy(&self, seat: ActorSessionId) -> bool {
        self.next(seat).is_some()
    }
}
