//! A policy of which nothing was accepted.
//!
//! It is trusted as it is found, unless something else was accepted that governs without it: an
//! agent must not get out of an accepted policy by writing another one nearer, and the policy of a
//! project must not be passed over in silence. So it has to permit nothing more, or a person accepts
//! it; until then no session starts.

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
    /// Loads a policy of which nothing was accepted.
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

    /// What was accepted and governs as long as this file does not: a policy whose path leads here
    /// by a link now, and the one that is found where this one lies.
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

/// Where a policy is looked for if not in this file: in the folders above, and in the user's config
/// folder. A file that is not looked for is only used by those who name it, in the place of none.
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

/// Why a policy may not take the place of those that were accepted, if it may not.
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
            "`{path}` was never accepted, and may permit more than `{other}`, which was accepted and \
             governs without it: {why}"
        ))
    })
}

/// Warns that the policy in a file is not the one in force, if it is not: any text that it is made
/// of has changed, is gone or is new. A change that permits nothing more is taken at the next start.
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
