//! Which environment variables are recorded.
//!
//! Only those that the list names, and never those whose names say that they hold a secret.

use std::ffi::OsString;

use serde_json::{Map, Value};

/// Ends of names that are never recorded, even if they are listed.
const SECRET_ENDS: [&str; 4] = ["_KEY", "_SECRET", "_TOKEN", "_PASSWORD"];
/// Beginnings of names that are recorded only if they are listed by their full name.
const SENSITIVE_STARTS: [&str; 3] = ["AWS_", "GITHUB_", "OPENAI_"];

/// The variables to record.
pub fn capture(env: &[(OsString, OsString)], allowlist: &[String]) -> Map<String, Value> {
    let mut captured = Map::new();
    for (name, value) in env {
        let Some(name) = name.to_str().filter(|name| is_captured(name, allowlist)) else {
            continue;
        };
        captured.insert(name.to_owned(), value.to_string_lossy().into_owned().into());
    }
    // The order of an environment is arbitrary; equal environments should be equal texts.
    captured.sort_keys();
    captured
}

fn is_captured(name: &str, allowlist: &[String]) -> bool {
    let upper = name.to_ascii_uppercase();
    // Before the list: a name that was listed by mistake must not leak a secret either.
    if SECRET_ENDS.iter().any(|end| upper.ends_with(end) || upper == end[1..]) {
        return false;
    }
    let is_sensitive = SENSITIVE_STARTS.iter().any(|start| upper.starts_with(start));
    allowlist.iter().any(|listed| match listed.strip_suffix('*') {
        Some(start) => !is_sensitive && name.starts_with(start),
        None => listed == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_listed_and_not_secret_is_captured() {
        let names = [
            "PATH",
            "MY_SECRET",
            "API_KEY",
            "x_token",
            "DB_PASSWORD",
            "TOKEN",
            "AWS_REGION",
            "AWS_PROFILE",
            "GITHUB_SHA",
            "NODE_ENV",
            "NODE_KEY",
            "OTHER",
        ];
        let env: Vec<_> = names.iter().map(|name| ((*name).into(), "v".into())).collect();
        let list = [
            "PATH",
            "MY_SECRET",
            "API_KEY",
            "x_token",
            "DB_PASSWORD",
            "TOKEN",
            "AWS_REGION",
            "AWS_*",
            "GITHUB_*",
            "NODE_*",
            "*",
        ]
        .map(str::to_owned);
        let all: Vec<_> = capture(&env, &list).keys().cloned().collect();
        assert_eq!(all, ["AWS_REGION", "NODE_ENV", "OTHER", "PATH"]);
        let some: Vec<_> = capture(&env, &list[..1]).keys().cloned().collect();
        assert_eq!(some, ["PATH"]);
    }
}
