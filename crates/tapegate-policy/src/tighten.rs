//! Checks that one policy permits nothing that another did not.
//!
//! The proof is structural and conservative: it knows a few kinds of change that can only refuse
//! more, and treats everything else as a loosening. So a change that it does not understand always
//! needs a person's consent.
//!
//! The result is valid in every environment and under every profile, since the next session may be
//! started with any: variables are compared as written, and policies under each profile.
//!
//! Every struct is destructured by field name, so that a new key of the language does not compile
//! until its changes are handled here.

mod rules;

use std::fmt::Debug;

use crate::glob::Glob;
use crate::load::PolicyLoadResult;
use crate::model::{
    EmbeddedMessages, Exposure, OnDrift, PinSettings, Policy, Profile, ProfileSettings,
    RedactionSettings, RuleAction, ServerSource,
};

/// The change for which tightening could not be proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LooseningError(pub String);

/// Proves that `new` permits nothing that `old` did not, or names the first change for which this
/// cannot be shown. Both must come from [`crate::load::load_marked`].
pub fn tightens(old: &PolicyLoadResult, new: &PolicyLoadResult) -> Result<(), LooseningError> {
    // The next session may have another environment, in which a new variable can hold anything.
    if let Some(written) = new.variables.difference(&old.variables).next() {
        return fail_unproven(&format!("the variable `{written}` is new or has changed"));
    }
    let (Some(old), Some(new)) = (&old.policy, &new.policy) else {
        return fail_unproven("a variable is used where changes cannot be compared");
    };
    policy_tightens(old, new)?;
    // The next start may name a profile, or leave it to the policy.
    for named in [None, Some(Profile::Production), Some(Profile::Development)] {
        let of = |policy: &Policy| named.or(policy.profile).unwrap_or_default();
        settled_tightens((old, of(old)), (new, of(new)))?;
    }
    Ok(())
}

/// Compares what no profile overrides.
fn policy_tightens(old: &Policy, new: &Policy) -> Result<(), LooseningError> {
    let Policy {
        version: _,
        sources,
        rules,
        default,
        own_files,
        embedded_messages,
        // Compared under each profile.
        workflows: _,
        channels,
        cedar,
        redaction,
        // Compared under each profile.
        pins: _,
        recording,
        activity,
        telemetry,
        principal,
        // Part of every comparison under a profile.
        profile: _,
        profiles,
    } = old;
    check("the servers", sources_tighten(sources, &new.sources))?;
    check("the default", act_tightens(default, &new.default))?;
    // Which files are our own depends only on the policy's location.
    check("the built-in rules", new.own_files.refuse || !own_files.refuse)?;
    let embedded = *embedded_messages == EmbeddedMessages::Log
        || new.embedded_messages == EmbeddedMessages::Refuse;
    check("the action for embedded messages", embedded)?;
    rules::check_rules_tighten((rules, default), &new.rules)?;
    let cedar = match (cedar, &new.cedar) {
        (None, None) => true,
        (Some(old), Some(new)) => new.tightens(old),
        // Rules that use Cedar are compared above; without policies Cedar denies.
        (Some(_), None) => true,
        (None, Some(_)) => true,
    };
    check("the Cedar policies", cedar)?;
    check("the redaction", redaction_tightens(redaction, &new.redaction))?;
    check("the recording", is_identical(recording, &new.recording))?;
    check("the activity log", is_identical(activity, &new.activity))?;
    check("the telemetry", is_identical(telemetry, &new.telemetry))?;
    // A channel receives one-time links that approve, so each must be one that a person has seen.
    check("the channels", is_identical(channels, &new.channels))?;
    check("the principal", is_identical(principal, &new.principal))?;
    check("the profiles", is_identical(profiles, &new.profiles))
}

/// Compares the settings under a profile; the two policies may select different ones.
fn settled_tightens(
    old: (&Policy, Profile),
    new: (&Policy, Profile),
) -> Result<(), LooseningError> {
    let ((old, old_profile), (new, new_profile)) = (old, new);
    // Development forwards everything.
    if old_profile != new_profile && new_profile != Profile::Production {
        return fail_unproven("the profile is no longer production");
    }
    let (was, is) = (old.settings_for(old_profile), new.settings_for(new_profile));
    let ProfileSettings { workflows, redact_on_wire, on_drift, recording, telemetry } = was;
    // A workflow with a new name can only apply to calls that were forwarded before.
    for (name, workflow) in &is.workflows {
        let same = workflows.get(name).is_none_or(|old| is_identical(old, workflow));
        check(&format!("the approval workflow `{name}`"), same)?;
    }
    check("the redaction", !redact_on_wire || is.redact_on_wire)?;
    // Both are derived from pins: the types of Cedar's arguments, and the annotations that rules
    // test.
    let reads_pins = new.cedar.is_some() || new.rules.iter().any(|rule| !rule.hints.is_empty());
    let pins = pins_tighten((&old.pins, on_drift), (&new.pins, is.on_drift), reads_pins);
    check("the pins", pins)?;
    check("the recording", recording == is.recording)?;
    check("the telemetry", telemetry == is.telemetry)
}

fn check(what: &str, proven: bool) -> Result<(), LooseningError> {
    if proven { Ok(()) } else { fail_unproven(&format!("{what} may permit more")) }
}

fn fail_unproven(reason: &str) -> Result<(), LooseningError> {
    Err(LooseningError(reason.to_owned()))
}

/// Whether two parts of policies are identical. Not all of them implement `PartialEq`, but their
/// `Debug` output is complete.
fn is_identical<T: Debug>(old: &T, new: &T) -> bool {
    format!("{old:?}") == format!("{new:?}")
}

/// Whether `new` refuses every call that `old` refuses.
fn act_tightens(old: &RuleAction, new: &RuleAction) -> bool {
    *old == RuleAction::Forward || *new == RuleAction::Deny || old == new
}

/// Requires the same servers in the same order. A new one could take calls from `*`.
fn sources_tighten(old: &[ServerSource], new: &[ServerSource]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| source_tightens(old, new))
}

fn source_tightens(old: &ServerSource, new: &ServerSource) -> bool {
    let ServerSource { id, enabled, tools, prompts, resources, url } = old;
    *id == new.id
        && (*enabled || !new.enabled)
        && *url == new.url
        && expose_tightens(tools, &new.tools)
        && expose_tightens(prompts, &new.prompts)
        && expose_tightens(resources, &new.resources)
}

fn expose_tightens(old: &Exposure, new: &Exposure) -> bool {
    match (old, new) {
        (Exposure::All, _) => true,
        (Exposure::Only(old), Exposure::Only(new)) => contains(old, new),
        (Exposure::Except(old), Exposure::Except(new)) => contains(new, old),
        // A kind of list that is replaced by another cannot be compared glob by glob.
        _ => false,
    }
}

/// Whether every glob of `part` is in `whole`.
fn contains(whole: &[Glob], part: &[Glob]) -> bool {
    part.iter().all(|glob| whole.contains(glob))
}

fn redaction_tightens(old: &RedactionSettings, new: &RedactionSettings) -> bool {
    // Redaction on the wire is compared under each profile.
    let RedactionSettings { rules, on_wire: _ } = old;
    // A new rule would hide arguments from approvers and tapes.
    is_identical(rules, &new.rules)
}

fn pins_tighten(
    old: (&PinSettings, OnDrift),
    new: (&PinSettings, OnDrift),
    reads_pins: bool,
) -> bool {
    let ((old, was), (new, is)) = (old, new);
    let PinSettings { on_drift: _, workflow, lock_file: _, lock } = old;
    let drift = match (was, is) {
        (OnDrift::Approve, OnDrift::Approve) => *workflow == new.workflow,
        // Leaving `ignore` makes pinned hints and argument types known, which can open rules that
        // test them.
        (OnDrift::Ignore, is) => is == OnDrift::Ignore || !reads_pins,
        (_, OnDrift::Deny) => true,
        (OnDrift::Warn, is) => is != OnDrift::Ignore,
        (OnDrift::Approve | OnDrift::Deny, _) => false,
    };
    // Adding a lock where there was none only pins more.
    let lock = *lock == new.lock || *lock == crate::pins::PinLock::default() && !reads_pins;
    drift && lock
}

#[cfg(test)]
mod tests;
