//! The stand-in for a server that could not be started.
//!
//! A client that asks and hears nothing waits; one whose server is gone at once learns nothing
//! but that. So every request is answered with the reason, until the client leaves.

use tapegate_core::actor::{Act, Actor, Cue, Seat};
use tapegate_core::frame::{Body, Envelope, Frame, Kind, elements, error_reply};
use tapegate_core::relay::CODE_GONE;
use tapegate_core::time::At;

/// Says of every request why there is nobody to answer it.
#[derive(Debug)]
pub(super) struct Absent {
    /// Why there is no server.
    why: String,
}

impl Absent {
    pub(super) fn new(why: String) -> Self {
        Self { why }
    }

    fn answer(&self, id: &[u8], act: &mut dyn FnMut(Act<'_>)) {
        let data = "{\"by\":\"tapegate\",\"error_type\":\"upstream_connection_failed\"}";
        act(Act::Say(&[&error_reply(id, CODE_GONE, &self.why, data)]));
    }

    fn hear(&self, said: Option<&Envelope<'_>>, act: &mut dyn FnMut(Act<'_>)) {
        let Some(envelope) = said.filter(|envelope| envelope.kind() == Kind::Request) else {
            return;
        };
        if let Some(id) = envelope.id {
            self.answer(id, act);
        }
    }
}

impl Actor for Absent {
    fn handle(&mut self, _: At, _: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) {
        match cue {
            Cue::Said(line) => {
                let frame = Frame::read(line);
                match frame.body() {
                    Body::Batch => {
                        elements(line).iter().for_each(|one| self.hear(one.envelope(), act));
                    }
                    _ => self.hear(frame.envelope(), act),
                }
            }
            Cue::TooLarge { message, .. } if message.said.method.is_some() => {
                message.said.id.iter().for_each(|id| self.answer(id, act));
            }
            _ => {}
        }
    }

    fn due(&self, _: Seat) -> Option<u64> {
        None
    }

    fn busy(&self, _: Seat) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &[u8]) -> Vec<String> {
        let at = At { wall_us: 0, mono_ns: 0 };
        let mut heard = Vec::new();
        Absent::new("gone".to_owned()).handle(at, Seat(1), Cue::Said(line), &mut |act| {
            if let Act::Say(parts) = act {
                heard.push(String::from_utf8_lossy(&parts.concat()).into_owned());
            }
        });
        heard
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
