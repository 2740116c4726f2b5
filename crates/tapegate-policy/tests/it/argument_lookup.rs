//! How lenient servers find an argument by its path, and how they read its text.
//!
//! Like the [converters](crate::converters), for a property test and a fuzz target.

use tapegate_core::json::path::{ChildPosition, PathStep, StepSelector};
use unicode_normalization::UnicodeNormalization;

use crate::converters::ConvertedValue;

/// How many levels of JSON in strings are parsed.
const PARSED_MAX: usize = 3;

/// A way to read a text.
pub(crate) type TextReader = fn(&str) -> String;

pub(crate) const TEXT_READERS: [(&str, TextReader); 11] = [
    ("as it is", str::to_owned),
    ("trimmed", |text| text.trim().to_owned()),
    ("up to a NUL", |text| text.split('\0').next().unwrap_or_default().to_owned()),
    ("unquoted", unquoted),
    ("unescaped", unescaped),
    ("a form", |text| unquoted(&text.replace('+', " "))),
    ("NFC", |text| text.nfc().collect()),
    ("NFKC", |text| text.nfkc().collect()),
    ("a path", resolved),
    ("a path of a file", |text| text.trim_end_matches('/').to_owned()),
    ("without what is not seen", |text| text.replace(['\u{fe0f}', '\u{34f}'], "")),
];

/// The texts that servers convert a value to.
pub(crate) fn texts(value: &ConvertedValue) -> Vec<String> {
    match value {
        ConvertedValue::Null => ["null", "None", ""].map(str::to_owned).to_vec(),
        ConvertedValue::Bool(true) => ["true", "True"].map(str::to_owned).to_vec(),
        ConvertedValue::Bool(false) => ["false", "False"].map(str::to_owned).to_vec(),
        // Larger numbers are printed differently by each language.
        ConvertedValue::Number(number) if number.abs() < 1e21 => vec![number.to_string()],
        ConvertedValue::Number(_) => Vec::new(),
        ConvertedValue::Text(text) => {
            let mut all = Vec::new();
            for (_, first) in TEXT_READERS {
                all.extend(TEXT_READERS.map(|(_, second)| second(&first(text))));
            }
            all.sort();
            all.dedup();
            all
        }
        ConvertedValue::List(items) => {
            [",", " "].iter().filter_map(|joint| joined(items, joint)).collect()
        }
        ConvertedValue::Map(_) => Vec::new(),
    }
}

/// A list joined to a text, as JavaScript does or as a command line.
fn joined(items: &[ConvertedValue], joint: &str) -> Option<String> {
    let texts = items.iter().map(|item| match item {
        ConvertedValue::Null => Some(String::new()),
        ConvertedValue::Bool(value) => Some(value.to_string()),
        ConvertedValue::Number(number) => (number.abs() < 1e21).then(|| number.to_string()),
        ConvertedValue::Text(text) => Some(text.clone()),
        ConvertedValue::List(items) => joined(items, joint),
        ConvertedValue::Map(_) => None,
    });
    texts.collect::<Option<Vec<_>>>().map(|texts| texts.join(joint))
}

/// Decodes all percent escapes once.
fn unquoted(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes escapes like `%u0061`, as JavaScript's `unescape` does.
fn unescaped(text: &str) -> String {
    let mut units: Vec<u16> = text.encode_utf16().collect();
    let mut at = 0;
    while at + 6 <= units.len() {
        let escape = String::from_utf16_lossy(&units[at..at + 6]);
        let hex = escape.strip_prefix("%u").filter(|hex| hex.len() == 4);
        let hex = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if let Some(unit) = hex.and_then(|hex| u16::from_str_radix(hex, 16).ok()) {
            units.splice(at..at + 6, [unit]);
        }
        at += 1;
    }
    String::from_utf16_lossy(&units)
}

/// A path, or that of a `file:` URI, without `.`, `..` and empty steps.
fn resolved(text: &str) -> String {
    let path = text.strip_prefix("file://").map(unquoted);
    let path = path.as_deref().unwrap_or(text);
    if !path.starts_with('/') {
        return text.to_owned();
    }
    let mut steps = Vec::new();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            step => steps.push(step),
        }
    }
    format!("/{}", steps.join("/"))
}

/// Whether a text is an absolute path in a folder, or that folder.
pub(crate) fn lies_in(text: &str, folder: &str) -> bool {
    let (path, folder) = (resolved(text), resolved(folder));
    let below = path.strip_prefix(&*folder);
    path.starts_with('/')
        && below.is_some_and(|rest| rest.is_empty() || folder == "/" || rest.starts_with('/'))
}

/// The values at a path in the arguments, by exact keys.
pub(crate) fn strict<'v>(value: &'v ConvertedValue, steps: &[PathStep]) -> Vec<&'v ConvertedValue> {
    let [step, rest @ ..] = steps else { return vec![value] };
    let mut all = Vec::new();
    for (index, key, child) in children(value) {
        if step.select.matches(key.map_or(ChildPosition::Index(index), ChildPosition::Key)) {
            all.extend(strict(child, rest));
        }
        if step.anywhere {
            all.extend(strict(child, steps));
        }
    }
    all
}

/// All values that some server could find at a path in the arguments.
pub(crate) fn found(arguments: &ConvertedValue, steps: &[PathStep]) -> Vec<ConvertedValue> {
    let mut all = Vec::new();
    find(arguments, steps, 0, &mut all);
    all
}

fn find(value: &ConvertedValue, steps: &[PathStep], parsed: usize, all: &mut Vec<ConvertedValue>) {
    let [step, rest @ ..] = steps else {
        all.push(value.clone());
        return;
    };
    if let ConvertedValue::Text(text) = value
        && parsed < PARSED_MAX
        && let Some(inner @ (ConvertedValue::Map(_) | ConvertedValue::List(_))) =
            ConvertedValue::parse_as_python(text.trim())
    {
        find(&inner, steps, parsed + 1, all);
    }
    for (index, key, child) in children(value) {
        let taken = match &step.select {
            StepSelector::Key(wanted) => key.is_some_and(|key| folded(key) == folded(wanted)),
            StepSelector::Index(wanted) => key.is_none() && *wanted == index,
            StepSelector::All => true,
        };
        if taken {
            find(child, rest, parsed, all);
        }
        // In JavaScript, members of the prototype are found here too.
        if step.anywhere || key == Some("__proto__") {
            find(child, steps, parsed, all);
        }
    }
    match (&step.select, value) {
        // A list of one for its value, and a value for a list of one.
        (StepSelector::Key(_), ConvertedValue::List(items))
            if items.len() == 1 && !step.anywhere =>
        {
            find(&items[0], steps, parsed, all);
        }
        (StepSelector::All | StepSelector::Index(0), ConvertedValue::Text(text))
            if text.contains(',') =>
        {
            let pieces = text.split(',').map(|piece| ConvertedValue::Text(piece.trim().to_owned()));
            pieces.for_each(|piece| find(&piece, rest, parsed, all));
        }
        (
            StepSelector::All | StepSelector::Index(0),
            ConvertedValue::Bool(_) | ConvertedValue::Number(_) | ConvertedValue::Text(_),
        ) => {
            find(value, rest, parsed, all);
        }
        _ => {}
    }
}

/// The index, key and value of every child.
fn children(value: &ConvertedValue) -> Vec<(usize, Option<&str>, &ConvertedValue)> {
    match value {
        ConvertedValue::List(items) => {
            items.iter().enumerate().map(|(at, item)| (at, None, item)).collect()
        }
        ConvertedValue::Map(members) => {
            members.iter().enumerate().map(|(at, (key, item))| (at, Some(&**key), item)).collect()
        }
        _ => Vec::new(),
    }
}

/// The form that keys have in common if lenient readers take them for the same.
fn folded(key: &str) -> String {
    let key = key.split('\0').next().unwrap_or_default();
    let letters = key.trim().chars().filter(|letter| !matches!(letter, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}
