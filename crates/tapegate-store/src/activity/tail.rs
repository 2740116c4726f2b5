//! The end of a log file: what the next line must link to, and whether a writer was killed there.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::chain::{ChainLink, ChainedLine};

/// How much is read first. Most lines are shorter.
const FIRST_BYTES: u64 = 4 * 1024;
/// Longer than any valid line: a file without one in its last bytes is not a log.
const TAIL_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// What every line of a log begins with.
pub(super) const BEGINNING: &[u8] = b"{\"timestamp\":\"";

/// The end of a file.
#[derive(Debug)]
pub(super) struct LogTail {
    /// The last line that seals; `None` if nothing was ever sealed.
    pub(super) link: Option<ChainLink>,
    /// Whether that line lacks only its line end.
    pub(super) open: bool,
    /// The bytes after it: the writer was killed before it was done.
    pub(super) torn: Vec<u8>,
}

/// Reads the end of a file of `bytes` bytes; `None` if it is not a log.
pub(super) fn read(file: &File, bytes: u64) -> io::Result<Option<LogTail>> {
    let mut length = FIRST_BYTES;
    loop {
        let start = bytes.saturating_sub(length);
        let mut text = vec![0; (bytes - start) as usize];
        file.read_exact_at(&mut text, start)?;
        let tail = find(&text, start == 0);
        if tail.is_some() || start == 0 || length >= TAIL_BYTES_MAX {
            return Ok(tail);
        }
        length *= 4;
    }
}

/// Finds the last seal in `text`; its first line is complete only if `text` starts the file.
fn find(text: &[u8], whole: bool) -> Option<LogTail> {
    let mut end = text.len();
    loop {
        let start = text[..end].iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let line = &text[start.unwrap_or(0)..end];
        let link = ChainedLine::read(line).and_then(|chained| chained.link());
        if let Some(link) = link.filter(|_| whole || start.is_some()) {
            let open = end == text.len();
            let torn = text.get(end + 1..).unwrap_or_default().to_vec();
            return Some(LogTail { link: Some(link), open, torn });
        }
        match start {
            Some(start) => end = start - 1,
            None => break,
        }
    }
    // The very first lines may be torn, or zeroed by a power failure.
    let begins = BEGINNING.starts_with(&text[..text.len().min(BEGINNING.len())]);
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    lines.pop();
    let ours = lines.iter().all(|line| ChainedLine::read(line).is_some());
    // Anything else is not a log, and must not be cut off as if it were the rest of one.
    let torn = whole && ((begins && ours) || text.iter().all(|byte| *byte == 0));
    torn.then(|| LogTail { link: None, open: false, torn: text.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log written in batches of `at_once` lines, and its end.
    fn log(lines: usize, at_once: usize, length: usize) -> (Vec<u8>, ChainLink) {
        let (mut link, mut out) = (ChainLink::START, Vec::new());
        let body = format!("{{\"timestamp\":\"{}\"", "x".repeat(length));
        let body = body.as_bytes();
        (0..lines).for_each(|_| link.seal(std::iter::repeat_n(body, at_once), &mut out));
        (out, link)
    }

    fn tail(text: &[u8]) -> Option<LogTail> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, text).unwrap();
        read(&File::open(path).unwrap(), text.len() as u64).unwrap()
    }

    #[test]
    fn the_last_line_is_found_however_long_lines_are() {
        for (lines, length) in [(1, 10), (3, 10), (200, 100), (1, 30_000), (3, 30_000)] {
            let (text, link) = log(lines, 3, length);
            let tail = tail(&text).unwrap();
            assert_eq!((tail.link, tail.open, tail.torn.len()), (Some(link), false, 0));
        }
    }

    #[test]
    fn a_log_that_was_cut_anywhere_goes_on_from_its_last_seal() {
        for at_once in [1, 3] {
            let (text, _) = log(3, at_once, 40);
            let ends: Vec<usize> = (0..text.len())
                .filter(|at| text[*at] == b'\n')
                .map(|at| at + 1)
                .skip(at_once - 1)
                .step_by(at_once)
                .collect();
            for cut in 1..text.len() {
                let tail = tail(&text[..cut]).unwrap();
                let whole = ends.iter().filter(|end| **end <= cut).count();
                let open = ends.contains(&(cut + 1));
                let seq = at_once * (whole + usize::from(open));
                let found = tail.link.map_or(0, |link| link.seq);
                assert_eq!((found, tail.open), (seq as u64, open), "{cut}");
                let last = ends[..whole].last().copied().unwrap_or(0);
                assert_eq!(tail.torn, if open { &[] } else { &text[last..cut] }, "{cut}");
            }
        }
    }

    #[test]
    fn what_is_no_log_is_not_taken_for_one() {
        for text in ["hello", "hello\n", "{\"ts\":\"x\"}\n", "{}", "\n"] {
            assert!(tail(text.as_bytes()).is_none(), "{text}");
        }
        assert!(tail(&vec![b'x'; 9_000_000]).is_none());
    }
}
