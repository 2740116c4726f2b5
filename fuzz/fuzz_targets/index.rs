//! Indexing a tape in chunks gives the same index as line by line, wherever it is cut, and every link in the
//! index can be followed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{
    Index, IndexSplicer, NONE, TapeChunk, TapeRejection, first_line_start,
};
use tapegate_core::tape::{TapeFinding, TapeReader};

const FIRST: &[u8] = b"{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000000Z\",\"dir\":\"c2s\",\"msg\":{\"id\":1,\"method\":\"m\"}}\n";

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (piece, prepend_first, bytes) = input;
    let text = if prepend_first { [FIRST, bytes].concat() } else { bytes.to_vec() };
    let signer = Signer::default();
    let expected = line_by_line(&text, &signer);
    assert_eq!(in_chunks(&text, usize::from(piece) + 1, &signer), expected);
});

fn line_by_line(text: &[u8], signer: &Signer) -> String {
    let mut splicer = IndexSplicer::new(signer.clone());
    let mut reader = TapeReader::new(text);
    while let Some(next) = reader.next() {
        if let Err(rejection) = splicer.line(next) {
            return rejection.to_string();
        }
    }
    index_text(splicer.finish())
}

fn in_chunks(text: &[u8], piece: usize, signer: &Signer) -> String {
    let mut splicer = IndexSplicer::new(signer.clone());
    let (mut chunk, mut start, mut target_end) = (TapeChunk::default(), 0, piece);
    while start < text.len() {
        let line_start = text.get(target_end - 1..).and_then(first_line_start);
        let end = line_start.map_or(text.len(), |line_start| target_end - 1 + line_start);
        chunk.read(&text[start..end], end == text.len(), signer);
        if let Err(rejection) = splicer.add(&mut chunk) {
            return rejection.to_string();
        }
        (start, target_end) = (end, end + piece);
    }
    index_text(splicer.finish())
}

fn index_text(result: Result<(Index, Vec<TapeFinding>), TapeRejection>) -> String {
    let (index, findings) = match result {
        Ok(result) => result,
        Err(rejection) => return rejection.to_string(),
    };
    let mut out = format!("{:?}{:?}{findings:?}", index.sessions(), index.headers());
    for number in 0..index.len() as u32 {
        let entry = index.entry(number);
        out += &format!("{entry:?}");
        assert!(entry.pair == NONE || index.entry(entry.pair).pair == number);
        assert!(entry.next == NONE || entry.next != number);
    }
    for number in 0..index.request_count() {
        let signature = index.request(number).signature;
        assert!(index.first_with_hash(signature).is_some_and(|first| first <= number));
        assert!(index.first_with_subject(signature).is_some_and(|first| first <= number));
        out += &format!("{:?}", index.request(number));
    }
    out
}
