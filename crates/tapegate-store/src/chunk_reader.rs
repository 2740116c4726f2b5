//! Indexes a tape's file in chunks, several in parallel, and joins them in order.
//!
//! A file is divided into pieces of equal size. The chunk of a piece extends from the first line
//! that starts in it to the first line that starts in the next one, so every worker finds its
//! chunks independently. Each worker has its own queue, and the queues are emptied in turn: that
//! keeps the order and bounds the memory used.

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use tapegate_core::signature::Signer;
use tapegate_core::tape::index::{Index, IndexSplicer, TapeChunk, TapeRejection, first_line_start};
use tapegate_core::tape::{TapeFinding, TapeReader, entry_bytes_max};

use crate::tape_source::ReadProgress;

/// The smallest and largest size of a piece. The chunks in memory are small compared with the
/// index, and the bytes read twice, at the end of a piece, are few compared with the piece.
const PIECE_BYTES: RangeInclusive<u64> = 128 * 1024..=512 * 1024;
/// The number of pieces, if their size permits.
const PIECES: u64 = 1024;
/// How much is read after a piece at first, to find the end of its last line.
const BEHIND_BYTES: usize = 4 * 1024;
/// How many bytes may follow a piece before the next chunk starts, if they contain several lines.
const LINES_BEHIND_MAX: usize = 8 * 1024 * 1024;
/// How much longer than the longest entry a single line after a piece may be.
const LINE_SURPLUS_BYTES: usize = 1 << 20;
/// How many chunks a worker may be ahead.
const AHEAD_MAX: usize = 1;
/// More workers than this would wait for the thread that joins the chunks.
const WORKERS_MAX: usize = 4;

/// A file, with its length when it was opened, in pieces.
#[derive(Clone, Copy)]
struct FilePieces<'a> {
    file: &'a File,
    bytes: u64,
    /// The size of a piece.
    piece: u64,
    signer: &'a Signer,
}

/// Why a chunk could not be read.
enum PieceError {
    Io(io::Error),
    /// The chunk is too long for memory, so the tape must be read line by line.
    Endless,
}

/// Indexes the first `bytes` bytes of a file. Entries that are too long to be read are skipped if
/// `leave_out` is set; otherwise the tape is refused.
pub(crate) fn index(
    file: &File,
    bytes: u64,
    (signer, leave_out): (&Signer, bool),
    watch: &mut ReadProgress,
) -> Result<(Index, Vec<TapeFinding>), TapeRejection> {
    let piece = (bytes / PIECES).clamp(*PIECE_BYTES.start(), *PIECE_BYTES.end());
    let pieces = FilePieces { file, bytes, piece, signer };
    let mut splicer = IndexSplicer::new(signer.clone()).skipping_too_long(leave_out);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(WORKERS_MAX);
    let whole = match pieces.count() {
        0..=1 => pieces.read_sequentially(&mut splicer)?,
        _ => pieces.read_in_parallel(workers, &mut splicer, watch)?,
    };
    if whole { splicer.finish() } else { read_line_by_line(file, (signer, leave_out), watch) }
}

/// Indexes line by line a tape whose chunks would be too long.
fn read_line_by_line(
    mut file: &File,
    (signer, leave_out): (&Signer, bool),
    watch: &mut ReadProgress,
) -> Result<(Index, Vec<TapeFinding>), TapeRejection> {
    let io = |source| TapeRejection::Io { line: 0, source };
    let bytes = file.metadata().map_err(io)?.len();
    file.rewind().map_err(io)?;
    let mut reader = TapeReader::new(BufReader::with_capacity(*PIECE_BYTES.end() as usize, file));
    let mut splicer = IndexSplicer::new(signer.clone()).skipping_too_long(leave_out);
    while let Some(next) = reader.next() {
        if let Ok(numbered) = &next {
            watch(numbered.offset, bytes);
        }
        splicer.line(next)?;
    }
    watch(bytes, bytes);
    splicer.finish()
}

impl FilePieces<'_> {
    fn count(self) -> u64 {
        self.bytes.div_ceil(self.piece)
    }

    /// Reads all pieces in this thread; false if a chunk is too long.
    fn read_sequentially(self, splicer: &mut IndexSplicer) -> Result<bool, TapeRejection> {
        let (mut chunk, mut bytes) = (TapeChunk::default(), Vec::new());
        for piece in 0..self.count() {
            match self.read(piece, &mut bytes, &mut chunk) {
                Ok(()) => splicer.add(&mut chunk)?,
                Err(trouble) => return trouble.into_result(),
            }
        }
        Ok(true)
    }

    /// Reads the pieces in parallel; false if a chunk is too long or a worker has died.
    fn read_in_parallel(
        self,
        workers: usize,
        splicer: &mut IndexSplicer,
        watch: &mut ReadProgress,
    ) -> Result<bool, TapeRejection> {
        thread::scope(|scope| {
            let mut queues = Vec::new();
            for worker in 0..workers {
                let (done, queue) = sync_channel(AHEAD_MAX);
                let (give_back, used) = channel();
                let pieces = (worker as u64..self.count()).step_by(workers);
                scope.spawn(move || self.run_worker(pieces, &done, &used));
                queues.push((queue, give_back));
            }
            for piece in 0..self.count() {
                let (queue, give_back) = &queues[piece as usize % workers];
                let Ok(read) = queue.recv() else { return Ok(false) };
                let mut chunk = match read {
                    Ok(chunk) => chunk,
                    Err(trouble) => return PieceError::into_result(trouble),
                };
                splicer.add(&mut chunk)?;
                watch(self.bytes.min((piece + 1) * self.piece), self.bytes);
                // Lets the worker reuse its memory; fails only if the worker is done.
                drop(give_back.send(chunk));
            }
            Ok(true)
        })
    }

    fn run_worker(
        self,
        pieces: impl Iterator<Item = u64>,
        done: &SyncSender<Result<TapeChunk, PieceError>>,
        used: &Receiver<TapeChunk>,
    ) {
        let mut bytes = Vec::new();
        for piece in pieces {
            let mut chunk = used.try_recv().unwrap_or_default();
            let read = self.read(piece, &mut bytes, &mut chunk).map(|()| chunk);
            // The receiver is gone if joining failed.
            if done.send(read).is_err() {
                return;
            }
        }
    }

    /// Reads the chunk of a piece, using `bytes` as the buffer.
    fn read(
        self,
        piece: u64,
        bytes: &mut Vec<u8>,
        chunk: &mut TapeChunk,
    ) -> Result<(), PieceError> {
        let start = piece * self.piece;
        let end = self.bytes.min(start + self.piece);
        // The byte before the piece tells whether a line starts with it.
        let from = start.saturating_sub(1);
        let length = (end - from) as usize;
        bytes.truncate(length + BEHIND_BYTES);
        bytes.shrink_to(2 * self.piece as usize);
        let filled = self.fill(bytes, 0, from, length + BEHIND_BYTES)?;
        let first = if piece == 0 { Some(0) } else { first_line_start(&bytes[..filled]) };
        let (mut text, mut last) = (0..0, false);
        if let Some(first) = first.filter(|first| *first < length) {
            let (end, ends) = self.end(bytes, filled, from, length)?;
            (text, last) = (first..end, ends);
        }
        chunk.read(&bytes[text], last, self.signer);
        Ok(())
    }

    /// The end of the chunk whose piece ends after `length` of the bytes read at `from`: where the
    /// next chunk starts, or the end of the file. Also returns whether it is the end of the file.
    fn end(
        self,
        bytes: &mut Vec<u8>,
        mut filled: usize,
        from: u64,
        length: usize,
    ) -> Result<(usize, bool), PieceError> {
        let mut more = BEHIND_BYTES;
        let line_behind_max = entry_bytes_max() + LINE_SURPLUS_BYTES;
        loop {
            let behind = &bytes[length - 1..filled];
            if let Some(end) = first_line_start(behind) {
                return Ok((length - 1 + end, false));
            }
            if from + filled as u64 >= self.bytes {
                return Ok((filled, true));
            }
            let lines = behind.len() > LINES_BEHIND_MAX && behind[1..].contains(&b'\n');
            if lines || behind.len() > line_behind_max {
                return Err(PieceError::Endless);
            }
            // All bytes after the piece are scanned again, so their number is doubled.
            more = (more * 2).min(line_behind_max);
            filled = self.fill(bytes, filled, from, more)?;
        }
    }

    /// Reads up to `more` bytes after the `filled` ones of a buffer that starts at `from`.
    fn fill(
        self,
        bytes: &mut Vec<u8>,
        filled: usize,
        from: u64,
        more: usize,
    ) -> Result<usize, PieceError> {
        let left = self.bytes - from - filled as u64;
        let end = filled + more.min(usize::try_from(left).unwrap_or(usize::MAX));
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        let read = self.file.read_exact_at(&mut bytes[filled..end], from + filled as u64);
        read.map_err(PieceError::Io)?;
        Ok(end)
    }
}

impl PieceError {
    fn into_result(self) -> Result<bool, TapeRejection> {
        match self {
            Self::Io(source) => Err(TapeRejection::Io { line: 0, source }),
            Self::Endless => Ok(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The index of a tape read in chunks, and of the same tape read line by line.
    fn both(text: &[u8]) -> [String; 2] {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let signer = Signer::default();
        let mut watch: ReadProgress = Box::new(|done, total| assert!(done <= total));
        let in_stretches = index(&file, text.len() as u64, (&signer, false), &mut watch);
        [in_stretches, read_line_by_line(&file, (&signer, false), &mut watch)].map(
            |made| match made {
                Ok((index, findings)) => {
                    let slots: Vec<_> =
                        (0..index.len() as u32).map(|slot| index.entry(slot)).collect();
                    format!("{slots:?}\n{findings:?}")
                }
                Err(refusal) => refusal.to_string(),
            },
        )
    }

    fn line(seq: u64, text_bytes: usize) -> String {
        let text = "x".repeat(text_bytes);
        format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-01-01T00:00:00.000000Z\",\"dir\":\"c2s\",\
             \"msg\":{{\"id\":{seq},\"method\":\"m\",\"params\":{{\"text\":\"{text}\"}}}}}}\n"
        )
    }

    #[track_caller]
    fn agree(text: &str, messages: usize) {
        let [in_stretches, line_by_line] = both(text.as_bytes());
        assert_eq!(in_stretches, line_by_line);
        assert_eq!(in_stretches.matches("IndexEntry {").count(), messages);
    }

    #[test]
    fn lines_of_any_length_are_read_wherever_pieces_end() {
        let piece = *PIECE_BYTES.start() as usize;
        let lengths = [10, piece, 0, 3 * piece, 7, piece / 2, piece / 2, piece - 200, 1, 5 * piece];
        let text: String = (0..60).map(|n| line(n, lengths[n as usize % lengths.len()])).collect();
        agree(&text, 60);
        // A line that ends exactly at the end of a piece.
        let first = line(1, 100);
        let exact = line(2, 100 + piece - 2 * first.len());
        assert_eq!(first.len() + exact.len(), piece);
        agree(&(first.clone() + &exact + &first + &line(3, 2 * piece)), 4);
        agree(&(exact.clone() + &first + &first), 3);
    }

    #[test]
    fn values_that_jq_spread_over_lines_are_not_torn_apart() {
        let spread = line(1, 50).replace(",\"", ",\n  \"").replace("}}", "}\n}");
        agree(&spread.repeat(3000), 3000);
    }

    #[test]
    fn a_tape_without_a_place_to_cut_is_read_line_by_line() {
        let indented = format!(" {}", line(1, 2000));
        agree(
            &indented.repeat(LINES_BEHIND_MAX / indented.len() + 200),
            LINES_BEHIND_MAX / indented.len() + 200,
        );
    }

    #[test]
    fn damage_is_found_in_whichever_stretch_it_is() {
        let good = line(1, 1000).repeat(400);
        let [in_stretches, line_by_line] = both(format!("{good}{{\n{good}").as_bytes());
        assert_eq!(in_stretches, line_by_line);
        assert!(in_stretches.starts_with("is damaged: line 401:"), "{in_stretches}");
        let [in_stretches, line_by_line] = both(format!("{good}{{\"ty").as_bytes());
        assert_eq!(in_stretches, line_by_line);
        assert!(in_stretches.contains("line: 401, severity: Warning"), "{in_stretches}");
    }

    #[test]
    fn a_file_that_is_shorter_than_it_was_is_an_error() {
        let file = tempfile::tempfile().unwrap();
        let made = index(
            &file,
            10 * PIECE_BYTES.start(),
            (&Signer::default(), false),
            &mut (Box::new(|_, _| ()) as ReadProgress),
        );
        assert!(matches!(made, Err(TapeRejection::Io { .. })));
    }
}
