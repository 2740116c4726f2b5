//! Loads a policy that was never accepted.
//!
//! It is trusted on first use, unless an accepted policy would be in force without it: an agent
//! must not escape an accepted policy by writing another one nearer, and a project's policy must
//! not be ignored silently. So it must permit nothing more, or a person must accept it; until then
//! no session starts.

use std::collections::BTreeSet;
use std::path::Path;

use tapegate_policy::tighten::MayLoosen;
use tapegate_store::accepted::{Acceptance, AcceptedPolicy, PolicyPaths};

use super::accepting::paths;
use super::{Governing, LoadedTexts, Standing, Texts, Trust, compare, is_taken_unasked, read_file};
use crate::called;
use crate::settings::Surroundings;
use crate::talk;

impl Trust {
    /// Loads a policy that was never accepted.
    pub(super) fn first_use(&self, path: &Path, file: LoadedTexts) -> Governing {
        let others = match self.replaced_by(path) {
            Ok(others) => others,
            Err(why) => return file.refused(why),
        };
        let is_gone = file.main_missing && !others.is_empty();
        if file.found.rule.is_none() && !is_gone {
            return file.governing(Standing::Unloadable);
        }
        if let Some(fault) = fault(path, &file.by_name, file.main_missing, &others) {
            return file.never_accepted(fault);
        }
        let standing = match others.into_iter().next_back() {
            None => Standing::Adopted(Acceptance::FirstUse),
            Some(other) => Standing::AdoptedInsteadOf(other.path),
        };
        self.adopt(path, file, standing, None)
    }

    /// The accepted policies that are in force as long as this file is not: those whose path now
    /// leads here through a link, and the one that would be found from this file's location.
    pub(crate) fn replaced_by(&self, path: &Path) -> Result<Vec<AcceptedPolicy>, String> {
        let (paths, known) = (paths(path), self.known());
        let mut others = self.leading_here(&paths, &known)?;
        for place in places_after(&paths) {
            let place = super::accepting::paths(&place);
            if let Some(other) = self.accepted_among(&place, &known)? {
                others.push(other);
                break;
            }
        }
        Ok(others)
    }
}

/// Where a policy is looked for besides this file: in the parent folders, and in the user's config
/// folder. A file that is not looked for is used only if it is named, and replaces no policy.
fn places_after(policy: &PolicyPaths) -> Vec<std::path::PathBuf> {
    let (Ok(around), Some(folder)) = (Surroundings::ours(), policy.real.parent()) else {
        return Vec::new();
    };
    let around = Surroundings { folder: folder.to_owned(), ..around };
    let is_it = |place: &Path| paths(place).overlap(policy);
    if around.user_config().is_some_and(|user_wide| is_it(&user_wide)) {
        return Vec::new();
    }
    let mut places = around.config_places().into_iter();
    match places.any(|place| is_it(&place)) {
        true => places.collect(),
        false => Vec::new(),
    }
}

/// Why a policy must not replace the accepted ones, if so.
fn fault(
    path: &Path,
    texts: &Texts,
    is_missing: bool,
    others: &[AcceptedPolicy],
) -> Option<String> {
    let why = |other: &AcceptedPolicy| match is_missing {
        true => Some("the file is gone".to_owned()),
        false if other.texts == *texts => None,
        false => {
            let compared = compare((&other.path, &other.texts), (path, texts));
            compared.err().map(|MayLoosen(why)| why)
        }
    };
    others.iter().find_map(|other| {
        let (why, path, other) = (why(other)?, path.display(), other.path.display());
        Some(format!(
            "`{path}` was never accepted, and may permit more than `{other}`, the accepted policy \
             that it would replace: {why}"
        ))
    })
}

/// Warns if the policy in a file is not the one in force: one of its texts was changed, removed or
/// added. A change that permits nothing more is accepted at the next start.
pub(crate) fn warn_if_not_in_force(path: &Path) {
    let trust = Trust::new();
    let Ok(Some(accepted)) = trust.accepted(path) else {
        let Ok(others) = trust.replaced_by(path) else { return };
        if others.is_empty() {
            return;
        }
        let (found, texts) = read_file(path, None);
        let fault = found.rule.and_then(|_| fault(path, &texts, false, &others));
        if let Some(fault) = fault {
            talk::warn(&format!(
                "{fault}; no session starts here until a person runs `{}`",
                called::command(format!("policy accept {}", path.display()))
            ));
        }
        return;
    };
    let (found, texts) = read_file(path, None);
    let is_same = |name: &&String| accepted.texts.get(*name) == texts.get(*name);
    let names: BTreeSet<&String> = accepted.texts.keys().chain(texts.keys()).collect();
    let changed: Vec<String> =
        names.into_iter().filter(|name| !is_same(name)).map(|name| format!("`{name}`")).collect();
    let is_taken = || found.rule.is_some() && is_taken_unasked(path, &accepted.texts, &texts);
    if changed.is_empty() || is_taken() {
        return;
    }
    let (path, have) = (path.display(), if changed.len() == 1 { "has" } else { "have" });
    talk::warn(&format!(
        "`{path}` is not the policy in force: {} {have} changed since it was accepted; `{}` puts it \
         in force",
        changed.join(", "),
        called::command(format!("policy accept {path}"))
    ));
}
