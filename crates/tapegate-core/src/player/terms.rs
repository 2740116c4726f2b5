//! Errors that are about what came with a request, and not about what it asks.
//!
//! Without sessions every request brings along by which revision it goes and what its client can
//! do; by HTTP its headers say some of it again. A server may refuse it for that alone, and the
//! same request with other terms is another matter. The tape has no headers.

use std::io;

use super::tape::{Asked, Tape};
use crate::frame::{Envelope, Frame, Kind};
use crate::json;
use crate::tape::index::NONE;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What a recorded error has to do with a live request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearing {
    /// It may be what the live request is answered with, or there is none.
    Apt,
    /// The recorded request was refused for what its client could not do, and the live one can or
    /// the other way round.
    OfAnotherClient,
    /// The recorded request was refused for its form, in which the live one is right: no client
    /// like this one would make it.
    OfForm,
}

impl Tape {
    /// Whether a recorded request was refused for terms that the live one does not have.
    pub(super) fn was_refused_on_other_terms(
        &mut self,
        ask: u32,
        asked: &Asked<'_>,
    ) -> io::Result<bool> {
        Ok(self.bearing(ask, asked)? != Bearing::Apt)
    }

    /// Whether a recorded request is none that the live client would make, because it was refused
    /// for its form.
    pub(super) fn was_malformed(&mut self, ask: u32, asked: &Asked<'_>) -> io::Result<bool> {
        Ok(self.bearing(ask, asked)? == Bearing::OfForm)
    }

    fn bearing(&mut self, ask: u32, asked: &Asked<'_>) -> io::Result<Bearing> {
        let slot = self.slot_of(ask);
        if slot.pair == NONE || self.index.slot(slot.pair).kind != Kind::Error {
            return Ok(Bearing::Apt);
        }
        let answer = self.index.slot(slot.pair);
        let code = code_of(self.text(&answer)?);
        let frame = Frame::read(self.request(ask)?);
        let Some(recorded) = frame.envelope() else { return Ok(Bearing::Apt) };
        Ok(match code {
            // Its headers were wrong. Those of the live request are not, or it would not be here.
            Some(-32020) => Bearing::OfForm,
            Some(-32022) if recorded.protocol_version != asked.said.protocol_version => {
                Bearing::OfForm
            }
            Some(-32600 | -32602) if has_terms(asked.said) && !has_terms(recorded) => {
                Bearing::OfForm
            }
            Some(-32021) if capabilities(recorded) != capabilities(asked.said) => {
                Bearing::OfAnotherClient
            }
            _ => Bearing::Apt,
        })
    }
}

fn code_of(answer: &[u8]) -> Option<i64> {
    let code = json::member(json::member(answer, "error")?, "code")?;
    std::str::from_utf8(code).ok()?.parse().ok()
}

fn capabilities<'a>(said: &Envelope<'a>) -> Option<&'a [u8]> {
    json::member(json::member(said.params?, "_meta")?, CAPABILITIES)
}

fn has_terms(said: &Envelope<'_>) -> bool {
    said.protocol_version.is_some() && capabilities(said).is_some()
}
