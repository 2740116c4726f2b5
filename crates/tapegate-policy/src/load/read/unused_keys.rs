//! Keys that have no effect.
//!
//! A key that is accepted and has no effect looks like protection that is not there, so it is an
//! error. A section with its own `enabled: false` is not: there the intent is plain.

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot};

use crate::model::{Policy, Profile, ProfileOverrides};

/// Which parts the rest of the policy, and the caller, use.
#[derive(Debug, Clone, Copy)]
pub(super) struct PolicyUses {
    /// Whether a rule or the default uses Cedar.
    pub(super) cedar: bool,
    /// Whether the section `telemetry` was read.
    pub(super) telemetry: bool,
}

/// Reports keys of profiles and of the principal that have no effect.
pub(super) fn check(top: &Node, policy: &Policy, uses: PolicyUses, findings: &mut Findings) {
    for (profile, overrides) in &policy.profiles {
        let place = format!("profiles.{}", profile.as_str());
        findings.with_step(&place, |findings| {
            check_overridden(top, policy, (*profile, overrides), uses, findings);
        });
    }
    if !uses.cedar {
        for key in ["namespace", "service_account", "roles"] {
            if let Some(spot) = spot(top, &["principal", key]) {
                let message = format!(
                    "`{key}` is only for Cedar, and Cedar is unused: no rule has `action: policy`"
                );
                findings.with_step("principal", |f| f.with_step(key, |f| f.error(spot, message)));
            }
        }
    }
}

fn check_overridden(
    top: &Node,
    policy: &Policy,
    (profile, overrides): (Profile, &ProfileOverrides),
    uses: PolicyUses,
    findings: &mut Findings,
) {
    let place = |section: &str| spot(top, &["profiles", profile.as_str(), section]);
    if profile == Profile::Development
        && let Some(spot) = place("approval")
    {
        let message = "`approval` does nothing under `development`, which holds no call and asks no one; \
                     remove it";
        findings.with_step("approval", |findings| findings.error(spot, message));
    }
    if overrides.redact_on_wire == Some(true) && policy.redaction.rules.is_none() {
        let message =
            "`on_wire` masks nothing: the policy has no `redaction`, or it is not `enabled`";
        let spot = place("redaction").unwrap_or_default();
        findings.with_step("redaction", |findings| findings.error(spot, message));
    }
    if uses.telemetry && overrides.telemetry == Some(true) && policy.telemetry.endpoint.is_none() {
        let message = "nothing is sent: `telemetry.otlp.endpoint` is missing in the policy";
        let spot = place("telemetry").unwrap_or_default();
        findings.with_step("telemetry", |findings| findings.error(spot, message));
    }
}

/// The position of the value at a path of keys, if it exists.
fn spot(top: &Node, path: &[&str]) -> Option<Spot> {
    let mut node = top;
    for key in path {
        node = MapFields::of(node).get(key)?;
    }
    Some(node.spot)
}
