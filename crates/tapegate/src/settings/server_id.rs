//! Derives an id for a server from its command line or URL, if none was given.
//!
//! Two servers must not get the same id by accident, because policies and pins refer to it. So it
//! is made from the word that identifies the server: the package, image, module or script, and not
//! the runner, the folder of all packages, `index.js`, or a version.

mod runners;

use tapegate_agents::server_id::id_from;

use crate::upstream::UpstreamTarget;
use runners::{NAMING, is_runner, takes_value};

/// File and folder names that many servers share.
const GENERIC: [&str; 40] = [
    "Cargo.toml",
    "Main",
    "index",
    "main",
    "server",
    "cli",
    "app",
    "start",
    "run",
    "stdio",
    "mcp",
    "mod",
    "__main__",
    "__init__",
    "dist",
    "build",
    "src",
    "lib",
    "bin",
    "out",
    "target",
    "release",
    "debug",
    "js",
    "cjs",
    "esm",
    "scripts",
    "cmd",
    "node_modules",
    ".bin",
    "site-packages",
    "venv",
    ".venv",
    "Scripts",
    "package",
    "current",
    "latest",
    ".",
    "..",
    "~",
];
/// File name extensions of scripts and programs.
const ENDINGS: [&str; 18] = [
    ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".py", ".pyz", ".rb", ".php", ".sh", ".jar",
    ".dll", ".exe", ".cmd", ".bat", ".csproj", ".fsproj",
];
/// Subcommands of runners, which are not names either.
const VERBS: [&str; 9] = ["run", "exec", "dlx", "x", "tool", "compose", "dev", "start", "--"];
/// How deeply command lines may be nested.
const DEPTH_MAX: usize = 4;

/// The default id of a server: its package or program, or its host. It consists of letters, digits,
/// `.`, `_` and `-`, like the ids in a policy.
pub(crate) fn server_id(upstream: &UpstreamTarget) -> String {
    let word = match upstream {
        UpstreamTarget::Command(argv) => {
            let words: Vec<&str> = argv.iter().map(String::as_str).collect();
            program(&words, 0)
        }
        UpstreamTarget::Http(url) => host(url).to_owned(),
    };
    id_from(&word).unwrap_or_else(|| "server".to_owned())
}

/// The word of a command line that identifies the server.
fn program(argv: &[&str], depth: usize) -> String {
    let Some((&first, rest)) = argv.split_first() else { return String::new() };
    let runner = stem(last(first)).to_ascii_lowercase();
    if !is_runner(&runner) {
        return distinctive_part(first, None);
    }
    argument(&runner, rest, depth).unwrap_or_else(|| stem(last(first)).to_owned())
}

/// The argument of a runner that names what it runs.
fn argument(runner: &str, words: &[&str], depth: usize) -> Option<String> {
    let mut folder = None;
    let mut at = 0;
    while let Some(&word) = words.get(at) {
        at += 1;
        let (flag, attached) = match word.split_once('=') {
            Some((flag, value)) if word.starts_with("--") => (flag, Some(value)),
            _ => (word, None),
        };
        let value = attached.or_else(|| words.get(at).copied());
        let is_command = flag == "-c" && matches!(runner, "sh" | "bash" | "zsh" | "dash");
        if is_command && depth < DEPTH_MAX {
            return value.and_then(|script| server_in_script(script, depth));
        }
        match (runner.starts_with("py"), flag) {
            (true, "-m") => return value.map(module),
            // The next word is a program text, not a name.
            (true, "-c") => return None,
            _ => {}
        }
        let names = NAMING.contains(&(runner, flag));
        if names || takes_value(runner, flag) {
            at += usize::from(attached.is_none());
            let is_folder = ["--directory", "--project", "--prefix", "-C", "--dir", "--cwd"];
            match value {
                Some(value) if names => return Some(distinctive_part(value, folder)),
                Some(value) if is_folder.contains(&flag) => folder = Some(value),
                _ => {}
            }
            continue;
        }
        let switch = word.starts_with('-') || word.starts_with('/') && word.len() == 2;
        let setting =
            word.contains('=') && !word.contains("==") && !word.contains(['/', '<', '>', '~', '@']);
        if switch || setting || VERBS.contains(&word) || word.parse::<f64>().is_ok() {
            continue;
        }
        let name = stem(last(package(word))).to_ascii_lowercase();
        if is_runner(&name) && depth < DEPTH_MAX {
            // `env npx …`, or an image that contains only the runner.
            let inner = argument(&name, &words[at..], depth + 1);
            return inner.or(Some(name));
        }
        return Some(match runner {
            "java" => module(word),
            _ => distinctive_part(word, folder),
        });
    }
    folder
        .map(|folder| distinctive_part(folder, None))
        .filter(|_| matches!(runner, "cargo" | "uv" | "dotnet"))
}

/// The identifying word of a shell command, from its last simple command.
fn server_in_script(script: &str, depth: usize) -> Option<String> {
    let last = script.split(['&', ';', '|', '\n']).map(str::trim).rfind(|part| !part.is_empty())?;
    let words = last.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
    let words: Vec<&str> = words
        .skip_while(|word| *word == "exec" || word.contains('=') && !word.starts_with('-'))
        .collect();
    (!words.is_empty()).then(|| program(&words, depth + 1))
}

/// The identifying part of a path, package or image. `folder` is the base of a relative path.
fn distinctive_part(word: &str, folder: Option<&str>) -> String {
    let word = package(word);
    let parts: Vec<&str> = split(word).collect();
    // The package comes right after the last folder of packages.
    let holder = |part: &&str| matches!(*part, "node_modules" | "site-packages" | "dist-packages");
    if let Some(at) = parts.iter().rposition(holder) {
        let inside: Vec<&str> =
            parts[at + 1..].iter().copied().filter(|part| *part != ".bin").collect();
        let name = inside.iter().find(|part| !part.starts_with('@'));
        if let Some(name) = name {
            return unversioned(stem(package(name))).to_owned();
        }
    }
    let folders = folder.map(split).into_iter().flatten().chain(parts.iter().copied());
    let folders: Vec<&str> = folders.collect();
    let names = folders.iter().rev().map(|part| unversioned(stem(package(part))));
    let named = names.clone().find(|name| !name.is_empty() && !GENERIC.contains(name));
    named.or_else(|| names.clone().next()).unwrap_or(word).to_owned()
}

/// A module without its generic parts: `weather.server` becomes `weather`.
fn module(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let telling =
        parts.iter().rposition(|part| !GENERIC.contains(part)).map_or(parts.len(), |at| at + 1);
    parts[..telling].join(".")
}

/// A package without its version: `@scope/name@1.2`, `name[extra]==1.2`, `npm:name`, `image:tag`,
/// `git+https://host/owner/name.git@v1`.
fn package(word: &str) -> &str {
    let word = ["npm:", "jsr:", "github:", "git+"]
        .iter()
        .fold(word, |word, start| word.strip_prefix(start).unwrap_or(word));
    let word = word.split(['[', '<', '>', '~', '#']).next().unwrap_or(word);
    let word = word.split("==").next().unwrap_or(word);
    // An `@` at the start belongs to a scope, and one before a host to a user.
    let after = word.find("://").map_or(1.min(word.len()), |at| at + 3);
    let at = word.char_indices().skip_while(|(at, _)| *at < after).filter(|(_, c)| *c == '@');
    let at = at.map(|(at, _)| at).last();
    let word = at.filter(|at| !word[*at..].contains(['/', '\\'])).map_or(word, |at| &word[..at]);
    let word = word.strip_suffix(".git").unwrap_or(word);
    match word.rsplit_once(':') {
        Some((image, tag)) if !tag.contains(['/', '\\']) && image.len() > 1 => image,
        _ => word,
    }
}

/// The components of a path of any platform, or of a package.
fn split(word: &str) -> impl DoubleEndedIterator<Item = &str> + Clone {
    let word = word.split_once("://").map_or(word, |(_, rest)| rest);
    word.split(['/', '\\']).filter(|part| !part.is_empty() && !part.ends_with(':'))
}

/// The last component of a path or package.
fn last(word: &str) -> &str {
    split(word).next_back().unwrap_or(word)
}

/// A file name without its extension.
fn stem(word: &str) -> &str {
    let ending = ENDINGS.iter().find(|ending| word.len() > ending.len() && word.ends_with(*ending));
    ending.map_or(word, |ending| &word[..word.len() - ending.len()])
}

/// A name without a trailing version: `weather-1.2.3`, `weather_v2.0`.
fn unversioned(name: &str) -> &str {
    let is_version = |tail: &str| {
        let tail = tail.strip_prefix(['v', 'V']).unwrap_or(tail);
        let number = tail.split('-').next().unwrap_or(tail);
        number.contains('.') && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let places = name.match_indices(['-', '_']).map(|(at, _)| at);
    let mut versions = places.filter(|at| *at > 0 && is_version(&name[at + 1..]));
    versions.next().map_or(name, |at| &name[..at])
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}
