//! Reads tapes, plain or compressed, from files and pipes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tapegate_core::tape::{TapeFinding, TapeReader, TapeSeverity};

use crate::gzip::GzipReader;
use crate::input;

/// How much is read at a time.
const READ_BYTES: usize = 256 * 1024;

/// The byte order mark that some editors put at the start of a text.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";

/// A tape opened for reading.
pub struct TapeSource {
    /// Its entries.
    pub reader: TapeReader<Box<dyn BufRead>>,
    oddities: TextOddities,
}

/// The unpacked text of a tape.
pub struct TapeText {
    pub text: Box<dyn BufRead>,
    /// What is unusual about it.
    pub oddities: TextOddities,
}

/// What is unusual about a text but was handled; complete once the text has been read to its end.
pub struct TextOddities {
    /// Whether a compressed tape turned out to be truncated.
    cut_off: Option<Arc<AtomicBool>>,
    /// Whether it starts with a byte order mark.
    marked: Arc<AtomicBool>,
}

/// A text without its byte order mark, if it has one.
struct BomStripper<R> {
    text: R,
    begun: bool,
    marked: Arc<AtomicBool>,
}

/// Receives the number of bytes read and the total.
pub type ReadProgress = Box<dyn FnMut(u64, u64)>;

/// A file that reports the progress of reading.
struct ProgressReader {
    file: Box<dyn Read>,
    bytes_read: u64,
    bytes_total: u64,
    watch: ReadProgress,
}

impl Read for ProgressReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.bytes_read += count as u64;
        // The total length of a pipe is unknown.
        (self.watch)(self.bytes_read, self.bytes_total.max(self.bytes_read));
        Ok(count)
    }
}

impl TapeSource {
    /// Opens a tape. Compression is detected from the first bytes, not from the name.
    pub fn open(path: &Path, watch: ReadProgress) -> io::Result<Self> {
        Self::read(input::open(path)?, watch)
    }

    /// Reads a tape from an open file or pipe.
    pub fn read(file: File, watch: ReadProgress) -> io::Result<Self> {
        let TapeText { text, oddities } = TapeText::read(file, watch)?;
        Ok(Self { reader: TapeReader::new(text), oddities })
    }

    /// Reads a tape from any source of bytes.
    pub fn stream(bytes: Box<dyn Read>) -> io::Result<Self> {
        let TapeText { text, oddities } = TapeText::stream(bytes, 0, Box::new(|_, _| ()))?;
        Ok(Self { reader: TapeReader::new(text), oddities })
    }

    /// The findings about the file, once it has been read to its end.
    pub fn findings(&self) -> Vec<TapeFinding> {
        self.oddities.findings()
    }
}

impl TextOddities {
    /// The oddities as findings.
    pub fn findings(&self) -> Vec<TapeFinding> {
        let is_set = |flag: &Arc<AtomicBool>| flag.load(Ordering::Relaxed);
        let mark = "the tape starts with a byte order mark, which is left out";
        let mark = is_set(&self.marked).then_some((1, mark));
        let message = "the compressed tape was cut off; everything up to its last flush was read";
        let cut_off = self.cut_off.as_ref().is_some_and(is_set).then_some((0, message));
        let found = mark.into_iter().chain(cut_off);
        let warning = |(line, message): (u64, &str)| TapeFinding {
            line,
            severity: TapeSeverity::Warning,
            message: message.to_owned(),
        };
        found.map(warning).collect()
    }
}

impl<R: BufRead> Read for BomStripper<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for BomStripper<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.begun {
            let marked = self.text.fill_buf()?.starts_with(MARK);
            self.begun = true;
            self.marked.store(marked, Ordering::Relaxed);
            self.text.consume(if marked { MARK.len() } else { 0 });
        }
        self.text.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.text.consume(count);
    }
}

/// The longest line that is read.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The lines of a text, numbered from 1, without their line ends.
pub fn lines(text: &mut dyn BufRead) -> impl Iterator<Item = io::Result<(u64, Vec<u8>)>> {
    let mut number = 0;
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        match (&mut *text).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(count) if count as u64 > LINE_BYTES_MAX => {
                Some(Err(io::Error::other(format!("a line is over {LINE_BYTES_MAX} bytes"))))
            }
            Ok(_) => {
                number += 1;
                line.pop_if(|last| *last == b'\n');
                Some(Ok((number, line)))
            }
            Err(error) => Some(Err(error)),
        }
    })
}

/// The unpacked text of a file. Compression is detected from the first bytes.
pub fn text(file: File) -> io::Result<Box<dyn BufRead>> {
    Ok(TapeText::read(file, Box::new(|_, _| ()))?.text)
}

impl TapeText {
    /// Opens a tape by its path, or standard input for `-`.
    pub fn open(path: &Path, watch: ReadProgress) -> io::Result<Self> {
        let file = match path == Path::new("-") {
            true => input::stdin()?,
            false => input::open(path)?,
        };
        Self::read(file, watch)
    }

    /// Reads a file. Compression is detected from the first bytes.
    pub(crate) fn read(file: File, watch: ReadProgress) -> io::Result<Self> {
        let bytes_total = file.metadata()?.len();
        Self::stream(Box::new(file), bytes_total, watch)
    }

    fn stream(file: Box<dyn Read>, bytes_total: u64, watch: ReadProgress) -> io::Result<Self> {
        let watched = ProgressReader { file, bytes_read: 0, bytes_total, watch };
        let mut file = BufReader::with_capacity(READ_BYTES, watched);
        if file.fill_buf()?.starts_with(b"\x1f\x8b") {
            let (members, cut_off) = GzipReader::new(file);
            return Ok(Self::new(BufReader::with_capacity(READ_BYTES, members), Some(cut_off)));
        }
        Ok(Self::new(file, None))
    }

    fn new(text: impl BufRead + 'static, cut_off: Option<Arc<AtomicBool>>) -> Self {
        let marked: Arc<AtomicBool> = Arc::default();
        let text = BomStripper { text, begun: false, marked: Arc::clone(&marked) };
        Self { text: Box::new(text), oddities: TextOddities { cut_off, marked } }
    }
}
