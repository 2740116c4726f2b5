//! Reads a tape once, from start to end, in sections that several threads process.
//!
//! The calling thread reads the file, plain or compressed, and receives the results in order.
//! Memory is bounded: a new section is handed out only when an earlier one has come back.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tapegate_core::tape::{TapeFinding, entry_bytes_max, last_line_start};

use crate::input;
use crate::tape_source::{ReadProgress, TapeText};

/// The length of a section, unless its last line is longer.
const SECTION_BYTES: usize = 512 * 1024;
/// How much longer than the longest entry a section without a line end may get; enough for its
/// reader to report that the entry is too long.
const SURPLUS_BYTES: usize = 1 << 20;
/// How many bytes the workers may hold; a longer section is handed out alone.
const AHEAD_BYTES_MAX: usize = 64 << 20;
/// How many sections may queue for a worker.
const AHEAD_MAX: usize = 2;
/// More workers than this would wait for the file.
const WORKERS_MAX: usize = 4;

/// Some complete lines of a tape.
#[derive(Debug, Default)]
pub struct TapeSection {
    /// The lines.
    pub text: Vec<u8>,
    /// Their offset in the tape.
    pub offset: u64,
    /// Whether they are the last ones.
    pub last: bool,
}

/// Cuts a text into sections.
struct SectionCutter {
    text: Box<dyn BufRead>,
    /// Bytes read beyond the last section.
    rest: Vec<u8>,
    /// The offset of the next section.
    offset: u64,
    section_bytes_max: usize,
}

/// Reads the tape at `path`. `work` processes each section, on several threads if there are several
/// sections; `take` receives the results in order and may stop the reading with an error. Returns
/// the findings about the file.
pub fn read<T: Send, E: From<io::Error>>(
    path: &Path,
    watch: ReadProgress,
    work: impl Fn(TapeSection) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<Vec<TapeFinding>, E> {
    let TapeText { text, oddities } = TapeText::read(input::open(path)?, watch)?;
    let mut cutter = SectionCutter::new(text);
    let first = cutter.next()?;
    if first.last {
        // Starting a thread costs more than reading a small tape.
        take(work(first))?;
        return Ok(oddities.findings());
    }
    let workers = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    thread::scope(|scope| {
        let mut crew = Vec::new();
        for _ in 0..workers {
            let (give, given) = sync_channel::<TapeSection>(AHEAD_MAX);
            let (done, result) = sync_channel(AHEAD_MAX);
            let work = &work;
            scope.spawn(move || run_worker(&given, &done, work));
            crew.push((give, result));
        }
        distribute(cutter, first, &crew, &mut take)
    })?;
    Ok(oddities.findings())
}

/// Processes sections until there are no more, or the results are no longer received.
fn run_worker<T>(
    given: &Receiver<TapeSection>,
    done: &SyncSender<T>,
    work: &impl Fn(TapeSection) -> T,
) {
    while let Ok(section) = given.recv() {
        if done.send(work(section)).is_err() {
            return;
        }
    }
}

/// Hands out sections round-robin and takes the results in the same order.
fn distribute<T, E: From<io::Error>>(
    mut cutter: SectionCutter,
    first: TapeSection,
    crew: &[(SyncSender<TapeSection>, Receiver<T>)],
    take: &mut impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let gone = || io::Error::other("a thread that read the tape has ended");
    let (mut given, mut taken) = (0, 0);
    // The lengths of the sections that have not come back.
    let mut ahead: VecDeque<usize> = VecDeque::new();
    let mut next = Some(first);
    while next.is_some() || taken < given {
        let bytes_ahead: usize = ahead.iter().sum();
        let has_room = |section: &mut TapeSection| {
            let fits = bytes_ahead + section.text.len() <= AHEAD_BYTES_MAX;
            // Without the last condition, a section over the limit would never be handed out.
            ahead.len() < AHEAD_MAX * crew.len() && (fits || ahead.is_empty())
        };
        if let Some(section) = next.take_if(has_room) {
            let more = !section.last;
            ahead.push_back(section.text.len());
            crew[given % crew.len()].0.send(section).map_err(|_| gone())?;
            given += 1;
            next = if more { Some(cutter.next()?) } else { None };
            continue;
        }
        take(crew[taken % crew.len()].1.recv().map_err(|_| gone())?)?;
        taken += 1;
        ahead.pop_front();
    }
    Ok(())
}

impl SectionCutter {
    fn new(text: Box<dyn BufRead>) -> Self {
        let section_bytes_max = entry_bytes_max() + SURPLUS_BYTES;
        Self { text, rest: Vec::new(), offset: 0, section_bytes_max }
    }

    fn next(&mut self) -> io::Result<TapeSection> {
        let mut text = std::mem::take(&mut self.rest);
        let mut wanted = SECTION_BYTES.max(text.len() + SECTION_BYTES / 2);
        loop {
            let missing = (wanted - text.len()) as u64;
            let count = self.text.by_ref().take(missing).read_to_end(&mut text)? as u64;
            if count < missing {
                return Ok(self.section(text, true));
            }
            if let Some(cut) = last_line_start(&text) {
                self.rest = text.split_off(cut);
                return Ok(self.section(text, false));
            }
            if text.len() >= self.section_bytes_max {
                return self.long_section(text);
            }
            wanted = (text.len() * 2).min(self.section_bytes_max);
        }
    }

    /// A section of a text in which no entry of a legal length may be cut.
    fn long_section(&mut self, mut text: Vec<u8>) -> io::Result<TapeSection> {
        // Every line is indented. So they are entries of a line each: a value over so many lines
        // would be too long anyway.
        if let Some(line_end) = text.iter().rposition(|byte| *byte == b'\n') {
            self.rest = text.split_off(line_end + 1);
            return Ok(self.section(text, false));
        }
        // One line that is too long to be read; its rest is skipped.
        let rest = self.text.skip_until(b'\n')? as u64;
        if rest > 0 {
            text.push(b'\n');
        }
        let section = self.section(text, false);
        // Less one, because the line end that was added above is already counted.
        self.offset += rest.saturating_sub(1);
        Ok(section)
    }

    fn section(&mut self, text: Vec<u8>, last: bool) -> TapeSection {
        let offset = self.offset;
        self.offset += text.len() as u64;
        TapeSection { text, offset, last }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use tapegate_core::tape::read_section;

    use super::*;

    fn line(n: usize, bytes: usize) -> String {
        let text = "x".repeat(bytes);
        format!(
            "{{\"ts\":\"2026-01-01T00:00:00Z\",\"direction\":\"client_to_server\",\"parsed\":{{\"id\":{n},\"t\":\"{text}\"}}}}\n"
        )
    }

    fn ids(path: &Path) -> Vec<usize> {
        let mut found = Vec::new();
        let work = |section: TapeSection| {
            let mut ids = Vec::new();
            let mut file = std::fs::File::open(path).unwrap();
            file.seek(io::SeekFrom::Start(section.offset)).unwrap();
            let mut there = vec![0; section.text.len()];
            file.read_exact(&mut there).unwrap();
            assert!(there == section.text);
            read_section(&section.text, section.last, &mut |next| {
                let text = String::from_utf8_lossy(next.unwrap().text).into_owned();
                let (_, id) = text.split_once("\"id\":").unwrap();
                ids.push(id.split_once(',').unwrap().0.parse().unwrap());
            });
            ids
        };
        let done: Result<_, io::Error> = read(path, Box::new(|_, _| ()), work, |mut ids| {
            found.append(&mut ids);
            Ok(())
        });
        assert!(done.unwrap().is_empty());
        found
    }

    #[test]
    fn every_line_comes_once_and_in_order_whatever_the_lengths() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let lengths = [10, SECTION_BYTES, 0, 3 * SECTION_BYTES, 7, SECTION_BYTES / 2, 100_000];
        for n in 0..200 {
            file.write_all(line(n, lengths[n % lengths.len()]).as_bytes()).unwrap();
        }
        assert_eq!(ids(file.path()), (0..200).collect::<Vec<_>>());
        let small = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(small.path(), line(7, 1)).unwrap();
        assert_eq!(ids(small.path()), [7]);
        std::fs::write(small.path(), "").unwrap();
        assert!(ids(small.path()).is_empty());
    }

    #[test]
    fn whoever_has_had_enough_ends_the_reading() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for n in 0..100 {
            file.write_all(line(n, 100_000).as_bytes()).unwrap();
        }
        let mut taken = 0;
        let done = read(file.path(), Box::new(|_, _| ()), drop, |()| {
            taken += 1;
            if taken < 3 { Ok(()) } else { Err(io::Error::other("enough")) }
        });
        assert_eq!((done.unwrap_err().to_string().as_str(), taken), ("enough", 3));
    }

    #[test]
    fn of_a_line_that_is_too_long_no_more_is_kept_than_shows_that() {
        let most = 2 * SECTION_BYTES;
        let text = format!("{}{}{}", line(1, 10), line(2, 9 * SECTION_BYTES), line(3, 10));
        let mut cutter = SectionCutter::new(Box::new(io::Cursor::new(text.clone())));
        cutter.section_bytes_max = most;
        let mut sections = Vec::new();
        loop {
            sections.push(cutter.next().unwrap());
            if sections.last().unwrap().last {
                break;
            }
        }
        let lengths: Vec<usize> = sections.iter().map(|section| section.text.len()).collect();
        assert_eq!(lengths, [line(1, 10).len(), most + 1, line(3, 10).len()]);
        assert!(sections[1].text.ends_with(b"x\n"));
        assert_eq!(sections[2].offset as usize, text.len() - line(3, 10).len());
    }

    #[test]
    fn a_long_text_in_which_every_line_is_indented_is_cut_between_lines() {
        let indented = format!(" {}", line(1, 1000));
        let text = indented.repeat(5 * SECTION_BYTES / indented.len());
        let mut cutter = SectionCutter::new(Box::new(io::Cursor::new(text.clone())));
        cutter.section_bytes_max = 2 * SECTION_BYTES;
        let mut read = Vec::new();
        loop {
            let section = cutter.next().unwrap();
            assert!(section.text.ends_with(b"\n"));
            read.extend(section.text);
            if section.last {
                break;
            }
        }
        assert!(read == text.as_bytes());
    }
}
