//! A request that the tape has no answer to, in words: what was asked, why nothing fits, what comes
//! nearest, and the way out.

use std::fmt::Write;

use tapegate_core::json::diff::{Differences, Terms, diff};
use tapegate_core::json::{self, Place};
use tapegate_core::player::{Divergence, Mode, Near, Reason};
use tapegate_core::signature::Signer;

use super::palette::Palette;
use super::{diff as diff_view, visible};

/// Differences shown of one recorded request.
const DIFFERENCES_MAX: usize = 8;
const NAME_CHARS_MAX: usize = 80;
const PARAMS_CHARS_MAX: usize = 300;

/// What a divergence is told with.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'a> {
    /// How requests are found.
    pub(crate) mode: Mode,
    /// What leaves out what does not count.
    pub(crate) signer: &'a Signer,
    /// How it is painted.
    pub(crate) palette: Palette,
}

impl Teller<'_> {
    /// The whole of it, several lines, the last with its end.
    pub(crate) fn text(&self, divergence: &Divergence) -> String {
        let Self { palette, .. } = self;
        let what = palette.bold(&subject(&divergence.method, divergence.name.as_deref()));
        let why = self.reason(divergence);
        let session = match divergence.session {
            0 | 1 => String::new(),
            number => format!("session {number}: "),
        };
        let mut out = format!("{session}not on the tape: {what}: {why}\n");
        let params = json::member(&divergence.request, "params").unwrap_or(b"{}");
        // Writing to a string cannot fail.
        writeln!(out, "  asked    {}", visible::value(params, PARAMS_CHARS_MAX)).ok();
        for (at, near) in divergence.nearest.iter().enumerate() {
            let word = if at == 0 { "nearest" } else { "then" };
            writeln!(out, "  {word:8} {}", self.near(divergence, near)).ok();
            let (old, new) = self.params(divergence, near);
            if let Some(found) = differences(&old, &new, DIFFERENCES_MAX) {
                out.push_str(&diff_view::render(&found, *palette, "    "));
            }
        }
        if divergence.passed_on {
            out.push_str("  the server behind was asked instead\n");
        }
        out
    }

    /// What differs between a request and the recorded one that it was answered with.
    pub(crate) fn differs(&self, number: u32, recorded: &[u8], asked: &[u8]) -> String {
        let read = |text, key: &str| json::member(text, key).and_then(json::string);
        let params = json::member(asked, "params").unwrap_or(b"{}");
        let name = ["name", "uri"].iter().find_map(|key| read(params, key));
        let what = subject(&read(asked, "method").unwrap_or_default(), name.as_deref());
        let mut out = format!("{what} was answered as #{number}, with other params:\n");
        let (old, new) = (self.signer.canonical(recorded), self.signer.canonical(asked));
        if let Some(found) = differences(&old, &new, DIFFERENCES_MAX) {
            out.push_str(&diff_view::render(&found, self.palette, "    "));
        }
        out
    }

    /// The way out.
    pub(crate) fn hint(&self, divergence: &Divergence) -> String {
        let best = divergence.nearest.first();
        match (divergence.reason, best) {
            (Reason::OutOfOrder, _) => {
                "if the order does not matter, pass --match-mode by-request".to_owned()
            }
            (Reason::Exhausted, _) => {
                "--on-exhausted last gives the last answer again, cycle begins anew".to_owned()
            }
            (Reason::TapeEnded, Some(near)) if near.score >= 1.0 => {
                "pass --match-mode by-request --on-exhausted last to answer it again".to_owned()
            }
            (Reason::NotRecorded, Some(near)) => self.tolerate(divergence, near),
            _ => "record the session anew, or pass --on-unmatched passthrough with --upstream to ask \
                 the server"
                .to_owned(),
        }
    }

    /// Why nothing fits, in words.
    pub(crate) fn reason(&self, divergence: &Divergence) -> String {
        match (divergence.reason, self.mode) {
            (Reason::NotRecorded, _) if divergence.nearest.is_empty() => {
                "nothing like it was recorded".to_owned()
            }
            (Reason::NotRecorded, Mode::Fuzzy { threshold }) => {
                format!("no recorded request is {} equal", percent(threshold))
            }
            (Reason::NotRecorded, _) => "no recorded request asks for exactly this".to_owned(),
            (Reason::Exhausted, _) => "it was asked more often than it was recorded".to_owned(),
            (Reason::OutOfOrder, _) => match divergence.nearest.first() {
                Some(near) => format!("next on the tape is {}", next(near)),
                None => "another request comes next on the tape".to_owned(),
            },
            (Reason::TapeEnded, _) => "the tape has no more requests".to_owned(),
            (Reason::Unanswered, _) => "it was recorded, but never answered".to_owned(),
        }
    }

    /// The params without what does not count: the recorded ones, and those that were asked.
    pub(crate) fn params(&self, divergence: &Divergence, near: &Near) -> (Vec<u8>, Vec<u8>) {
        (self.signer.canonical(&near.request), self.signer.canonical(&divergence.request))
    }

    fn near(&self, divergence: &Divergence, near: &Near) -> String {
        let (old, new) = self.params(divergence, near);
        let equal = match differences(&old, &new, 1) {
            Some(found) if found.is_empty() => "the same params".to_owned(),
            _ => format!("{} equal (- recorded, + asked)", percent(near.score)),
        };
        let method = said(near, "method");
        let other = method.filter(|method| *method != divergence.method);
        let other = other.map(|method| format!("{}, ", visible::inline(&method, NAME_CHARS_MAX)));
        format!("#{}, {}{equal}", near.number, other.unwrap_or_default())
    }

    /// How to have a request answered that differs from a recorded one.
    fn tolerate(&self, divergence: &Divergence, near: &Near) -> String {
        let (old, new) = self.params(divergence, near);
        let place = differences(&old, &new, 1).and_then(|found| found.listed.into_iter().next());
        let ignore = match place {
            Some(first) if first.place.steps.len() > 1 => {
                format!("--ignore {}", shell_word(&first.place.to_string()))
            }
            _ => "--ignore PATH".to_owned(),
        };
        match self.mode {
            Mode::Fuzzy { .. } => format!("if the difference does not matter, pass {ignore}"),
            _ => format!("if the difference does not matter, pass {ignore} or --match-mode fuzzy"),
        }
    }
}

/// What a request asks for: `tools/call read_file`.
pub(crate) fn subject(method: &str, name: Option<&str>) -> String {
    let method = visible::inline(method, NAME_CHARS_MAX);
    match name {
        Some(name) => format!("{method} {}", visible::inline(name, NAME_CHARS_MAX)),
        None => method,
    }
}

/// What differs between two params.
pub(crate) fn differences<'a>(
    old: &'a [u8],
    new: &'a [u8],
    listed_max: usize,
) -> Option<Differences<'a>> {
    diff(old, new, &Terms { root: Place::member("params"), ignored: &[], listed_max }).ok()
}

fn next(near: &Near) -> String {
    let method = said(near, "method").unwrap_or_default();
    let params = json::member(&near.request, "params").unwrap_or(b"{}");
    let name = ["name", "uri"].iter().find_map(|key| json::member(params, key));
    let name = name.and_then(json::string);
    format!("#{}, {}", near.number, subject(&method, name.as_deref()))
}

fn said(near: &Near, key: &str) -> Option<String> {
    let text = json::member(&near.request, key).and_then(json::string)?;
    Some(text.into_owned())
}

/// A share in whole percents, rounded down: what is not equal is never 100%.
fn percent(share: f64) -> String {
    format!("{}%", (share * 100.0 + 1e-9).floor())
}

/// A word that a shell takes as it is.
fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._-/:".contains(letter);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    visible::inline(&format!("'{}'", text.replace('\'', r"'\''")), 200)
}

#[cfg(test)]
mod tests;
