//! The policy of a session, for people: as its hub reports it, or as it would be before a start.

use std::path::Path;

use tapegate_policy::model::Profile;
use tapegate_shim::shim_policy::ShimPolicyLoad;

use super::args::Args;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::trust::{self, PolicyTrust};

/// A policy by its version; without one, everything is only observed.
pub(super) fn text(version: Option<&str>, profile: Profile) -> String {
    match version {
        Some(version) => format!("policy {version}, profile {}", profile.as_str()),
        None => "no policy: observing only, nothing is refused".to_owned(),
    }
}

/// The policy that a session would have if it started now, or why it would not start. Writes
/// nothing: a start also remembers the policy as accepted.
pub(super) fn before_start(args: &Args, search: &SearchContext<'_>) -> Result<String, Failure> {
    let wanted = search.profile(args.project.profile)?;
    let named = args.project.config.as_deref();
    let Some(path) = PolicyTrust::new().locate(search, named)? else {
        if search.policy_required(args.require_policy)? {
            let init = program_name::command("init");
            return Err(Failure::new(Exit::Invalid, "no policy found, and one is required")
                .hint(format!("write one with `{init}`, or pass --config FILE")));
        }
        return Ok(text(None, wanted.unwrap_or_default()));
    };
    let load = in_force(&path, wanted)?;
    let Some(active) = load.active_policy else {
        return Err(Failure::new(Exit::Invalid, load.faults.join("\n")));
    };
    Ok(text(active.policy.as_ref().map(|policy| policy.version.as_str()), active.profile))
}

/// The file, or its accepted copy where the file differs from what a person has accepted.
fn in_force(path: &Path, wanted: Option<Profile>) -> Result<ShimPolicyLoad, Failure> {
    let (file, _) = trust::read_file(path, wanted);
    // A file that does not load stops the start; the copy stands in for one that is gone.
    if file.active_policy.is_none() && path.exists() {
        return Ok(file);
    }
    let Some(pending) = trust::pending_file(path) else { return Ok(file) };
    match &pending.in_force {
        Some(accepted) => {
            pending.warn();
            Ok(trust::read_accepted(accepted, wanted))
        }
        None => Err(Failure::new(Exit::Invalid, pending.text())),
    }
}
