//! Parses sizes, durations and paths on the command line.

use std::time::Duration;

use tapegate_core::json::path::{JsonPath, StepSelector};
use tapegate_yaml::amount::{self, AmountError};

/// Parses `500ms`, `1s`, `2m`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = amount::split(text);
    let number: f64 = number.parse().map_err(|_| "expected a duration such as 500ms or 1s")?;
    let seconds = match unit {
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
    let size =
        amount::read(&text.to_ascii_lowercase(), amount::SIZES).map_err(|error| match error {
            AmountError::Number => "expected a size such as 65536 or 10MB".to_owned(),
            AmountError::Unit(unit) => format!("unknown unit `{unit}`; expected KB, MB or GB"),
            AmountError::TooLarge => RANGE.to_owned(),
        })?;
    let size = usize::try_from(size).ok().filter(|size| (1024..=1 << 31).contains(size));
    size.ok_or(RANGE.to_owned())
}

const RANGE: &str = "expected from 1 KB to 2 GB";

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
