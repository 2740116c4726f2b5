//! Whether one policy permits nothing that another did not.
//!
//! The proof is structural and conservative: it knows a few kinds of change that can only refuse
//! more, and takes everything else for a loosening. So a change that is not understood is never
//! taken without a person.
//!
//! It holds in every environment and under every profile, as nobody knows how the next session is
//! started: variables are compared as they are written, and policies as they are under each profile.
//!
//! Every struct is taken apart by name, so that a new key of the language does not compile until
//! it is decided here what a change of it means.

mod rules;

use std::fmt::Debug;

use crate::glob::Glob;
use crate::load::Loaded;
use crate::model::{
    Act, EmbeddedMessages, Expose, OnDrift, Pins, Policy, Profile, Redaction, Settled, Source,
};

/// Why a policy may permit more than another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MayLoosen(pub String);

/// Proves that `new` permits nothing that `old` did not, or names the first change for which that
/// cannot be shown. Both must be from [`crate::load::load_marked`].
pub fn tightens(old: &Loaded, new: &Loaded) -> Result<(), MayLoosen> {
    if let Some(written) = new.variables.difference(&old.variables).next() {
        return unproven(&format!("the variable `{written}` is new or has changed"));
    }
    let (Some(old), Some(new)) = (&old.policy, &new.policy) else {
        return unproven("a variable stands where changes cannot be compared");
    };
    policy_tightens(old, new)?;
    // The profile may be named at the next start, or left to the policy.
    for named in [None, Some(Profile::Production), Some(Profile::Development)] {
        let of = |policy: &Policy| named.or(policy.profile).unwrap_or_default();
        settled_tightens((old, of(old)), (new, of(new)))?;
    }
    Ok(())
}

/// What no profile changes.
fn policy_tightens(old: &Policy, new: &Policy) -> Result<(), MayLoosen> {
    let Policy {
        version: _,
        sources,
        rules,
        default,
        own_files,
        embedded_messages,
        // Compared under each profile.
        workflows: _,
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
    // Which files are ours follows from where the policy lies.
    check("the built-in rules", new.own_files.refuse || !own_files.refuse)?;
    let embedded = *embedded_messages == EmbeddedMessages::Log
        || new.embedded_messages == EmbeddedMessages::Refuse;
    check("what is done with embedded messages", embedded)?;
    rules::tighten((rules, default), &new.rules)?;
    let cedar = match (cedar, &new.cedar) {
        (None, None) => true,
        (Some(old), Some(new)) => new.tightens(old),
        // Rules that ask Cedar are compared above; without policies it denies.
        (Some(_), None) => true,
        (None, Some(_)) => true,
    };
    check("the Cedar policies", cedar)?;
    check("the redaction", redaction_tightens(redaction, &new.redaction))?;
    check("the recording", same(recording, &new.recording))?;
    check("the activity log", same(activity, &new.activity))?;
    check("the telemetry", same(telemetry, &new.telemetry))?;
    check("the principal", same(principal, &new.principal))?;
    check("the profiles", same(profiles, &new.profiles))
}

/// What holds under a profile, which is not the same one if the policy names another.
fn settled_tightens(old: (&Policy, Profile), new: (&Policy, Profile)) -> Result<(), MayLoosen> {
    let ((old, old_profile), (new, new_profile)) = (old, new);
    if old_profile != new_profile && new_profile != Profile::Production {
        return unproven("the profile is no longer production");
    }
    let (was, is) = (old.settled(old_profile), new.settled(new_profile));
    let Settled { workflows, redact_on_wire, on_drift, recording, telemetry } = was;
    // A workflow of another name can only be asked where calls were forwarded before.
    for (name, workflow) in &is.workflows {
        let same = workflows.get(name).is_none_or(|old| same(old, workflow));
        check(&format!("the approval workflow `{name}`"), same)?;
    }
    check("the redaction", !redact_on_wire || is.redact_on_wire)?;
    // Both are made from pins: the types of Cedar's arguments, and annotations that rules test.
    let reads_pins = new.cedar.is_some() || new.rules.iter().any(|rule| !rule.hints.is_empty());
    let pins = pins_tighten((&old.pins, on_drift), (&new.pins, is.on_drift), reads_pins);
    check("the pins", pins)?;
    check("the recording", recording == is.recording)?;
    check("the telemetry", telemetry == is.telemetry)
}

fn check(what: &str, proven: bool) -> Result<(), MayLoosen> {
    if proven { Ok(()) } else { unproven(&format!("{what} may permit more")) }
}

fn unproven(why: &str) -> Result<(), MayLoosen> {
    Err(MayLoosen(why.to_owned()))
}

/// Whether two parts of policies are written the same. Not all of them can be compared, but all of
/// them show everything they are made of.
fn same<T: Debug>(old: &T, new: &T) -> bool {
    format!("{old:?}") == format!("{new:?}")
}

/// Whether an action refuses at least what another does, for every call.
fn act_tightens(old: &Act, new: &Act) -> bool {
    *old == Act::Forward || *new == Act::Deny || old == new
}

/// The same servers in the same order. One more could take calls from `*`.
fn sources_tighten(old: &[Source], new: &[Source]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| source_tightens(old, new))
}

fn source_tightens(old: &Source, new: &Source) -> bool {
    let Source { id, enabled, tools, prompts, resources, url } = old;
    *id == new.id
        && (*enabled || !new.enabled)
        && *url == new.url
        && expose_tightens(tools, &new.tools)
        && expose_tightens(prompts, &new.prompts)
        && expose_tightens(resources, &new.resources)
}

fn expose_tightens(old: &Expose, new: &Expose) -> bool {
    match (old, new) {
        (Expose::All, _) => true,
        (Expose::Only(old), Expose::Only(new)) => contains(old, new),
        (Expose::Except(old), Expose::Except(new)) => contains(new, old),
        _ => false,
    }
}

/// Whether every glob of `part` stands in `whole`.
fn contains(whole: &[Glob], part: &[Glob]) -> bool {
    part.iter().all(|glob| whole.contains(glob))
}

fn redaction_tightens(old: &Redaction, new: &Redaction) -> bool {
    // Whether it is done on the wire is compared under each profile.
    let Redaction { rules, on_wire: _ } = old;
    // A rule that is added hides arguments from approvers and from tapes.
    same(rules, &new.rules)
}

fn pins_tighten(old: (&Pins, OnDrift), new: (&Pins, OnDrift), reads_pins: bool) -> bool {
    let ((old, was), (new, is)) = (old, new);
    let Pins { on_drift: _, workflow, lock_file: _, lock } = old;
    let drift = match (was, is) {
        (OnDrift::Approve, OnDrift::Approve) => *workflow == new.workflow,
        (OnDrift::Ignore, is) => is == OnDrift::Ignore || !reads_pins,
        (_, OnDrift::Deny) => true,
        (OnDrift::Warn, is) => is != OnDrift::Ignore,
        (OnDrift::Approve | OnDrift::Deny, _) => false,
    };
    // A lock where there was none pins what was not pinned.
    let lock = *lock == new.lock || *lock == crate::pins::Lock::default() && !reads_pins;
    drift && lock
}

#[cfg(test)]
mod tests;
