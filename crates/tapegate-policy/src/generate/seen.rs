//! What values were seen at one place of the arguments of a tool.

use std::collections::{BTreeMap, BTreeSet};

use tapegate_core::frame::array_items;
use tapegate_core::json::{Cursor, Kind};

use crate::predicate::is_less;
use crate::redact::{Key, Redactor, Rules};

/// How many different values are remembered; with more, only what they have in common counts.
const KEPT_MAX: usize = 64;
/// How long a text may be that is written into a policy.
const TEXT_CHARS_MAX: usize = 200;
/// How deep values are looked into.
const DEPTH_MAX: usize = 6;

/// What was seen at a place.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How often there was anything.
    pub(super) count: usize,
    /// Texts that were few and may be shown.
    pub(super) texts: BTreeSet<String>,
    /// Texts that were too many, too long, or secret.
    pub(super) other_texts: bool,
    /// The folder that all texts lie in, if all are paths; `None` if some are not, or before the
    /// first.
    folder: Option<String>,
    no_folder: bool,
    /// Numbers, as they were written.
    pub(super) numbers: BTreeSet<String>,
    /// The least and the most of them.
    pub(super) range: Option<(String, String)>,
    /// What all of them can be for Cedar.
    pub(super) digits: Digits,
    pub(super) bools: BTreeSet<bool>,
    pub(super) null: bool,
    /// Values that nothing can be said of: too deep, or texts with half a character in them.
    pub(super) odd: bool,
    pub(super) objects: Option<Members>,
    pub(super) elements: Option<Box<Seen>>,
}

/// What numbers can be for Cedar, as they are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Digits {
    #[default]
    Long,
    Decimal,
    /// Neither.
    Odd,
}

/// What was seen in objects.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// How many objects there were.
    pub(super) total: usize,
    pub(super) members: BTreeMap<String, Seen>,
}

/// Tells secrets from other texts.
pub(super) struct Eyes {
    redactor: Option<Redactor>,
}

impl Eyes {
    pub(super) fn new() -> Self {
        let rules = Rules::parse(["secrets"]).ok();
        Self { redactor: rules.map(|rules| Redactor::new(rules, Key::on_tape([0; 32]))) }
    }

    /// Whether a text may stand in a policy: it is short, no secret, and no placeholder of one,
    /// in whose place something else comes live.
    fn may_show(&self, text: &str) -> bool {
        text.chars().count() <= TEXT_CHARS_MAX
            && !text.contains("[REDACTED")
            && self.redactor.as_ref().is_some_and(|redactor| redactor.text(text) == text)
    }
}

impl Members {
    /// Takes the arguments of one call into account.
    pub(super) fn call(&mut self, arguments: Option<&[u8]>, times: usize, eyes: &Eyes) {
        self.object(arguments.unwrap_or(b"{}"), times, eyes, DEPTH_MAX);
    }

    fn object(&mut self, text: &[u8], times: usize, eyes: &Eyes, depth: usize) {
        self.total += times;
        for (name, value) in members(text).unwrap_or_default() {
            self.members.entry(name).or_default().value(value, times, eyes, depth);
        }
    }
}

/// The members of an object, in their order; numbers keep every digit.
pub(super) fn members(text: &[u8]) -> Option<Vec<(String, &[u8])>> {
    let mut cursor = Cursor::new(text).ok()?;
    if cursor.open().ok()? != Kind::Object {
        return None;
    }
    let (mut first, mut found) = (true, Vec::new());
    while let Some(key) = cursor.key(&mut first).ok()? {
        found.push((key.decode().into_owned(), cursor.value().ok()?));
    }
    Some(found)
}

/// What a JSON string means, unless half a character is in it.
fn whole_text(json: &[u8]) -> Option<String> {
    let mut bytes = Vec::new();
    Cursor::new(json).ok()?.string().ok()?.exact(&mut bytes);
    String::from_utf8(bytes).ok()
}

impl Seen {
    fn value(&mut self, value: &[u8], times: usize, eyes: &Eyes, depth: usize) {
        self.count += times;
        let Some(depth) = depth.checked_sub(1) else {
            self.odd = true;
            return;
        };
        match value.first() {
            Some(b'n') => self.null = true,
            Some(b't' | b'f') => drop(self.bools.insert(value == b"true")),
            Some(b'"') => match whole_text(value) {
                Some(text) => self.text(&text, eyes),
                None => self.odd = true,
            },
            Some(b'[') => {
                let elements = self.elements.get_or_insert_default();
                array_items(value).iter().for_each(|one| elements.value(one, times, eyes, depth));
            }
            Some(b'{') => {
                self.objects.get_or_insert_default().object(value, times, eyes, depth);
            }
            _ => self.number(&String::from_utf8_lossy(value)),
        }
    }

    fn number(&mut self, text: &str) {
        self.digits = self.digits.max(Digits::of(text));
        if self.numbers.len() < KEPT_MAX {
            self.numbers.insert(text.to_owned());
        }
        let (least, most) = self.range.get_or_insert_with(|| (text.to_owned(), text.to_owned()));
        if is_less(text, least) {
            *least = text.to_owned();
        }
        if is_less(most, text) {
            *most = text.to_owned();
        }
    }

    fn text(&mut self, text: &str, eyes: &Eyes) {
        self.folder = match (folder(text), self.folder.take()) {
            _ if self.no_folder => None,
            (None, _) => None,
            (Some(own), None) => common(own, own),
            (Some(own), Some(known)) => common(&known, own),
        };
        self.no_folder |= self.folder.is_none();
        if self.texts.len() < KEPT_MAX && eyes.may_show(text) {
            self.texts.insert(text.to_owned());
        } else if !self.texts.contains(text) {
            self.other_texts = true;
        }
    }

    /// The folder that all texts lie in, with the slash at its end.
    pub(super) fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// How many kinds of values there were; what nothing can be said of is of all kinds.
    pub(super) fn kinds(&self) -> usize {
        [
            !self.texts.is_empty() || self.other_texts,
            self.range.is_some(),
            !self.bools.is_empty(),
            self.null,
            self.objects.is_some(),
            self.elements.is_some(),
            self.odd,
            self.odd,
        ]
        .into_iter()
        .filter(|there| *there)
        .count()
    }
}

impl Digits {
    fn of(number: &str) -> Self {
        const WHOLE_MAX: usize = 14;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let whole = whole.trim_start_matches('-');
        let plain = digits(whole) && digits(fraction);
        match number.parse::<i64>() {
            // What is to be a decimal as well must not be too large for one.
            Ok(_) if whole.len() <= WHOLE_MAX => Self::Long,
            _ if plain && fraction.len() <= 4 && whole.len() <= WHOLE_MAX => Self::Decimal,
            _ => Self::Odd,
        }
    }
}

/// The folder of a path or URL, if a text is one that leads nowhere else.
pub(super) fn folder(text: &str) -> Option<&str> {
    let start = match text.find("://") {
        Some(at) => at + 3,
        None if text.starts_with('/') => 0,
        None => return None,
    };
    let plain = !text.contains("..") && !text.contains(['\n', '\0', '\\', '%']);
    let end = text.rfind('/').filter(|end| plain && *end >= start)?;
    Some(&text[..=end])
}

/// The folder that two folders lie in, unless that is all there is.
pub(super) fn common(one: &str, two: &str) -> Option<String> {
    let mut end = 0;
    for (at, (left, right)) in one.bytes().zip(two.bytes()).enumerate() {
        if left != right {
            break;
        }
        if left == b'/' {
            end = at + 1;
        }
    }
    let common = &one[..end];
    let (_, path) = common.split_once("://").unwrap_or(("", common));
    // `/` and `https://` have nothing in common but that they are paths and URLs.
    (!path.trim_matches('/').is_empty()).then(|| common.to_owned())
}
