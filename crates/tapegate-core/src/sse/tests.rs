//! Tests of how streams are split, and of what parsers read in rewritten streams.

use super::*;
use proptest::prelude::*;

fn events(stream: &[u8], step: usize) -> (Vec<u8>, Vec<String>) {
    let mut events = SseParser::new(1000);
    let (mut raw, mut seen) = (Vec::new(), Vec::new());
    let mut take = |piece: SsePiece| {
        raw.extend_from_slice(&piece.raw);
        if let Some(data) = piece.data {
            let name = piece.event.unwrap_or_default();
            let id = piece.id.unwrap_or_default();
            seen.push(format!(
                "{}|{}|{}",
                name.escape_ascii(),
                id.escape_ascii(),
                data.escape_ascii()
            ));
        }
    };
    for chunk in stream.chunks(step) {
        events.feed(chunk);
        while let Some(piece) = events.next() {
            take(piece.unwrap());
        }
    }
    if let Some(piece) = events.take_rest() {
        take(piece);
    }
    (raw, seen)
}

#[test]
fn fields_comments_and_line_ends_are_read_in_any_chunking() {
    let stream = b": hi\n\nevent: message\nid: 1\ndata: {\"a\":\r\ndata:  1}\r\n\r\ndata:x\r\rretry: 5\n\ndata\n\nid: torn";
    for step in 1..stream.len() {
        let (raw, seen) = events(stream, step);
        assert_eq!(raw, stream);
        assert_eq!(seen, ["message|1|{\\\"a\\\":\\n 1}", "||x", "||"], "step {step}");
    }
}

#[test]
fn a_byte_order_mark_and_an_event_without_a_name_hide_no_message() {
    let stream =
        b"\xef\xbb\xbfdata: 1\n\nevent:\ndata: 2\n\nevent\ndata: 3\n\n\xef\xbb\xbfdata: 4\n\n";
    for step in 1..stream.len() {
        let (raw, seen) = events(stream, step);
        assert_eq!(
            (raw.as_slice(), seen),
            (&stream[..], ["||1", "||2", "||3"].map(str::to_owned).to_vec())
        );
    }
}

#[test]
fn what_stands_behind_the_last_blank_line_is_told_too() {
    for (rest, data) in
        [("data: 1\n", "1"), ("data: 1", "1"), ("data: 1\r", "1"), ("data: 1\ndata: 2", "1\n2")]
    {
        let mut events = SseParser::new(40);
        events.feed(rest.as_bytes());
        assert!(events.next().is_none());
        let piece = events.take_rest().unwrap();
        assert_eq!(
            (piece.raw.as_slice(), piece.data.as_deref()),
            (rest.as_bytes(), Some(data.as_bytes()))
        );
    }
}

#[test]
fn an_id_and_a_name_of_several_lines_are_left_out() {
    for odd in ["1\ndata: {}", "1\rdata: {}", "1\u{2028}data: {}", "1\u{85}x", "1\0"] {
        let mut out = Vec::new();
        write_event(&mut out, Some(odd), Some(odd), b"{}");
        assert_eq!(out, b"data: {}\n\n", "{odd:?}");
    }
    let mut out = Vec::new();
    write_event(&mut out, Some("7"), Some("message"), b"{}");
    assert_eq!(out, b"event: message\nid: 7\ndata: {}\n\n");
}

#[test]
fn a_long_line_is_searched_once() {
    let mut events = SseParser::new(1 << 20);
    for byte in [b'x'; 5000] {
        events.feed(&[byte]);
        assert!(events.next().is_none());
        assert_eq!(events.searched, events.buffer.len());
    }
}

#[test]
fn an_event_over_the_limit_is_drained_and_the_next_one_comes() {
    let stream = b"event: message\r\ndata: {\"result\":\"0123456789012345678901234567890\",\r\ndata: \"id\":7}\r\n\r\ndata: ok\n\n";
    for step in 1..stream.len() {
        let mut events = SseParser::new(40);
        let mut seen = Vec::new();
        for chunk in stream.chunks(step) {
            events.feed(chunk);
            while let Some(next) = events.next() {
                seen.push(match next {
                    Ok(piece) => {
                        piece.data.map(|data| data.escape_ascii().to_string()).unwrap_or_default()
                    }
                    Err(over) => {
                        format!(
                            "{} {:?} {}",
                            over.bytes_total, over.envelope.id, over.envelope.answer
                        )
                    }
                });
            }
        }
        seen.retain(|text| !text.is_empty());
        assert_eq!(seen, ["51 Some([55]) true", "ok"], "step {step}");
    }
}

proptest! {
    #[test]
    fn no_byte_is_lost_and_chunks_do_not_matter(
        stream in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), Just(b'd'), any::<u8>()], 0..200),
        step in 1usize..50,
    ) {
        let (raw, seen) = events(&stream, step);
        prop_assert_eq!(&raw, &stream);
        prop_assert_eq!(seen, events(&stream, stream.len().max(1)).1);
    }
}
