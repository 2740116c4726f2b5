//! The names that servers may derive from a name or URI before they look it up.
//!
//! A glob compares text, but every URL parser resolves `file:///data/../etc/passwd` to
//! `file:///etc/passwd`, and servers decode escapes before they open a file. So a call is decided
//! about under each name that its server may derive, and the strictest decision wins. Nearly every
//! name has one reading.

use super::gates::{self, exposes, said};
use super::name::{Name, NamedCall};
use super::steps::Steps;
use super::{Call, Decision, Facts, GateName, Outcome};
use crate::gated::{Gated, Offer};
use crate::glob::Glob;
use crate::methods::Duty;
use crate::model::{Policy, Source};
use crate::uri::{self, Reader, resolved};
use tapegate_core::lenient::spelling::{
    is_invisible, nfkc, percent_decode, trimmed, unicode_decode,
};

/// The maximum number of readings; a name with more is crafted to be misread.
const READINGS_MAX: usize = 256;
/// The maximum size of the arguments, summed over all readings.
const ARGUMENTS_BYTES_MAX: usize = 64 << 20;
/// The maximum total size of all readings.
const READINGS_BYTES_MAX: usize = 1 << 20;

/// The message for a call that would need two approvals.
const TWO_WORKFLOWS: &str = "It can be read in two ways that need different approvals; write it so that only one reading is possible";

/// The error for a name with too many readings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Decides about a call under every reading of its name, as production does.
pub(super) fn ask(
    policy: &Policy,
    call: &Call<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let gated = Gated::of(call.method);
    let is_uri = !matches!(gated, Some(Gated::Call | Gated::Prompt));
    // The arguments are the same under every reading of the name.
    let own_file = policy.own_files.named_in_any(call.arguments);
    let own_file = own_file.as_deref();
    let mut worst = gates::ask(policy, &NamedCall::written(call, is_uri), own_file, facts, steps);
    // There may be any number of resources, so decisions about them are not cached.
    worst.by_name &= !is_uri || gated == Some(Gated::Complete);
    let arguments_bytes = call.arguments.map_or(0, <[u8]>::len);
    let is_bearable =
        |found: &Vec<String>| found.len().saturating_mul(arguments_bytes) <= ARGUMENTS_BYTES_MAX;
    let Some(found) = readings(call.name, is_uri).ok().filter(is_bearable) else {
        let why = "its name can be read in too many ways";
        steps.add(|| format!("visibility: {why}"));
        let denied = said(Outcome::Deny, GateName::Visibility, why.into());
        return Decision { by_name: false, ..denied };
    };
    for reading in found {
        worst.by_name = false;
        steps.add(|| format!("servers may read `{reading}`:"));
        let named = NamedCall::read(call, &reading, is_uri);
        let decision = gates::ask(policy, &named, own_file, facts, steps);
        let reason = format!("{}, because it may be read as `{reading}`", decision.reason);
        let decision = Decision { reason: reason.into(), by_name: false, ..decision };
        worst = stricter(worst, decision, steps);
    }
    worst
}

/// Decides about a message whose method is not gated, under every reading of the name in it.
pub(super) fn ask_ungated(
    policy: &Policy,
    duty: Duty,
    call: &Call<'_>,
    facts: &Facts<'_>,
    steps: &mut impl Steps,
) -> Decision {
    let is_uri = call.name.contains(':');
    let mut worst = gates::ungated(policy, duty, &NamedCall::written(call, is_uri), facts, steps);
    let Ok(found) = readings(call.name, is_uri) else {
        let why = "its name can be read in too many ways";
        steps.add(|| format!("rules: {why}"));
        return said(Outcome::Deny, GateName::Governance, why.into());
    };
    for reading in found {
        steps.add(|| format!("the receiver may read `{reading}`:"));
        let named = NamedCall::read(call, &reading, is_uri);
        let decision = gates::ungated(policy, duty, &named, facts, steps);
        worst = stricter(worst, decision, steps);
    }
    worst
}

/// The stricter of two decisions about a call that can be read in two ways; the first, if both are
/// equally strict. A call that needs two different workflows is denied: the approvers of one cannot
/// answer for the other.
pub(super) fn stricter(one: Decision, other: Decision, steps: &mut impl Steps) -> Decision {
    let workflows = match (&one.strict, &other.strict) {
        (Outcome::Hold { workflow: one }, Outcome::Hold { workflow: other }) => Some((one, other)),
        _ => None,
    };
    if let Some((first, second)) = workflows.filter(|(one, other)| one != other) {
        let why = format!(
            "it may be read in two ways, which need approval by `{first}` and by `{second}`"
        );
        steps.add(|| format!("approval: {why}"));
        let denied = said(Outcome::Deny, GateName::Governance, why.into());
        let description = Some(TWO_WORKFLOWS.into());
        return Decision { rule: one.rule, description, by_name: false, ..denied };
    }
    if rank(&one) >= rank(&other) { one } else { other }
}

/// How strict a decision is.
fn rank(decision: &Decision) -> u8 {
    match decision.strict {
        Outcome::Forward => 0,
        Outcome::Hold { .. } => 1,
        Outcome::Deny => 2,
    }
}

/// Whether a source exposes an item under every reading of its name.
pub(crate) fn shows(source: &Source, offer: Offer, name: &str) -> bool {
    hidden_reading(source, offer, name).is_none()
}

/// A reading under which an item is hidden.
pub(crate) struct HiddenReading {
    reading: String,
    written: String,
    is_uri: bool,
}

impl HiddenReading {
    /// Whether this glob of a blocklist hides the item.
    pub(crate) fn hits(&self, glob: &Glob) -> bool {
        Name::new(&self.reading, &self.written, self.is_uri).may_match(glob)
    }
}

/// The first reading of a name under which a source hides the item.
pub(crate) fn hidden_reading(source: &Source, offer: Offer, name: &str) -> Option<HiddenReading> {
    let is_uri = matches!(offer, Offer::Resource | Offer::Template);
    let hides = |reading: &str| !exposes(source, offer, &Name::new(reading, name, is_uri));
    let hidden = |reading: &str| HiddenReading {
        reading: reading.to_owned(),
        written: name.to_owned(),
        is_uri,
    };
    if hides(name) {
        return Some(hidden(name));
    }
    match readings(name, is_uri) {
        Ok(found) => found.iter().find(|reading| hides(reading)).map(|reading| hidden(reading)),
        Err(TooMany) => Some(hidden(name)),
    }
}

/// The other readings of a URL in an argument, for tests that stop calls; they include both forms
/// of its host.
pub(crate) fn url_readings(url: &str) -> Result<Vec<String>, TooMany> {
    let mut all = readings(url, true)?;
    let others = all.iter().map(String::as_str).chain([url]).filter_map(uri::other_host_form);
    let others: Vec<String> = others.collect();
    for other in others {
        if other != url && !all.contains(&other) {
            all.push(other);
        }
    }
    Ok(all)
}

/// The readings of a name or URI other than the written one.
fn readings(name: &str, is_uri: bool) -> Result<Vec<String>, TooMany> {
    if if is_uri { uri::is_plain(name) } else { is_plain(name) } {
        return Ok(Vec::new());
    }
    let mut found = Readings { written: name, all: Vec::new(), bytes: 0 };
    // Servers decode and resolve in any order, so each reading is itself read again.
    found.keep(read(name, is_uri))?;
    let mut at = 0;
    while let Some(reading) = found.all.get(at) {
        let new = read(reading, is_uri);
        found.keep(new)?;
        at += 1;
    }
    Ok(found.all)
}

/// The readings of a text after one step.
fn read(text: &str, is_uri: bool) -> Vec<String> {
    let mut all = stripped(text);
    all.push(nfkc(text).into_owned());
    if is_uri {
        all.extend(percent_decode(text));
        all.extend(unicode_decode(text));
        all.extend(uri::form_decoded(text));
        all.extend(uri::without_user(text));
        if text.contains('\\') {
            all.push(text.replace('\\', "/"));
        }
        let readers = [Reader::Url, Reader::Path, Reader::Rest].into_iter();
        all.extend(readers.filter_map(|reader| resolved(text, reader)));
    }
    all
}

/// Whether the name of a tool or prompt has no reading but the written one.
fn is_plain(name: &str) -> bool {
    let printed = name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    printed && !name.starts_with(' ') && !name.ends_with(' ')
}

/// A text up to a NUL, trimmed, and without line breaks.
fn stripped(text: &str) -> Vec<String> {
    let end = &text[..text.find('\0').unwrap_or(text.len())];
    let mut all = vec![end.to_owned(), trimmed(end).to_owned(), trimmed(text).to_owned()];
    if text.contains(['\t', '\n', '\r']) {
        all.push(text.replace(['\t', '\n', '\r'], ""));
    }
    if !text.is_ascii() && text.contains(is_invisible) {
        all.push(text.replace(is_invisible, ""));
    }
    all
}

/// The readings found so far.
struct Readings<'a> {
    written: &'a str,
    all: Vec<String>,
    bytes: usize,
}

impl Readings<'_> {
    /// Adds the readings that are new.
    fn keep(&mut self, new: Vec<String>) -> Result<(), TooMany> {
        for reading in new {
            if reading == self.written || self.all.contains(&reading) {
                continue;
            }
            self.bytes += reading.len();
            if self.all.len() == READINGS_MAX || self.bytes > READINGS_BYTES_MAX {
                return Err(TooMany);
            }
            self.all.push(reading);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
