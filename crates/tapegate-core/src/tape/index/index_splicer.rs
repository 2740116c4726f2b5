//! Assembles the index of a tape from chunks or lines, and rejects a tape that is not reliable.

use super::chunk::{ChunkItem, TapeChunk};
use super::raw_entry::RawEntry;
use super::{Index, Indexer};
use crate::signature::Signer;
use crate::tape::TORN_TAIL;
use crate::tape::line::{FormatVersion, LineFault, TapeLine};
use crate::tape::outline::{TapeFinding, TapeOutline, TapeSeverity};
use crate::tape::reader::{LineProblem, NumberedLine};

/// Builds the index of a whole tape, and reports what is unusual about it.
#[derive(Debug)]
pub struct IndexSplicer {
    indexer: Indexer,
    outline: TapeOutline,
    /// A damaged line, unless the next one marks it as the result of a crash.
    broken: Option<(u64, LineFault)>,
    /// How many bytes and lines were added.
    offset: u64,
    lines: u64,
    /// Reused for single lines.
    chunk: TapeChunk,
    /// Whether to skip entries that are too long to be read.
    leaves_out_too_long: bool,
}

/// Why a tape cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum TapeRejection {
    /// It is not a tape at all.
    #[error("is not a tape: {0}")]
    NoTape(String),
    /// It has an unsupported format version.
    #[error("cannot be read: line {line}: {message}")]
    Version {
        /// The line of the header.
        line: u64,
        /// Which version it has, and which ones are supported.
        message: String,
    },
    /// A line is not an entry.
    #[error("is damaged: line {line}: {fault}")]
    Damage {
        line: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// An entry is longer than the limit, which the user can raise. The tape may be in order.
    #[error("cannot be played: line {line}: {fault}")]
    TooLong {
        line: u64,
        /// The limit.
        fault: LineFault,
    },
    /// The file could not be read.
    #[error("cannot be read beyond line {line}: {source}")]
    Io {
        /// The last line that was read.
        line: u64,
        /// Why.
        source: std::io::Error,
    },
}

impl IndexSplicer {
    /// A splicer that signs requests with `signer`.
    pub fn new(signer: Signer) -> Self {
        Self {
            indexer: Indexer::new(signer),
            outline: TapeOutline::default(),
            broken: None,
            offset: 0,
            lines: 0,
            chunk: TapeChunk::default(),
            leaves_out_too_long: false,
        }
    }

    /// Skips entries that are too long to be read, with a warning, instead of rejecting the tape.
    pub fn skipping_too_long(mut self, leave_out: bool) -> Self {
        self.leaves_out_too_long = leave_out;
        self
    }

    /// Adds the next chunk of the tape, and leaves it empty.
    pub fn add(&mut self, chunk: &mut TapeChunk) -> Result<(), TapeRejection> {
        let mut known = 0;
        // Messages and other items are added in the order of the tape, which the counts restore.
        for (before, other) in chunk.others.drain(..) {
            self.messages(&chunk.raw_entries[known..before])?;
            known = before;
            self.add_item(other)?;
        }
        self.messages(&chunk.raw_entries[known..])?;
        self.offset += chunk.bytes;
        self.lines += chunk.lines;
        Ok(())
    }

    /// Adds the next line of the tape, or the problem with it.
    pub fn line(
        &mut self,
        next: Result<NumberedLine<'_>, LineProblem>,
    ) -> Result<(), TapeRejection> {
        match next {
            Ok(numbered) => {
                let mut chunk = std::mem::take(&mut self.chunk);
                self.offset = numbered.offset;
                // A numbered line counts from the start of the tape, not of a chunk.
                self.lines = 0;
                chunk.read_entry(&numbered, self.indexer.signer());
                let added = self.add(&mut chunk);
                self.chunk = chunk;
                added
            }
            Err(problem) => {
                self.lines = 0;
                self.add_item(ChunkItem::Problem(problem))
            }
        }
    }

    /// The index, and what is unusual about the tape: warnings and notes.
    pub fn finish(mut self) -> Result<(Index, Vec<TapeFinding>), TapeRejection> {
        // A damaged last line has no marker after it.
        self.check_damage()?;
        if !self.outline.has_entries() {
            return Err(TapeRejection::NoTape("it has no entries".to_owned()));
        }
        let (index, oddities) = self.indexer.finish();
        for oddity in oddities {
            self.outline.report(oddity.line, TapeSeverity::Warning, oddity.message);
        }
        let mut findings = self.outline.finish();
        for finding in &mut findings {
            // Structural problems do not prevent a tape from being played.
            finding.severity = finding.severity.min(TapeSeverity::Warning);
        }
        Ok((index, findings))
    }

    fn messages(&mut self, raw: &[RawEntry]) -> Result<(), TapeRejection> {
        if !raw.is_empty() {
            // The damaged line was followed by a message and not by the marker of a recovery.
            self.check_damage()?;
        }
        for raw in raw {
            if raw.first {
                let line = self.lines + u64::from(raw.line);
                self.outline.message(line, raw.from, raw.seq.is_some());
            }
            self.indexer.add(raw, self.offset, self.lines);
        }
        Ok(())
    }

    fn add_item(&mut self, other: ChunkItem) -> Result<(), TapeRejection> {
        match other {
            ChunkItem::Entry(line, entry) => {
                let line = self.lines + line;
                let marker = matches!(&entry, TapeLine::Bad(bad) if bad.reason == TORN_TAIL);
                let next = Ok(NumberedLine { line, offset: 0, text: b"", entry });
                self.outline.line(&next);
                if marker {
                    // The recorder wrote this marker when it continued after a crash, so the damage
                    // is explained.
                    self.broken = None;
                }
                self.check_damage()?;
                if let Ok(NumberedLine { entry: TapeLine::Header(header), .. }) = &next {
                    if let FormatVersion::Other(message) = header.format_version() {
                        return Err(TapeRejection::Version { line, message });
                    }
                    self.indexer.header(line, header);
                }
            }
            ChunkItem::Bare { line, from, numbered } => {
                self.check_damage()?;
                self.outline.message(self.lines + line, from, numbered);
            }
            ChunkItem::Odd(line, message) => self.indexer.report_once(self.lines + line, message),
            ChunkItem::Problem(problem) => {
                self.handle_problem(problem.shifted(self.lines, self.offset))?
            }
        }
        Ok(())
    }

    fn handle_problem(&mut self, problem: LineProblem) -> Result<(), TapeRejection> {
        self.check_damage()?;
        let next = Err(problem);
        self.outline.line(&next);
        match next {
            // The user has asked for the rest of the tape; the outline reports the gap.
            Err(LineProblem::Line { fault: LineFault::TooLong(_), .. })
                if self.leaves_out_too_long =>
            {
                self.indexer.add_too_long();
            }
            Err(LineProblem::Line { line, fault }) => self.broken = Some((line, fault)),
            Err(LineProblem::Io { line, source }) => {
                return Err(TapeRejection::Io { line, source });
            }
            // A torn tail is what a crash leaves, and everything before it is intact.
            Err(LineProblem::Torn { .. }) | Ok(_) => {}
        }
        Ok(())
    }

    /// Fails if the previous line was damaged.
    fn check_damage(&mut self) -> Result<(), TapeRejection> {
        let Some((line, fault)) = self.broken.take() else { return Ok(()) };
        if !self.outline.has_entries() {
            return Err(TapeRejection::NoTape(format!("line {line}: {fault}")));
        }
        Err(match fault {
            LineFault::TooLong(_) => TapeRejection::TooLong { line, fault },
            fault => TapeRejection::Damage { line, fault },
        })
    }
}
