//! The names that servers may derive from a name or URI before they look it up.
//!
//! A glob compares text, but every URL parser resolves `file:///data/../etc/passwd` to
//! `file:///etc/passwd`, and servers decode escapes before they open a file. So a call is decided
//! about under each name that its server may derive, and the strictest decision wins. Nearly every
//! name has one reading.

use super::gates::{self, exposes, new_decision};
use super::name_reading::{NameReading, NamedCall};
use super::steps::StepRecorder;
use super::{CallFacts, Decision, DecisionOutcome, GateName, PolicyCall};
use crate::gated_requests::{GatedMethod, OfferKind};
use crate::glob::Glob;
use crate::methods::MethodTreatment;
use crate::model::{Policy, ServerSource};
use crate::uri::{self, UriReader, resolve};
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
pub(crate) struct NameReadingsError;

/// Decides about a call under every reading of its name, as production does.
pub(super) fn decide_every_reading(
    policy: &Policy,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    let gated = GatedMethod::of(call.method);
    // Names of tools and prompts are looked up as keys, so servers do not resolve or decode them.
    let is_uri = !matches!(gated, Some(GatedMethod::Call | GatedMethod::Prompt));
    // The arguments are the same under every reading of the name.
    let own_file = policy.own_files.file_named_in_params(call.arguments);
    let own_file = own_file.as_deref();
    let mut worst =
        gates::decide_call(policy, &NamedCall::as_written(call, is_uri), own_file, facts, steps);
    // The arguments are tested again for each reading, so a long name with large arguments would be
    // slow.
    let arguments_bytes = call.arguments.map_or(0, <[u8]>::len);
    let is_bearable =
        |found: &Vec<String>| found.len().saturating_mul(arguments_bytes) <= ARGUMENTS_BYTES_MAX;
    let Some(found) = readings(call.name, is_uri).ok().filter(is_bearable) else {
        let cause_text = "its name can be read in too many ways";
        steps.add(|| format!("visibility: {cause_text}"));
        let denied = new_decision(DecisionOutcome::Deny, GateName::Visibility, cause_text.into());
        return denied;
    };
    for reading in found {
        steps.add(|| format!("servers may read `{reading}`:"));
        let named = NamedCall::read(call, &reading, is_uri);
        let decision = gates::decide_call(policy, &named, own_file, facts, steps);
        let reason = format!("{}, because it may be read as `{reading}`", decision.reason);
        let decision = Decision { reason: reason.into(), ..decision };
        worst = stricter_of(worst, decision, steps);
    }
    worst
}

/// Decides about a message whose method is not gated, under every reading of the name in it.
pub(super) fn decide_ungated_every_reading(
    policy: &Policy,
    treatment: MethodTreatment,
    call: &PolicyCall<'_>,
    facts: &CallFacts<'_>,
    steps: &mut impl StepRecorder,
) -> Decision {
    // The method does not tell what its name means, so a colon decides.
    let is_uri = call.name.contains(':');
    let mut worst = gates::decide_ungated(
        policy,
        treatment,
        &NamedCall::as_written(call, is_uri),
        facts,
        steps,
    );
    let Ok(found) = readings(call.name, is_uri) else {
        let cause_text = "its name can be read in too many ways";
        steps.add(|| format!("rules: {cause_text}"));
        return new_decision(DecisionOutcome::Deny, GateName::Governance, cause_text.into());
    };
    for reading in found {
        steps.add(|| format!("the receiver may read `{reading}`:"));
        let named = NamedCall::read(call, &reading, is_uri);
        let decision = gates::decide_ungated(policy, treatment, &named, facts, steps);
        worst = stricter_of(worst, decision, steps);
    }
    worst
}

/// The stricter of two decisions about a call that can be read in two ways; the first, if both are
/// equally strict. A call that needs two different workflows is denied: the approvers of one cannot
/// answer for the other.
pub(super) fn stricter_of(
    one: Decision,
    other: Decision,
    steps: &mut impl StepRecorder,
) -> Decision {
    let workflows = match (&one.strict, &other.strict) {
        (DecisionOutcome::Hold { workflow: one }, DecisionOutcome::Hold { workflow: other }) => {
            Some((one, other))
        }
        _ => None,
    };
    if let Some((first, second)) = workflows.filter(|(one, other)| one != other) {
        let cause_text = format!(
            "it may be read in two ways, which need approval by `{first}` and by `{second}`"
        );
        steps.add(|| format!("approval: {cause_text}"));
        let denied = new_decision(DecisionOutcome::Deny, GateName::Governance, cause_text.into());
        let description = Some(TWO_WORKFLOWS.into());
        return Decision { rule: one.rule, description, ..denied };
    }
    if rank(&one) >= rank(&other) { one } else { other }
}

/// How strict a decision is.
fn rank(decision: &Decision) -> u8 {
    match decision.strict {
        DecisionOutcome::Forward => 0,
        DecisionOutcome::Hold { .. } => 1,
        DecisionOutcome::Deny => 2,
    }
}

/// Whether a source exposes an item under every reading of its name.
pub(crate) fn is_visible(source: &ServerSource, offer: OfferKind, name: &str) -> bool {
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
    pub(crate) fn is_hidden_by(&self, glob: &Glob) -> bool {
        NameReading::new(&self.reading, &self.written, self.is_uri).may_match(glob)
    }
}

/// The first reading of a name under which a source hides the item.
pub(crate) fn hidden_reading(
    source: &ServerSource,
    offer: OfferKind,
    name: &str,
) -> Option<HiddenReading> {
    let is_uri = matches!(offer, OfferKind::Resource | OfferKind::Template);
    let hides = |reading: &str| !exposes(source, offer, &NameReading::new(reading, name, is_uri));
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
        // Too many readings to show that all are visible, so the item counts as hidden.
        Err(NameReadingsError) => Some(hidden(name)),
    }
}

/// The other readings of a URL in an argument, for tests that stop calls; they include both forms
/// of its host.
pub(crate) fn url_readings(url: &str) -> Result<Vec<String>, NameReadingsError> {
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

/// The other readings of the URI of a resource; none if there are too many, since a call with such
/// a name is denied.
pub(crate) fn resource_readings(uri: &str) -> Vec<String> {
    readings(uri, true).unwrap_or_default()
}

/// The readings of a name or URI other than the written one.
fn readings(name: &str, is_uri: bool) -> Result<Vec<String>, NameReadingsError> {
    // Nearly every name ends here, without an allocation.
    if if is_uri { uri::is_plain(name) } else { is_plain(name) } {
        return Ok(Vec::new());
    }
    let mut found = NameReadings { written: name, all: Vec::new(), bytes: 0 };
    // Servers decode and resolve in any order, so each reading is itself read again.
    found.add_new(read(name, is_uri))?;
    // The list grows while it is walked, until no reading leads to a new one.
    let mut at = 0;
    while let Some(reading) = found.all.get(at) {
        let new = read(reading, is_uri);
        found.add_new(new)?;
        at += 1;
    }
    Ok(found.all)
}

/// The readings of a text after one step.
fn read(text: &str, is_uri: bool) -> Vec<String> {
    let mut all = stripped_forms(text);
    all.push(nfkc(text).into_owned());
    if is_uri {
        all.extend(percent_decode(text));
        all.extend(unicode_decode(text));
        all.extend(uri::form_decoded(text));
        all.extend(uri::without_user(text));
        all.extend(uri::unwrapped(text).map(str::to_owned));
        if text.contains('\\') {
            all.push(text.replace('\\', "/"));
        }
        // Parsers differ in where a path ends and in which steps they resolve, so each has its own
        // reading.
        let readers = [UriReader::Url, UriReader::Path, UriReader::Rest].into_iter();
        all.extend(readers.filter_map(|reader| resolve(text, reader)));
    }
    all
}

/// Whether the name of a tool or prompt has no reading but the written one.
fn is_plain(name: &str) -> bool {
    let printed = name.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    printed && !name.starts_with(' ') && !name.ends_with(' ')
}

/// A text up to a NUL, trimmed, and without line breaks.
fn stripped_forms(text: &str) -> Vec<String> {
    let end = &text[..text.find('\0').unwrap_or(text.len())];
    // C code ends a string at a NUL, and URL parsers drop tabs and line breaks.
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
struct NameReadings<'a> {
    written: &'a str,
    all: Vec<String>,
    bytes: usize,
}

impl NameReadings<'_> {
    /// Adds the readings that are new.
    fn add_new(&mut self, new: Vec<String>) -> Result<(), NameReadingsError> {
        for reading in new {
            if reading == self.written || self.all.contains(&reading) {
                continue;
            }
            self.bytes += reading.len();
            if self.all.len() == READINGS_MAX || self.bytes > READINGS_BYTES_MAX {
                return Err(NameReadingsError);
            }
            self.all.push(reading);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
