//! Formats a request that the tape has no answer to: its method and params, why nothing matches,
//! the nearest recorded requests, and a hint.

use std::fmt::Write;

use tapegate_core::json::diff::{DiffOptions, JsonDifference, JsonDifferences, diff};
use tapegate_core::json::{self, JsonLocation};
use tapegate_core::player::{
    Divergence, DivergenceReason, FUZZY_THRESHOLD_DEFAULT, MatchMode, NearMatch,
};
use tapegate_core::signature::Signer;

use super::palette::Palette;
use super::{diff as diff_view, visible_text};

/// How many differences are shown for one recorded request.
const DIFFERENCES_MAX: usize = 8;
/// How many paths the hint suggests ignoring.
const IGNORED_MAX: usize = 3;
const NAME_CHARS_MAX: usize = 80;
const PARAMS_CHARS_MAX: usize = 300;

/// Formats divergences.
#[derive(Clone, Copy)]
pub(crate) struct DivergenceView<'a> {
    /// How requests are matched.
    pub(crate) mode: MatchMode,
    /// Removes the parts of a request that do not count.
    pub(crate) signer: &'a Signer,
    /// The colours to use.
    pub(crate) palette: Palette,
}

impl DivergenceView<'_> {
    /// The complete text, several terminated lines.
    pub(crate) fn text(&self, divergence: &Divergence) -> String {
        let what = subject(&divergence.method, divergence.name.as_deref());
        let what = self.palette.bold(&what);
        let reason = self.reason(divergence);
        let session = match divergence.session {
            0 | 1 => String::new(),
            number => format!("session {number}: "),
        };
        let details = self.details(divergence);
        format!("{session}no answer on the tape for {what}: {reason}\n{details}")
    }

    /// The request and the nearest recorded ones, several terminated lines.
    pub(crate) fn details(&self, divergence: &Divergence) -> String {
        let params_text = visible_text::value(&self.relevant_params(divergence), PARAMS_CHARS_MAX);
        let mut out = format!("  asked    {params_text}\n");
        let next = divergence.next.as_ref();
        let is_next = |near: &&NearMatch| next.is_some_and(|next| next.number == near.number);
        let others = divergence.nearest.iter().filter(|near| !is_next(near)).enumerate();
        let others = others.map(|(at, near)| (if at == 0 { "nearest" } else { "then" }, near));
        for (word, near) in next.into_iter().map(|near| ("next", near)).chain(others) {
            if !is_like(divergence, near) {
                // Writing to a string cannot fail.
                writeln!(out, "  {word:8} {}", near_request_text(near)).ok();
                continue;
            }
            let (old, new) = self.params(divergence, near);
            let found = differences(&old, &new, DIFFERENCES_MAX).unwrap_or_default();
            let equal = match found.is_empty() {
                true => "the same params".to_owned(),
                false => format!("{} equal (- recorded, + asked)", percent(near.score)),
            };
            writeln!(out, "  {word:8} #{}, {equal}", near.number).ok();
            out.push_str(&diff_view::render(&found, self.palette, "    "));
        }
        if divergence.passed_on {
            out.push_str("  the live server is asked instead\n");
        }
        out
    }

    /// A request answered with what was recorded for other params: several lines.
    pub(crate) fn differs(&self, number: u32, recorded: &[u8], request: &[u8]) -> String {
        let what = self.palette.bold(&subject_of(request));
        let lines = self.differences_text(recorded, request);
        format!(
            "{what} is answered as #{number} was, with other params (- recorded, + asked)\n{lines}"
        )
    }

    /// The differences between the params of a recorded and a live request: several lines.
    pub(crate) fn differences_text(&self, recorded: &[u8], request: &[u8]) -> String {
        let (old, new) = (self.signer.canonical(recorded), self.signer.canonical(request));
        let found = differences(&old, &new, DIFFERENCES_MAX).unwrap_or_default();
        diff_view::render(&found, self.palette, "    ")
    }

    /// A hint on what to do about it.
    pub(crate) fn hint(&self, divergence: &Divergence) -> String {
        let best = divergence.next.as_ref().or(divergence.nearest.first());
        let is_recorded = divergence.nearest.iter().any(|near| self.is_same(divergence, near));
        // In any other mode, requests of all sessions are found.
        if let (Some(number), MatchMode::Sequential) = (self.other_session(divergence), self.mode) {
            return format!(
                "session {number} of the tape has this request: pass --session {number}"
            );
        }
        match (divergence.reason, best) {
            (DivergenceReason::OutOfOrder, Some(near))
                if is_like(divergence, near) && !is_recorded =>
            {
                self.tolerance_hint(divergence, near)
            }
            (DivergenceReason::OutOfOrder, _) => {
                let later = divergence.nearest.iter().any(|near| is_like(divergence, near));
                let or = if later { "" } else { "; if it is new, record the session again" };
                format!("if the order does not matter, pass --match-mode by-request{or}")
            }
            (DivergenceReason::Exhausted, _) => {
                "--on-exhausted last gives the last answer again, cycle starts over".to_owned()
            }
            (DivergenceReason::TapeEnded, Some(near)) if self.is_same(divergence, near) => {
                "pass --match-mode by-request --on-exhausted last to answer it again".to_owned()
            }
            (DivergenceReason::NotRecorded | DivergenceReason::OtherParams, Some(near))
                if is_like(divergence, near) =>
            {
                self.tolerance_hint(divergence, near)
            }
            _ => "record the session again, or pass --on-unmatched passthrough with --upstream to \
                 ask the server"
                .to_owned(),
        }
    }

    /// Why nothing matches.
    pub(crate) fn reason(&self, divergence: &Divergence) -> String {
        match (divergence.reason, self.mode) {
            (DivergenceReason::NotRecorded, _) if divergence.nearest.is_empty() => {
                "no similar request was recorded".to_owned()
            }
            (DivergenceReason::NotRecorded, MatchMode::Fuzzy { threshold }) => {
                // Not rounded as scores are, or both could be shown as the same number.
                let share = (threshold * 1e5).round() / 1e3;
                format!("no recorded request is {share}% equal")
            }
            (DivergenceReason::NotRecorded, _) => "no recorded request is the same".to_owned(),
            (DivergenceReason::Exhausted, _) => "it was made more often than recorded".to_owned(),
            (DivergenceReason::OutOfOrder | DivergenceReason::OtherParams, _) => match &divergence
                .next
            {
                Some(near) if is_like(divergence, near) && !self.is_same(divergence, near) => {
                    format!("next on the tape is {}, with other params", near_request_text(near))
                }
                Some(near) => format!("next on the tape is {}", near_request_text(near)),
                None => "another request comes next on the tape".to_owned(),
            },
            (DivergenceReason::TapeEnded, _) => "the tape is at its end".to_owned(),
            (DivergenceReason::Unanswered, _) => "it was recorded, but never answered".to_owned(),
            (DivergenceReason::NotCancelled, _) => {
                "the recorded client cancelled it, and this one did not".to_owned()
            }
        }
    }

    /// Whether a recorded request is the same. The score does not tell: to it, any two times are
    /// equal.
    fn is_same(&self, divergence: &Divergence, near: &NearMatch) -> bool {
        let (old, new) = self.params(divergence, near);
        is_like(divergence, near) && differences(&old, &new, 1).is_some_and(|it| it.is_empty())
    }

    /// The session of the tape that has exactly this request, if the session being played does not.
    fn other_session(&self, divergence: &Divergence) -> Option<u32> {
        let played = divergence.tape_session?;
        let mut same = divergence.nearest.iter().filter(|near| self.is_same(divergence, near));
        let first = same.next().map(|near| near.session)?;
        (first != played && same.all(|near| near.session != played)).then_some(first)
    }

    /// The recorded and the requested params, without the parts that do not count.
    pub(crate) fn params(&self, divergence: &Divergence, near: &NearMatch) -> (Vec<u8>, Vec<u8>) {
        (self.signer.canonical(&near.request), self.signer.canonical(&divergence.request))
    }

    /// The request without the parts that do not count, unless nothing would be left.
    fn relevant_params(&self, divergence: &Divergence) -> Vec<u8> {
        let counted = self.signer.canonical(&divergence.request);
        match json::member(&divergence.request, "params") {
            Some(params) if counted == b"{}" => params.to_vec(),
            _ => counted,
        }
    }

    /// How to get an answer for a request that differs from a recorded one.
    fn tolerance_hint(&self, divergence: &Divergence, near: &NearMatch) -> String {
        let (old, new) = self.params(divergence, near);
        let found = differences(&old, &new, IGNORED_MAX).unwrap_or_default();
        let whole = found.more > 0 || found.listed.iter().any(|one| one.location.steps.len() < 2);
        let ignore: Vec<String> = match whole || found.is_empty() {
            true => vec!["--ignore PATH".to_owned()],
            false => found.listed.iter().map(ignore_flag).collect(),
        };
        let ignore = ignore.join(" ");
        let fuzzy = self.fuzzy_flags(divergence, near);
        let fuzzy = fuzzy.map(|flags| format!(" or {flags}")).unwrap_or_default();
        let matter = match found.count() {
            0 | 1 => "the difference does not matter",
            _ => "the differences do not matter",
        };
        format!("if {matter}, pass {ignore}{fuzzy}")
    }

    /// The flags with which fuzzy matching answers as the recorded request was answered, if it can.
    fn fuzzy_flags(&self, divergence: &Divergence, near: &NearMatch) -> Option<String> {
        // Rounded down, since a threshold above the score would not match.
        let threshold = (near.score * 100.0 + 1e-9).floor() / 100.0;
        if threshold <= 0.0 || !is_like(divergence, near) {
            return None;
        }
        let flag = format!("--fuzzy-threshold {threshold}");
        match self.mode {
            MatchMode::Fuzzy { threshold } if near.score >= threshold => None,
            MatchMode::Fuzzy { .. } => Some(flag),
            _ if near.score >= FUZZY_THRESHOLD_DEFAULT => Some("--match-mode fuzzy".to_owned()),
            _ => Some(format!("--match-mode fuzzy {flag}")),
        }
    }
}

/// The subject of a request: `tools/call read_file`.
pub(crate) fn subject(method: &str, name: Option<&str>) -> String {
    let method = visible_text::inline(method, NAME_CHARS_MAX);
    match name {
        Some(name) => format!("{method} {}", visible_text::inline(name, NAME_CHARS_MAX)),
        None => method,
    }
}

/// The subject of a complete request.
pub(crate) fn subject_of(request: &[u8]) -> String {
    let method = string_member(request, "method").unwrap_or_default();
    subject(&method, name(request).as_deref())
}

/// The differences between two params.
pub(crate) fn differences<'a>(
    old: &'a [u8],
    new: &'a [u8],
    listed_max: usize,
) -> Option<JsonDifferences<'a>> {
    diff(old, new, &DiffOptions { root: JsonLocation::member("params"), ignored: &[], listed_max })
        .ok()
}

/// Whether a recorded request has the same method and name, if not the same params.
fn is_like(divergence: &Divergence, near: &NearMatch) -> bool {
    let method = string_member(&near.request, "method");
    method.is_some_and(|method| method == divergence.method)
        && name(&near.request) == name(&divergence.request)
}

fn near_request_text(near: &NearMatch) -> String {
    format!("#{} {}", near.number, subject_of(&near.request))
}

/// The name or URI in a request.
fn name(request: &[u8]) -> Option<String> {
    let params = json::member(request, "params")?;
    ["name", "uri"].iter().find_map(|key| string_member(params, key))
}

fn string_member(object: &[u8], key: &str) -> Option<String> {
    let text = json::member(object, key).and_then(json::string)?;
    Some(text.into_owned())
}

/// A fraction in whole percent, rounded down, so that only equal requests are 100%.
fn percent(share: f64) -> String {
    format!("{}%", (share * 100.0 + 1e-9).floor())
}

/// The flag that ignores a difference.
fn ignore_flag(difference: &JsonDifference<'_>) -> String {
    format!("--ignore {}", shell_word(&difference.location.to_string()))
}

/// Quotes a word for a shell.
fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "._-/:".contains(letter);
    if text.chars().all(plain) {
        return text.to_owned();
    }
    visible_text::inline(&format!("'{}'", text.replace('\'', r"'\''")), 200)
}

#[cfg(test)]
mod tests;
