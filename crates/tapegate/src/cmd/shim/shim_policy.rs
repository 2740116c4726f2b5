//! Loads the policy, from files or from a hub's snapshot. Both use the same loader, so that they
//! cannot differ in meaning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_policy::load;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::redact::{RedactionKey, Redactor};
use tapegate_yaml::files::Files;
use tapegate_yaml::finding::{Finding, Severity};

use crate::program_name;
use crate::settings::{own_places, own_sources, spellings};
use crate::views::visible_text;

/// The result of loading a policy.
pub(crate) struct ShimPolicyLoad {
    /// The policy to put in force; `None` if there are faults.
    pub(crate) rule: Option<ShimPolicy>,
    pub(crate) faults: Vec<String>,
    pub(crate) warnings: Vec<String>,
    /// Every file that was requested, whether or not it exists.
    pub(crate) files: Vec<PathBuf>,
}

/// The policy in force, and the redactor for what is written.
#[derive(Clone)]
pub(crate) struct ShimPolicy {
    pub(crate) active_policy: ActivePolicy,
    /// The redactor for tapes, logs and approval requests.
    pub(crate) masking: Option<Redactor>,
}

impl ShimPolicy {
    /// The rule for sessions without a policy: everything is only observed.
    pub(crate) fn observe_only(profile: Option<Profile>) -> Self {
        let active_policy =
            ActivePolicy { profile: profile.unwrap_or_default(), ..ActivePolicy::default() };
        Self { active_policy, masking: None }
    }

    /// Whether there are Cedar policies.
    pub(crate) fn uses_cedar(&self) -> bool {
        self.active_policy.policy.as_ref().is_some_and(|policy| policy.cedar.is_some())
    }

    /// The policy's version; empty if there is none.
    pub(crate) fn version(&self) -> &str {
        self.active_policy.policy.as_ref().map_or("", |policy| &policy.version)
    }
}

/// What happens to the telemetry that a policy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TelemetryStatus {
    /// It is sent, if this process sends telemetry at all.
    Sent,
    /// It is not sent because no person has accepted the policy, which is reported as a warning.
    NotAccepted,
    /// The hub sends it.
    LeftToHub,
    /// This process sends none, whether or not the policy is accepted; the session warns of that.
    Unsent,
}

/// The settings for loading a policy, besides its files.
#[derive(Clone, Copy)]
pub(crate) struct ShimPolicyOptions<'a> {
    /// The profile that was requested, if any.
    pub(crate) wanted: Option<Profile>,
    pub(crate) key: &'a RedactionKey,
    /// Files of ours that calls must not name, besides those known here.
    pub(crate) own_files: &'a [PathBuf],
    pub(crate) telemetry: TelemetryStatus,
}

/// Reads a policy from any source.
pub(crate) fn read(
    main: &str,
    files: &dyn Files,
    telemetry: TelemetryStatus,
) -> load::PolicyLoadResult {
    match telemetry {
        TelemetryStatus::Sent => load::load(main, files),
        TelemetryStatus::NotAccepted | TelemetryStatus::LeftToHub | TelemetryStatus::Unsent => {
            load::load_without_telemetry(main, files)
        }
    }
}

/// Rewords findings that could reveal the values of variables, since faults reach the agent, which
/// may have written the policy. `without_values` are the same files with every variable unexpanded:
/// a finding that is the same there does not depend on a value.
pub(crate) fn hide_values(
    loaded: &mut load::PolicyLoadResult,
    main: &str,
    without_values: &dyn Files,
) {
    if loaded.findings.is_empty() || loaded.variables.is_empty() {
        return;
    }
    let plain = load::load(main, without_values).findings;
    for finding in loaded.findings.iter_mut().filter(|finding| !plain.contains(finding)) {
        finding.message = format!(
            "the value of a variable is not valid here; `{}` says more",
            program_name::command("check")
        );
    }
}

/// The policy that was read, in the form that is put in force.
pub(crate) fn build_policy(
    main: &str,
    loaded: load::PolicyLoadResult,
    options: ShimPolicyOptions<'_>,
) -> ShimPolicyLoad {
    let load::PolicyLoadResult { policy, findings, sources, .. } = loaded;
    let ShimPolicyOptions { wanted, key, own_files: own, telemetry } = options;
    let of = |wanted: Severity| {
        let some = findings.iter().filter(move |finding| finding.severity == wanted);
        some.map(|finding| finding_text(finding, &sources, main)).collect::<Vec<_>>()
    };
    let (faults, mut warnings) = (of(Severity::Error), of(Severity::Warning));
    let rule = policy.map(|mut policy| {
        let profile = wanted.or(policy.profile).unwrap_or_default();
        policy.settle(profile);
        if policy.telemetry.enabled && telemetry == TelemetryStatus::NotAccepted {
            warnings.push(format!(
                "telemetry is off, since no person has accepted the policy `{main}`: a person runs \
                 `{}` in a terminal",
                program_name::command(format!("policy accept {main}"))
            ));
        }
        // `Unsent` stays enabled, so that the session can warn that nothing sends it.
        policy.telemetry.enabled &=
            matches!(telemetry, TelemetryStatus::Sent | TelemetryStatus::Unsent);
        let own = own.iter().cloned().flat_map(spellings).chain(own_places(Path::new(main)));
        let own = own.chain(own_sources(&sources));
        own.for_each(|path| policy.own_files.add(&path.to_string_lossy()));
        let masking = policy.redaction.rules.clone().map(|rules| Redactor::new(rules, key.clone()));
        // Tapes, logs and requests are always masked; the wire only if the policy asks for it.
        let on_wire = masking.clone().filter(|_| policy.redaction.on_wire).map(Arc::new);
        let policy = Some(Arc::new(policy));
        ShimPolicy { active_policy: ActivePolicy { policy, profile, redactor: on_wire }, masking }
    });
    ShimPolicyLoad { rule, faults, warnings, files: Vec::new() }
}

/// A finding with its position: `file:line:column: path: words`.
fn finding_text(finding: &Finding, sources: &[String], main: &str) -> String {
    let spot = finding.spot;
    let file = sources.get(usize::from(spot.file)).map_or(main, String::as_str);
    let place =
        if spot.line == 0 { String::new() } else { format!(":{}:{}", spot.line, spot.column) };
    let path = match finding.path.as_str() {
        "" => String::new(),
        path => format!("{path}: "),
    };
    // The message may quote the policy, which can hold control characters.
    visible_text::inline(&format!("{file}{place}: {path}{}", finding.message), usize::MAX)
}
