//! Reads a tape's file in stretches, several at a time, and puts them together in order.
//!
//! A file is divided into pieces of one size. The stretch of a piece begins where the first line
//! of the piece does and ends where that of the next one begins, so that every worker finds its
//! stretches without asking the others. Each worker has a queue of its own, and the queues are
//! emptied in turn: that keeps the order, and bounds what lies in memory.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{Index, Refusal, Splicer, Stretch, cut};
use tapegate_core::tape::{Finding, Reader};

use crate::source::Watch;

/// How long a piece is.
const PIECE_BYTES: u64 = 256 * 1024;
/// How much is read behind a piece at first, to find the end of its last line.
const BEHIND_BYTES: usize = 4 * 1024;
/// How many bytes may follow a piece before the next stretch begins, if there are lines in them.
const LINES_BEHIND_MAX: usize = 8 * 1024 * 1024;
/// How many bytes may follow a piece if they are one line: a little more than a reader takes.
const LINE_BEHIND_MAX: usize = 260 * 1024 * 1024;
/// How many stretches a worker may be ahead.
const AHEAD_MAX: usize = 2;
/// More workers than this would wait for the one who puts stretches together.
const WORKERS_MAX: usize = 4;

/// A file, as long as it was when it was opened, in pieces.
#[derive(Clone, Copy)]
struct Pieces<'a> {
    file: &'a File,
    bytes: u64,
    signer: &'a Signer,
}

/// A stretch and its text. Those that are done with are used again.
#[derive(Default)]
struct Sheet {
    text: Vec<u8>,
    /// Where the stretch begins in `text`.
    start: usize,
    stretch: Stretch,
}

/// Why a piece has no stretch.
enum Trouble {
    Io(io::Error),
    /// The stretch is too long to be kept, so the tape must be read line by line.
    Endless,
}

/// Makes an index of the first `bytes` bytes of a file.
pub(crate) fn index(
    file: &File,
    bytes: u64,
    signer: &Signer,
    watch: &mut Watch,
) -> Result<(Index, Vec<Finding>), Refusal> {
    let pieces = Pieces { file, bytes, signer };
    let mut splicer = Splicer::new(signer.clone());
    let workers = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let whole = match pieces.count() {
        0..=1 => pieces.alone(&mut splicer)?,
        _ => pieces.together(workers, &mut splicer, watch)?,
    };
    if whole { splicer.finish() } else { one_by_one(file, signer, watch) }
}

/// Reads line by line what is too long to be read in stretches.
fn one_by_one(
    mut file: &File,
    signer: &Signer,
    watch: &mut Watch,
) -> Result<(Index, Vec<Finding>), Refusal> {
    let io = |source| Refusal::Io { line: 0, source };
    let bytes = file.metadata().map_err(io)?.len();
    file.rewind().map_err(io)?;
    let mut reader = Reader::new(BufReader::with_capacity(PIECE_BYTES as usize, file));
    let mut splicer = Splicer::new(signer.clone());
    while let Some(next) = reader.next() {
        if let Ok(numbered) = &next {
            watch(numbered.offset, bytes);
        }
        splicer.line(next)?;
    }
    watch(bytes, bytes);
    splicer.finish()
}

impl Pieces<'_> {
    fn count(self) -> u64 {
        self.bytes.div_ceil(PIECE_BYTES)
    }

    /// Reads all pieces in this thread; false if that cannot be.
    fn alone(self, splicer: &mut Splicer) -> Result<bool, Refusal> {
        let mut sheet = Sheet::default();
        for piece in 0..self.count() {
            match self.read(piece, &mut sheet) {
                Ok(()) => splicer.add(&mut sheet.stretch, &sheet.text[sheet.start..])?,
                Err(trouble) => return trouble.refused(),
            }
        }
        Ok(true)
    }

    /// Reads the pieces side by side; false if that cannot be.
    fn together(
        self,
        workers: usize,
        splicer: &mut Splicer,
        watch: &mut Watch,
    ) -> Result<bool, Refusal> {
        thread::scope(|scope| {
            let mut queues = Vec::new();
            for worker in 0..workers {
                let (done, queue) = sync_channel(AHEAD_MAX);
                let (give_back, used) = channel();
                let pieces = (worker as u64..self.count()).step_by(workers);
                scope.spawn(move || self.work(pieces, &done, &used));
                queues.push((queue, give_back));
            }
            for piece in 0..self.count() {
                let (queue, give_back) = &queues[piece as usize % workers];
                let Ok(read) = queue.recv() else { return Ok(false) };
                let mut sheet = match read {
                    Ok(sheet) => sheet,
                    Err(trouble) => return Trouble::refused(trouble),
                };
                splicer.add(&mut sheet.stretch, &sheet.text[sheet.start..])?;
                watch(self.bytes.min((piece + 1) * PIECE_BYTES), self.bytes);
                // A worker that has nothing left to do needs no sheet.
                drop(give_back.send(sheet));
            }
            Ok(true)
        })
    }

    fn work(
        self,
        pieces: impl Iterator<Item = u64>,
        done: &SyncSender<Result<Sheet, Trouble>>,
        used: &Receiver<Sheet>,
    ) {
        for piece in pieces {
            let mut sheet = used.try_recv().unwrap_or_default();
            let read = self.read(piece, &mut sheet).map(|()| sheet);
            // Whoever puts the stretches together may have given up.
            if done.send(read).is_err() {
                return;
            }
        }
    }

    /// Reads the stretch of a piece.
    fn read(self, piece: u64, sheet: &mut Sheet) -> Result<(), Trouble> {
        let start = piece * PIECE_BYTES;
        let end = self.bytes.min(start + PIECE_BYTES);
        // Whether a line begins with the piece is told by the byte before it.
        let from = start.saturating_sub(1);
        let length = (end - from) as usize;
        sheet.text.clear();
        sheet.text.shrink_to(2 * PIECE_BYTES as usize);
        self.append(&mut sheet.text, from, length + BEHIND_BYTES)?;
        let first = if piece == 0 { Some(0) } else { cut(&sheet.text) };
        let Some(first) = first.filter(|first| *first < length) else {
            sheet.text.clear();
            sheet.start = 0;
            sheet.stretch.read(b"", false, self.signer);
            return Ok(());
        };
        let last = self.extend(&mut sheet.text, from, length)?;
        sheet.start = first;
        sheet.stretch.read(&sheet.text[first..], last, self.signer);
        Ok(())
    }

    /// Extends or cuts `text`, which starts at `from`, to where the first stretch behind `length`
    /// bytes begins; true if none does.
    fn extend(self, text: &mut Vec<u8>, from: u64, length: usize) -> Result<bool, Trouble> {
        let mut more = BEHIND_BYTES;
        loop {
            if let Some(behind) = text.get(length - 1..).and_then(cut) {
                text.truncate(length - 1 + behind);
                return Ok(false);
            }
            if from + text.len() as u64 >= self.bytes {
                return Ok(true);
            }
            let behind = &text[length..];
            let lines = behind.len() > LINES_BEHIND_MAX && behind.contains(&b'\n');
            if lines || behind.len() > LINE_BEHIND_MAX {
                return Err(Trouble::Endless);
            }
            // All that is behind is looked at again, so it grows by as much as it is.
            more *= 2;
            let offset = from + text.len() as u64;
            self.append(text, offset, more)?;
        }
    }

    /// Appends up to `length` bytes that stand at `offset`; fewer only at the end.
    fn append(self, text: &mut Vec<u8>, offset: u64, length: usize) -> Result<(), Trouble> {
        let length = length.min(usize::try_from(self.bytes - offset).unwrap_or(usize::MAX));
        let start = text.len();
        text.resize(start + length, 0);
        self.file.read_exact_at(&mut text[start..], offset).map_err(Trouble::Io)
    }
}

impl Trouble {
    fn refused(self) -> Result<bool, Refusal> {
        match self {
            Self::Io(source) => Err(Refusal::Io { line: 0, source }),
            Self::Endless => Ok(false),
        }
    }
}
