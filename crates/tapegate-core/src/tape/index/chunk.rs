//! A chunk of a tape: some of its lines, read independently of all others.
//!
//! Chunks can be read in parallel and in any order; they are added to the index in the order of the
//! tape. The result does not depend on where a tape is cut, as long as [`first_line_start`] chooses the place.

use std::io::Read;
use std::ops::Range;

use super::fast_line::FastLineReader;
use super::raw_entry::RawEntry;
use crate::frame::{self, Frame, FrameBody};
use crate::side::Side;
use crate::signature::Signer;
use crate::tape::line::{MessageLine, TapeLine};
use crate::tape::reader::{LineProblem, NumberedLine, TapeReader, entry_bytes_max};

/// The content of a chunk of a tape. Lines are counted from its start.
#[derive(Debug, Default)]
pub struct TapeChunk {
    pub(super) raw_entries: Vec<RawEntry>,
    /// Everything else, with the number of messages before it.
    pub(super) others: Vec<(usize, ChunkItem)>,
    /// How many lines and bytes it has.
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Something in a chunk other than a message.
#[derive(Debug)]
pub(super) enum ChunkItem {
    /// A line that is not a message.
    Entry(u64, TapeLine<'static>),
    /// A message line that yields no entry.
    Bare { line: u64, from: Side, numbered: bool },
    /// A message or an element of a batch that is skipped.
    Odd(u64, &'static str),
    /// A line that is not an entry.
    Problem(LineProblem),
}

/// The start of the first line after a line ending of `text` where a tape may be cut. A line that
/// may be inside a value that `jq` spread over several lines does not count.
pub fn first_line_start(text: &[u8]) -> Option<usize> {
    let starts = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
    // `jq` indents what belongs to a value, and ends it with a bracket.
    let middle = |byte: &u8| matches!(byte, b' ' | b'\t' | b'}' | b']');
    starts.into_iter().find(|start| text.get(*start).is_some_and(|byte| !middle(byte)))
}

impl TapeChunk {
    /// Reads a chunk of a tape; `last` is true if the tape ends with it.
    pub fn read(&mut self, text: &[u8], last: bool, signer: &Signer) {
        self.raw_entries.clear();
        self.others.clear();
        (self.lines, self.bytes) = (0, text.len() as u64);
        // Checked once for the whole chunk, so that the fast reader need not check each line.
        let plain = std::str::from_utf8(text).is_ok();
        let mut glance = FastLineReader::new(text, signer);
        let mut at = 0;
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
            let raw = if plain { glance.read(self.lines as u32 + 1, &text[at..end]) } else { None };
            let known = match raw {
                // The general reader reports that it is too long.
                // A tape must be read in the same way whether or not it is cut here.
                _ if end - at >= entry_bytes_max() => false,
                Some(raw) => {
                    self.raw_entries.push(raw);
                    true
                }
                None => self.entry(text, at..end, signer),
            };
            if known {
                // The last line may have no line ending and does not count then.
                self.lines += u64::from(end < text.len());
                at = end + 1;
            } else {
                at = self.read_line(text, at, last, signer);
            }
        }
    }

    /// Makes this the chunk of a single entry; positions are relative to its text.
    pub(super) fn read_entry(&mut self, numbered: &NumberedLine<'_>, signer: &Signer) {
        self.raw_entries.clear();
        self.others.clear();
        (self.lines, self.bytes) = (0, 0);
        self.add_entry(numbered, signer);
    }

    /// Adds an entry from the general reader; positions are relative to its text.
    fn add_entry(&mut self, numbered: &NumberedLine<'_>, signer: &Signer) {
        let line = numbered.line;
        match &numbered.entry {
            TapeLine::Message(message) => self.message(line, message, numbered.text, signer),
            other => self.push_item(ChunkItem::Entry(line, other.without_frame_bytes())),
        }
    }

    /// Reads a line that is a complete entry, as most are in any spelling; returns false if this
    /// one is not.
    fn entry(&mut self, text: &[u8], line: Range<usize>, signer: &Signer) -> bool {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
        let start = line.start + text[line.clone()].iter().take_while(blank).count();
        let end = line.end - text[start..line.end].iter().rev().take_while(blank).count();
        let Ok(entry) = TapeLine::read(&text[start..end]) else { return false };
        let (known, offset) = (self.raw_entries.len(), start as u64);
        let numbered =
            NumberedLine { line: self.lines + 1, offset, text: &text[start..end], entry };
        self.add_entry(&numbered, signer);
        // The entry was read relative to its own text.
        self.raw_entries[known..].iter_mut().for_each(|raw| raw.text.start += start as u32);
        true
    }

    /// Reads the line at `at`, and any lines that belong to it, with the general reader. Returns
    /// the start of the next line.
    fn read_line(&mut self, text: &[u8], at: usize, last: bool, signer: &Signer) -> usize {
        // The rest of the tape is not available here, but the reader must know that there is more.
        let more: &[u8] = if last { b"" } else { b"\n" };
        let mut reader = TapeReader::new(Read::chain(&text[at..], more));
        while let Some(next) = reader.next() {
            let known = self.raw_entries.len();
            match next {
                Ok(mut numbered) => {
                    numbered.line += self.lines;
                    let start = at + numbered.offset as usize;
                    self.add_entry(&numbered, signer);
                    self.raw_entries[known..]
                        .iter_mut()
                        .for_each(|raw| raw.text.start += start as u32);
                }
                Err(problem) => {
                    self.push_item(ChunkItem::Problem(problem.shifted(self.lines, at as u64)));
                }
            }
            if reader.is_drained() {
                break;
            }
        }
        let end = text.len().min(at + reader.position() as usize);
        // A value may span several lines, and all of them count.
        self.lines += memchr::memchr_iter(b'\n', &text[at..end]).count() as u64;
        end
    }

    fn message(&mut self, line: u64, message: &MessageLine<'_>, text: &[u8], signer: &Signer) {
        let known = self.raw_entries.len();
        let frame = Frame::read(&message.msg);
        match frame.body() {
            FrameBody::Message(_) => self.frame(line, message, &frame, text, signer),
            FrameBody::Batch => {
                for element in frame::elements(&message.msg) {
                    self.frame(line, message, &element, text, signer);
                }
            }
            FrameBody::Garbage(_) => {
                let message_text = "a message that is neither an object nor an array is left out";
                self.push_item(ChunkItem::Odd(line, message_text));
            }
        }
        // A line is counted once in the outline, however many messages its batch has.
        match self.raw_entries.get_mut(known) {
            Some(raw) => raw.first = true,
            None => {
                let (from, numbered) = (message.from, message.seq.is_some());
                self.push_item(ChunkItem::Bare { line, from, numbered });
            }
        }
    }

    fn frame(
        &mut self,
        line: u64,
        message: &MessageLine<'_>,
        frame: &Frame<'_>,
        text: &[u8],
        signer: &Signer,
    ) {
        if frame.envelope().is_none() {
            return;
        }
        // A line number of a whole tape may be too large; within a chunk it never is.
        let place = u32::try_from(line).unwrap_or(u32::MAX);
        match RawEntry::read(place, message, frame, text, signer) {
            Some(raw) => self.raw_entries.push(RawEntry { first: false, ..raw }),
            None => self.push_item(ChunkItem::Odd(
                line,
                "a message that is not part of its line is left out",
            )),
        }
    }

    fn push_item(&mut self, other: ChunkItem) {
        self.others.push((self.raw_entries.len(), other));
    }
}
