//! Errors caused by the metadata of a request, not by what it asks for.
//!
//! In the sessionless era every request carries its revision and its client's capabilities; over
//! HTTP some of that is repeated in headers. A server may refuse a request for these alone, so its
//! answer does not apply to the same request with other metadata. The tape has no headers.

use std::io;

use super::tape::{LiveRequest, PlayerTape};
use crate::frame::{Envelope, Frame, MessageKind};
use crate::json;
use crate::tape::index::NONE;

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// How a recorded error relates to a live request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorRelevance {
    /// It may answer the live request, or there is no error.
    Apt,
    /// The recorded request was refused because of its client's capabilities, and those of the live
    /// client differ.
    OfAnotherClient,
    /// The recorded request was refused because it was malformed, and the live one is not: this
    /// client would never make it.
    OfForm,
}

impl PlayerTape {
    /// Whether a recorded request was refused because of metadata that the live one does not have.
    pub(super) fn was_refused_for_other_protocol(
        &mut self,
        request_number: u32,
        request: &LiveRequest<'_>,
    ) -> io::Result<bool> {
        Ok(self.compare_protocol(request_number, request)? != ErrorRelevance::Apt)
    }

    /// Whether a recorded request was refused as malformed, so that the live client would not make
    /// it.
    pub(super) fn was_malformed_request(
        &mut self,
        request_number: u32,
        request: &LiveRequest<'_>,
    ) -> io::Result<bool> {
        Ok(self.compare_protocol(request_number, request)? == ErrorRelevance::OfForm)
    }

    fn compare_protocol(
        &mut self,
        request_number: u32,
        request: &LiveRequest<'_>,
    ) -> io::Result<ErrorRelevance> {
        let entry = self.entry_of(request_number);
        if entry.pair == NONE || self.index.entry(entry.pair).kind != MessageKind::Error {
            return Ok(ErrorRelevance::Apt);
        }
        let answer = self.index.entry(entry.pair);
        let code = code_of(self.text(&answer)?);
        let frame = Frame::read(self.request(request_number)?);
        let Some(recorded) = frame.envelope() else { return Ok(ErrorRelevance::Apt) };
        Ok(match code {
            // Its headers were wrong. Those of the live request were checked before it got here.
            Some(-32020) => ErrorRelevance::OfForm,
            Some(-32022) if recorded.protocol_version != request.envelope.protocol_version => {
                ErrorRelevance::OfForm
            }
            Some(-32600 | -32602)
                if has_protocol_fields(request.envelope) && !has_protocol_fields(recorded) =>
            {
                ErrorRelevance::OfForm
            }
            Some(-32021) if capabilities(recorded) != capabilities(request.envelope) => {
                ErrorRelevance::OfAnotherClient
            }
            _ => ErrorRelevance::Apt,
        })
    }
}

fn code_of(answer: &[u8]) -> Option<i64> {
    let code = json::member(json::member(answer, "error")?, "code")?;
    std::str::from_utf8(code).ok()?.parse().ok()
}

fn capabilities<'a>(envelope: &Envelope<'a>) -> Option<&'a [u8]> {
    json::member(json::member(envelope.params?, "_meta")?, CAPABILITIES)
}

fn has_protocol_fields(envelope: &Envelope<'_>) -> bool {
    envelope.protocol_version.is_some() && capabilities(envelope).is_some()
}
