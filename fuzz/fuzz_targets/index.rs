//! A tape that is read in stretches is the tape that is read line by line, wherever it is cut, and
//! everything an index says can be asked for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{Index, NONE, Refusal, Splicer, Stretch, cut};
use tapegate_core::tape::{Finding, Reader};

const FIRST: &[u8] = b"{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00.000000Z\",\"dir\":\"c2s\",\"msg\":{\"id\":1,\"method\":\"m\"}}\n";

fuzz_target!(|input: (u8, bool, &[u8])| {
    let (piece, ours, bytes) = input;
    let text = if ours { [FIRST, bytes].concat() } else { bytes.to_vec() };
    let signer = Signer::default();
    let expected = line_by_line(&text, &signer);
    assert_eq!(in_stretches(&text, usize::from(piece) + 1, &signer), expected);
});

fn line_by_line(text: &[u8], signer: &Signer) -> String {
    let mut splicer = Splicer::new(signer.clone());
    let mut reader = Reader::new(text);
    while let Some(next) = reader.next() {
        if let Err(refusal) = splicer.line(next) {
            return refusal.to_string();
        }
    }
    told(splicer.finish())
}

fn in_stretches(text: &[u8], piece: usize, signer: &Signer) -> String {
    let mut splicer = Splicer::new(signer.clone());
    let (mut stretch, mut start, mut aim) = (Stretch::default(), 0, piece);
    while start < text.len() {
        let behind = text.get(aim - 1..).and_then(cut);
        let end = behind.map_or(text.len(), |behind| aim - 1 + behind);
        stretch.read(&text[start..end], end == text.len(), signer);
        if let Err(refusal) = splicer.add(&mut stretch) {
            return refusal.to_string();
        }
        (start, aim) = (end, end + piece);
    }
    told(splicer.finish())
}

fn told(made: Result<(Index, Vec<Finding>), Refusal>) -> String {
    let (index, findings) = match made {
        Ok(made) => made,
        Err(refusal) => return refusal.to_string(),
    };
    let mut out = format!("{:?}{:?}{findings:?}", index.sessions(), index.headers());
    for number in 0..index.len() as u32 {
        let slot = index.slot(number);
        out += &format!("{slot:?}");
        assert!(slot.pair == NONE || index.slot(slot.pair).pair == number);
        assert!(slot.next == NONE || slot.next != number);
    }
    for ask in 0..index.asks() {
        let signature = index.ask(ask).signature;
        assert!(index.first_same(signature).is_some_and(|first| first <= ask));
        assert!(index.first_like(signature).is_some_and(|first| first <= ask));
        out += &format!("{:?}", index.ask(ask));
    }
    out
}
