//! Reads the other sections of a policy: redaction, pins, recording, activity, principal, profiles.

use std::collections::BTreeMap;

use tapegate_yaml::amount;
use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{KnownWorkflows, approval, duration, read_under, strings, texts};
use crate::decide::PolicyPrincipal;
use crate::model::{
    ActivitySettings, OnDrift, PinSettings, Profile, ProfileOverrides, RecordingSettings,
    RedactionSettings,
};
use crate::pins::PinLock;
use crate::redact::RedactionRules;

const LOCK_FILE: &str = "tapegate.lock";
const ROTATE_BYTES: u64 = 64 << 20;
const ROTATE_BYTES_MIN: u64 = 64 << 10;
/// What is redacted by default.
const SECRETS: &str = "secrets";
const PROFILES: &[(&str, Profile)] =
    &[("production", Profile::Production), ("development", Profile::Development)];
const ON_DRIFT: &[(&str, OnDrift)] = &[
    ("deny", OnDrift::Deny),
    ("approve", OnDrift::Approve),
    ("warn", OnDrift::Warn),
    ("ignore", OnDrift::Ignore),
];

/// Reads the redaction rules. Each rule is first parsed alone, so that errors have its position.
pub(super) fn redaction(top: &Node, findings: &mut Findings) -> RedactionSettings {
    let read = read_under(top, "redaction", findings, |node, findings| {
        let fields = MapFields::of(node);
        let mut rules: Vec<String> = Vec::new();
        for key in ["patterns", "rules", "fields"] {
            findings.push_step(key);
            for node in texts(fields.get(key)) {
                let rule = rule(key, node.as_text().unwrap_or_default());
                match RedactionRules::parse([&rule]) {
                    Err(error) => findings.error(node.spot, error.to_string()),
                    Ok(read) => {
                        if read.misses_messages() {
                            findings.error(node.spot, dead_path_message(&rule));
                        }
                        rules.push(rule);
                    }
                }
            }
            findings.pop_step();
        }
        if rules.is_empty() {
            // An empty section asks for redaction, so it must not mean that nothing is masked.
            rules.push(SECRETS.to_owned());
        }
        let enabled = fields.flag("enabled", findings).unwrap_or(true);
        let on_wire = fields.flag("on_wire", findings).unwrap_or(false);
        if on_wire && !enabled {
            let message = "`on_wire` does nothing while `enabled` is false";
            findings.error(node.spot, message);
        }
        let rules = RedactionRules::parse(&rules).ok().filter(|_| enabled);
        RedactionSettings { on_wire: on_wire && rules.is_some(), rules }
    });
    read.unwrap_or_default()
}

/// Converts an entry to a rule. In `fields`, a single word is a key at any depth, and arguments may
/// be named as in `redact_fields` of an approval, relative to `params`.
fn rule(key: &str, text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    let path = text.strip_prefix("$.").unwrap_or(text);
    match key == "fields" {
        true if !text.is_empty() && text.chars().all(plain) => format!("..{text}"),
        true if path.starts_with("arguments.") || path.starts_with("arguments[") => {
            format!("params.{path}")
        }
        _ => text.to_owned(),
    }
}

/// What is wrong with a path that matches nothing in a message.
fn dead_path_message(rule: &str) -> String {
    let path = rule.strip_prefix("$.").unwrap_or(rule);
    format!(
        "`{rule}` masks nothing in messages: a path begins at the whole message, which has `params`, \
         `result` and `error`; write `params.arguments.{path}`, `result.{path}`, or `..key` for a key \
         at any depth"
    )
}

/// Reads how definitions are compared with the accepted ones.
pub(super) fn read_pins(
    top: &Node,
    known: &KnownWorkflows<'_>,
    profiles: &BTreeMap<Profile, ProfileOverrides>,
    findings: &mut Findings,
) -> PinSettings {
    // A profile may switch to `approve`, and then needs a workflow that the base does not.
    let by_profile = profiles.values().any(|other| other.on_drift == Some(OnDrift::Approve));
    let read = read_under(top, "pins", findings, |node, findings| {
        let fields = MapFields::of(node);
        let on_drift = fields.choice("on_drift", ON_DRIFT, findings).unwrap_or_default();
        let asks = on_drift == OnDrift::Approve || by_profile;
        let workflow = match asks {
            true => known.choose_workflow(&fields, node.spot, findings),
            false => known.named_workflow(&fields, findings),
        };
        if let Some(node) = fields.get("approval").filter(|_| !asks) {
            let message = "`approval` does nothing without `on_drift: approve`: no person is asked";
            findings.with_step("approval", |findings| findings.error(node.spot, message));
        }
        let lock = fields.get("lock").and_then(Node::as_text).unwrap_or(LOCK_FILE);
        PinSettings { on_drift, workflow, lock_file: lock.to_owned(), lock: PinLock::default() }
    });
    read.unwrap_or_else(|| PinSettings {
        on_drift: OnDrift::default(),
        workflow: by_profile.then(|| known.sole_workflow(top.spot, findings)).flatten(),
        lock_file: LOCK_FILE.to_owned(),
        lock: PinLock::default(),
    })
}

pub(super) fn read_recording(top: &Node, findings: &mut Findings) -> RecordingSettings {
    let read = read_under(top, "recording", findings, |node, findings| {
        let fields = MapFields::of(node);
        RecordingSettings {
            enabled: fields.flag("enabled", findings).unwrap_or(true),
            folder: fields.get("folder").and_then(Node::as_text).map(str::to_owned),
            retention: duration(&fields, "retention"),
        }
    });
    read.unwrap_or(RecordingSettings { enabled: true, folder: None, retention: None })
}

pub(super) fn read_activity(top: &Node, findings: &mut Findings) -> ActivitySettings {
    let read = read_under(top, "activity", findings, |node, findings| {
        let fields = MapFields::of(node);
        let bytes = fields.get("rotate_bytes");
        let rotate_bytes = bytes.and_then(|node| amount::bytes(node).ok());
        if let Some(node) = bytes.filter(|_| rotate_bytes.is_some_and(|n| n < ROTATE_BYTES_MIN)) {
            findings.error(node.spot, "`rotate_bytes` must be at least 64kb");
        }
        let retention = duration(&fields, "retention");
        ActivitySettings { rotate_bytes: rotate_bytes.unwrap_or(ROTATE_BYTES), retention }
    });
    read.unwrap_or(ActivitySettings { rotate_bytes: ROTATE_BYTES, retention: None })
}

pub(super) fn principal(top: &Node, findings: &mut Findings) -> PolicyPrincipal {
    let read = read_under(top, "principal", findings, |node, _| {
        let fields = MapFields::of(node);
        let text = |key: &str| {
            fields.get(key).and_then(Node::as_text).map(str::to_owned).unwrap_or_default()
        };
        PolicyPrincipal {
            name: text("name"),
            namespace: text("namespace"),
            service_account: text("service_account"),
            roles: strings(fields.get("roles")),
            client: None,
        }
    });
    read.unwrap_or_default()
}

pub(super) fn profile(top: &Node, findings: &mut Findings) -> Option<Profile> {
    MapFields::of(top).choice("profile", PROFILES, findings)
}

pub(super) fn read_profiles(
    top: &Node,
    findings: &mut Findings,
) -> BTreeMap<Profile, ProfileOverrides> {
    let read = read_under(top, "profiles", findings, |node, findings| {
        let mut all = BTreeMap::new();
        for (name, profile) in PROFILES {
            let one = read_under(node, name, findings, read_overrides);
            all.extend(one.map(|one| (*profile, one)));
        }
        all
    });
    read.unwrap_or_default()
}

fn read_overrides(node: &Node, findings: &mut Findings) -> ProfileOverrides {
    let mut other = ProfileOverrides::default();
    read_under(node, "approval", findings, |node, findings| {
        let fields = MapFields::of(node);
        other.timeout = approval::read_timeout(&fields, "timeout", findings);
        other.blocking_timeout = approval::read_timeout(&fields, "blocking_timeout", findings);
        other.forward_on_timeout = fields.choice("on_timeout", approval::ON_TIMEOUT, findings);
    });
    read_under(node, "redaction", findings, |node, findings| {
        other.redact_on_wire = MapFields::of(node).flag("on_wire", findings);
    });
    read_under(node, "pins", findings, |node, findings| {
        other.on_drift = MapFields::of(node).choice("on_drift", ON_DRIFT, findings);
    });
    let enabled =
        |node: &Node, findings: &mut Findings| MapFields::of(node).flag("enabled", findings);
    other.recording = read_under(node, "recording", findings, enabled).flatten();
    other.telemetry = read_under(node, "telemetry", findings, enabled).flatten();
    other
}
