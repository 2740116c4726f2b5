//! The line protocol between an actor session and a bridge in the same process. Lines can also name
//! the request they belong to, carry raw bytes, or close the client's connection.
//!
//! JSON never starts with the address marker, and ids never contain its end, so addressed lines are
//! unambiguous. A line with only an address ends the request's stream early. Line ends in raw bytes
//! are escaped.

use std::borrow::Cow;

use tapegate_core::tape::Provenance;

use super::outbox::LineOutbox;
pub(crate) use super::raw_piece::ActorPiece;

const START: u8 = 0x1e;
const END: u8 = 0x1f;
/// After a start: raw bytes, to be continued or complete.
const RAW: u8 = 0x1d;
const RAW_END: u8 = 0x1c;
/// After a start: close the client's connection, gracefully or abruptly.
const LEAVE: u8 = 0x04;
const BREAK: u8 = 0x18;
/// After a start: a message with known provenance, which precedes the address.
const PLAYED: u8 = 0x05;
/// Separates a provenance from an address.
const APART: u8 = b';';
/// Precedes an escaped byte.
const ESCAPE: u8 = 0x10;
const LINE_FEED: u8 = b'n';

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AddressedLine<'a> {
    /// A message, perhaps related to a request.
    Message {
        /// The id of the request.
        about: Option<&'a [u8]>,
        /// The message.
        text: &'a [u8],
        /// Its provenance, if it is not live.
        provenance: Provenance,
    },
    /// Ends the stream of a request early.
    Part(&'a [u8]),
    /// Raw bytes: part of the body that answers a request, or of an event.
    Raw {
        /// The id of the request.
        about: Option<&'a [u8]>,
        /// The bytes.
        piece: ActorPiece<'a>,
        /// Whether these are the last bytes.
        ends: bool,
    },
    /// Closes the client's connection; of clients that share a server, that of the given request.
    Leave {
        /// The id of the request.
        about: Option<&'a [u8]>,
        /// Whether the connection is reset instead of closed.
        abrupt: bool,
    },
}

/// Adds a line that belongs to the request with the id `about`.
pub(super) fn add(out: &mut LineOutbox, about: &[u8], parts: &[&[u8]]) {
    let address: [&[u8]; 3] = [&[START], about, &[END]];
    out.add(&[&address, parts].concat());
}

/// Adds a line that is played back or our own, and may belong to the request with the id `about`.
/// Returns the message.
pub(super) fn add_played<'a>(
    out: &'a mut LineOutbox,
    about: Option<&[u8]>,
    parts: &[&[u8]],
    provenance: Provenance,
) -> &'a [u8] {
    let ours: &[u8] = if provenance.ours { b"o" } else { b"" };
    let latency = provenance.latency_us.map(|us| us.to_string()).unwrap_or_default();
    let id = about.unwrap_or_default();
    let played: [&[u8]; 6] = [&[START, PLAYED], ours, latency.as_bytes(), &[APART], id, &[END]];
    let addressed: [&[u8]; 3] = [&[START], id, &[END]];
    // Ordinary messages have no address, so that they need not be escaped or parsed.
    let address: &[&[u8]] = match (about, provenance == Provenance::default()) {
        (None, true) => &[],
        (Some(_), true) => &addressed,
        (_, false) => &played,
    };
    let start = address.iter().map(|part| part.len()).sum();
    &out.add(&[address, parts].concat())[start..]
}

pub(super) fn add_raw(out: &mut LineOutbox, about: Option<&[u8]>, bytes: &[u8], ends: bool) {
    let start = [START, if ends { RAW_END } else { RAW }];
    out.add(&[&start, about.unwrap_or_default(), &[END], &escaped(bytes)]);
}

/// Adds a line that closes the client's connection.
pub(super) fn add_close(out: &mut LineOutbox, about: Option<&[u8]>, abrupt: bool) {
    let start = [START, if abrupt { BREAK } else { LEAVE }];
    out.add(&[&start, about.unwrap_or_default(), &[END]]);
}

/// Parses a line.
pub(crate) fn read(line: &[u8]) -> AddressedLine<'_> {
    let message =
        |about, text| AddressedLine::Message { about, text, provenance: Provenance::default() };
    let Some(rest) = line.strip_prefix(&[START]) else { return message(None, line) };
    let Some(end) = rest.iter().position(|byte| *byte == END) else { return message(None, line) };
    let (address, text) = (&rest[..end], &rest[end + 1..]);
    match address.split_first() {
        Some((sort @ (&LEAVE | &BREAK), id)) => {
            AddressedLine::Leave { about: parse_id(id), abrupt: *sort == BREAK }
        }
        Some((sort @ (&RAW | &RAW_END), id)) => {
            let piece = ActorPiece::new(unescaped(text));
            AddressedLine::Raw { about: parse_id(id), piece, ends: *sort == RAW_END }
        }
        Some((&PLAYED, played)) => {
            let apart = played.iter().position(|byte| *byte == APART).unwrap_or(played.len());
            let (known, id) = (&played[..apart], played.get(apart + 1..).unwrap_or_default());
            AddressedLine::Message { about: parse_id(id), text, provenance: provenance(known) }
        }
        _ if text.is_empty() => AddressedLine::Part(address),
        _ => message(Some(address), text),
    }
}

fn provenance(known: &[u8]) -> Provenance {
    let latency = known.strip_prefix(b"o");
    let digits = std::str::from_utf8(latency.unwrap_or(known)).ok();
    let latency_us = digits.and_then(|digits| digits.parse().ok());
    Provenance { ours: latency.is_some(), latency_us }
}

fn parse_id(id: &[u8]) -> Option<&[u8]> {
    Some(id).filter(|id| !id.is_empty())
}

fn escaped(bytes: &[u8]) -> Cow<'_, [u8]> {
    if !bytes.iter().any(|byte| matches!(*byte, b'\n' | ESCAPE)) {
        return Cow::Borrowed(bytes);
    }
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for byte in bytes {
        match *byte {
            b'\n' => out.extend_from_slice(&[ESCAPE, LINE_FEED]),
            ESCAPE => out.extend_from_slice(&[ESCAPE, ESCAPE]),
            byte => out.push(byte),
        }
    }
    Cow::Owned(out)
}

fn unescaped(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&ESCAPE) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match *byte {
            ESCAPE => out.extend(bytes.next().map(|byte| match *byte {
                LINE_FEED => b'\n',
                byte => byte,
            })),
            byte => out.push(byte),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(add: impl FnOnce(&mut LineOutbox)) -> Vec<u8> {
        let mut out = LineOutbox::default();
        add(&mut out);
        out.release();
        let line = out.writable_bytes().strip_suffix(b"\n").unwrap_or_default();
        assert!(!line.contains(&b'\n'));
        line.to_vec()
    }

    #[test]
    fn an_address_is_read_as_it_was_written_and_other_lines_are_left_alone() {
        let addressed = line(|out| add(out, b"\"a\"", &[b"{\"x\":", b"1}"]));
        let provenance = Provenance::default();
        let text = &b"{\"x\":1}"[..];
        assert_eq!(
            read(&addressed),
            AddressedLine::Message { about: Some(b"\"a\""), text, provenance }
        );
        assert_eq!(read(&line(|out| add(out, b"7", &[]))), AddressedLine::Part(b"7"));
        for line in [&b"{}"[..], b"", b"\x1e", b"\x1ex"] {
            assert_eq!(read(line), AddressedLine::Message { about: None, text: line, provenance });
        }
    }

    #[test]
    fn a_played_message_keeps_its_provenance() {
        for about in [None, Some(&b"\"a;o7\""[..]), Some(b"7")] {
            for (ours, latency_us) in
                [(false, None), (true, None), (false, Some(70)), (true, Some(0))]
            {
                let provenance = Provenance { ours, latency_us };
                let coded = line(|out| _ = add_played(out, about, &[b"{", b"}"], provenance));
                assert_eq!(read(&coded), AddressedLine::Message { about, text: b"{}", provenance });
            }
        }
    }

    #[test]
    fn any_bytes_come_out_as_they_went_in() {
        let every: Vec<u8> = (0..=255).collect();
        for (about, ends) in [(None, true), (Some(&b"\"a\""[..]), false), (Some(b"-1"), true)] {
            for bytes in [&b""[..], b"{}", b"\n", b"\x10\n\x10n\x1e\x1f", &every] {
                let coded = line(|out| add_raw(out, about, bytes, ends));
                let piece = ActorPiece::new(Cow::Borrowed(bytes));
                let expected = AddressedLine::Raw { about, piece, ends };
                assert_eq!(read(&coded), expected);
            }
        }
    }

    #[test]
    fn who_is_left_is_told_how() {
        for (about, abrupt) in [(None, false), (None, true), (Some(&b"7"[..]), true)] {
            let coded = line(|out| add_close(out, about, abrupt));
            assert_eq!(read(&coded), AddressedLine::Leave { about, abrupt });
        }
    }
}
