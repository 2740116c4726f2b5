//! Every kind of tampering is found, and accidents are not reported as tampering.

use proptest::prelude::*;

use super::*;

/// A log of `count` events, each with a seal of its own.
fn log(count: usize) -> Vec<Vec<u8>> {
    log_of(&vec![1; count])
}

/// The lines of a log written in batches of these sizes.
fn log_of(at_once: &[usize]) -> Vec<Vec<u8>> {
    let (mut link, mut out, mut number) = (ChainLink::START, Vec::new(), 0);
    for count in at_once {
        let bodies: Vec<String> = (number..number + count)
            .map(|number| format!("{{\"timestamp\":\"t\",\"n\":{number}"))
            .collect();
        link.seal(bodies.iter().map(|body| body.as_bytes()), &mut out);
        number += count;
    }
    out.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// The link that the line gives to the next one.
fn link_of(line: &[u8]) -> ChainLink {
    ChainedLine::read(line.strip_suffix(b"\n").unwrap()).unwrap().link().unwrap()
}

fn faults(lines: &[Vec<u8>]) -> Vec<(u64, ChainFault)> {
    let report = verify(&lines.concat()[..]).unwrap();
    assert_eq!(
        report.is_bad(),
        report.findings.iter().any(|found| found.severity == TapeSeverity::Error)
    );
    report.findings.iter().map(|found| (found.line, found.fault)).collect()
}

#[test]
fn a_log_that_nobody_touched_is_fine() {
    for count in [0, 1, 2, 50] {
        let report = verify(&log(count).concat()[..]).unwrap();
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!(report.events, count as u64);
        assert_eq!(report.head.map_or(0, |head| head.seq), count as u64);
    }
}

#[test]
fn one_fault_is_one_finding() {
    let whole = log(6);
    let mut changed = whole.clone();
    changed[2][20] ^= 1;
    assert_eq!(faults(&changed), [(3, ChainFault::Changed)]);
    let mut other_hash = whole.clone();
    let at = other_hash[2].len() - 5;
    other_hash[2][at] = if other_hash[2][at] == b'0' { b'1' } else { b'0' };
    assert_eq!(faults(&other_hash), [(3, ChainFault::Changed)]);
    let mut spoiled = whole.clone();
    spoiled[2] = b"nonsense\n".to_vec();
    assert_eq!(faults(&spoiled), [(3, ChainFault::NotAnEvent)]);
    let mut removed = whole.clone();
    removed.drain(2..4);
    assert_eq!(faults(&removed), [(3, ChainFault::Missing)]);
    let mut repeated = whole.clone();
    repeated.insert(4, whole[3].clone());
    assert_eq!(faults(&repeated), [(5, ChainFault::OutOfOrder)]);
    let mut swapped = whole.clone();
    swapped.swap(2, 3);
    assert_eq!(faults(&swapped), [(3, ChainFault::Missing), (4, ChainFault::OutOfOrder)]);
    let message = verify(&removed.concat()[..]).unwrap().findings.remove(0).message;
    assert_eq!(message, "events 3 to 4 are missing before this one");
}

#[test]
fn one_fault_among_lines_that_share_a_seal_is_one_finding() {
    let whole = log_of(&[2, 4, 1, 3]);
    assert_eq!(faults(&whole), []);
    let mut changed = whole.clone();
    changed[3][20] ^= 1;
    assert_eq!(faults(&changed), [(3, ChainFault::Changed)]);
    let message = verify(&changed.concat()[..]).unwrap().findings.remove(0).message;
    assert!(message.starts_with("one of the lines 3 to 6 was changed"), "{message}");
    let mut spoiled = whole.clone();
    spoiled[3] = b"nonsense\n".to_vec();
    assert_eq!(faults(&spoiled), [(4, ChainFault::NotAnEvent)]);
    for at in [2, 3, 4] {
        let mut removed = whole.clone();
        removed.remove(at);
        assert_eq!(faults(&removed), [(at as u64 + 1, ChainFault::Missing)], "{at}");
    }
    // Without their seal, the lines fall under the next one, which does not cover them.
    let mut unsealed = whole.clone();
    unsealed.remove(5);
    assert_eq!(faults(&unsealed), [(6, ChainFault::Missing)]);
    let mut all = whole.clone();
    all.drain(2..6);
    assert_eq!(faults(&all), [(3, ChainFault::Missing)]);
    let mut repeated = whole.clone();
    repeated.insert(4, whole[3].clone());
    assert_eq!(faults(&repeated), [(5, ChainFault::OutOfOrder)]);
    let mut put_in = whole.clone();
    put_in.insert(3, b"{\"timestamp\":\"t\",\"seq\":4}\n".to_vec());
    assert_eq!(faults(&put_in), [(5, ChainFault::OutOfOrder)]);
}

#[test]
fn lines_that_were_never_sealed_are_a_killed_writer_at_the_end_and_tampering_elsewhere() {
    let lines = log_of(&[2, 4, 2]);
    for cut in [3, 4, 5] {
        let report = verify(&lines[..cut].concat()[..]).unwrap();
        assert!(!report.is_bad());
        assert_eq!(faults(&lines[..cut]), [(3, ChainFault::Torn)]);
        let torn = [&lines[..cut].concat()[..], b"{\"timestamp\""].concat();
        assert_eq!(faults(&[torn]), [(3, ChainFault::Torn)]);
    }
    let mut verifier = LogVerifier::default();
    verifier.file(&lines[..4].concat()[..]).unwrap();
    verifier.file(&lines[6..].concat()[..]).unwrap();
    assert!(verifier.finish().is_bad());
}

#[test]
fn a_line_that_was_forged_with_a_hash_of_its_own_is_found_by_the_next_one() {
    let mut lines = log(6);
    let before = link_of(&lines[1]);
    let mut forged = Vec::new();
    { before }.seal([&b"{\"timestamp\":\"t\",\"n\":99"[..]], &mut forged);
    lines[2] = forged;
    assert_eq!(faults(&lines), [(4, ChainFault::Unlinked)]);
}

#[test]
fn a_missing_beginning_is_found_unless_retention_says_so() {
    let lines = log(6);
    assert_eq!(faults(&lines[2..]), [(1, ChainFault::Beginning)]);
    let mut removed = link_of(&lines[1]);
    let mut link = link_of(&lines[5]);
    let stated = |removed: &ChainLink| {
        format!(
            "{{\"timestamp\":\"t\",\"kind\":\"log\",\"event\":\"retention\",\"removed\":[\"activity-1.jsonl\"],\
             \"removed_seq\":{},\"removed_hash\":\"{}\"",
            removed.seq,
            removed.text()
        )
    };
    let with = |removed: &ChainLink, link: &mut ChainLink| {
        let mut notice = Vec::new();
        link.seal([stated(removed).as_bytes()], &mut notice);
        [&lines[2..], &[notice]].concat()
    };
    assert_eq!(faults(&with(&removed, &mut link.clone())), []);
    removed.hash[0] ^= 1;
    assert_eq!(faults(&with(&removed, &mut link)), [(1, ChainFault::Beginning)]);
    let mut part = LogVerifier::default().with_partial(true);
    part.file(&lines[2..].concat()[..]).unwrap();
    let report = part.finish();
    assert_eq!((report.findings[0].severity, report.is_bad()), (TapeSeverity::Note, false));
}

#[test]
fn a_torn_end_is_told_from_tampering() {
    let text = log(3).concat();
    let last = text[..text.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap();
    for cut in last + 2..text.len() {
        let report = verify(&text[..cut]).unwrap();
        assert!(!report.is_bad());
        let found: Vec<_> = report.findings.iter().map(|found| (found.line, found.fault)).collect();
        assert_eq!(found, [(3, ChainFault::Torn)], "{cut}");
    }
}

#[test]
fn an_end_that_was_cut_off_is_found_by_its_head_alone() {
    let lines = log(6);
    let head = |at: usize| {
        let link = link_of(&lines[at]);
        Some(link.text().to_owned())
    };
    let verify = |lines: &[Vec<u8>], head: Option<String>| {
        let mut verifier = LogVerifier::default().expect_head(head);
        verifier.file(&lines.concat()[..]).unwrap();
        verifier.finish()
    };
    assert!(verify(&lines[..4], None).findings.is_empty(), "nothing tells");
    let report = verify(&lines[..4], head(5));
    assert_eq!(report.findings[0].fault, ChainFault::Head);
    assert!(report.is_bad());
    let report = verify(&lines, head(3));
    assert_eq!((report.is_bad(), report.since_head), (false, Some(2)));
}

#[test]
fn a_missing_file_between_others_is_found() {
    let lines = log(9);
    let mut verifier = LogVerifier::default();
    verifier.file(&lines[..3].concat()[..]).unwrap();
    verifier.file(&lines[6..].concat()[..]).unwrap();
    let report = verifier.finish();
    let found: Vec<_> = report.findings.iter().map(|f| (f.file, f.line, f.fault)).collect();
    assert_eq!(found, [(1, 1, ChainFault::Missing)]);
}

proptest! {
    #[test]
    fn any_other_byte_is_found(
        at_once in prop::collection::vec(1usize..4, 1..5),
        place in any::<prop::sample::Index>(), other in 1u8..,
    ) {
        let lines = log_of(&at_once);
        let mut text = lines.concat();
        let at = place.index(text.len());
        text[at] ^= other;
        let report = verify(&text[..]).unwrap();
        prop_assert!(!report.findings.is_empty(), "byte {at}");
        // Only a change to the very last line end looks like a killed writer.
        prop_assert!(report.is_bad() || at == text.len() - 1);
    }

    #[test]
    fn any_line_that_is_taken_out_put_in_twice_or_moved_is_found(
        at_once in prop::collection::vec(1usize..5, 1..6),
        one in any::<prop::sample::Index>(), two in any::<prop::sample::Index>(),
    ) {
        let lines = log_of(&at_once);
        let count = lines.len();
        let (one, two) = (one.index(count), two.index(count));
        let is_sealed = |line: &[u8]| line.ends_with(b"\"}\n");
        // A truncated end is found only if it leaves lines without a seal.
        if one < count - 1 || (one > 0 && !is_sealed(&lines[one - 1])) {
            let mut without = lines.clone();
            without.remove(one);
            prop_assert!(!faults(&without).is_empty());
        }
        let mut twice = lines.clone();
        twice.insert(two, lines[one].clone());
        prop_assert!(!faults(&twice).is_empty());
        let mut swapped = lines.clone();
        swapped.swap(one, two);
        prop_assert_eq!(faults(&swapped).is_empty(), one == two);
    }

    #[test]
    fn what_is_no_log_at_all_is_no_panic(text in prop::collection::vec(any::<u8>(), 0..400)) {
        verify(&text[..]).unwrap();
    }
}
