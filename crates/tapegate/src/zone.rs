//! Local time, from `TZ` or the system's time zone file.
//!
//! The standard library has no time zones, and the C library's functions are not safe to call from
//! Rust, so the files (TZif, RFC 9636) are read here. If nothing can be read, local time is UTC.

mod posix;

use std::path::{Path, PathBuf};

use tapegate_core::time::{SubSecond, write_rfc3339};

use posix::ZoneRule;

/// Where time zone files are installed.
const FOLDERS: [&str; 3] = ["/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo"];
/// The largest time zone file that is read.
const FILE_BYTES_MAX: usize = 1 << 20;

/// The offsets of local time from UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TimeZone {
    /// The start of each offset and the offset itself, in seconds.
    changes: Vec<(i64, i32)>,
    /// The offset before the first change.
    before_s: i32,
    /// The rule after the last change.
    rule: Option<ZoneRule>,
}

impl TimeZone {
    /// The time zone of this process.
    pub(crate) fn system() -> Self {
        let named = std::env::var("TZ").ok();
        Self::from_name(named.as_deref()).unwrap_or_default()
    }

    fn from_name(name: Option<&str>) -> Option<Self> {
        let Some(name) = name else { return Self::from_file(Path::new("/etc/localtime")) };
        let name = name.strip_prefix(':').unwrap_or(name);
        if name.starts_with('/') {
            return Self::from_file(Path::new(name));
        }
        // TZ names a file below these folders, and nothing else.
        let inside = !name.is_empty() && !name.contains("..");
        let files = FOLDERS.iter().map(|folder| PathBuf::from(folder).join(name));
        let from_file = files.filter(|_| inside).find_map(|file| Self::from_file(&file));
        from_file.or_else(|| Some(Self { rule: Some(ZoneRule::parse(name)?), ..Self::default() }))
    }

    fn from_file(path: &Path) -> Option<Self> {
        let is_small =
            path.metadata().is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX as u64);
        let bytes = is_small.then(|| std::fs::read(path).ok()).flatten()?;
        Self::parse(&bytes)
    }

    /// Parses a TZif file.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let first = TzifCounts::read(bytes)?;
        // Later versions repeat everything with 64-bit times, which are the ones to use.
        if first.version < b'2' {
            return first.zone(bytes.get(44..)?, 4, None);
        }
        let second = bytes.get(44 + first.length(4)..)?;
        let counts = TzifCounts::read(second)?;
        let data = second.get(44..)?;
        let rule = data.get(counts.length(8)..)?;
        let rule = std::str::from_utf8(rule).ok()?.trim_matches('\n');
        counts.zone(data, 8, ZoneRule::parse(rule))
    }

    /// The offset at a point in time, in seconds.
    fn offset_s(&self, at_s: i64) -> i32 {
        let passed = self.changes.partition_point(|(from, _)| *from <= at_s);
        match &self.rule {
            // The file lists changes only up to some year; the rule covers the time after.
            Some(rule) if passed == self.changes.len() => rule.offset_s(at_s),
            _ => passed.checked_sub(1).map_or(self.before_s, |last| self.changes[last].1),
        }
    }

    /// A time as local time, without its offset: `2026-03-20T14:22:11.804`.
    pub(crate) fn local(&self, at_us: i64) -> String {
        let shifted = at_us + i64::from(self.offset_s(at_us.div_euclid(1_000_000))) * 1_000_000;
        let mut out = Vec::new();
        write_rfc3339(&mut out, shifted, SubSecond::Millis);
        out.pop();
        String::from_utf8(out).unwrap_or_default()
    }

    /// The offset at a point in time: `UTC+01:00`, or `UTC`.
    pub(crate) fn offset(&self, at_us: i64) -> String {
        let minutes = self.offset_s(at_us.div_euclid(1_000_000)) / 60;
        let sign = if minutes < 0 { '-' } else { '+' };
        match minutes.abs() {
            0 => "UTC".to_owned(),
            minutes => format!("UTC{sign}{:02}:{:02}", minutes / 60, minutes % 60),
        }
    }
}

/// The number of items in each part of a TZif block.
struct TzifCounts {
    version: u8,
    /// Two kinds of indicators, leap seconds, changes, types, characters.
    counts: [usize; 6],
}

impl TzifCounts {
    fn read(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(b"TZif") {
            return None;
        }
        let mut counts = [0; 6];
        for (at, count) in counts.iter_mut().enumerate() {
            let number = bytes.get(20 + at * 4..24 + at * 4)?;
            *count = u32::from_be_bytes(number.try_into().ok()?) as usize;
            if *count > FILE_BYTES_MAX {
                return None;
            }
        }
        Some(Self { version: *bytes.get(4)?, counts })
    }

    /// The length of the block, with timestamps of this size.
    fn length(&self, size: usize) -> usize {
        let [utc, standard, leaps, changes, types, letters] = self.counts;
        changes * (size + 1) + types * 6 + letters + leaps * (size + 4) + standard + utc
    }

    fn zone(&self, data: &[u8], size: usize, rule: Option<ZoneRule>) -> Option<TimeZone> {
        let [_, _, _, changes, types, _] = self.counts;
        let kinds = data.get(changes * (size + 1)..)?;
        let offset = |kind: usize| -> Option<i32> {
            let bytes = kinds.get(kind * 6..kind * 6 + 4).filter(|_| kind < types)?;
            Some(i32::from_be_bytes(bytes.try_into().ok()?))
        };
        let moment = |at: usize| -> Option<i64> {
            let bytes = data.get(at * size..(at + 1) * size)?;
            Some(match size {
                4 => i64::from(i32::from_be_bytes(bytes.try_into().ok()?)),
                _ => i64::from_be_bytes(bytes.try_into().ok()?),
            })
        };
        let change = |at: usize| {
            let kind = usize::from(*data.get(changes * size + at)?);
            Some((moment(at)?, offset(kind)?))
        };
        let changes = (0..changes).map(change).collect::<Option<Vec<_>>>()?;
        Some(TimeZone { changes, before_s: offset(0)?, rule })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMMER_US: i64 = 1_783_000_000_000_000;
    const WINTER_US: i64 = 1_774_016_531_804_012;

    #[test]
    fn rules_and_files_give_local_time() {
        for name in ["CET-1CEST,M3.5.0,M10.5.0/3", "Europe/Berlin"] {
            let Some(zone) = TimeZone::from_name(Some(name)) else {
                // Not every machine has the files.
                assert_eq!(name, "Europe/Berlin");
                continue;
            };
            assert_eq!(zone.local(WINTER_US), "2026-03-20T15:22:11.804", "{name}");
            assert_eq!(zone.offset(WINTER_US), "UTC+01:00");
            assert_eq!(zone.offset(SUMMER_US), "UTC+02:00");
        }
        let utc = TimeZone::from_name(Some("UTC0")).unwrap();
        assert_eq!(
            (utc.local(WINTER_US), utc.offset(0)),
            ("2026-03-20T14:22:11.804".into(), "UTC".into())
        );
        let india = TimeZone::from_name(Some("<+0530>-5:30")).unwrap();
        assert_eq!(india.local(WINTER_US), "2026-03-20T19:52:11.804");
        assert_eq!(TimeZone::from_name(Some("../../etc/passwd")), None);
    }

    #[test]
    fn a_file_of_either_version_is_read_and_a_broken_one_is_none() {
        let block = |size: usize, version: u8| {
            let mut out = b"TZif".to_vec();
            out.push(version);
            out.extend([0; 15]);
            for count in [0u32, 0, 0, 1, 2, 4] {
                out.extend(count.to_be_bytes());
            }
            let moment = 1_000i64.to_be_bytes();
            out.extend(&moment[8 - size..]);
            out.push(1);
            for offset in [0i32, 3600] {
                out.extend(offset.to_be_bytes());
                out.extend([0, 0]);
            }
            out.extend(b"abc\0");
            out
        };
        let old = TimeZone::parse(&block(4, 0)).unwrap();
        assert_eq!((old.offset_s(999), old.offset_s(1000)), (0, 3600));
        let new = [block(4, b'2'), block(8, b'2'), b"\nX-2\n".to_vec()].concat();
        let zone = TimeZone::parse(&new).unwrap();
        assert_eq!((zone.offset_s(999), zone.offset_s(1000)), (0, 7200));
        for length in 0..new.len() - 6 {
            let cut = TimeZone::parse(&new[..length]);
            assert!(cut.is_none_or(|zone| zone.rule.is_none()), "{length}");
        }
    }
}
