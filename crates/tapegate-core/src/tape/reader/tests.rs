//! Tests of lines, joined lines, torn lines and lines that are too long.

use super::*;

fn read(text: &str) -> Vec<String> {
    let mut reader = TapeReader::new(text.as_bytes());
    let mut out = Vec::new();
    while let Some(next) = reader.next() {
        out.push(match next {
            Ok(NumberedLine { line, offset, text, .. }) => {
                format!("{line}@{offset} {}", text.escape_ascii())
            }
            Err(problem) => problem.to_string(),
        });
    }
    out
}

const A: &str = r#"{"ts":"t","direction":"client_to_server","parsed":1}"#;

#[test]
fn blank_lines_crlf_and_a_missing_last_line_end_are_fine() {
    assert_eq!(
        read(&format!("{A}\r\n\n  \n{A}")),
        [format!("1@0 {}", A.escape_default()), format!("4@58 {}", A.escape_default())]
            .map(|s| s.replace("\\\\", "\\"))
    );
}

#[test]
fn pretty_values_and_several_on_a_line_are_read() {
    let pretty = "{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": [\n    1\n  ]\n}\n";
    let out = read(&format!("{pretty}{A} {A}\n"));
    assert_eq!(out.len(), 3, "{out:?}");
    assert!(out[0].starts_with("1@0 ") && out[1].starts_with("8@") && out[2].starts_with("8@"));
}

#[test]
fn very_many_values_on_one_line_are_gone_through_once() {
    let out = read(&format!("{A}\n{}\n{A}", A.repeat(100_000)));
    assert_eq!(out.len(), 100_002);
    assert!(out[100_000].starts_with("2@") && out[100_001].starts_with("3@"));
}

#[test]
fn a_long_pretty_value_is_looked_at_once_and_not_once_a_line() {
    let numbers: String = (0..60_000).map(|n| format!("    {n},\n")).collect();
    let pretty = format!(
        "{{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": [\n{numbers}    0\n  ]\n}}\n"
    );
    let out = read(&format!("{pretty}{A}\n"));
    assert_eq!(out.len(), 2);
    assert!(out[1].starts_with("60008@"), "{}", out[1]);
    // Values that are indented as a whole are still told apart.
    let indented = format!(
        "{{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": 1\n  }}\n  {A}\n"
    );
    assert_eq!(read(&indented).len(), 2);
}

#[test]
fn ec_rec_002_a_torn_tail_is_told_from_a_fault_in_the_middle() {
    let torn = &A[..20];
    assert_eq!(
        read(&format!("{A}\n{torn}"))[1],
        "line 2: the tape ends in the middle of an entry (20 bytes left out)"
    );
    assert_eq!(
        read(&format!("{A}\n{torn}\n"))[1],
        "line 2: the tape ends in the middle of an entry (21 bytes left out)"
    );
    let middle = read(&format!("{A}\n{torn}\n{A}\n"));
    assert_eq!(middle[1], "line 2: not JSON: a raw control character in a string at byte 20");
    assert!(middle[2].starts_with("3@"));
}

/// A text that contains a long run of one byte.
fn long(start: &str, byte: u8, bytes: u64, rest: &str) -> impl BufRead + use<> {
    let body = io::BufReader::new(io::repeat(byte).take(bytes));
    io::Cursor::new(start.to_owned()).chain(body).chain(io::Cursor::new(rest.to_owned()))
}

#[test]
fn a_line_that_is_too_long_for_an_entry_is_left_out_and_not_kept() {
    let text = format!("{A}\n{}\n{A}\n", A.replace('1', &"7".repeat(200)));
    let mut reader = TapeReader::with_limit(text.as_bytes(), 100);
    assert_eq!(reader.next().unwrap().unwrap().line, 1);
    let fault = reader.next().unwrap().unwrap_err().to_string();
    assert_eq!(fault, "line 2: longer than 100 bytes, the limit for an entry (--max-entry-bytes)");
    let third = reader.next().unwrap().unwrap();
    assert_eq!((third.line, third.text), (3, A.as_bytes()));
    assert_eq!(third.offset as usize, text.len() - A.len() - 1);
    assert!(reader.next().is_none());
}

#[test]
fn of_a_long_line_that_cannot_be_an_entry_only_the_beginning_is_kept() {
    for byte in [0, b'x', b' '] {
        let bytes = 50 * HEAD_BYTES as u64;
        let mut reader = TapeReader::new(long("", byte, bytes, &format!("\n{A}\n")));
        let problem = reader.next().unwrap().unwrap_err();
        assert!(matches!(problem, LineProblem::Line { line: 1, .. }), "{problem}");
        assert!(reader.chunk.capacity() <= 2 * HEAD_BYTES);
        assert_eq!(reader.next().unwrap().unwrap().offset, bytes + 1);
        // At the end of a file it is the result of a crash.
        let mut reader = TapeReader::new(long(&format!("{A}\n"), byte, bytes, ""));
        reader.next().unwrap().unwrap();
        let problem = reader.next().unwrap().unwrap_err();
        assert!(matches!(problem, LineProblem::Torn { line: 2, .. }), "{problem}");
    }
}

#[test]
fn the_memory_of_a_long_entry_is_given_back() {
    let entry = A.replace('1', &"1".repeat(4 * KEPT_BYTES));
    let text = format!("{entry}\n{A}\n");
    let mut reader = TapeReader::new(text.as_bytes());
    assert_eq!(reader.next().unwrap().unwrap().text.len(), entry.len());
    assert_eq!(reader.next().unwrap().unwrap().text, A.as_bytes());
    assert!(reader.chunk.capacity() <= 2 * KEPT_BYTES);
}
