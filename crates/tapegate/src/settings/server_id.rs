//! A name for a server that was given none, made from its command line or URL.

use std::path::Path;

use crate::upstream::Upstream;

/// Programs that only start another one, which is named after them.
const STARTERS: [&str; 20] = [
    "npx", "bunx", "uvx", "pipx", "pnpm", "npm", "yarn", "bun", "uv", "node", "nodejs", "deno",
    "python", "python3", "ruby", "java", "env", "docker", "podman", "nice",
];
/// What such a program is told to do, which is no name either.
const VERBS: [&str; 4] = ["run", "exec", "dlx", "x"];
/// Flags of such programs that are followed by a value.
const WITH_VALUE: [&str; 14] = [
    "-e",
    "--env",
    "-v",
    "--volume",
    "--mount",
    "-p",
    "--publish",
    "--network",
    "--name",
    "--from",
    "--directory",
    "--with",
    "--python",
    "--import",
];

/// What a server goes by if nobody says: the package or program, or the host it is at. It is made of
/// letters, digits, `.`, `_` and `-`, as ids in a policy are.
pub(crate) fn server_id(upstream: &Upstream) -> String {
    let word = match upstream {
        Upstream::Command(argv) => program(argv),
        Upstream::Http(url) => host(url),
    };
    id_from(word).unwrap_or_else(|| "server".to_owned())
}

/// A word as an id in a policy, if anything is left of it.
pub(crate) fn id_from(word: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let id: String = word.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    let id = id.trim_matches(['.', '_', '-']);
    (!id.is_empty()).then(|| id.to_owned())
}

/// The word of a command line that says which server it is.
fn program(argv: &[String]) -> &str {
    let mut words = argv.iter().map(String::as_str);
    let first = words.next().unwrap_or_default();
    if !STARTERS.contains(&last(first)) {
        return stem(last(first));
    }
    while let Some(word) = words.next() {
        if word == "-m" {
            return stem(words.next().unwrap_or(word));
        }
        if WITH_VALUE.contains(&word) {
            words.next();
            continue;
        }
        let another = STARTERS.contains(&last(word)) || VERBS.contains(&word);
        if !another && !word.starts_with('-') && !word.contains('=') {
            return stem(last(package(word)));
        }
    }
    stem(last(first))
}

/// A package without its version: `@scope/name@1.2`, `name==1.2`, `image:tag`.
fn package(word: &str) -> &str {
    let word = word.split("==").next().unwrap_or(word);
    let at = word[1.min(word.len())..].find('@').map(|at| at + 1);
    let word = at.map_or(word, |at| &word[..at]);
    match word.rsplit_once(':') {
        Some((image, tag)) if !tag.contains('/') && !image.is_empty() => image,
        _ => word,
    }
}

/// The last part of a path or package.
fn last(word: &str) -> &str {
    word.trim_end_matches('/').rsplit('/').next().unwrap_or(word)
}

/// A file's name without what it ends in.
fn stem(word: &str) -> &str {
    let path = Path::new(word);
    let script = path.extension().is_some_and(|ending| {
        ["js", "mjs", "cjs", "ts", "py", "rb", "sh", "jar", "exe"].iter().any(|one| ending == *one)
    });
    let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| script);
    stem.unwrap_or(word)
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    authority.rsplit('@').next().unwrap_or(authority)
}
