//! Parses sizes, durations and paths on the command line.

use std::time::Duration;

use tapegate_core::json::path::{JsonPath, StepSelector};

/// Parses `500ms`, `1s`, `2m`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 =
        text[..unit_at].trim().parse().map_err(|_| "expected a duration such as 500ms or 1s")?;
    let seconds = match text[unit_at..].trim() {
        "ms" => number / 1000.0,
        "s" | "" => number,
        "m" | "min" => number * 60.0,
        unit => return Err(format!("unknown unit `{unit}`; expected ms, s or m")),
    };
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|d| !d.is_zero())
        .ok_or("must be greater than zero".to_owned())
}

/// Parses `65536`, `64KB`, `10MB`, `1GiB`; units are powers of 1024.
pub(crate) fn bytes(text: &str) -> Result<usize, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: usize =
        text[..unit_at].trim().parse().map_err(|_| "expected a size such as 65536 or 10MB")?;
    let unit = match text[unit_at..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        unit => return Err(format!("unknown unit `{unit}`; expected KB, MB or GB")),
    };
    let size = number.checked_mul(unit).filter(|size| (1024..=1 << 31).contains(size));
    size.ok_or("expected from 1 KB to 2 GB".to_owned())
}

/// Parses a path into messages that starts with one of `roots`, or at any depth. A path with
/// another start would silently match nothing.
pub(crate) fn path_in(text: &str, roots: &[&str]) -> Result<JsonPath, String> {
    let path = path(text)?;
    let first = path.steps.first();
    let lost = first.is_some_and(|step| match &step.select {
        StepSelector::Key(key) => !step.anywhere && !roots.contains(&key.as_str()),
        StepSelector::Index(_) => !step.anywhere,
        StepSelector::All => false,
    });
    if lost {
        let roots: Vec<String> = roots.iter().map(|root| format!("`{root}`")).collect();
        return Err(format!("paths start at the message, with {} or `..`", roots.join(", ")));
    }
    Ok(path)
}

/// Parses a path into messages.
fn path(text: &str) -> Result<JsonPath, String> {
    JsonPath::read(text.trim())
        .map_err(|fault| format!("character {}: {}", fault.at + 1, fault.what))
}
