//! Any byte stream in any chunking yields the same bytes and records the same frames.

use proptest::prelude::*;
use tapegate_core::frame::Frame;
use tapegate_core::gate::PermitAllGate;
use tapegate_core::lines::{LineSplitter, StreamLine};
use tapegate_core::relay::{Relay, RelayAction, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::sse::SseParser;
use tapegate_core::tape::{Dialect, EntryWriter, EntryWriterOptions};
use tapegate_core::time::Timestamp;

/// Text that sometimes looks like traffic.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => Just(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\"}\n".to_vec()),
        4 => Just(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"t\":\"\xc3\xa9\"}}\r\n".to_vec()),
        2 => Just(b"[{\"id\":2,\"method\":\"m\"}, 7]\n".to_vec()),
        2 => Just(b"\n".to_vec()),
        1 => Just(b"{\"id\":3,\"method\":\"m\",\"x\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\n".to_vec()),
        3 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
}

/// What is sent on, what is answered, and the tape, for a stream that arrives in pieces.
fn relayed(stream: &[u8], sizes: &[usize], bytes_max: usize, dialect: Dialect) -> [Vec<u8>; 4] {
    let mut lines = LineSplitter::new(bytes_max);
    let mut relay = Relay::default();
    let options = EntryWriterOptions { dialect, raw: true, shared: false };
    let mut entry_writer = EntryWriter::new(options, None, Timestamp::default());
    let mut out = [const { Vec::new() }; 4];
    let mut pass = |lines: &LineSplitter, cut: StreamLine| {
        let (lane, from) = (Lane::ONLY, Side::Client);
        let frame;
        let (event, end) = match cut {
            StreamLine::Line(range) => {
                frame = Frame::read_without_gate_details(lines.bytes(range));
                (RelayEvent::Received { lane, from, frame: &frame, terminated: true }, &b"\n"[..])
            }
            StreamLine::Unterminated(range) => {
                frame = Frame::read_without_gate_details(lines.bytes(range));
                (RelayEvent::Received { lane, from, frame: &frame, terminated: false }, &b""[..])
            }
            StreamLine::Oversize(message) => {
                (RelayEvent::TooLarge { lane, from, message, bytes_max }, &b""[..])
            }
        };
        let [sent, answered, tape, beside] = &mut out;
        relay.handle(Timestamp::default(), event, &mut PermitAllGate, &mut |action| match action {
            RelayAction::Record(entry) => entry_writer.write(entry, tape, beside),
            RelayAction::Forward { message, .. } => sent.extend([message.bytes(), end].concat()),
            RelayAction::Answer { message, .. } => answered.extend(message.bytes()),
            RelayAction::Held { .. } | RelayAction::HeldAgain { .. } | RelayAction::Consumed => {}
        });
    };
    let mut rest = stream;
    let mut sizes = sizes.iter().copied().cycle();
    while !rest.is_empty() {
        let count = sizes.next().unwrap().clamp(1, rest.len()).min(lines.read_buffer().len());
        lines.read_buffer()[..count].copy_from_slice(&rest[..count]);
        lines.filled(count);
        rest = &rest[count..];
        while let Some(cut) = lines.next_line() {
            pass(&lines, cut);
        }
        lines.release();
    }
    if let Some(cut) = lines.take_rest() {
        pass(&lines, cut);
    }
    out
}

proptest! {
    #[test]
    fn any_chunking_sends_the_same_bytes_and_writes_the_same_tape(
        stream in stream(),
        sizes in proptest::collection::vec(1usize..70, 1..20),
        overwatch in any::<bool>(),
        small in any::<bool>(),
    ) {
        let dialect = if overwatch { Dialect::Overwatch } else { Dialect::Thoughtjack };
        let bytes_max = if small { 60 } else { 100_000 };
        let whole = relayed(&stream, &[usize::MAX], bytes_max, dialect);
        let pieces = relayed(&stream, &sizes, bytes_max, dialect);
        prop_assert_eq!(&pieces, &whole);
        if !small {
            prop_assert_eq!(&pieces[0], &stream);
        }
    }

    #[test]
    fn any_chunking_gives_the_same_events_and_loses_no_byte(
        stream in proptest::collection::vec(
            prop_oneof![
                Just(b"data: {\"id\":1}\n\n".to_vec()), Just(b"data:x\r\ndata: y\r\n\r\n".to_vec()),
                Just(b"id: 7\revent: message\rdata: z\r\r".to_vec()), Just(b": comment\n\n".to_vec()),
                Just(b"retry: 50\n".to_vec()), Just(b"\n".to_vec()), Just(b"\r".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..12),
            ], 0..20).prop_map(|pieces| pieces.concat()),
        sizes in proptest::collection::vec(1usize..30, 1..20),
    ) {
        let (whole_raw, whole) = events(&stream, &[usize::MAX]);
        let (raw, pieces) = events(&stream, &sizes);
        prop_assert_eq!(&raw, &stream);
        prop_assert_eq!(&whole_raw, &stream);
        prop_assert_eq!(pieces, whole);
    }
}

/// The raw bytes of all pieces, and the contents of the events among them.
fn events(stream: &[u8], sizes: &[usize]) -> (Vec<u8>, Vec<String>) {
    let mut events = SseParser::new(1 << 20);
    let (mut raw, mut said) = (Vec::new(), Vec::new());
    let mut rest = stream;
    let mut sizes = sizes.iter().copied().cycle();
    while !rest.is_empty() {
        let count = sizes.next().unwrap().clamp(1, rest.len());
        events.feed(&rest[..count]);
        rest = &rest[count..];
        while let Some(piece) = events.next() {
            let piece = piece.unwrap();
            raw.extend(&piece.raw);
            if let Some(data) = piece.data {
                said.push(format!("{:?} {:?} {}", piece.event, piece.id, data.escape_ascii()));
            }
        }
    }
    raw.extend(events.take_rest().map(|piece| piece.raw).unwrap_or_default());
    (raw, said)
}
