//! Loads a policy that was never accepted.
//!
//! It is trusted on first use, unless an accepted policy would be in force without it: an agent
//! must not escape an accepted policy by writing another one nearer, and a project's policy must
//! not be ignored silently. So it must permit nothing more, or a person must accept it; until then
//! no session starts.

use std::collections::BTreeSet;
use std::path::Path;

use tapegate_policy::tighten::LooseningError;
use tapegate_store::accepted_policies::{Acceptance, AcceptedPolicy, PolicyPaths};

use super::acceptance::paths;
use super::{
    LoadedTexts, PolicyTexts, PolicyTrust, TrustStatus, TrustedPolicy, compare,
    is_accepted_automatically, read_file,
};
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;

impl PolicyTrust {
    /// Loads a policy that was never accepted.
    pub(super) fn load_first_use(&self, path: &Path, file: LoadedTexts) -> TrustedPolicy {
        let others = match self.policies_replaced_by(path) {
            Ok(others) => others,
            Err(reason) => return file.into_refused(reason),
        };
        let is_gone = file.main_missing && !others.is_empty();
        if file.policy_load.active_policy.is_none() && !is_gone {
            return file.into_governing(TrustStatus::Unloadable);
        }
        if let Some(fault) = replacement_fault(path, &file.by_name, file.main_missing, &others) {
            return file.into_unaccepted(fault);
        }
        let standing = match others.into_iter().next_back() {
            None => TrustStatus::Adopted(Acceptance::FirstUse),
            Some(other) => TrustStatus::AdoptedInsteadOf(other.path),
        };
        self.accept_texts(path, file, standing, None)
    }

    /// The accepted policies that are in force as long as this file is not: those whose path now
    /// leads here through a link, and the one that would be found from this file's location.
    pub(crate) fn policies_replaced_by(&self, path: &Path) -> Result<Vec<AcceptedPolicy>, String> {
        let (paths, known) = (paths(path), self.known_paths());
        let mut others = self.accepted_by_link(&paths, &known)?;
        for place in later_locations(&paths) {
            let place = super::acceptance::paths(&place);
            if let Some(other) = self.find_accepted(&place, &known)? {
                others.push(other);
                break;
            }
        }
        Ok(others)
    }
}

/// Where a policy is looked for besides this file: in the parent folders, and in the user's config
/// folder. A file that is not looked for is used only if it is named, and replaces no policy.
fn later_locations(policy: &PolicyPaths) -> Vec<std::path::PathBuf> {
    let (Ok(search), Some(folder)) = (SearchContext::current(), policy.real.parent()) else {
        return Vec::new();
    };
    let search = SearchContext { folder: folder.to_owned(), ..search };
    let is_it = |place: &Path| paths(place).overlap(policy);
    // The search ends with the user-wide policy, so it replaces none.
    if search.user_config().is_some_and(|user_wide| is_it(&user_wide)) {
        return Vec::new();
    }
    let mut places = search.config_places().into_iter();
    match places.any(|place| is_it(&place)) {
        true => places.collect(),
        false => Vec::new(),
    }
}

/// Why a policy must not replace the accepted ones, if so.
fn replacement_fault(
    path: &Path,
    texts: &PolicyTexts,
    is_missing: bool,
    others: &[AcceptedPolicy],
) -> Option<String> {
    let reason = |other: &AcceptedPolicy| match is_missing {
        true => Some("the file is gone".to_owned()),
        false if other.texts == *texts => None,
        false => {
            let compared = compare((&other.path, &other.texts), (path, texts));
            compared.err().map(|LooseningError(reason)| reason)
        }
    };
    others.iter().find_map(|other| {
        let (reason, path, other) = (reason(other)?, path.display(), other.path.display());
        Some(format!(
            "`{path}` was never accepted, and may permit more than `{other}`, the accepted policy \
             that it would replace: {reason}"
        ))
    })
}

/// A policy file that is not in force.
pub(crate) struct PendingFile {
    /// The accepted policy that is in force; without one, no session starts.
    pub(crate) in_force: Option<AcceptedPolicy>,
    /// The warning for the user.
    warning: String,
}

/// Warns if the policy in a file is not the one in force.
pub(crate) fn warn_if_not_in_force(path: &Path) {
    pending_file(path).iter().for_each(PendingFile::warn);
}

impl PendingFile {
    pub(crate) fn warn(&self) {
        terminal_output::warn(&self.warning);
    }

    /// Why it is not in force, and what to do.
    pub(crate) fn text(&self) -> &str {
        &self.warning
    }
}

/// Whether the policy in a file is not the one in force: one of its texts was changed, removed or
/// added. A change that permits nothing more is accepted at the next start, and so is not pending.
pub(crate) fn pending_file(path: &Path) -> Option<PendingFile> {
    let trust = PolicyTrust::new();
    let Ok(Some(accepted)) = trust.accepted(path) else {
        let others = trust.policies_replaced_by(path).ok().filter(|others| !others.is_empty())?;
        let (found, texts) = read_file(path, None);
        found.active_policy?;
        let fault = replacement_fault(path, &texts, false, &others)?;
        let warning = format!(
            "{fault}; no session starts here until a person runs `{}`",
            program_name::command(format!("policy accept {}", path.display()))
        );
        return Some(PendingFile { in_force: None, warning });
    };
    let (found, texts) = read_file(path, None);
    let is_same = |name: &&String| accepted.texts.get(*name) == texts.get(*name);
    let names: BTreeSet<&String> = accepted.texts.keys().chain(texts.keys()).collect();
    let changed: Vec<String> =
        names.into_iter().filter(|name| !is_same(name)).map(|name| format!("`{name}`")).collect();
    let is_taken = || {
        found.active_policy.is_some() && is_accepted_automatically(path, &accepted.texts, &texts)
    };
    if changed.is_empty() || is_taken() {
        return None;
    }
    let (path, have) = (path.display(), if changed.len() == 1 { "has" } else { "have" });
    let warning = format!(
        "`{path}` is not the policy in force: {} {have} changed since it was accepted; `{}` puts it \
         in force",
        changed.join(", "),
        program_name::command(format!("policy accept {path}"))
    );
    Some(PendingFile { in_force: Some(accepted), warning })
}
