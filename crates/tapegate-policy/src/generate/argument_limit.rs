//! Derives what is permitted in an argument from the values that were seen.
//!
//! A policy that restricts every argument to its observed values would stop the next session at
//! once and be discarded. So an argument is restricted where that protects something (a path, a
//! host, a choice, a dangerous switch, an amount), and left open otherwise.

use std::collections::BTreeSet;

use tapegate_core::json::{member, string, write_str};

use super::folders::{folders, looks_like_path};
use super::key_names as names;
use super::range;
use super::seen_values::{NumberForm, SeenKind, SeenMembers, SeenValues, members};
use super::urls;
use crate::redact::{RedactionKey, RedactionRules, Redactor};

/// How many values are listed individually.
const LISTED_MAX: usize = 6;
/// How long a text may be to count as a choice.
const CHOICE_CHARS_MAX: usize = 64;
/// How often each value must occur to count as a choice if the name does not say so.
const REPEATS_MIN: usize = 3;

/// A place in the arguments, and its permitted values.
#[derive(Debug)]
pub(super) struct ArgumentLimit {
    pub(super) path: Vec<ArgumentStep>,
    /// Whether it must be present.
    pub(super) required: bool,
    pub(super) limit: ValueLimit,
    /// How Cedar can represent the numbers there.
    pub(super) digits: NumberForm,
    /// The `type` in the tool's schema.
    pub(super) declared: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ArgumentStep {
    Key(String),
    Each,
}

/// The permitted values at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ValueLimit {
    /// One of these JSON texts.
    OneOf(Vec<String>),
    /// A path in one of these folders.
    Under(Vec<String>),
    /// A relative path in one of these folders, which may include `.`.
    Relative(Vec<String>),
    /// A URL with one of these origins: scheme, host and port.
    Origins(Vec<String>),
    /// A number between the two, inclusive.
    Range(String, String),
    /// Absent: the tool accepts it, but it was never used.
    Absent,
}

/// The restrictions on the arguments of a tool.
#[derive(Debug, Default)]
pub(super) struct ToolLimits {
    pub(super) rows: Vec<ArgumentLimit>,
    /// Arguments that were used and are not restricted.
    pub(super) open: Vec<String>,
    /// Those of them that should be reviewed, and why.
    pub(super) risks: Vec<(String, &'static str)>,
}

/// Decides what is permitted in the arguments of a tool.
pub(super) struct ToolLimiter {
    redactor: Option<Redactor>,
    /// The user's home folder, which no test permits as a whole.
    home: Option<String>,
}

/// The restriction of a place, or why there is none.
enum LimitDecision {
    Limit(ValueLimit),
    Open,
    Risk(&'static str),
}

impl ToolLimiter {
    pub(super) fn new(home: Option<&str>) -> Self {
        let rules = RedactionRules::parse(["secrets"]).ok();
        let redactor = rules.map(|rules| Redactor::new(rules, RedactionKey::for_tape([0; 32])));
        Self { redactor, home: home.map(str::to_owned) }
    }

    /// Whether a text may be written to a policy: it is neither a secret nor the placeholder of
    /// one, which would not match the live value.
    fn may_show(&self, text: &str) -> bool {
        !text.contains("[REDACTED")
            && self.redactor.as_ref().is_some_and(|redactor| redactor.text(text) == text)
    }

    /// The restrictions derived from these arguments, for a tool with this input schema.
    pub(super) fn limits(&self, seen: &SeenMembers, schema: Option<&str>) -> ToolLimits {
        let properties = schema.and_then(|schema| member(schema.as_bytes(), "properties"));
        let properties = properties.map(members).unwrap_or_default();
        let mut limits = ToolLimits::default();
        for (name, seen_here) in &seen.members {
            let property = properties.iter().find(|(own, _)| own == name).map(|(_, text)| *text);
            let before = limits.rows.len();
            let always = seen_here.count == seen.total;
            let path = vec![ArgumentStep::Key(name.clone())];
            let place =
                ArgumentLocation { path, name, property, always, is_defined: schema.is_some() };
            self.at(seen_here, &place, &mut limits);
            let declared = property.and_then(|text| member(text, "type")).and_then(string);
            for row in &mut limits.rows[before..] {
                row.declared = declared.as_deref().map(str::to_owned);
            }
        }
        for (name, property) in &properties {
            if seen.members.contains_key(name) {
                continue;
            }
            // An argument that was never needed is not permitted: a harmless name says nothing
            // about what a server does with it.
            let (path, limit) = (vec![ArgumentStep::Key(name.clone())], ValueLimit::Absent);
            let declared = member(property, "type").and_then(string).map(String::from);
            let digits = NumberForm::Long;
            limits.rows.push(ArgumentLimit { path, required: false, limit, digits, declared });
        }
        limits
    }

    fn at(&self, seen_values: &SeenValues, place: &ArgumentLocation<'_>, limits: &mut ToolLimits) {
        match seen_values.kind() {
            SeenKind::Object => {
                let Some(inner) = &seen_values.objects else { return };
                if inner.members.is_empty() {
                    limits.open.push(place.text());
                }
                for (name, seen_here) in &inner.members {
                    let path = [&place.path[..], &[ArgumentStep::Key(name.clone())]].concat();
                    let always =
                        place.always && !seen_values.null && seen_here.count == inner.total;
                    let place = ArgumentLocation { path, name, property: None, always, ..*place };
                    self.at(seen_here, &place, limits);
                }
                return;
            }
            SeenKind::List => {
                let Some(inner) = &seen_values.elements else { return };
                let path = [&place.path[..], &[ArgumentStep::Each]].concat();
                let always = place.always && !seen_values.null && !seen_values.empty_list;
                let property = place.property.and_then(|property| member(property, "items"));
                return self.at(
                    inner,
                    &ArgumentLocation { path, property, always, ..*place },
                    limits,
                );
            }
            _ => {}
        }
        let decision = self.scalar(seen_values, place);
        let digits = seen_values.digits;
        let mut row = |limit, required| {
            let path = place.path.clone();
            limits.rows.push(ArgumentLimit { path, required, limit, digits, declared: None });
        };
        match decision {
            // Required if every call had it: a missing safety switch or path would get a default.
            LimitDecision::Limit(limit) => row(limit, place.always && !seen_values.null),
            LimitDecision::Open => limits.open.push(place.text()),
            LimitDecision::Risk(reason) => {
                limits.open.push(place.text());
                limits.risks.push((place.text(), reason));
            }
        }
    }

    fn scalar(&self, seen_values: &SeenValues, place: &ArgumentLocation<'_>) -> LimitDecision {
        match seen_values.kind() {
            SeenKind::Text => self.text(seen_values, place),
            SeenKind::Number if names::is_quantity(place.name) => match &seen_values.range {
                Some((least, most)) => match range::round_outward(least, most) {
                    Some((least, most)) => LimitDecision::Limit(ValueLimit::Range(least, most)),
                    None => LimitDecision::Open,
                },
                None => LimitDecision::Open,
            },
            SeenKind::Bool => limit_switch(place, &seen_values.bools),
            SeenKind::Mixed if names::is_reach(place.name) => {
                LimitDecision::Risk("its values have several types, which one test cannot cover")
            }
            _ => LimitDecision::Open,
        }
    }

    fn text(&self, seen_values: &SeenValues, place: &ArgumentLocation<'_>) -> LimitDecision {
        let name = place.name;
        let showable =
            !seen_values.more_texts && seen_values.texts.iter().all(|text| self.may_show(text));
        let few = showable && seen_values.texts.len() <= LISTED_MAX;
        let listed = || {
            LimitDecision::Limit(ValueLimit::OneOf(
                seen_values.texts.iter().map(|text| quoted(text)).collect(),
            ))
        };
        if !seen_values.more_texts
            && seen_values.texts.iter().all(|text| urls::is_url(text))
            && !names::is_free_text(name)
        {
            return match urls::origins(&seen_values.texts) {
                Some(origins) => LimitDecision::Limit(ValueLimit::Origins(origins)),
                None if few => listed(),
                None => LimitDecision::Risk("its URLs have nothing in common"),
            };
        }
        let is_place = names::is_path(name)
            || !names::is_free_text(name)
                && seen_values.texts.iter().all(|text| looks_like_path(text));
        if is_place && !is_sentence(&seen_values.texts) {
            let home = self.home.as_deref();
            let folders =
                if seen_values.more_texts { None } else { folders(&seen_values.texts, home) };
            return match folders.filter(|all| all.iter().all(|one| self.may_show(one))) {
                Some(folders) if folders.iter().all(|one| one.starts_with('/')) => {
                    LimitDecision::Limit(ValueLimit::Under(folders))
                }
                Some(folders) => LimitDecision::Limit(ValueLimit::Relative(folders)),
                None if few => listed(),
                None => LimitDecision::Risk("its paths have no folder in common"),
            };
        }
        if names::is_program(name) {
            return LimitDecision::Risk("it is executed, so any value is possible");
        }
        if names::is_free_text(name) || !few || !seen_values.texts.iter().all(|text| is_word(text))
        {
            return LimitDecision::Open;
        }
        let declared = place.property.is_some_and(|property| member(property, "enum").is_some());
        let repeats = seen_values.count >= REPEATS_MIN * seen_values.texts.len()
            && seen_values.count > REPEATS_MIN;
        match declared || repeats || names::is_choice(name) || names::is_url(name) {
            true => listed(),
            false => LimitDecision::Open,
        }
    }
}

/// The position of a value.
struct ArgumentLocation<'a> {
    path: Vec<ArgumentStep>,
    /// The last key on the way to it.
    name: &'a str,
    /// Its part of the tool's schema.
    property: Option<&'a [u8]>,
    /// Whether it was present in every call.
    always: bool,
    /// Whether the tool's definition was seen.
    is_defined: bool,
}

impl ArgumentLocation<'_> {
    fn text(&self) -> String {
        path_text(&self.path)
    }
}

/// A path in the syntax of rules.
pub(super) fn path_text(path: &[ArgumentStep]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            ArgumentStep::Each => text += "[*]",
            ArgumentStep::Key(name) if super::literals::is_name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text += name;
            }
            ArgumentStep::Key(name) => {
                text += &format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"));
            }
        }
    }
    text
}

fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    write_str(&mut json, text);
    String::from_utf8(json).unwrap_or_default()
}

/// Whether one of the texts is prose.
fn is_sentence(texts: &BTreeSet<String>) -> bool {
    texts.iter().any(|text| text.contains('\n') || text.split_whitespace().count() > 6)
}

/// Whether a text is a single word that can be a choice.
fn is_word(text: &str) -> bool {
    text.chars().count() <= CHOICE_CHARS_MAX
        && !text.contains(|one: char| one.is_whitespace() || one.is_control())
}

/// Restricts a switch to the value it had if only that one is harmless.
fn limit_switch(place: &ArgumentLocation<'_>, values: &BTreeSet<bool>) -> LimitDecision {
    let name = place.name;
    let only = |value| values.len() == 1 && values.contains(&value);
    if only(true) && names::is_safety_switch(name) {
        return LimitDecision::Limit(ValueLimit::OneOf(vec!["true".to_owned()]));
    }
    if only(false) && names::is_risky_switch(name) && !names::is_safety_switch(name) {
        return LimitDecision::Limit(ValueLimit::OneOf(vec!["false".to_owned()]));
    }
    // Without a definition, the effect of the other value is unknown.
    match values.len() == 1 && !place.is_defined {
        true => LimitDecision::Risk("it had only one value, and the tape does not show its effect"),
        false => LimitDecision::Open,
    }
}
