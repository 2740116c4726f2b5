//! What the name of an argument says about its values.
//!
//! Values alone do not distinguish free text from a choice: in one session a message may occur
//! once, and a branch name too. Names do, and they are stable across servers.

/// The words of a name, in lower case: `filePath`, `file_path` and `file-path` are `file`, `path`.
fn split_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut previous = ' ';
    for letter in name.chars() {
        let starts =
            !previous.is_alphanumeric() || letter.is_uppercase() && !previous.is_uppercase();
        if letter.is_alphanumeric() {
            if starts {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
        previous = letter;
    }
    words
}

/// A word without a plural `s`: `paths` is `path`.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem,
        _ => word,
    }
}

fn last_is(name: &str, list: &[&str]) -> bool {
    split_words(name).last().is_some_and(|word| list.contains(&singular(word)))
}

fn has_word_in(name: &str, list: &[&str]) -> bool {
    split_words(name)
        .iter()
        .any(|word| list.contains(&singular(word)) || list.contains(&word.as_str()))
}

/// A path in a file system.
pub(super) fn is_path(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "path",
        "file",
        "filename",
        "filepath",
        "dir",
        "directory",
        "folder",
        "cwd",
        "root",
        "workdir",
        "workspace",
        "destination",
        "dest",
        "src",
        "dst",
        "uri",
    ];
    // Both ends of a copy are paths, but only if they look like one: `source` can mean many things.
    last_is(name, WORDS)
}

/// An address on a network.
pub(super) fn is_url(name: &str) -> bool {
    last_is(
        name,
        &["url", "uri", "href", "link", "endpoint", "host", "hostname", "domain", "webhook"],
    )
}

/// Text that a person or a model composes.
pub(super) fn is_free_text(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "content",
        "text",
        "query",
        "message",
        "body",
        "description",
        "title",
        "prompt",
        "comment",
        "q",
        "search",
        "pattern",
        "note",
        "summary",
        "reason",
        "subject",
        "question",
        "answer",
        "input",
        "data",
        "value",
        "thought",
        "observation",
        "label",
        "keyword",
        "term",
        "name",
        "caption",
        "instruction",
        "markdown",
        "html",
        "patch",
        "diff",
        "replacement",
        "regex",
    ];
    last_is(name, WORDS) || is_program(name)
}

/// Text that is executed: as free as other text, and worth a warning.
pub(super) fn is_program(name: &str) -> bool {
    last_is(
        name,
        &[
            "command",
            "cmd",
            "script",
            "sql",
            "code",
            "expression",
            "shell",
            "statement",
            "program",
            "args",
            "argv",
        ],
    )
}

/// A switch that makes a call more dangerous when it is on.
pub(super) fn is_risky_switch(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "force",
        "recursive",
        "recurse",
        "hard",
        "delete",
        "remove",
        "prune",
        "purge",
        "overwrite",
        "destroy",
        "drop",
        "cascade",
        "clean",
        "wipe",
        "all",
        "yes",
        "sudo",
        "root",
        "privileged",
        "insecure",
        "unsafe",
        "dangerous",
        "dangerously",
        "danger",
        "skip",
        "bypass",
        "ignore",
        "disable",
        "no",
        "public",
        "mirror",
        "truncate",
        "permanent",
        "permanently",
        "admin",
        "override",
        "kill",
        "follow",
        "write",
        "allow",
        "trust",
        "publish",
        "amend",
        "reset",
    ];
    has_word_in(name, WORDS)
}

/// A switch that makes a call less dangerous when it is on.
pub(super) fn is_safety_switch(name: &str) -> bool {
    let name = split_words(name).concat();
    [
        "dryrun",
        "preview",
        "simulate",
        "readonly",
        "safe",
        "safemode",
        "validateonly",
        "checkonly",
        "noop",
        "sandbox",
        "draft",
    ]
    .contains(&name.as_str())
}

/// A number that is an amount of money or work.
pub(super) fn is_quantity(name: &str) -> bool {
    has_word_in(
        name,
        &[
            "amount", "price", "cost", "total", "budget", "quantity", "qty", "fee", "payment",
            "spend", "balance", "replica", "instance",
        ],
    )
}

/// One of a few values that a server knows.
pub(super) fn is_choice(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "mode",
        "type",
        "kind",
        "format",
        "branch",
        "ref",
        "repo",
        "repository",
        "owner",
        "org",
        "organization",
        "project",
        "environment",
        "env",
        "region",
        "zone",
        "status",
        "state",
        "level",
        "action",
        "operation",
        "op",
        "method",
        "database",
        "db",
        "table",
        "schema",
        "bucket",
        "channel",
        "currency",
        "unit",
        "language",
        "lang",
        "sort",
        "order",
        "direction",
        "encoding",
        "namespace",
        "cluster",
        "account",
        "remote",
        "visibility",
        "role",
        "profile",
        "target",
        "stage",
        "tenant",
        "workspace",
        "index",
        "collection",
        "topic",
        "queue",
    ];
    last_is(name, WORDS)
}

/// Whether an argument that was never given could change what a call reaches.
pub(super) fn is_reach(name: &str) -> bool {
    is_path(name)
        || is_url(name)
        || is_program(name)
        || has_word_in(name, &["env", "header", "proxy", "token", "user", "as"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_word_by_word_however_they_are_spelled() {
        for name in
            ["path", "filePath", "file_path", "source-dir", "paths", "DestPath", "inputFiles"]
        {
            assert!(is_path(name), "{name}");
        }
        for name in ["pathology", "profile", "filter", "xpath_expression"] {
            assert!(!is_path(name), "{name}");
        }
        assert!(is_risky_switch("forcePush") && is_risky_switch("no_verify"));
        assert!(!is_risky_switch("includeHidden") && is_safety_switch("dryRun"));
        assert!(is_free_text("newText") && !is_free_text("textual_id"));
    }
}
