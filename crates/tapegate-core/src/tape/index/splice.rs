//! Assembles the index of a tape from chunks or lines, and rejects a tape that is not reliable.

use super::stretch::{Other, Stretch};
use super::told::Told;
use super::{Index, Indexer};
use crate::signature::Signer;
use crate::tape::TORN_TAIL;
use crate::tape::line::{Line, LineFault, Version};
use crate::tape::outline::{Finding, Outline, Severity};
use crate::tape::reader::{Numbered, Problem};

/// Builds the index of a whole tape, and reports what is unusual about it.
#[derive(Debug)]
pub struct Splicer {
    indexer: Indexer,
    outline: Outline,
    /// A damaged line, unless the next one marks it as the result of a crash.
    broken: Option<(u64, LineFault)>,
    /// How many bytes and lines were added.
    offset: u64,
    lines: u64,
    /// Reused for single lines.
    stretch: Stretch,
    /// Whether to skip entries that are too long to be read.
    leaves_out_too_long: bool,
}

/// Why a tape cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// It is not a tape at all.
    #[error("is not a tape: {0}")]
    NoTape(String),
    /// It has an unsupported format version.
    #[error("cannot be read: line {line}: {words}")]
    Version {
        /// The line of the header.
        line: u64,
        /// Which version it has, and which ones are supported.
        words: String,
    },
    /// A line is not an entry.
    #[error("is damaged: line {line}: {fault}")]
    Damage {
        /// The line.
        line: u64,
        /// What is wrong with it.
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

impl Splicer {
    /// A splicer that signs requests with `signer`.
    pub fn new(signer: Signer) -> Self {
        Self {
            indexer: Indexer::new(signer),
            outline: Outline::default(),
            broken: None,
            offset: 0,
            lines: 0,
            stretch: Stretch::default(),
            leaves_out_too_long: false,
        }
    }

    /// Skips entries that are too long to be read, with a warning, instead of rejecting the tape.
    pub fn leaving_out_too_long(mut self, leave_out: bool) -> Self {
        self.leaves_out_too_long = leave_out;
        self
    }

    /// Adds the next chunk of the tape, and leaves it empty.
    pub fn add(&mut self, stretch: &mut Stretch) -> Result<(), Refusal> {
        let mut known = 0;
        for (before, other) in stretch.others.drain(..) {
            self.messages(&stretch.told[known..before])?;
            known = before;
            self.other(other)?;
        }
        self.messages(&stretch.told[known..])?;
        self.offset += stretch.bytes;
        self.lines += stretch.lines;
        Ok(())
    }

    /// Adds the next line of the tape, or the problem with it.
    pub fn line(&mut self, next: Result<Numbered<'_>, Problem>) -> Result<(), Refusal> {
        match next {
            Ok(numbered) => {
                let mut stretch = std::mem::take(&mut self.stretch);
                self.offset = numbered.offset;
                self.lines = 0;
                stretch.one(&numbered, self.indexer.signer());
                let added = self.add(&mut stretch);
                self.stretch = stretch;
                added
            }
            Err(problem) => {
                self.lines = 0;
                self.other(Other::Problem(problem))
            }
        }
    }

    /// The index, and what is unusual about the tape: warnings and notes.
    pub fn finish(mut self) -> Result<(Index, Vec<Finding>), Refusal> {
        self.damaged()?;
        if !self.outline.has_entries() {
            return Err(Refusal::NoTape("it has no entries".to_owned()));
        }
        let (index, oddities) = self.indexer.finish();
        for oddity in oddities {
            self.outline.say(oddity.line, Severity::Warning, oddity.words);
        }
        let mut findings = self.outline.finish();
        for finding in &mut findings {
            // Structural problems do not prevent a tape from being played.
            finding.severity = finding.severity.min(Severity::Warning);
        }
        Ok((index, findings))
    }

    fn messages(&mut self, told: &[Told]) -> Result<(), Refusal> {
        if !told.is_empty() {
            self.damaged()?;
        }
        for told in told {
            if told.first {
                let line = self.lines + u64::from(told.line);
                self.outline.message(line, told.from, told.seq.is_some());
            }
            self.indexer.add(told, self.offset, self.lines);
        }
        Ok(())
    }

    fn other(&mut self, other: Other) -> Result<(), Refusal> {
        match other {
            Other::Entry(line, entry) => {
                let line = self.lines + line;
                let marker = matches!(&entry, Line::Bad(bad) if bad.reason == TORN_TAIL);
                let next = Ok(Numbered { line, offset: 0, text: b"", entry });
                self.outline.line(&next);
                if marker {
                    self.broken = None;
                }
                self.damaged()?;
                if let Ok(Numbered { entry: Line::Header(header), .. }) = &next {
                    if let Version::Other(words) = header.format() {
                        return Err(Refusal::Version { line, words });
                    }
                    self.indexer.header(line, header);
                }
            }
            Other::Bare { line, from, numbered } => {
                self.damaged()?;
                self.outline.message(self.lines + line, from, numbered);
            }
            Other::Odd(line, words) => self.indexer.once(self.lines + line, words),
            Other::Problem(problem) => self.problem(problem.moved(self.lines, self.offset))?,
        }
        Ok(())
    }

    fn problem(&mut self, problem: Problem) -> Result<(), Refusal> {
        self.damaged()?;
        let next = Err(problem);
        self.outline.line(&next);
        match next {
            Err(Problem::Line { fault: LineFault::TooLong(_), .. }) if self.leaves_out_too_long => {
            }
            Err(Problem::Line { line, fault }) => self.broken = Some((line, fault)),
            Err(Problem::Io { line, source }) => return Err(Refusal::Io { line, source }),
            Err(Problem::Torn { .. }) | Ok(_) => {}
        }
        Ok(())
    }

    /// Fails if the previous line was damaged.
    fn damaged(&mut self) -> Result<(), Refusal> {
        let Some((line, fault)) = self.broken.take() else { return Ok(()) };
        if !self.outline.has_entries() {
            return Err(Refusal::NoTape(format!("line {line}: {fault}")));
        }
        Err(Refusal::Damage { line, fault })
    }
}
