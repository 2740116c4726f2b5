//! Finding and loading the policy that a command is about.

use std::path::{Path, PathBuf};

use tapegate_policy::load;
use tapegate_policy::model::{Policy, Profile};
use tapegate_yaml::finding::{Finding, Severity};

use crate::disk::Disk;
use crate::exit::{Exit, Failure};
use crate::settings::{ProfileWord, Surroundings};
use crate::talk;
use crate::views::visible;

/// A policy, and what it was made from.
pub(super) struct Found {
    /// Its file, as it is told to people.
    pub(super) path: PathBuf,
    pub(super) policy: Policy,
}

/// The policy that was named, or else the nearest.
pub(super) fn nearest(named: Option<&Path>) -> anyhow::Result<Found> {
    let around = Surroundings::ours()?;
    let path = around.config(named)?.ok_or_else(|| {
        Failure::new(Exit::Invalid, "there is no tapegate.yaml here or in a folder above")
            .hint("name one by --config FILE, or write one by `tapegate init`")
    })?;
    Ok(read(shortened(path, &around.folder))?)
}

/// The policy in a file. Everything that is wrong with it is told.
pub(super) fn read(path: PathBuf) -> Result<Found, Failure> {
    let main = path.to_string_lossy();
    let loaded = load::load(&main, &Disk::default());
    let file = |finding: &Finding| {
        loaded.sources.get(usize::from(finding.spot.file)).map_or(&*main, String::as_str)
    };
    for finding in &loaded.findings {
        let line = told(file(finding), finding);
        match finding.severity {
            Severity::Error => talk::error(&line, None),
            Severity::Warning => talk::warn(&line),
        }
    }
    match loaded.policy {
        Some(policy) => Ok(Found { policy, path: path.clone() }),
        None => {
            let is_error = |finding: &&Finding| finding.severity == Severity::Error;
            let words = match loaded.findings.iter().filter(is_error).count() {
                1 => "1 error".to_owned(),
                errors => format!("{errors} errors"),
            };
            Err(Failure::new(Exit::Invalid, format!("`{main}` cannot be used: {words}")))
        }
    }
}

/// A finding with its place, on one line.
pub(super) fn told(file: &str, Finding { spot, path, words, .. }: &Finding) -> String {
    let place = if spot.line == 0 { String::new() } else { format!(":{}:{}", spot.line, spot.column) };
    let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
    format!("{file}{place}: {}", visible::inline(&format!("{path}{words}"), usize::MAX))
}

/// The profile that holds: the one that was named, the one of the environment, or the policy's own.
pub(super) fn profile(named: Option<ProfileWord>, policy: &Policy) -> anyhow::Result<Profile> {
    let named = Surroundings::ours()?.profile(named)?;
    Ok(named.or(policy.profile).unwrap_or_default())
}

/// The server that is meant: the one that was named, the only one there is, or any.
pub(super) fn server<'s>(named: Option<&'s str>, policy: &'s Policy) -> &'s str {
    named.unwrap_or_else(|| match policy.sources.as_slice() {
        [only] => &only.id,
        _ => "*",
    })
}

/// A path without the folder that we are in.
fn shortened(path: PathBuf, folder: &Path) -> PathBuf {
    path.strip_prefix(folder).map(Path::to_owned).unwrap_or(path)
}
