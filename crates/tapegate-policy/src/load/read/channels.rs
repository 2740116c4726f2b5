//! Reads the channels, and checks those that workflows name.

use std::collections::BTreeMap;

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot};

use super::read_under;
use crate::model::{CHANNEL_PROTOCOLS, ChannelProtocol, ChannelSecret, ChannelSettings, Workflow};

/// The key that every channel has.
const TYPE: &str = "type";

/// All channels by name. `folder` is the folder of the policy.
pub(super) fn read(
    top: &Node,
    folder: &str,
    workflows: &BTreeMap<String, Workflow>,
    findings: &mut Findings,
) -> BTreeMap<String, ChannelSettings> {
    let channels = read_under(top, "channels", findings, |node, findings| {
        let mut channels = BTreeMap::new();
        for (key, node) in node.as_map().unwrap_or_default() {
            if !is_name(&key.name) {
                let message = format!(
                    "`{}` is not a name for a channel; use letters and digits, and `_` and `-` inside",
                    key.name
                );
                findings.error(key.spot, message);
            }
            let named = |workflow: &Workflow| workflow.channels.contains(&key.name);
            if !workflows.values().any(named) {
                let message =
                    format!("no workflow names the channel `{}`: it is never used", key.name);
                findings.error(key.spot, message);
            }
            let read = findings
                .with_step(&key.name, |findings| read_channel(&key.name, node, folder, findings));
            channels.extend(read.map(|channel| (key.name.clone(), channel)));
        }
        channels
    });
    let channels = channels.unwrap_or_default();
    check_workflows(top, workflows, &channels, findings);
    channels
}

/// Names become parts of paths and links.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= 64 && name.bytes().all(plain) && !name.starts_with(['-', '_'])
}

fn read_channel(
    name: &str,
    node: &Node,
    folder: &str,
    findings: &mut Findings,
) -> Option<ChannelSettings> {
    let fields = MapFields::of(node);
    let words: Vec<_> = CHANNEL_PROTOCOLS.iter().map(|row| (row.word, row)).collect();
    let protocol: &ChannelProtocol = fields.choice(TYPE, &words, findings)?;
    check_keys(protocol, node, findings);
    let text = |key: &str| fields.get(key).and_then(Node::as_text).map(str::to_owned);
    let secret = read_secret(&fields, "secret", folder, findings);
    if secret.is_none() && protocol.needs_secret {
        findings.error(node.spot, "`secret_env` or `secret_file` is missing");
    }
    let signing_secret = read_secret(&fields, "signing_secret", folder, findings);
    let users = fields.get("users").and_then(Node::as_map).unwrap_or_default();
    let user = |(key, node): &(tapegate_yaml::node::NodeKey, Node)| {
        Some((key.name.clone(), node.as_text()?.to_owned()))
    };
    Some(ChannelSettings {
        kind: protocol.kind,
        url: text("url").unwrap_or_else(|| protocol.default_url.to_owned()),
        secret,
        links: text("links"),
        approver: text("approver").unwrap_or_else(|| name.to_owned()),
        room: text("room").unwrap_or_default(),
        users: users.iter().filter_map(user).collect(),
        signing_secret,
        approve_button: fields.flag("approve_button", findings).unwrap_or_default(),
    })
}

/// Reports keys that are missing, and keys that the protocol has no use for.
fn check_keys(protocol: &ChannelProtocol, node: &Node, findings: &mut Findings) {
    for (key, why) in protocol.required {
        if MapFields::of(node).get(key).is_none() {
            findings.error(node.spot, format!("`{key}` is missing: {why}"));
        }
    }
    let is_used = |key: &str| {
        key == TYPE
            || protocol.optional.contains(&key)
            || protocol.required.iter().any(|(required, _)| *required == key)
    };
    for (key, value) in node.as_map().unwrap_or_default() {
        // A key that no protocol has is reported by the table.
        let is_known = |row: &ChannelProtocol| {
            row.optional.contains(&&*key.name)
                || row.required.iter().any(|(one, _)| *one == key.name)
        };
        if !is_used(&key.name) && CHANNEL_PROTOCOLS.iter().any(is_known) {
            let message =
                format!("`{}` does nothing for `type: {}`; remove it", key.name, protocol.word);
            findings.with_step(&key.name, |findings| findings.error(value.spot, message));
        }
    }
}

/// Where a secret is, by `<key>_env` or `<key>_file`.
fn read_secret(
    fields: &MapFields<'_>,
    key: &str,
    folder: &str,
    findings: &mut Findings,
) -> Option<ChannelSecret> {
    let (variable, file) = (format!("{key}_env"), format!("{key}_file"));
    let (named, file_node) = (fields.get(&variable), fields.get(&file));
    let path = file_node.and_then(Node::as_text).map(str::to_owned);
    match (named.and_then(Node::as_text), path) {
        (Some(_), Some(_)) => {
            let spot = file_node.map_or(Spot::default(), |node| node.spot);
            findings.error(spot, format!("give either `{variable}` or `{file}`, not both"));
            None
        }
        (Some(name), None) => Some(ChannelSecret::Variable(name.to_owned())),
        (None, Some(path)) if path.starts_with('/') || folder.is_empty() => {
            Some(ChannelSecret::File(path))
        }
        (None, Some(path)) => Some(ChannelSecret::File(format!("{folder}/{path}"))),
        (None, None) => None,
    }
}

/// Checks that the channels of each workflow exist and can decide.
fn check_workflows(
    top: &Node,
    workflows: &BTreeMap<String, Workflow>,
    channels: &BTreeMap<String, ChannelSettings>,
    findings: &mut Findings,
) {
    let defined = |name: &String| {
        let section = MapFields::of(top).get("channels");
        section.is_some_and(|section| MapFields::of(section).get(name).is_some())
    };
    for (name, workflow) in workflows {
        let spot = spot_of(top, name);
        findings.push_step("approval");
        findings.push_step(name);
        findings.push_step("channels");
        for channel in &workflow.channels {
            if !defined(channel) {
                let names: Vec<String> = channels.keys().map(|name| format!("`{name}`")).collect();
                let known = if names.is_empty() {
                    "define it in `channels`".to_owned()
                } else {
                    format!("available: {}", names.join(", "))
                };
                findings.error(spot, format!("there is no channel `{channel}`; {known}"));
            }
            let Some(settings) = channels.get(channel) else { continue };
            let approver = &settings.approver;
            let is_barred =
                !workflow.approvers.is_empty() && !workflow.approvers.contains(approver);
            if is_barred && settings.protocol().has_approver {
                let message = format!(
                    "the channel `{channel}` decides as `{approver}`, who is not among the \
                     `approvers`; name one of them as its `approver`"
                );
                findings.error(spot, message);
            }
        }
        (0..3).for_each(|_| findings.pop_step());
    }
}

/// Where a workflow lists its channels.
fn spot_of(top: &Node, workflow: &str) -> Spot {
    let section = MapFields::of(top).get("approval");
    let workflow = section.and_then(|section| MapFields::of(section).get(workflow));
    let list = workflow.and_then(|workflow| MapFields::of(workflow).get("channels"));
    list.map_or(Spot::default(), |node| node.spot)
}
