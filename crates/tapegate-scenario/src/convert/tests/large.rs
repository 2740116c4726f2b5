//! Large texts, and progress reports.

use super::*;

#[test]
fn a_text_of_eleven_megabytes_is_a_file_whether_or_not_sequences_are() {
    let (long, other) = ("x".repeat(11 << 20), "y".repeat(11 << 20));
    let tape =
        TestTape::new().hello().tools(&["a"]).call("a", "1").call("a", &long).call("a", &other);
    for sequences_in_files in [false, true] {
        let it = made(&tape, &ConversionOptions { sequences_in_files, ..SIMPLE });
        assert_eq!(texts(tool(&it.scenario.baseline.tools, "a")), ["1", &long, &other]);
        assert!(it.text.len() < 10_000, "{sequences_in_files}: {}", it.text.len());
        assert!(it.summary.warnings.is_empty(), "{:?}", it.summary.warnings);
    }
}

#[test]
fn progress_grows_to_the_end() {
    let seen = std::cell::RefCell::new(Vec::new());
    let progress = |done, total| seen.borrow_mut().push((done, total));
    let tape = TestTape::new().hello().tools(&["a"]).call("a", "1").call("a", "2");
    made(&tape, &ConversionOptions { progress: &progress, ..SIMPLE });
    let seen = seen.into_inner();
    assert!(seen.len() > 5 && seen.is_sorted(), "{seen:?}");
    assert!(seen[..seen.len() - 1].iter().all(|(done, total)| done < total), "{seen:?}");
    assert!(seen.last().is_some_and(|(done, total)| done == total), "{seen:?}");
}
