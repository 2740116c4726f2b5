//! The values that were seen at one place in the arguments of a tool.

use std::collections::{BTreeMap, BTreeSet};

use tapegate_core::frame::array_items;
use tapegate_core::json::{self, JsonStr};

use crate::predicate::is_less;

/// How many different texts are remembered.
const TEXTS_MAX: usize = 4096;
/// The longest text that is remembered; longer ones are neither paths nor choices.
const TEXT_CHARS_MAX: usize = 400;
/// How deep values are examined.
const DEPTH_MAX: usize = 6;

/// The values seen at one place.
#[derive(Debug, Default)]
pub(super) struct SeenValues {
    /// How often there was a value.
    pub(super) count: usize,
    pub(super) texts: BTreeSet<String>,
    /// Whether some texts are missing from `texts`: too many, or too long.
    pub(super) more_texts: bool,
    /// The smallest and the largest number, as written.
    pub(super) range: Option<(String, String)>,
    /// How Cedar can represent all of these numbers.
    pub(super) digits: NumberForm,
    pub(super) bools: BTreeSet<bool>,
    pub(super) null: bool,
    /// Whether some values cannot be analysed: too deep, or texts with unpaired surrogates.
    pub(super) odd: bool,
    pub(super) objects: Option<SeenMembers>,
    pub(super) elements: Option<Box<SeenValues>>,
    /// Whether a list was empty.
    pub(super) empty_list: bool,
}

/// How Cedar can represent numbers, by their spelling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NumberForm {
    #[default]
    Long,
    Decimal,
    /// Neither.
    Odd,
}

/// The members seen in objects.
#[derive(Debug, Default)]
pub(super) struct SeenMembers {
    /// The number of objects.
    pub(super) total: usize,
    pub(super) members: BTreeMap<String, SeenValues>,
}

impl SeenMembers {
    /// Adds the arguments of a call.
    pub(super) fn observe_call(&mut self, arguments: Option<&[u8]>, times: usize) {
        self.object(arguments.unwrap_or(b"{}"), times, DEPTH_MAX);
    }

    fn object(&mut self, text: &[u8], times: usize, depth: usize) {
        self.total += times;
        for (name, value) in members(text) {
            self.members.entry(name).or_default().value(value, times, depth);
        }
    }
}

/// The members of an object, in order; none if it is not valid.
pub(super) fn members(text: &[u8]) -> Vec<(String, &[u8])> {
    let decoded = json::members(text)
        .map(|member| member.map(|(key, value)| (key.decode().into_owned(), value)));
    decoded.collect::<Result<_, _>>().unwrap_or_default()
}

/// The decoded text of a JSON string, unless it has unpaired surrogates.
fn whole_text(json: &[u8]) -> Option<String> {
    let mut bytes = Vec::new();
    JsonStr::read(json)?.write_value_bytes(&mut bytes);
    String::from_utf8(bytes).ok()
}

impl SeenValues {
    fn value(&mut self, value: &[u8], times: usize, depth: usize) {
        self.count += times;
        let Some(depth) = depth.checked_sub(1) else {
            self.odd = true;
            return;
        };
        match value.first() {
            Some(b'n') => self.null = true,
            Some(b't' | b'f') => drop(self.bools.insert(value == b"true")),
            Some(b'"') => match whole_text(value) {
                Some(text) => self.text(&text),
                // Servers decode such a text differently, so no test can be derived from it.
                None => self.odd = true,
            },
            Some(b'[') => {
                let elements = self.elements.get_or_insert_default();
                let items = array_items(value);
                self.empty_list |= items.is_empty();
                items.iter().for_each(|one| elements.value(one, times, depth));
            }
            Some(b'{') => {
                self.objects.get_or_insert_default().object(value, times, depth);
            }
            _ => self.number(&String::from_utf8_lossy(value)),
        }
    }

    fn number(&mut self, text: &str) {
        self.digits = self.digits.max(NumberForm::of(text));
        let (least, most) = self.range.get_or_insert_with(|| (text.to_owned(), text.to_owned()));
        if is_less(text, least) {
            *least = text.to_owned();
        }
        if is_less(most, text) {
            *most = text.to_owned();
        }
    }

    fn text(&mut self, text: &str) {
        let fits = text.chars().count() <= TEXT_CHARS_MAX;
        if fits && (self.texts.len() < TEXTS_MAX || self.texts.contains(text)) {
            self.texts.insert(text.to_owned());
        } else {
            self.more_texts = true;
        }
    }

    /// The kind of all values, ignoring `null`, which counts as absent.
    pub(super) fn kind(&self) -> SeenKind {
        let kinds = [
            // A text that was too long to be remembered is still a text.
            (!self.texts.is_empty() || self.more_texts, SeenKind::Text),
            (self.range.is_some(), SeenKind::Number),
            (!self.bools.is_empty(), SeenKind::Bool),
            (self.objects.is_some(), SeenKind::Object),
            (self.elements.is_some(), SeenKind::List),
            (self.odd, SeenKind::Mixed),
        ];
        let mut found = kinds.into_iter().filter(|(there, _)| *there).map(|(_, kind)| kind);
        match (found.next(), found.next()) {
            (None, _) => SeenKind::Null,
            (Some(kind), None) => kind,
            (Some(_), Some(_)) => SeenKind::Mixed,
        }
    }
}

/// The kind of values seen at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeenKind {
    Text,
    Number,
    Bool,
    Object,
    List,
    Null,
    Mixed,
}

impl NumberForm {
    fn of(number: &str) -> Self {
        const WHOLE_MAX: usize = 14;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let whole = whole.trim_start_matches('-');
        let plain = digits(whole) && digits(fraction);
        match number.parse::<i64>() {
            // Numbers that may also be written as decimals must not be too large for one.
            Ok(_) if whole.len() <= WHOLE_MAX => Self::Long,
            _ if plain && fraction.len() <= 4 && whole.len() <= WHOLE_MAX => Self::Decimal,
            _ => Self::Odd,
        }
    }
}
