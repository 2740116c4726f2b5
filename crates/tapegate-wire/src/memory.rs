//! Releases memory that is needed only once.
//!
//! Parsing and validating Cedar policies touches megabytes of code and tables that evaluation never
//! needs. They stay resident until the kernel runs short of memory, in every shim. Unmodified pages
//! of the program's file can be released at any time: if needed, they are read again from the page
//! cache. The kernel maps pages around each one that is used, so traffic brings back many that are
//! not needed.

use std::fs;
use std::ops::Range;

use crate::raw;

/// Releases the resident pages of the program's code and constants. Does nothing where the kernel
/// does not report which these are.
pub fn release_code() {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = fs::read_to_string("/proc/self/smaps") else { return };
    for range in unmodified_mappings(&maps, &program.to_string_lossy()) {
        raw::release_pages(range);
    }
}

/// Releases the program's code and constants if more than `kb_max` of files is resident.
pub fn release_code_above(kb_max: u64) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if resident_file_kb(&status).is_some_and(|kb| kb > kb_max) {
        release_code();
    }
}

/// How much file-backed memory is resident, from a process's status.
fn resident_file_kb(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("RssFile:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The read-only mappings of a file without modified pages.
fn unmodified_mappings(maps: &str, file: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut candidate = None;
    for line in maps.lines() {
        if let Some(range) = mapping(line) {
            candidate = is_constant(line, file).then_some(range);
        } else if line.starts_with("Anonymous:") {
            // Relocated constants are mapped from the file too, but differ from its contents.
            let is_file_s = line.split_whitespace().nth(1) == Some("0");
            found.extend(candidate.take().filter(|_| is_file_s));
        }
    }
    found
}

/// The address range at the start of a mapping's first line.
fn mapping(line: &str) -> Option<Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let address = |text: &str| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

/// Whether the first line of a mapping describes code or constants of `file`.
fn is_constant(line: &str, file: &str) -> bool {
    let mut words = line.split_ascii_whitespace();
    let mode = words.nth(1).unwrap_or_default();
    let path = line.find('/').map(|at| &line[at..]);
    mode.starts_with("r-") && mode.ends_with('p') && path == Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_as_the_file_has_it_is_given_back() {
        let maps = "\
1000-2000 r--p 00000000 fe:00 7 /bin/x y
Rss:                   4 kB
Anonymous:             0 kB
2000-5000 r-xp 00001000 fe:00 7                          /bin/x y
Anonymous:             0 kB
5000-6000 r--p 00004000 fe:00 7                          /bin/x y
Anonymous:             4 kB
6000-7000 rw-p 00005000 fe:00 7                          /bin/x y
Anonymous:             0 kB
7000-8000 r-xp 00000000 fe:00 9                          /lib/libc.so.6
Anonymous:             0 kB
8000-9000 rw-p 00000000 00:00 0                          [heap]
Anonymous:             4 kB
";
        assert_eq!(unmodified_mappings(maps, "/bin/x y"), [0x1000..0x2000, 0x2000..0x5000]);
        assert_eq!(unmodified_mappings("", "/bin/x"), []);
        assert_eq!(unmodified_mappings("no maps\nAnonymous: 0 kB\n", "/bin/x"), []);
    }

    #[test]
    fn how_much_of_files_is_resident_is_read_from_the_status() {
        let status = "VmRSS:\t   17000 kB\nRssAnon:\t    1700 kB\nRssFile:\t   15300 kB\n";
        assert_eq!(resident_file_kb(status), Some(15_300));
        assert_eq!(resident_file_kb("VmRSS:\t 1 kB\n"), None);
        assert_eq!(resident_file_kb("RssFile:\n"), None);
    }

    #[test]
    fn a_program_gives_back_pages_and_runs_on_without_them() {
        let resident =
            || resident_file_kb(&fs::read_to_string("/proc/self/status").unwrap_or_default());
        let before = resident();
        release_code_above(u64::MAX);
        assert!(resident() >= before, "nothing is given back below the limit");
        let before = resident();
        release_code_above(0);
        assert!(before.is_none() || resident() < before, "{before:?}");
    }
}
