//! Errors caused by the metadata of a request, not by what it asks for.
//!
//! In the sessionless era every request carries its revision and its client's capabilities; over
//! HTTP some of that is repeated in headers. A server may refuse a request for these alone, so its
//! answer does not apply to the same request with other metadata. The tape has no headers.

use std::io;

use super::tape::{Asked, Tape};
use crate::frame::{Envelope, Frame, Kind};
use crate::json;
use crate::tape::index::NONE;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a recorded error relates to a live request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bearing {
    /// It may answer the live request, or there is no error.
    Apt,
    /// The recorded request was refused because of its client's capabilities, and those of the live
    /// client differ.
    OfAnotherClient,
    /// The recorded request was refused because it was malformed, and the live one is not: this
    /// client would never make it.
    OfForm,
}

impl Tape {
    /// Whether a recorded request was refused because of metadata that the live one does not have.
    pub(super) fn was_refused_on_other_terms(
        &mut self,
        ask: u32,
        asked: &Asked<'_>,
    ) -> io::Result<bool> {
        Ok(self.bearing(ask, asked)? != Bearing::Apt)
    }

    /// Whether a recorded request was refused as malformed, so that the live client would not make
    /// it.
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
            // Its headers were wrong. Those of the live request were checked before it got here.
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
