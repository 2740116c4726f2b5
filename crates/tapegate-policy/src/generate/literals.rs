//! Quotes and escapes texts for policies.

use tapegate_core::json::string;

/// A glob that matches one name only.
pub(super) fn literal(name: &str) -> String {
    let letter = |one: char| match one {
        '*' | '?' | '[' => format!("[{one}]"),
        one => one.to_string(),
    };
    name.chars().map(letter).collect()
}

/// A text as YAML, quoted unless every parser reads it as a plain word.
pub(super) fn yaml(text: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || "_/-.".contains(one);
    let begins = text.chars().next().is_some_and(|one| one.is_ascii_alphabetic() || one == '/');
    // YAML 1.1 parsers read these as booleans or null.
    let reserved = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let word = text.to_ascii_lowercase();
    if begins && text.chars().all(plain) && !reserved.contains(&word.as_str()) {
        return text.to_owned();
    }
    // Must not be read as an environment variable.
    format!("\"{}\"", escaped(&text.replace("${", "$${")))
}

/// A JSON text as YAML.
pub(super) fn yaml_value(json: &str) -> String {
    match string(json.as_bytes()) {
        Some(text) => yaml(&text),
        None => json.to_owned(),
    }
}

fn escaped(text: &str) -> String {
    let letter = |one: char| match one {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        one if one == ' ' || one.is_ascii_graphic() || one.is_alphanumeric() => one.to_string(),
        one => format!("\\U{:08x}", u32::from(one)),
    };
    text.chars().map(letter).collect()
}

/// A text as a Cedar string.
pub(super) fn cedar_string(text: &str) -> String {
    let letter = |one: char| match one {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        one if one == ' ' || one.is_ascii_graphic() || one.is_alphanumeric() => one.to_string(),
        one => format!("\\u{{{:x}}}", u32::from(one)),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

/// A Cedar pattern for texts with this prefix.
pub(super) fn cedar_prefix_pattern(start: &str) -> String {
    let text = cedar_string(start);
    let inner = text[1..text.len() - 1].replace('*', "\\*");
    format!("\"{inner}*\"")
}

/// Whether a text is an identifier in Cedar and in paths, without quotes.
pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|one| one.is_ascii_alphabetic() || one == '_')
        && letters.all(|one| one.is_ascii_alphanumeric() || one == '_')
        && !["true", "false", "if", "then", "else", "in", "is", "like", "has", "__cedar"]
            .contains(&text)
}

/// A text as one line of a comment.
pub(super) fn comment(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).collect()
}

/// `1 call`, `2 calls`.
pub(super) fn calls(count: usize) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}
