//! A stretch of a tape: some of its lines, read apart from all others.
//!
//! Stretches can be read side by side and in any order; an index is made of them in the order of
//! the tape. Nothing depends on where a tape is cut, as long as it is cut where [`cut`] says.

use std::io::Read;
use std::ops::Range;

use super::glance::Glance;
use super::told::Told;
use crate::frame::{self, Body, Frame};
use crate::side::Side;
use crate::signature::Signer;
use crate::tape::line::{Line, Message};
use crate::tape::reader::{Numbered, Problem, Reader, entry_bytes_max};

/// What stands on a stretch of a tape. Lines are counted from its start.
#[derive(Debug, Default)]
pub struct Stretch {
    pub(super) told: Vec<Told>,
    /// What else there is, and how many messages are before it.
    pub(super) others: Vec<(usize, Other)>,
    /// How many lines and bytes it has.
    pub(super) lines: u64,
    pub(super) bytes: u64,
}

/// Something that a stretch has besides messages.
#[derive(Debug)]
pub(super) enum Other {
    /// A line that is no message.
    Entry(u64, Line<'static>),
    /// A message line that makes no slot.
    Bare { line: u64, from: Side, numbered: bool },
    /// A message, or an element of a batch, that is left out.
    Odd(u64, &'static str),
    /// A line that is no entry.
    Problem(Problem),
}

/// Where the first line starts, behind the first line end of `text`, before which a tape may be
/// cut. A line that may be the middle of a value that `jq` spread over lines is none.
pub fn cut(text: &[u8]) -> Option<usize> {
    let starts = memchr::memchr_iter(b'\n', text).map(|at| at + 1);
    let middle = |byte: &u8| matches!(byte, b' ' | b'\t' | b'}' | b']');
    starts.into_iter().find(|start| text.get(*start).is_some_and(|byte| !middle(byte)))
}

impl Stretch {
    /// Reads a stretch of a tape; `last` tells whether the tape ends with it.
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
                // The general reader says that it is too long.
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

    /// Makes this the stretch of a single entry, of whose text it is.
    pub(super) fn one(&mut self, numbered: &Numbered<'_>, signer: &Signer) {
        self.told.clear();
        self.others.clear();
        (self.lines, self.bytes) = (0, 0);
        self.take(numbered, signer);
    }

    /// Takes an entry that the general reader has read; places are those in its text.
    fn take(&mut self, numbered: &Numbered<'_>, signer: &Signer) {
        let line = numbered.line;
        match &numbered.entry {
            Line::Message(message) => self.message(line, message, numbered.text, signer),
            other => self.other(Other::Entry(line, other.outline())),
        }
    }

    /// Reads a line that is a whole entry, as most are however they are written; false if this one
    /// is none.
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

    /// Reads the line at `at`, and what belongs to it, with the general reader. Returns where the
    /// next line starts.
    fn look(&mut self, text: &[u8], at: usize, last: bool, signer: &Signer) -> usize {
        // What follows is not there to see, but that something does matters.
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
        // A single line of a tape may be far down; a stretch never has that many.
        let place = u32::try_from(line).unwrap_or(u32::MAX);
        match Told::read(place, message, frame, text, signer) {
            Some(told) => self.told.push(Told { first: false, ..told }),
            None => self
                .other(Other::Odd(line, "a message that does not stand in its line is left out")),
        }
    }

    fn other(&mut self, other: Other) {
        self.others.push((self.told.len(), other));
    }
}
