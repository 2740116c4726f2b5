//! Loads the policy, from files or from a hub's snapshot. Both use the same loader, so that they
//! cannot differ in meaning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_policy::load;
use tapegate_policy::model::Profile;
use tapegate_policy::redact::{Key, Redactor};
use tapegate_policy::warden::Regime;
use tapegate_yaml::files::Files;
use tapegate_yaml::finding::{Finding, Severity};

use crate::called;
use crate::settings::{own_places, own_sources, spellings};
use crate::views::visible;

/// The result of loading a policy.
pub(crate) struct Found {
    /// The policy to put in force; `None` if there are faults.
    pub(crate) rule: Option<Rule>,
    /// Errors.
    pub(crate) faults: Vec<String>,
    /// Warnings.
    pub(crate) warnings: Vec<String>,
    /// Every file that was requested, whether or not it exists.
    pub(crate) files: Vec<PathBuf>,
}

/// The policy in force, and the redactor for what is written.
#[derive(Clone)]
pub(crate) struct Rule {
    pub(crate) regime: Regime,
    /// The redactor for tapes, logs and approval requests.
    pub(crate) masking: Option<Redactor>,
}

impl Rule {
    /// The rule for sessions without a policy: everything is only observed.
    pub(crate) fn observing(profile: Option<Profile>) -> Self {
        let regime = Regime { profile: profile.unwrap_or_default(), ..Regime::default() };
        Self { regime, masking: None }
    }

    /// Whether there are Cedar policies.
    pub(crate) fn asks_cedar(&self) -> bool {
        self.regime.policy.as_ref().is_some_and(|policy| policy.cedar.is_some())
    }

    /// The policy's version; empty if there is none.
    pub(crate) fn version(&self) -> &str {
        self.regime.policy.as_ref().map_or("", |policy| &policy.version)
    }
}

/// What happens to the telemetry that a policy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TelemetryFate {
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
pub(crate) struct Options<'a> {
    /// The profile that was requested, if any.
    pub(crate) wanted: Option<Profile>,
    pub(crate) key: &'a Key,
    /// Files of ours that calls must not name, besides those known here.
    pub(crate) own_files: &'a [PathBuf],
    pub(crate) telemetry: TelemetryFate,
}

/// Reads a policy from any source.
pub(crate) fn read(main: &str, files: &dyn Files, telemetry: TelemetryFate) -> load::Loaded {
    match telemetry {
        TelemetryFate::Sent => load::load(main, files),
        TelemetryFate::NotAccepted | TelemetryFate::LeftToHub | TelemetryFate::Unsent => {
            load::load_without_telemetry(main, files)
        }
    }
}

/// Rewords findings that could reveal the values of variables, since faults reach the agent, which
/// may have written the policy. `without_values` are the same files with every variable unexpanded:
/// a finding that is the same there does not depend on a value.
pub(crate) fn hide_values(loaded: &mut load::Loaded, main: &str, without_values: &dyn Files) {
    if loaded.findings.is_empty() || loaded.variables.is_empty() {
        return;
    }
    let plain = load::load(main, without_values).findings;
    for finding in loaded.findings.iter_mut().filter(|finding| !plain.contains(finding)) {
        finding.words = format!(
            "the value of a variable is not valid here; `{}` says more",
            called::command("check")
        );
    }
}

/// The policy that was read, in the form that is put in force.
pub(crate) fn found(main: &str, loaded: load::Loaded, options: Options<'_>) -> Found {
    let load::Loaded { policy, findings, sources, .. } = loaded;
    let Options { wanted, key, own_files: own, telemetry } = options;
    let of = |wanted: Severity| {
        let some = findings.iter().filter(move |finding| finding.severity == wanted);
        some.map(|finding| words(finding, &sources, main)).collect::<Vec<_>>()
    };
    let (faults, mut warnings) = (of(Severity::Error), of(Severity::Warning));
    let rule = policy.map(|mut policy| {
        let profile = wanted.or(policy.profile).unwrap_or_default();
        policy.settle(profile);
        if policy.telemetry.enabled && telemetry == TelemetryFate::NotAccepted {
            warnings.push(format!(
                "telemetry is off, since no person has accepted the policy `{main}`: a person runs \
                 `{}` in a terminal",
                called::command(format!("policy accept {main}"))
            ));
        }
        policy.telemetry.enabled &=
            matches!(telemetry, TelemetryFate::Sent | TelemetryFate::Unsent);
        let own = own.iter().cloned().flat_map(spellings).chain(own_places(Path::new(main)));
        let own = own.chain(own_sources(&sources));
        own.for_each(|path| policy.own_files.add(&path.to_string_lossy()));
        let masking = policy.redaction.rules.clone().map(|rules| Redactor::new(rules, key.clone()));
        let on_wire = masking.clone().filter(|_| policy.redaction.on_wire).map(Arc::new);
        let policy = Some(Arc::new(policy));
        Rule { regime: Regime { policy, profile, redactor: on_wire }, masking }
    });
    Found { rule, faults, warnings, files: Vec::new() }
}

/// A finding with its position: `file:line:column: path: words`.
fn words(finding: &Finding, sources: &[String], main: &str) -> String {
    let spot = finding.spot;
    let file = sources.get(usize::from(spot.file)).map_or(main, String::as_str);
    let place =
        if spot.line == 0 { String::new() } else { format!(":{}:{}", spot.line, spot.column) };
    let path = match finding.path.as_str() {
        "" => String::new(),
        path => format!("{path}: "),
    };
    visible::inline(&format!("{file}{place}: {path}{}", finding.words), usize::MAX)
}
