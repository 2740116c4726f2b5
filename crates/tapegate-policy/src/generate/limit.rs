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
use super::seen::{Digits, Kind, Members, Seen, members};
use super::urls;
use crate::redact::{Key, Redactor, Rules};

/// How many values are listed individually.
const LISTED_MAX: usize = 6;
/// How long a text may be to count as a choice.
const CHOICE_CHARS_MAX: usize = 64;
/// How often each value must occur to count as a choice if the name does not say so.
const REPEATS_MIN: usize = 3;

/// A place in the arguments, and its permitted values.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) path: Vec<Step>,
    /// Whether it must be present.
    pub(super) required: bool,
    pub(super) limit: Limit,
    /// How Cedar can represent the numbers there.
    pub(super) digits: Digits,
    /// The `type` in the tool's schema.
    pub(super) declared: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Each,
}

/// The permitted values at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Limit {
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
pub(super) struct Limits {
    pub(super) rows: Vec<Row>,
    /// Arguments that were used and are not restricted.
    pub(super) open: Vec<String>,
    /// Those of them that should be reviewed, and why.
    pub(super) risks: Vec<(String, &'static str)>,
}

/// Decides what is permitted in the arguments of a tool.
pub(super) struct Limiter {
    redactor: Option<Redactor>,
    /// The user's home folder, which no test permits as a whole.
    home: Option<String>,
}

/// The restriction of a place, or why there is none.
enum Decision {
    Limit(Limit),
    Open,
    Risk(&'static str),
}

impl Limiter {
    pub(super) fn new(home: Option<&str>) -> Self {
        let rules = Rules::parse(["secrets"]).ok();
        let redactor = rules.map(|rules| Redactor::new(rules, Key::on_tape([0; 32])));
        Self { redactor, home: home.map(str::to_owned) }
    }

    /// Whether a text may be written to a policy: it is neither a secret nor the placeholder of
    /// one, which would not match the live value.
    fn may_show(&self, text: &str) -> bool {
        !text.contains("[REDACTED")
            && self.redactor.as_ref().is_some_and(|redactor| redactor.text(text) == text)
    }

    /// The restrictions derived from these arguments, for a tool with this input schema.
    pub(super) fn limits(&self, seen: &Members, schema: Option<&str>) -> Limits {
        let properties = schema.and_then(|schema| member(schema.as_bytes(), "properties"));
        let properties = properties.and_then(members).unwrap_or_default();
        let mut limits = Limits::default();
        for (name, seen_here) in &seen.members {
            let property = properties.iter().find(|(own, _)| own == name).map(|(_, text)| *text);
            let before = limits.rows.len();
            let always = seen_here.count == seen.total;
            let path = vec![Step::Key(name.clone())];
            let place = Place { path, name, property, always, is_defined: schema.is_some() };
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
            let (path, limit) = (vec![Step::Key(name.clone())], Limit::Absent);
            let declared = member(property, "type").and_then(string).map(String::from);
            let digits = Digits::Long;
            limits.rows.push(Row { path, required: false, limit, digits, declared });
        }
        limits
    }

    fn at(&self, seen: &Seen, place: &Place<'_>, limits: &mut Limits) {
        match seen.kind() {
            Kind::Object => {
                let Some(inner) = &seen.objects else { return };
                if inner.members.is_empty() {
                    limits.open.push(place.text());
                }
                for (name, seen_here) in &inner.members {
                    let path = [&place.path[..], &[Step::Key(name.clone())]].concat();
                    let always = place.always && !seen.null && seen_here.count == inner.total;
                    let place = Place { path, name, property: None, always, ..*place };
                    self.at(seen_here, &place, limits);
                }
                return;
            }
            Kind::List => {
                let Some(inner) = &seen.elements else { return };
                let path = [&place.path[..], &[Step::Each]].concat();
                let always = place.always && !seen.null && !seen.empty_list;
                let property = place.property.and_then(|property| member(property, "items"));
                return self.at(inner, &Place { path, property, always, ..*place }, limits);
            }
            _ => {}
        }
        let decision = self.scalar(seen, place);
        let digits = seen.digits;
        let mut row = |limit, required| {
            let path = place.path.clone();
            limits.rows.push(Row { path, required, limit, digits, declared: None });
        };
        match decision {
            // Required if every call had it: a missing safety switch or path would get a default.
            Decision::Limit(limit) => row(limit, place.always && !seen.null),
            Decision::Open => limits.open.push(place.text()),
            Decision::Risk(why) => {
                limits.open.push(place.text());
                limits.risks.push((place.text(), why));
            }
        }
    }

    fn scalar(&self, seen: &Seen, place: &Place<'_>) -> Decision {
        match seen.kind() {
            Kind::Text => self.text(seen, place),
            Kind::Number if names::is_quantity(place.name) => match &seen.range {
                Some((least, most)) => match range::widened(least, most) {
                    Some((least, most)) => Decision::Limit(Limit::Range(least, most)),
                    None => Decision::Open,
                },
                None => Decision::Open,
            },
            Kind::Bool => switch(place, &seen.bools),
            Kind::Mixed if names::is_reach(place.name) => {
                Decision::Risk("its values have several types, which one test cannot cover")
            }
            _ => Decision::Open,
        }
    }

    fn text(&self, seen: &Seen, place: &Place<'_>) -> Decision {
        let name = place.name;
        let showable = !seen.more_texts && seen.texts.iter().all(|text| self.may_show(text));
        let few = showable && seen.texts.len() <= LISTED_MAX;
        let listed =
            || Decision::Limit(Limit::OneOf(seen.texts.iter().map(|text| quoted(text)).collect()));
        if !seen.more_texts
            && seen.texts.iter().all(|text| urls::is_url(text))
            && !names::is_free_text(name)
        {
            return match urls::origins(&seen.texts) {
                Some(origins) => Decision::Limit(Limit::Origins(origins)),
                None if few => listed(),
                None => Decision::Risk("its URLs have nothing in common"),
            };
        }
        let is_place = names::is_path(name)
            || !names::is_free_text(name) && seen.texts.iter().all(|text| looks_like_path(text));
        if is_place && !is_sentence(&seen.texts) {
            let home = self.home.as_deref();
            let folders = if seen.more_texts { None } else { folders(&seen.texts, home) };
            return match folders.filter(|all| all.iter().all(|one| self.may_show(one))) {
                Some(folders) if folders.iter().all(|one| one.starts_with('/')) => {
                    Decision::Limit(Limit::Under(folders))
                }
                Some(folders) => Decision::Limit(Limit::Relative(folders)),
                None if few => listed(),
                None => Decision::Risk("its paths have no folder in common"),
            };
        }
        if names::is_program(name) {
            return Decision::Risk("it is executed, so any value is possible");
        }
        if names::is_free_text(name) || !few || !seen.texts.iter().all(|text| is_word(text)) {
            return Decision::Open;
        }
        let declared = place.property.is_some_and(|property| member(property, "enum").is_some());
        let repeats = seen.count >= REPEATS_MIN * seen.texts.len() && seen.count > REPEATS_MIN;
        match declared || repeats || names::is_choice(name) || names::is_url(name) {
            true => listed(),
            false => Decision::Open,
        }
    }
}

/// The position of a value.
struct Place<'a> {
    path: Vec<Step>,
    /// The last key on the way to it.
    name: &'a str,
    /// Its part of the tool's schema.
    property: Option<&'a [u8]>,
    /// Whether it was present in every call.
    always: bool,
    /// Whether the tool's definition was seen.
    is_defined: bool,
}

impl Place<'_> {
    fn text(&self) -> String {
        path_text(&self.path)
    }
}

/// A path in the syntax of rules.
pub(super) fn path_text(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Each => text += "[*]",
            Step::Key(name) if super::words::is_name(name) => {
                if !text.is_empty() {
                    text.push('.');
                }
                text += name;
            }
            Step::Key(name) => {
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
fn switch(place: &Place<'_>, values: &BTreeSet<bool>) -> Decision {
    let name = place.name;
    let only = |value| values.len() == 1 && values.contains(&value);
    if only(true) && names::is_safety_switch(name) {
        return Decision::Limit(Limit::OneOf(vec!["true".to_owned()]));
    }
    if only(false) && names::is_risky_switch(name) && !names::is_safety_switch(name) {
        return Decision::Limit(Limit::OneOf(vec!["false".to_owned()]));
    }
    // Without a definition, the effect of the other value is unknown.
    match values.len() == 1 && !place.is_defined {
        true => Decision::Risk("it had only one value, and the tape does not show its effect"),
        false => Decision::Open,
    }
}
