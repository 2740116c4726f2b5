//! Reads the other sections of a policy: redaction, pins, recording, activity, principal, profiles.

use std::collections::BTreeMap;

use tapegate_yaml::amount;
use tapegate_yaml::field::Fields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{Known, approval, duration, strings, texts, under};
use crate::decide::Principal;
use crate::model::{Activity, OnDrift, Overrides, Pins, Profile, Recording, Redaction};
use crate::pins::Lock;
use crate::redact::Rules;

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
pub(super) fn redaction(top: &Node, findings: &mut Findings) -> Redaction {
    let read = under(top, "redaction", findings, |node, findings| {
        let fields = Fields::of(node);
        let mut rules: Vec<String> = Vec::new();
        for key in ["patterns", "rules", "fields"] {
            findings.enter(key);
            for node in texts(fields.get(key)) {
                let rule = rule(key, node.as_text().unwrap_or_default());
                match Rules::parse([&rule]) {
                    Err(error) => findings.error(node.spot, error.to_string()),
                    Ok(read) => {
                        if read.misses_messages() {
                            findings.error(node.spot, misses(&rule));
                        }
                        rules.push(rule);
                    }
                }
            }
            findings.leave();
        }
        if rules.is_empty() {
            rules.push(SECRETS.to_owned());
        }
        let enabled = fields.flag("enabled", findings).unwrap_or(true);
        let on_wire = fields.flag("on_wire", findings).unwrap_or(false);
        if on_wire && !enabled {
            let words = "`on_wire` does nothing while `enabled` is false";
            findings.error(node.spot, words);
        }
        let rules = Rules::parse(&rules).ok().filter(|_| enabled);
        Redaction { on_wire: on_wire && rules.is_some(), rules }
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
fn misses(rule: &str) -> String {
    let path = rule.strip_prefix("$.").unwrap_or(rule);
    format!(
        "`{rule}` masks nothing in messages: a path begins at the whole message, which has `params`, \
         `result` and `error`; write `params.arguments.{path}`, `result.{path}`, or `..key` for a key \
         at any depth"
    )
}

/// Reads how definitions are compared with the accepted ones.
pub(super) fn pins(
    top: &Node,
    known: &Known<'_>,
    profiles: &BTreeMap<Profile, Overrides>,
    findings: &mut Findings,
) -> Pins {
    let by_profile = profiles.values().any(|other| other.on_drift == Some(OnDrift::Approve));
    let read = under(top, "pins", findings, |node, findings| {
        let fields = Fields::of(node);
        let on_drift = fields.choice("on_drift", ON_DRIFT, findings).unwrap_or_default();
        let asks = on_drift == OnDrift::Approve || by_profile;
        let workflow = match asks {
            true => known.choose(&fields, node.spot, findings),
            false => known.named(&fields, findings),
        };
        if let Some(node) = fields.get("approval").filter(|_| !asks) {
            let words = "`approval` does nothing without `on_drift: approve`: no person is asked";
            findings.within("approval", |findings| findings.error(node.spot, words));
        }
        let lock = fields.get("lock").and_then(Node::as_text).unwrap_or(LOCK_FILE);
        Pins { on_drift, workflow, lock_file: lock.to_owned(), lock: Lock::default() }
    });
    read.unwrap_or_else(|| Pins {
        on_drift: OnDrift::default(),
        workflow: by_profile.then(|| known.only(top.spot, findings)).flatten(),
        lock_file: LOCK_FILE.to_owned(),
        lock: Lock::default(),
    })
}

pub(super) fn recording(top: &Node, findings: &mut Findings) -> Recording {
    let read = under(top, "recording", findings, |node, findings| {
        let fields = Fields::of(node);
        Recording {
            enabled: fields.flag("enabled", findings).unwrap_or(true),
            folder: fields.get("folder").and_then(Node::as_text).map(str::to_owned),
            retention: duration(&fields, "retention"),
        }
    });
    read.unwrap_or(Recording { enabled: true, folder: None, retention: None })
}

pub(super) fn activity(top: &Node, findings: &mut Findings) -> Activity {
    let read = under(top, "activity", findings, |node, findings| {
        let fields = Fields::of(node);
        let bytes = fields.get("rotate_bytes");
        let rotate_bytes = bytes.and_then(|node| amount::bytes(node).ok());
        if let Some(node) = bytes.filter(|_| rotate_bytes.is_some_and(|n| n < ROTATE_BYTES_MIN)) {
            findings.error(node.spot, "`rotate_bytes` must be at least 64kb");
        }
        let retention = duration(&fields, "retention");
        Activity { rotate_bytes: rotate_bytes.unwrap_or(ROTATE_BYTES), retention }
    });
    read.unwrap_or(Activity { rotate_bytes: ROTATE_BYTES, retention: None })
}

pub(super) fn principal(top: &Node, findings: &mut Findings) -> Principal {
    let read = under(top, "principal", findings, |node, _| {
        let fields = Fields::of(node);
        let text = |key: &str| {
            fields.get(key).and_then(Node::as_text).map(str::to_owned).unwrap_or_default()
        };
        Principal {
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
    Fields::of(top).choice("profile", PROFILES, findings)
}

pub(super) fn profiles(top: &Node, findings: &mut Findings) -> BTreeMap<Profile, Overrides> {
    let read = under(top, "profiles", findings, |node, findings| {
        let mut all = BTreeMap::new();
        for (name, profile) in PROFILES {
            let one = under(node, name, findings, overrides);
            all.extend(one.map(|one| (*profile, one)));
        }
        all
    });
    read.unwrap_or_default()
}

fn overrides(node: &Node, findings: &mut Findings) -> Overrides {
    let mut other = Overrides::default();
    under(node, "approval", findings, |node, findings| {
        let fields = Fields::of(node);
        other.timeout = approval::patience(&fields, "timeout", findings);
        other.blocking_timeout = approval::patience(&fields, "blocking_timeout", findings);
        other.forward_on_timeout = fields.choice("on_timeout", approval::ON_TIMEOUT, findings);
    });
    under(node, "redaction", findings, |node, findings| {
        other.redact_on_wire = Fields::of(node).flag("on_wire", findings);
    });
    under(node, "pins", findings, |node, findings| {
        other.on_drift = Fields::of(node).choice("on_drift", ON_DRIFT, findings);
    });
    let enabled = |node: &Node, findings: &mut Findings| Fields::of(node).flag("enabled", findings);
    other.recording = under(node, "recording", findings, enabled).flatten();
    other.telemetry = under(node, "telemetry", findings, enabled).flatten();
    other
}
