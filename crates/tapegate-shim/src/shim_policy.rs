//! Loads the policy, from files or from a hub's snapshot. Both use the same loader, so that they
//! cannot differ in meaning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_policy::load;
use tapegate_policy::model::Profile;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::redact::{RedactionKey, Redactor};
use tapegate_yaml::files::Files;
use tapegate_yaml::finding::Severity;

use crate::plan::ProgramContext;

/// The result of loading a policy.
pub struct ShimPolicyLoad {
    /// The policy to put in force; `None` if there are faults.
    pub active_policy: Option<ActivePolicy>,
    /// Why it cannot be put in force.
    pub faults: Vec<String>,
    /// What may not be as intended.
    pub warnings: Vec<String>,
    /// Every file that was requested, whether or not it exists.
    pub files: Vec<PathBuf>,
}

/// What happens to the telemetry that a policy asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryStatus {
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
pub struct ShimPolicyOptions<'a> {
    /// The profile that was requested, if any.
    pub wanted: Option<Profile>,
    /// The key for the placeholders of secrets.
    pub key: &'a RedactionKey,
    /// Files of ours that calls must not name, besides those known here.
    pub own_files: &'a [PathBuf],
    /// The folder in which the server runs a command line that names none, if that is certain.
    pub command_folder: Option<&'a str>,
    /// Whether the telemetry of the policy is sent.
    pub telemetry: TelemetryStatus,
    /// The program that loads the policy.
    pub program: ProgramContext,
}

/// Reads a policy from any source.
pub fn read(main: &str, files: &dyn Files, telemetry: TelemetryStatus) -> load::PolicyLoadResult {
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
pub fn hide_values(
    loaded: &mut load::PolicyLoadResult,
    main: &str,
    without_values: &dyn Files,
    program: ProgramContext,
) {
    if loaded.findings.is_empty() || loaded.variables.is_empty() {
        return;
    }
    let plain = load::load(main, without_values).findings;
    for finding in loaded.findings.iter_mut().filter(|finding| !plain.contains(finding)) {
        finding.message = format!(
            "the value of a variable is not valid here; `{}` says more",
            (program.command)("check")
        );
    }
}

/// The policy that was read, in the form that is put in force.
pub fn build_policy(
    main: &str,
    loaded: load::PolicyLoadResult,
    options: ShimPolicyOptions<'_>,
) -> ShimPolicyLoad {
    let load::PolicyLoadResult { policy, findings, sources, .. } = loaded;
    let ShimPolicyOptions { wanted, key, own_files: own, command_folder, telemetry, program } =
        options;
    let of = |wanted: Severity| {
        let some = findings.iter().filter(move |finding| finding.severity == wanted);
        some.map(|finding| finding.line(&sources, main)).collect::<Vec<_>>()
    };
    let (faults, mut warnings) = (of(Severity::Error), of(Severity::Warning));
    let active_policy = policy.map(|mut policy| {
        let profile = wanted.or(policy.profile).unwrap_or_default();
        policy.settle(profile);
        if policy.telemetry.enabled && telemetry == TelemetryStatus::NotAccepted {
            warnings.push(format!(
                "telemetry is off, since no person has accepted the policy `{main}`: a person runs \
                 `{}` in a terminal",
                (program.command)(&format!("policy accept {main}"))
            ));
        }
        if !policy.channels.is_empty() && telemetry == TelemetryStatus::NotAccepted {
            warnings.push(format!(
                "the channels are off, since no person has accepted the policy `{main}`: a person \
                 runs `{}` in a terminal",
                (program.command)(&format!("policy accept {main}"))
            ));
            policy.channels.clear();
        }
        // `Unsent` stays enabled, so that the session can warn that nothing sends it.
        policy.telemetry.enabled &=
            matches!(telemetry, TelemetryStatus::Sent | TelemetryStatus::Unsent);
        let own =
            own.iter().cloned().flat_map(spellings).chain((program.own_places)(Path::new(main)));
        let own = own.chain(own_sources(&sources));
        for path in own {
            policy.own_files.add(&path.to_string_lossy());
            // A command line names what is in its folder without it.
            let inside = command_folder.and_then(|folder| path.strip_prefix(folder).ok());
            inside.iter().for_each(|path| policy.own_files.add_relative(&path.to_string_lossy()));
        }
        command_folder.iter().for_each(|folder| policy.set_command_folder(folder));
        let rules = policy.redaction.rules.clone();
        let masking = rules.map(|rules| Arc::new(Redactor::new(rules, key.clone())));
        // Tapes, logs and requests are always masked; the wire only if the policy asks for it.
        let redactor = masking.clone().filter(|_| policy.redaction.on_wire);
        let policy = Some(Arc::new(policy));
        ActivePolicy { policy, profile, redactor, masking }
    });
    ShimPolicyLoad { active_policy, faults, warnings, files: Vec::new() }
}

/// The files that a policy was loaded from, as absolute paths.
pub fn own_sources(sources: &[String]) -> impl Iterator<Item = PathBuf> {
    let absolute = sources.iter().filter_map(|path| std::path::absolute(path).ok());
    absolute.flat_map(spellings)
}

/// A path as written, and with links resolved. The file itself need not exist.
pub fn spellings(path: PathBuf) -> impl Iterator<Item = PathBuf> {
    let in_folder = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    [path.canonicalize().ok().or_else(in_folder), Some(path)].into_iter().flatten()
}
