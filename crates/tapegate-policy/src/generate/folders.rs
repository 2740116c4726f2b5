//! Derives the permitted folders from the paths that were used.

use std::collections::BTreeSet;

/// Folders that hold much more than a single task needs. A path directly inside one of them is
/// listed by itself, and so is each folder below.
const BROAD: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/media",
    "/mnt",
    "/opt",
    "/private",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/sys",
    "/usr",
    "/usr/local",
    "/var",
    "/var/lib",
    "/Applications",
    "/Library",
    "/System",
    "/Users",
    "/Volumes",
    "/private/etc",
    "/private/var",
];
/// The maximum number of folders in a test.
const FOLDERS_MAX: usize = 12;

/// The fewest folders that contain all of these paths without being broad or the user's home;
/// `None` if a text is not an unambiguous path, if a broad folder was used itself, or if there are
/// too many.
pub(super) fn folders(paths: &BTreeSet<String>, home: Option<&str>) -> Option<Vec<String>> {
    let home = home.and_then(parts).unwrap_or_default();
    let mut all = Vec::new();
    for path in paths {
        all.push(parts(path)?);
    }
    let absolute = all.iter().filter(|parts| parts.first().is_some_and(|one| one == "/")).count();
    if absolute != 0 && absolute != all.len() || all.is_empty() {
        return None;
    }
    all.sort();
    let mut found = Vec::new();
    if !find_covering_folders(&all, &home, &mut found) {
        return None;
    }
    found.sort();
    found.dedup();
    (found.len() <= FOLDERS_MAX).then_some(found)
}

/// Whether a text can only be a path; used where the argument's name says nothing.
pub(super) fn looks_like_path(text: &str) -> bool {
    text.starts_with('/')
        && text.len() > 1
        && !text.starts_with("//")
        && !text.contains(char::is_whitespace)
}

/// The parts of a path, the root as `/`; `None` if it could lead elsewhere.
fn parts(path: &str) -> Option<Vec<String>> {
    let odd = |one: char| one.is_control() || "\\%~$`*?".contains(one);
    if path.is_empty() || path.contains(odd) || path.contains("://") {
        return None;
    }
    let mut parts: Vec<String> = Vec::new();
    if path.starts_with('/') {
        parts.push("/".to_owned());
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => return None,
            part => parts.push(part.to_owned()),
        }
    }
    Some(parts)
}

/// Collects the folders that contain `paths`, which are sorted; false if a broad folder was used
/// itself.
fn find_covering_folders(paths: &[Vec<String>], home: &[String], found: &mut Vec<String>) -> bool {
    let Some((first, last)) = paths.first().zip(paths.last()) else { return true };
    // In sorted order, the first and the last share the shortest prefix.
    let shared = first.iter().zip(last).take_while(|(one, two)| one == two).count();
    let shared = &first[..shared];
    if first == last {
        // A single path is listed by itself: even if it is in a folder, its neighbours were never
        // used.
        found.push(text(shared));
        return !is_broad(shared, home);
    }
    if !is_broad(shared, home) {
        found.push(text(shared));
        return true;
    }
    let mut rest = paths;
    while let Some(next) = rest.first().map(|path| path.get(shared.len())) {
        if next.is_none() {
            return false;
        }
        let end = rest.iter().take_while(|path| path.get(shared.len()) == next).count();
        if !find_covering_folders(&rest[..end], home, found) {
            return false;
        }
        rest = &rest[end..];
    }
    true
}

fn is_broad(folder: &[String], home: &[String]) -> bool {
    let text = text(folder);
    // A folder above the user's home contains it.
    if !folder.is_empty() && home.starts_with(folder) {
        return true;
    }
    let is_home = matches!(folder, [_, home, _] if home == "home" || home == "Users");
    is_home || BROAD.contains(&text.as_str())
}

fn text(parts: &[String]) -> String {
    match parts {
        [] => ".".to_owned(),
        [root, rest @ ..] if root == "/" => format!("/{}", rest.join("/")),
        parts => parts.join("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(paths: &[&str]) -> Option<String> {
        let paths = paths.iter().map(|path| (*path).to_owned()).collect();
        folders(&paths, Some("/users/me")).map(|found| found.join(" "))
    }

    #[test]
    fn paths_are_widened_to_their_common_folder() {
        let cases: &[(&[&str], Option<&str>)] = &[
            (&["/srv/a.txt"], Some("/srv/a.txt")),
            (&["/home/me/proj"], Some("/home/me/proj")),
            (&["/users/me/a/x", "/users/me/a/y"], Some("/users/me/a")),
            (&["/users/me/a", "/users/me/b/y"], Some("/users/me/a /users/me/b/y")),
            (&["/srv/a.txt", "/srv/b/c.txt"], Some("/srv")),
            (&["/srv/out", "/srv/out/1"], Some("/srv/out")),
            (&["/home/me/code/a", "/home/me/code/b/c"], Some("/home/me/code")),
            (&["/data"], Some("/data")),
            (&["src/a.rs", "src/b.rs"], Some("src")),
            (&["README.md"], Some("README.md")),
            (&["src/a.rs", "docs/b.md"], Some(".")),
        ];
        for (paths, expected) in cases {
            assert_eq!(of(paths).as_deref(), *expected, "{paths:?}");
        }
    }

    #[test]
    fn folders_that_hold_a_whole_system_or_a_home_are_not_opened() {
        assert_eq!(of(&["/etc/hosts"]).as_deref(), Some("/etc/hosts"));
        assert_eq!(of(&["/etc/hosts", "/srv/a"]).as_deref(), Some("/etc/hosts /srv/a"));
        assert_eq!(of(&["/home/me/.bashrc"]).as_deref(), Some("/home/me/.bashrc"));
        assert_eq!(
            of(&["/home/me/a/x", "/home/me/b/y"]).as_deref(),
            Some("/home/me/a/x /home/me/b/y")
        );
        assert_eq!(of(&["/var/x", "/var/y/z"]).as_deref(), Some("/var/x /var/y/z"));
        assert_eq!(of(&["/home/me"]), None);
        assert_eq!(of(&["/users/me"]), None);
        assert_eq!(of(&["/", "/srv/a"]), None);
    }

    #[test]
    fn texts_that_could_lead_elsewhere_are_not_paths() {
        for odd in
            ["/srv/../etc", "~/x", "/srv/%2e%2e", "a\\b", "", "https://x/y", "/srv/$HOME", "/a\n"]
        {
            assert_eq!(of(&[odd]), None, "{odd}");
        }
        assert_eq!(of(&["/srv/a", "b"]), None);
    }
}
