//! Durations, counts and sizes as these reports show them.

/// `45s`, `2m 34s`, `4h 23m`.
pub(super) fn duration(ms: u64) -> String {
    let total_s = (ms + 500) / 1000;
    match (total_s / 3600, total_s / 60 % 60, total_s % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m {seconds}s"),
        (hours, minutes, _) => format!("{hours}h {minutes}m"),
    }
}

/// `1.2s`, and `2m 34s` above a minute.
pub(super) fn seconds(ms: u64) -> String {
    match ms {
        0..60_000 => format!("{:.1}s", ms as f64 / 1000.0),
        _ => duration(ms),
    }
}

/// `1,523`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `20.5%`.
pub(super) fn share(part: u64, whole: u64) -> String {
    format!("{:.1}%", part as f64 * 100.0 / whole.max(1) as f64)
}

/// `1 session`, `2 sessions`.
pub(crate) fn count(number: u64, name: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {name}{plural}", thousands(number))
}

/// `512 B`, `1.5 MB`.
pub(crate) fn bytes(number: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    if number < 1000 {
        return format!("{number} B");
    }
    let mut amount = number as f64 / 1000.0;
    let mut unit = 0;
    while amount >= 1000.0 && unit + 1 < units.len() {
        amount /= 1000.0;
        unit += 1;
    }
    format!("{amount:.1} {}", units[unit])
}
