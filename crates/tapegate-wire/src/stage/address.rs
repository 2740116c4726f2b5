//! Lines between a seat and its clients inside the process that name the request they belong to.
//!
//! No JSON begins with an address, and no id holds its end, so a line either has one or has none. A
//! line with nothing behind its address ends the stream of the request early.

use super::outbox::Outbox;

const START: u8 = 0x1e;
const END: u8 = 0x1f;

/// Adds a line that belongs to the request with the id `about`.
pub(super) fn add(out: &mut Outbox, about: &[u8], parts: &[&[u8]]) {
    let address: [&[u8]; 3] = [&[START], about, &[END]];
    out.add(&[&address, parts].concat());
}

/// The id of the request that a line belongs to, if it names one, and the line without it.
pub(crate) fn read(line: &[u8]) -> (Option<&[u8]>, &[u8]) {
    let named = line.strip_prefix(&[START]).and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == END)?;
        Some((Some(&rest[..end]), &rest[end + 1..]))
    });
    named.unwrap_or((None, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_it_was_written_and_other_lines_are_left_alone() {
        let mut out = Outbox::default();
        add(&mut out, b"\"a\"", &[b"{\"x\":", b"1}"]);
        out.release();
        let line = out.due().strip_suffix(b"\n").unwrap_or_default();
        assert_eq!(read(line), (Some(&b"\"a\""[..]), &b"{\"x\":1}"[..]));
        for line in [&b"{}"[..], b"", b"\x1e", b"\x1ex"] {
            assert_eq!(read(line), (None, line));
        }
    }
}
