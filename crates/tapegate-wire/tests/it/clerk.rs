//! An actor for tests that speaks JSON-RPC.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use tapegate_core::actor::{Act, Actor, Cue, Seat};
use tapegate_core::frame::{Frame, Kind};
use tapegate_core::time::At;

use crate::cast::Log;

/// Answers requests: `late` after a while, `never` not at all, `progress` with a notification
/// first, `ask` with a question first, `news` with a notification for nobody in particular,
/// `part` after the end of its stream, `behind` with what the server behind says, `stop` as the last, and all others at once.
#[derive(Default)]
pub(crate) struct Clerk {
    log: Log,
    late: BTreeMap<(Seat, u64), Vec<u8>>,
    asking: BTreeMap<Seat, Vec<u8>>,
}

const LATE_NS: u64 = 150_000_000;
const PROGRESS: &[u8] =
    br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#;

impl Clerk {
    pub(crate) fn new(log: &Log) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self { log: Arc::clone(log), ..Self::default() }))
    }

    fn hear(&mut self, at: At, seat: Seat, line: &[u8], act: &mut dyn FnMut(Act<'_>)) {
        let frame = Frame::read(line);
        let Some(said) = frame.envelope() else { return };
        let (Some(id), Kind::Request) = (said.id, said.kind()) else {
            if let (Some(id), true) = (self.asking.remove(&seat), said.result.is_some()) {
                answer(seat, &id, act);
            }
            return;
        };
        if said.is_method("late") {
            self.late.insert((seat, at.mono_ns + LATE_NS), id.to_vec());
        } else if said.is_method("ask") {
            act(Act::Say(&[br#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#]));
            self.asking.insert(seat, id.to_vec());
        } else if said.is_method("progress") {
            let token = said.progress_token.unwrap_or(b"0");
            act(Act::Say(&[PROGRESS, token, b"}}"]));
            answer(seat, id, act);
        } else if said.is_method("news") {
            answer(seat, id, act);
            let text = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
            act(Act::Say(&[text]));
        } else if said.is_method("part") {
            let token = said.progress_token.unwrap_or(b"0");
            act(Act::Say(&[PROGRESS, token, b"}}"]));
            act(Act::Part(id));
            act(Act::Say(&[PROGRESS, token, b"}}"]));
            self.late.insert((seat, at.mono_ns + LATE_NS), id.to_vec());
        } else if said.is_method("behind") {
            act(Act::Ask(&[line]));
        } else if said.is_method("stop") {
            answer(seat, id, act);
            act(Act::Stop);
        } else if !said.is_method("never") {
            answer(seat, id, act);
        }
    }

    fn next(&self, seat: Seat) -> Option<u64> {
        let mut later = self.late.range((seat, 0)..).map(|(key, _)| *key);
        later.next().filter(|key| key.0 == seat).map(|key| key.1)
    }
}

fn answer(seat: Seat, id: &[u8], act: &mut dyn FnMut(Act<'_>)) {
    let result = format!(",\"result\":{{\"seat\":{}}}}}", seat.0);
    act(Act::Say(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id, result.as_bytes()]));
}

impl Actor for Clerk {
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) {
        let shown = match &cue {
            Cue::Said(line) => String::from_utf8_lossy(line).into_owned(),
            cue => format!("{cue:?}"),
        };
        self.log.lock().unwrap().push(format!("{} {shown}", seat.0));
        match cue {
            Cue::Said(line) => self.hear(at, seat, line, act),
            Cue::Behind(line) => act(Act::Say(&[line])),
            Cue::Due => {
                let due = self.next(seat).unwrap();
                let id = self.late.remove(&(seat, due)).unwrap();
                answer(seat, &id, act);
            }
            _ => {}
        }
    }

    fn due(&self, seat: Seat) -> Option<u64> {
        self.next(seat)
    }

    fn busy(&self, seat: Seat) -> bool {
        self.next(seat).is_some()
    }
}
