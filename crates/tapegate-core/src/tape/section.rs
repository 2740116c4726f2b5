//! Sections of a tape: whole lines, read independently of all others.
//!
//! Sections can be read in parallel and in any order. The result does not depend on where a tape is
//! cut, as long as [`last_line_start`] chooses the place.

use std::io::Read;

use super::line::TapeLine;
use super::reader::{LineProblem, NumberedLine, TapeReader, entry_bytes_max};

/// The start of the last line where a tape may be cut, other than the first line. A line that may be
/// inside a value that `jq` spread over several lines does not count.
pub fn last_line_start(text: &[u8]) -> Option<usize> {
    let starts = memchr::memrchr_iter(b'\n', text).map(|at| at + 1);
    let middle = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'}' | b']');
    starts.into_iter().find(|start| text.get(*start).is_some_and(|byte| !middle(byte)))
}

/// Calls `each` with every entry of a section, and with every problem; `last` is true if the tape
/// ends with it. Lines and offsets are counted from its start. Returns its number of lines.
pub fn read_section(
    text: &[u8],
    last: bool,
    each: &mut dyn FnMut(Result<NumberedLine<'_>, LineProblem>),
) -> u64 {
    let (mut at, mut lines) = (0, 0);
    while at < text.len() {
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
        if let Some(numbered) = single_line_entry(text, at, end, lines + 1) {
            each(Ok(numbered));
            lines += 1;
            at = end + 1;
            continue;
        }
        let next = read_with_reader(&text[at..], last, &mut |next| {
            each(match next {
                Ok(numbered) => Ok(NumberedLine {
                    line: numbered.line + lines,
                    offset: numbered.offset + at as u64,
                    ..numbered
                }),
                Err(problem) => Err(problem.shifted(lines, at as u64)),
            });
        });
        lines += memchr::memchr_iter(b'\n', &text[at..at + next]).count() as u64;
        at += next;
    }
    lines
}

/// The entry of a line that is complete by itself, as most are.
fn single_line_entry(text: &[u8], start: usize, end: usize, line: u64) -> Option<NumberedLine<'_>> {
    if end - start >= entry_bytes_max() {
        // The general reader reports that it is too long.
        return None;
    }
    let line_text = &text[start..end];
    let trimmed = line_text.trim_ascii();
    let offset = start + (line_text.len() - line_text.trim_ascii_start().len());
    let entry = TapeLine::read(trimmed).ok()?;
    Some(NumberedLine { line, offset: offset as u64, text: trimmed, entry })
}

/// Reads the line at the start of `text`, and any lines that belong to it, with the general reader.
/// Returns their total length.
fn read_with_reader(
    text: &[u8],
    last: bool,
    each: &mut dyn FnMut(Result<NumberedLine<'_>, LineProblem>),
) -> usize {
    // The rest of the tape is not available here, but the reader must know that there is more.
    let more: &[u8] = if last { b"" } else { b"\n" };
    let mut reader = TapeReader::new(Read::chain(text, more));
    while let Some(next) = reader.next() {
        each(next);
        if reader.is_drained() {
            break;
        }
    }
    text.len().min(reader.position() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(next: Result<NumberedLine<'_>, LineProblem>, lines: u64, bytes: u64) -> String {
        match next {
            Ok(NumberedLine { line, offset, text, .. }) => {
                format!("{}@{} {}", line + lines, offset + bytes, text.escape_ascii())
            }
            Err(problem) => problem.shifted(lines, bytes).to_string(),
        }
    }

    /// The result of the general reader for a tape.
    fn by_reader(text: &str) -> Vec<String> {
        let mut reader = TapeReader::new(text.as_bytes());
        let mut out = Vec::new();
        while let Some(next) = reader.next() {
            out.push(shown(next, 0, 0));
        }
        out
    }

    /// The result of sections of at least `least` bytes.
    fn by_sections(text: &str, least: usize) -> Vec<String> {
        let (mut out, mut lines, mut at) = (Vec::new(), 0, 0);
        while at < text.len() {
            let mut end = text.len().min(at + least);
            let cut = loop {
                match last_line_start(&text.as_bytes()[at..end]) {
                    Some(cut) => break at + cut,
                    None if end == text.len() => break end,
                    None => end += 1,
                }
            };
            let section = &text.as_bytes()[at..cut];
            lines += read_section(section, cut == text.len(), &mut |next| {
                out.push(shown(next, lines, at as u64));
            });
            at = cut;
        }
        out
    }

    const A: &str = r#"{"ts":"t","direction":"client_to_server","parsed":{"id":1}}"#;

    #[test]
    fn a_tape_says_the_same_wherever_it_is_cut() {
        let pretty = "{\n  \"ts\": \"t\",\n  \"direction\": \"client_to_server\",\n  \"parsed\": [\n    1\n  ]\n}\n";
        for text in [
            format!("{A}\n{A}\n{A}\n"),
            format!("{A}\r\n\r\n\n  \n{A}"),
            format!("{pretty}{A} {A}\n{pretty}{pretty}nonsense\n{A}\n"),
            format!("{A}\n{}", &A[..20]),
            format!("{A}\n{}\n{A}\n  {A}\n{{\"a\":1}}\n7\n", &A[..20]),
            String::new(),
            "\n\n".to_owned(),
        ] {
            let expected = by_reader(&text);
            for least in 1..=text.len() + 1 {
                assert_eq!(by_sections(&text, least), expected, "{least} of {text}");
            }
        }
    }
}
