//! A chunk of a tape: some of its lines, read independently of all others.
//!
//! Chunks can be read in parallel and in any order; they are added to the index in the order of the
//! tape. The result does not depend on where a tape is cut, as long as [`cut`] chooses the place.

use std::io::Read;
use std::ops::Range;

use super::glance::Glance;
use super::told::Told;
use crate::frame::{self, Body, Frame};
use crate::side::Side;
use crate::signature::Signer;
use crate::tape::line::{Line, Message};
use crate::tape::reader::{Numbered, Problem, Reader, entry_bytes_max};

/// The content of a chunk of a tape. Lines are counted from its start.
#[derive(Debug, Default)]
pub struct Stretch {
    pub(super) told: Vec<Told>,
    /// Everything else, with the number of messages before it.
    pub(super) others: Vec<(usize, Other)>,
    /// How many lines and bytes it has.
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Something in a chunk other than a message.
#[derive(Debug)]
pub(super) enum Other {
    /// A line that is not a message.
    Entry(u64, Line<'static>),
    /// A message line that yields no slot.
    Bare { line: u64, from: Side, numbered: bool },
    /// A message or an element of a batch that is skipped.
    Odd(u64, &'static str),
    /// A line that is not an entry.
    Problem(Problem),
}

/// The start of the first line after a line ending of `text` where a tape may be cut. A line that
/// may be inside a value that `jq` spread over several lines does not count.
pub fn cut(text: &[u8]) -> Option<usize> {
    let starts = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
    let middle = |byte: &u8| matches!(byte, b' ' | b'\t' | b'}' | b']');
    starts.into_iter().find(|start| text.get(*start).is_some_and(|byte| !middle(byte)))
}

impl Stretch {
    /// Reads a chunk of a tape; `last` is true if the tape ends with it.
    pub fn read(&mut self, text: &[u8], last: bool, signer: &Signer) {
        self.told.clear();
        self.others.clear();
        (self.lines, self.bytes) = (0, text.len() as u64);
        let plain = std::str::from_utf8(text).is_ok();
        let mut glance = Glance::new(text, signer);
        let mut at = 0;
        while at < text.len() {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
            let told =
                if plain { glance.read(self.lines as u32 + 1, &text[at..end]) } else { None };
            let known = match told {
                // The general reader reports that it is too long.
                _ if end - at >= entry_bytes_max() => false,
                Some(told) => {
                    self.told.push(told);
                    true
                }
                None => self.entry(text, at..end, signer),
            };
            if known {
                self.lines += u64::from(end < text.len());
                at = end + 1;
            } else {
                at = self.look(text, at, last, signer);
            }
        }
    }

    /// Makes this the chunk of a single entry; positions are relative to its text.
    pub(super) fn one(&mut self, numbered: &Numbered<'_>, signer: &Signer) {
        self.told.clear();
        self.others.clear();
        (self.lines, self.bytes) = (0, 0);
        self.take(numbered, signer);
    }

    /// Adds an entry from the general reader; positions are relative to its text.
    fn take(&mut self, numbered: &Numbered<'_>, signer: &Signer) {
        let line = numbered.line;
        match &numbered.entry {
            Line::Message(message) => self.message(line, message, numbered.text, signer),
            other => self.other(Other::Entry(line, other.outline())),
        }
    }

    /// Reads a line that is a complete entry, as most are in any spelling; returns false if this
    /// one is not.
    fn entry(&mut self, text: &[u8], line: Range<usize>, signer: &Signer) -> bool {
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\r');
        let start = line.start + text[line.clone()].iter().take_while(blank).count();
        let end = line.end - text[start..line.end].iter().rev().take_while(blank).count();
        let Ok(entry) = Line::read(&text[start..end]) else { return false };
        let (known, offset) = (self.told.len(), start as u64);
        let numbered = Numbered { line: self.lines + 1, offset, text: &text[start..end], entry };
        self.take(&numbered, signer);
        self.told[known..].iter_mut().for_each(|told| told.text.start += start as u32);
        true
    }

    /// Reads the line at `at`, and any lines that belong to it, with the general reader. Returns
    /// the start of the next line.
    fn look(&mut self, text: &[u8], at: usize, last: bool, signer: &Signer) -> usize {
        // The rest of the tape is not available here, but the reader must know that there is more.
        let more: &[u8] = if last { b"" } else { b"\n" };
        let mut reader = Reader::new(Read::chain(&text[at..], more));
        while let Some(next) = reader.next() {
            let known = self.told.len();
            match next {
                Ok(mut numbered) => {
                    numbered.line += self.lines;
                    let start = at + numbered.offset as usize;
                    self.take(&numbered, signer);
                    self.told[known..].iter_mut().for_each(|told| told.text.start += start as u32);
                }
                Err(problem) => {
                    self.other(Other::Problem(problem.moved(self.lines, at as u64)));
                }
            }
            if reader.is_drained() {
                break;
            }
        }
        let end = text.len().min(at + reader.position() as usize);
        self.lines += memchr::memchr_iter(b'\n', &text[at..end]).count() as u64;
        end
    }

    fn message(&mut self, line: u64, message: &Message<'_>, text: &[u8], signer: &Signer) {
        let known = self.told.len();
        let frame = Frame::read(&message.msg);
        match frame.body() {
            Body::Message(_) => self.frame(line, message, &frame, text, signer),
            Body::Batch => {
                for element in frame::elements(&message.msg) {
                    self.frame(line, message, &element, text, signer);
                }
            }
            Body::Garbage(_) => {
                let words = "a message that is neither an object nor an array is left out";
                self.other(Other::Odd(line, words));
            }
        }
        match self.told.get_mut(known) {
            Some(told) => told.first = true,
            None => {
                let (from, numbered) = (message.from, message.seq.is_some());
                self.other(Other::Bare { line, from, numbered });
            }
        }
    }

    fn frame(
        &mut self,
        line: u64,
        message: &Message<'_>,
        frame: &Frame<'_>,
        text: &[u8],
        signer: &Signer,
    ) {
        if frame.envelope().is_none() {
            return;
        }
        // A line number of a whole tape may be too large; within a chunk it never is.
        let place = u32::try_from(line).unwrap_or(u32::MAX);
        match Told::read(place, message, frame, text, signer) {
            Some(told) => self.told.push(Told { first: false, ..told }),
            None => {
                self.other(Other::Odd(line, "a message that is not part of its line is left out"))
            }
        }
    }

    fn other(&mut self, other: Other) {
        self.others.push((self.told.len(), other));
    }
}
