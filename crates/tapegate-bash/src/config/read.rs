//! Reads settings from a checked tree.

use std::path::Path;

use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{BashConfig, ExecutionConfig, RecordingConfig, SessionMode, ToolNameStyle};
use crate::runner::{ResourceLimits, Sandbox};

/// Below this, shells do not start.
const MEMORY_BYTES_MIN: usize = 64 << 20;

const SESSION_MODES: [(&str, SessionMode); 3] = [
    ("per_conversation", SessionMode::PerConversation),
    ("per_day", SessionMode::PerDay),
    ("continuous", SessionMode::Continuous),
];
const NAME_STYLES: [(&str, ToolNameStyle); 2] =
    [("dotted", ToolNameStyle::Dotted), ("underscore", ToolNameStyle::Underscore)];

/// The settings of a plugin section.
pub(super) fn config(section: &Node, findings: &mut Findings) -> BashConfig {
    let plugin = MapFields::of(section);
    // An error rather than a server without tools: a client would show that as a healthy server.
    if plugin.flag("enabled", findings) == Some(false) {
        let message = "the plugin is disabled; set `enabled: true` to use it";
        findings.error(section.get("enabled").map_or(section.spot, |node| node.spot), message);
    }
    let Some(node) = plugin.get("config") else { return BashConfig::default() };
    let fields = MapFields::of(node);
    let recording = fields.get("recording");
    let execution = fields.get("execution");
    let style = fields.choice("tool_name_style", &NAME_STYLES, findings);
    BashConfig {
        recording: recording.map(|node| read_recording(node, findings)).unwrap_or_default(),
        execution: execution.map(|node| read_execution(node, findings)).unwrap_or_default(),
        tool_names: style.unwrap_or_default(),
    }
}

fn read_recording(node: &Node, findings: &mut Findings) -> RecordingConfig {
    let fields = MapFields::of(node);
    let default = RecordingConfig::default();
    let names = fields.get("env_allowlist").and_then(Node::as_list);
    let names = names.map(|list| list.iter().filter_map(Node::as_text).map(str::to_owned));
    let mode = fields.choice("session_mode", &SESSION_MODES, findings);
    RecordingConfig {
        enabled: fields.flag("enabled", findings).unwrap_or(default.enabled),
        directory: fields.text("directory", findings).map_or(default.directory, |text| text.into()),
        capture_env: fields.flag("capture_env", findings).unwrap_or(default.capture_env),
        env_allowlist: names.map_or(default.env_allowlist, Iterator::collect),
        capture_output: fields.flag("capture_output", findings).unwrap_or(default.capture_output),
        max_output_size: size(&fields, "max_output_size", 1, findings)
            .unwrap_or(default.max_output_size),
        session_mode: mode.unwrap_or_default(),
        retention_days: fields
            .whole_number("retention_days", findings)
            .unwrap_or(default.retention_days),
    }
}

fn read_execution(node: &Node, findings: &mut Findings) -> ExecutionConfig {
    let fields = MapFields::of(node);
    let default = ExecutionConfig::default();
    let max_timeout = fields.whole_number("max_timeout", findings).unwrap_or(default.max_timeout);
    let named = fields.whole_number("default_timeout", findings);
    if let Some(named) = named.filter(|named| *named > max_timeout) {
        let spot = fields.get("default_timeout").map_or(node.spot, |node| node.spot);
        findings.error(
            spot,
            format!("`default_timeout` ({named}) is more than `max_timeout` ({max_timeout})"),
        );
    }
    let shell = fields.text("shell", findings);
    if let Some(shell) = shell.filter(|shell| !Path::new(shell).is_absolute()) {
        let spot = fields.get("shell").map_or(node.spot, |node| node.spot);
        // A name would be looked up in a `PATH` that commands can change.
        findings.error(spot, format!("`{shell}` is not an absolute path, such as /bin/bash"));
    }
    let overrides = fields.get("env_overrides").and_then(Node::as_map).unwrap_or_default();
    let overrides = overrides
        .iter()
        .filter_map(|(key, node)| Some((key.name.clone(), node.as_text()?.to_owned())));
    let running = fields.whole_number("max_running", findings);
    let limits = fields.get("limits").map(|node| read_limits(node, findings));
    let sandbox = fields.get("sandbox").map(|node| read_sandbox(node, findings));
    ExecutionConfig {
        // A maximum below the default needs no second key.
        default_timeout: named.unwrap_or(default.default_timeout.min(max_timeout)),
        max_timeout,
        working_directory: fields.text("working_directory", findings).map(Into::into),
        shell: shell.map_or(default.shell, Into::into),
        inherit_env: fields.flag("inherit_env", findings).unwrap_or(default.inherit_env),
        env_overrides: overrides.collect(),
        inline_output_size: size(&fields, "inline_output_size", 200, findings)
            .unwrap_or(default.inline_output_size),
        max_running: running.map_or(default.max_running, |it| it as usize),
        limits: limits.unwrap_or_default(),
        sandbox: sandbox.unwrap_or_default(),
    }
}

fn read_sandbox(node: &Node, findings: &mut Findings) -> Sandbox {
    let fields = MapFields::of(node);
    let roots = fields.get("write_roots").and_then(Node::as_list);
    let roots = roots.map(|list| list.iter().filter_map(Node::as_text).map(Into::into).collect());
    let network = fields.flag("network", findings).unwrap_or(true);
    let sandbox = Sandbox { write_roots: roots, network };
    if !sandbox.is_active() {
        let message =
            "this restricts nothing; add `write_roots` or `network: false`, or leave it out";
        findings.error(node.spot, message);
    }
    sandbox
}

fn read_limits(node: &Node, findings: &mut Findings) -> ResourceLimits {
    let fields = MapFields::of(node);
    let memory = size(&fields, "memory", MEMORY_BYTES_MIN, findings);
    ResourceLimits {
        processes: fields.whole_number("processes", findings),
        memory_bytes: memory.map(|bytes| bytes as u64),
        cpu_seconds: fields.whole_number("cpu_seconds", findings),
        file_bytes: fields.bytes("file_size", findings).map(|bytes| bytes as u64),
        open_files: fields.whole_number("open_files", findings),
    }
}

/// A number of bytes that is large enough.
fn size(
    fields: &MapFields<'_>,
    name: &str,
    least: usize,
    findings: &mut Findings,
) -> Option<usize> {
    let bytes = fields.bytes(name, findings)?;
    if bytes < least {
        let spot = fields.get(name)?.spot;
        findings.error(spot, format!("`{name}` must be at least {least} bytes"));
    }
    Some(bytes)
}
