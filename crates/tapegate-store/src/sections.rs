//! Reads a tape once, from its start to its end, in sections that several threads look at.
//!
//! Whoever calls reads the file, plain or compressed, and gets what was made of its sections in
//! their order. What lies in memory is bounded: a section is handed out only when an earlier one
//! has come back.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tapegate_core::tape::{Finding, last_cut};

use crate::source::{self, Plain, Watch};

/// How long a section is, unless its last line is longer.
const SECTION_BYTES: usize = 512 * 1024;
/// How long a section may get for want of a place to cut: a little more than a reader takes of a line.
const SECTION_BYTES_MAX: usize = 260 * 1024 * 1024;
/// How many sections a worker may have before it.
const AHEAD_MAX: usize = 2;
/// More workers than this would wait for the file.
const WORKERS_MAX: usize = 4;

/// Some whole lines of a tape.
#[derive(Debug, Default)]
pub struct Section {
    /// The lines.
    pub text: Vec<u8>,
    /// How many bytes of the tape are before them.
    pub offset: u64,
    /// Whether the tape ends with them.
    pub last: bool,
}

/// Cuts a text into sections.
struct Cutter {
    text: Box<dyn BufRead>,
    /// What was read behind the last section.
    rest: Vec<u8>,
    /// Where the next section starts.
    offset: u64,
}

/// Reads the tape at `path`. `work` makes something of each section, on several threads if there are
/// several sections; `take` gets what was made, in their order, and may end the reading with an error.
/// Returns what is unusual about the file.
pub fn read<T: Send, E: From<io::Error>>(
    path: &Path,
    watch: Watch,
    work: impl Fn(Section) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<Vec<Finding>, E> {
    let Plain { text, oddities } = Plain::read(source::open(path)?, watch)?;
    let mut cutter = Cutter { text, rest: Vec::new(), offset: 0 };
    let first = cutter.next()?;
    if first.last {
        // A thread costs more than a small tape.
        take(work(first))?;
        return Ok(oddities.findings());
    }
    let workers = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    thread::scope(|scope| {
        let mut crew = Vec::new();
        for _ in 0..workers {
            let (give, given) = sync_channel::<Section>(AHEAD_MAX);
            let (done, result) = sync_channel(AHEAD_MAX);
            let work = &work;
            scope.spawn(move || labour(&given, &done, work));
            crew.push((give, result));
        }
        hand_out(cutter, first, &crew, &mut take)
    })?;
    Ok(oddities.findings())
}

/// What a worker does until nothing more is given to it, or nobody wants what it makes.
fn labour<T>(given: &Receiver<Section>, done: &SyncSender<T>, work: &impl Fn(Section) -> T) {
    while let Ok(section) = given.recv() {
        if done.send(work(section)).is_err() {
            return;
        }
    }
}

/// Hands sections out in turn and takes what comes back in turn.
fn hand_out<T, E: From<io::Error>>(
    mut cutter: Cutter,
    first: Section,
    crew: &[(SyncSender<Section>, Receiver<T>)],
    take: &mut impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let gone = || io::Error::other("a thread that read the tape has ended");
    let (mut given, mut taken) = (0, 0);
    let mut next = Some(first);
    while next.is_some() || taken < given {
        if let Some(section) = next.take_if(|_| given - taken < AHEAD_MAX * crew.len()) {
            let more = !section.last;
            crew[given % crew.len()].0.send(section).map_err(|_| gone())?;
            given += 1;
            next = if more { Some(cutter.next()?) } else { None };
            continue;
        }
        take(crew[taken % crew.len()].1.recv().map_err(|_| gone())?)?;
        taken += 1;
    }
    Ok(())
}

impl Cutter {
    fn next(&mut self) -> io::Result<Section> {
        let mut text = std::mem::take(&mut self.rest);
        let mut wanted = SECTION_BYTES.max(text.len() + SECTION_BYTES / 2);
        loop {
            let missing = (wanted - text.len()) as u64;
            let count = self.text.by_ref().take(missing).read_to_end(&mut text)? as u64;
            if count < missing {
                return Ok(self.section(text, true));
            }
            if let Some(cut) = last_cut(&text) {
                self.rest = text.split_off(cut);
                return Ok(self.section(text, false));
            }
            if text.len() >= SECTION_BYTES_MAX {
                // Nobody can read such a line, so it does not matter where it is cut.
                return Ok(self.section(text, false));
            }
            wanted = text.len() * 2;
        }
    }

    fn section(&mut self, text: Vec<u8>, last: bool) -> Section {
        let offset = self.offset;
        self.offset += text.len() as u64;
        Section { text, offset, last }
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
        let work = |section: Section| {
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
}
