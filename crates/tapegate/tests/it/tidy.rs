//! Project rules that the compiler does not check.

mod test_time;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates may depend on which. A new crate must be added here.
const MAY_USE: &[(&str, &[&str])] = &[
    ("tapegate-core", &[]),
    ("tapegate-yaml", &["tapegate-core"]),
    ("tapegate-cedar", &["tapegate-core"]),
    ("tapegate-shell", &[]),
    ("tapegate-policy", &["tapegate-core", "tapegate-yaml", "tapegate-cedar", "tapegate-shell"]),
    ("tapegate-scenario", &["tapegate-core", "tapegate-yaml"]),
    ("tapegate-agents", &["tapegate-core", "tapegate-yaml"]),
    ("tapegate-store", &["tapegate-core"]),
    ("tapegate-wire", &["tapegate-core"]),
    ("tapegate-bash", &["tapegate-core", "tapegate-yaml", "tapegate-policy", "tapegate-store"]),
    ("tapegate-hub", &["tapegate-core", "tapegate-policy", "tapegate-store", "tapegate-wire"]),
    (
        "tapegate-shim",
        &[
            "tapegate-core",
            "tapegate-yaml",
            "tapegate-policy",
            "tapegate-store",
            "tapegate-wire",
            "tapegate-hub",
        ],
    ),
    (
        "tapegate",
        &[
            "tapegate-agents",
            "tapegate-bash",
            "tapegate-core",
            "tapegate-yaml",
            "tapegate-policy",
            "tapegate-shell",
            "tapegate-scenario",
            "tapegate-store",
            "tapegate-wire",
            "tapegate-hub",
            "tapegate-shim",
        ],
    ),
];

/// Dependencies that a crate must not use.
const MAY_NOT_USE: &[(&str, &[&str])] = &[
    ("tapegate-core", &["tokio", "hyper", "rustix", "flate2"]),
    ("tapegate-yaml", &["tokio", "hyper", "rustix", "flate2"]),
    ("tapegate-cedar", &["tokio", "hyper", "rustix", "flate2"]),
    ("tapegate-shell", &["tokio", "hyper", "rustix", "flate2"]),
    ("tapegate-policy", &["tokio", "hyper", "rustix", "flate2"]),
    ("tapegate-scenario", &["tokio", "hyper", "rustix", "flate2"]),
    ("tapegate-agents", &["tokio", "hyper"]),
    ("tapegate-bash", &["tokio", "hyper"]),
    ("tapegate-store", &["tokio", "hyper"]),
];

const LINES_MAX: usize = 500;

#[test]
fn crates_depend_only_on_those_they_may_use() {
    let folders = folders(&root().join("crates"));
    for (name, _) in MAY_USE.iter().chain(MAY_NOT_USE) {
        assert!(folders.iter().any(|folder| folder.ends_with(name)), "{name} is not a crate");
    }
    for folder in folders {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap();
        assert!(
            manifest.contains(&format!("name = \"{name}\"\n")),
            "{name}: folder and crate differ"
        );
        let allowed = MAY_USE.iter().find(|(crate_name, _)| *crate_name == name);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("{name} is not in MAY_USE"));
        let forbidden = MAY_NOT_USE.iter().find(|(crate_name, _)| *crate_name == name);
        for used in dependencies(&manifest) {
            let own = used.starts_with("tapegate");
            assert!(!own || allowed.contains(&used.as_str()), "{name} may not use {used}");
            let banned = forbidden.is_some_and(|(_, names)| {
                names
                    .iter()
                    .any(|banned| used == *banned || used.starts_with(&format!("{banned}-")))
            });
            assert!(!banned, "{name} may not use {used}");
        }
    }
}

#[test]
fn no_file_is_long_unless_it_is_a_flat_list() {
    for (path, text) in sources() {
        let header: String = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let count = text.lines().count();
        assert!(
            count <= LINES_MAX || header.contains("flat list"),
            "{} has {count} lines",
            path.display()
        );
    }
}

#[test]
fn every_file_says_what_it_is_for() {
    for (path, text) in sources() {
        assert!(text.starts_with("//! "), "{} has no header", path.display());
    }
}

#[test]
fn nothing_is_left_to_do_in_a_comment() {
    // Assembled, so that this file does not match itself.
    let words = [["FIX", "ME"], ["TO", "DO"]].map(|word| word.concat());
    for (path, text) in sources() {
        for (line, found) in text.lines().enumerate() {
            let word = words.iter().find(|word| found.contains(word.as_str()));
            assert!(word.is_none(), "{}:{}: {found}", path.display(), line + 1);
        }
    }
}

#[test]
fn no_macro_prints() {
    let words = ["println!(", "print!(", "eprint", "dbg!("];
    code_without("", &words, &[]);
}

#[test]
fn what_decides_reads_no_clock_no_environment_and_no_file() {
    let words = ["SystemTime::", "Instant::", "env::var", "std::fs", "std::net", "std::process"];
    code_without("crates/tapegate-core/src", &words, &[]);
    code_without(
        "crates/tapegate-policy/src",
        &words,
        &[
            "crates/tapegate-policy/src/cases/tests.rs",
            "crates/tapegate-policy/src/user_question/tests.rs",
        ],
    );
    code_without("crates/tapegate-cedar/src", &words, &[]);
    code_without("crates/tapegate-shell/src", &words, &[]);
    code_without("crates/tapegate-yaml/src", &words, &[]);
    let tests = ["load/tests.rs", "shape/tests.rs"]
        .map(|name| format!("crates/tapegate-scenario/src/{name}"));
    let tests = [tests[0].as_str(), tests[1].as_str()];
    code_without("crates/tapegate-scenario/src", &words, &tests);
}

#[test]
fn only_the_ends_of_a_session_send_what_no_relay_has_permitted() {
    let wire = "crates/tapegate-wire/src";
    let ends = [
        "actor_host/outbox.rs",
        "actor_host/handler_calls.rs",
        "verifier_loop.rs",
        "lister_loop.rs",
    ]
    .map(|name| format!("{wire}/{name}"));
    let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
    code_without(wire, &["OriginatedBytes::from_endpoint("], &ends);
    let proxy = ["gated_request.rs", "redaction.rs", "reply.rs", "stream.rs"]
        .map(|name| format!("{wire}/http/proxy/{name}"));
    let proxy: Vec<&str> = proxy.iter().map(String::as_str).collect();
    code_without(wire, &["PlainBody::new("], &proxy);
}

#[test]
fn unsafe_code_is_in_one_place() {
    code_without("", &["unsafe ", "unsafe_code, "], &["crates/tapegate-wire/src/raw.rs"]);
}

/// Names that several types may have, because their module or trait tells them apart.
const SHARED_NAMES: &[&str] = &["Args", "Error", "Item", "Output", "Target"];

/// Names that say nothing about what a type is.
const VAGUE_NAMES: &[&str] = &[
    "Told", "Found", "Held", "Kept", "Said", "Sent", "Left", "Lost", "Met", "Cut", "Shown", "Seen",
    "Known", "Done", "Gone", "Made", "Put", "Read", "Built", "What", "Who", "Why", "How", "Where",
    "When", "Nobody", "Nothing", "Nowhere", "Along", "Beside", "Way", "Place", "Turn", "Open",
    "Fate",
];

/// Nouns that only look like participles.
const NOUNS: &[&str] = &["Finding"];

#[test]
fn a_type_name_is_a_noun_and_means_one_thing() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources() {
        for name in text.lines().filter_map(defined_type) {
            places.entry(name.to_owned()).or_default().push(path.display().to_string());
        }
    }
    assert!(places.len() > 1000, "{} types", places.len());
    for (name, files) in places {
        let is_participle = ["ed", "ing", "en"].iter().any(|end| name.ends_with(end))
            && name.matches(char::is_uppercase).count() == 1
            && !NOUNS.contains(&&*name);
        assert!(!is_participle && !VAGUE_NAMES.contains(&&*name), "{name} in {files:?}");
        let may_share = SHARED_NAMES.contains(&&*name);
        assert!(files.len() == 1 || may_share, "{name} is defined in {files:?}");
    }
}

/// The type that a line of code defines. An associated type is named by its trait.
fn defined_type(line: &str) -> Option<&str> {
    if line.starts_with(' ') && line.trim_start().starts_with("type ") {
        return None;
    }
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let line =
        ["struct ", "enum ", "trait ", "type "].iter().find_map(|it| line.strip_prefix(it))?;
    let end = line.find(|c: char| !c.is_alphanumeric()).unwrap_or(line.len());
    Some(&line[..end]).filter(|name| name.starts_with(char::is_uppercase))
}

#[test]
fn the_glossary_is_short() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, words) = text.split_once("## Words\n").unwrap();
    let count = words.split('·').count();
    assert!((10..=25).contains(&count), "{count} words");
    assert!(text.lines().count() < 150, "ARCHITECTURE.md is an overview");
}

#[test]
fn every_command_has_a_test_module_and_a_line_in_the_readme() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for name in commands() {
        let module = root().join(format!("crates/tapegate/tests/it/{name}.rs"));
        assert!(module.exists(), "`{name}` has no tests/it/{name}.rs");
        let row = format!("| `tapegate {name}`");
        assert!(readme.contains(&row), "README.md has no row that starts with {row}");
    }
}

#[test]
fn every_edge_case_on_the_list_has_a_test() {
    let list = fs::read_to_string(root().join("crates/tapegate/tests/edge-cases.txt")).unwrap();
    let all: String = sources().into_iter().map(|(_, text)| text).collect();
    for id in list.lines().filter(|line| line.starts_with("EC-")) {
        let name = id.to_lowercase().replace('-', "_");
        // A test may cover several of them.
        let names = all.lines().filter(|line| line.trim_start().starts_with("fn ec_"));
        let mut names = names.filter(|line| line.contains(&format!("{name}_")));
        assert!(names.next().is_some(), "{id} has no test");
    }
}

/// The commands, as the binary itself lists them.
pub(crate) fn commands() -> Vec<String> {
    let done = crate::support::tapegate().arg("--help").output().unwrap();
    let help = String::from_utf8(done.stdout).unwrap();
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list = list.take_while(|line| !line.trim().is_empty());
    let names = list.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Asserts that no line of code below `folder` contains one of `words`, except in the files named,
/// each of which must contain one: an exception that is no longer needed hides the next mistake.
#[track_caller]
fn code_without(folder: &str, words: &[&str], except: &[&str]) {
    for name in except {
        let text = fs::read_to_string(root().join(name)).unwrap_or_else(|_| panic!("no {name}"));
        assert!(words.iter().any(|word| text.contains(word)), "{name} needs no exception");
    }
    for (path, text) in sources() {
        let name = path.to_str().unwrap();
        if !name.starts_with(folder) || !name.contains("/src/") || except.contains(&name) {
            continue;
        }
        // Unit tests are at the end of a file and are exempt.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (line, found) in code.lines().enumerate() {
            let comment = found.trim_start().starts_with("//");
            let word = words.iter().find(|word| !comment && found.contains(**word));
            assert!(word.is_none(), "{name}:{}: {}", line + 1, found.trim());
        }
    }
}

/// The names in the dependency tables, without dev-dependencies.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut wanted = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            wanted = line == "[dependencies]" || line == "[build-dependencies]";
        } else if let (true, Some(end)) = (wanted, line.find(['.', ' ', '='])) {
            names.push(line[..end].to_owned());
        }
    }
    names
}

/// Every Rust file below `crates`, by its path from the root.
pub(crate) fn sources() -> Vec<(PathBuf, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut open = vec![root.join("crates")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(&root).unwrap().to_owned(), text));
            }
        }
    }
    assert!(found.len() > 20);
    found
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_owned()
}
