//! JSON values as YAML.

use serde_json::Value;

/// A value as a YAML document.
pub(crate) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text
}

fn write(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                text.push_str(&format!("{indent}{}:", scalar(&Value::from(name.as_str()))));
                write_nested(text, value, depth);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let mut inner = String::new();
                write(&mut inner, item, depth + 1);
                // The first line of an item stands after the dash.
                text.push_str(&format!("{indent}- {}", inner.trim_start_matches(' ')));
            }
        }
        other => text.push_str(&format!("{indent}{}\n", scalar(other))),
    }
}

fn write_nested(text: &mut String, value: &Value, depth: usize) {
    let is_nested = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    match is_nested {
        true => {
            text.push('\n');
            write(text, value, depth + 1);
        }
        false => text.push_str(&format!(" {}\n", scalar(value))),
    }
}

/// A value on one line. A JSON string is a YAML string too; short plain words need no quotes.
fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        // YAML does not know the escape of a slash, and JSON writes none.
        other => other.to_string(),
    }
}

fn is_plain(text: &str) -> bool {
    let starts = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '/');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./ ".contains(letter);
    starts
        && text.chars().all(plain)
        && !text.ends_with(' ')
        && !words.contains(&text.to_ascii_lowercase().as_str())
}
