//! Settings are read as the document shows them, and mistakes are named.

use super::*;

fn lines(text: &str) -> Vec<String> {
    load(text).findings.iter().map(|finding| finding.line(&[], "s.yml")).collect()
}

fn config(inner: &str) -> BashConfig {
    let inner: String = inner.lines().map(|line| format!("      {line}\n")).collect();
    let text = format!("plugins:\n  bash_recorder:\n    config:\n{inner}");
    let loaded = load(&text);
    assert!(loaded.findings.is_empty(), "{:?}", loaded.findings);
    loaded.config.unwrap()
}

#[test]
fn the_example_of_the_document_has_the_default_values() {
    let text = "\
plugins:
  bash_recorder:
    enabled: true
    type: in_source
    module: opencuff.plugins.builtin.bash_recorder
    config:
      recording:
        enabled: true
        directory: .cuff/recordings
        capture_env: false
        env_allowlist: [PATH, HOME, USER, SHELL, PWD, VIRTUAL_ENV]
        capture_output: true
        max_output_size: 1000000
        session_mode: per_conversation
        retention_days: 30

      execution:
        default_timeout: 120
        max_timeout: 600
        working_directory: null
        shell: /bin/bash
        inherit_env: true
        env_overrides:
          CI: \"true\"
  another_plugin: {anything: [1]}
other: 1
";
    let loaded = load(text);
    assert!(loaded.findings.is_empty(), "{:?}", loaded.findings);
    let mut expected = BashConfig::default();
    expected.recording.env_allowlist.push("VIRTUAL_ENV".to_owned());
    expected.execution.env_overrides = vec![("CI".to_owned(), "true".to_owned())];
    assert_eq!(loaded.config, Some(expected));
}

#[test]
fn the_three_example_profiles_load() {
    let development = config(
        "recording:\n  capture_env: true\n  env_allowlist: [PATH, NODE_ENV]\n  \
         max_output_size: 5000000  # 5MB\n  retention_days: 90\nexecution:\n  default_timeout: 300",
    );
    assert_eq!(development.recording.max_output_size, 5_000_000);
    assert_eq!(
        (development.execution.default_timeout, development.recording.retention_days),
        (300, 90)
    );
    let ci = config(
        "recording:\n  directory: /var/log/cuff/recordings\n  capture_output: false\n  \
         session_mode: continuous\n  retention_days: 7\nexecution:\n  default_timeout: 60\n  \
         max_timeout: 120\n  shell: /bin/sh",
    );
    assert_eq!(ci.recording.session_mode, SessionMode::Continuous);
    assert_eq!((ci.execution.max_timeout, ci.execution.shell.to_str()), (120, Some("/bin/sh")));
    let policy = config("recording:\n  retention_days: 0\nexecution:\n  max_timeout: 600");
    assert_eq!(policy.recording.retention_days, 0);
}

#[test]
fn mistakes_are_named_with_their_place() {
    let of =
        |inner: &str| lines(&format!("plugins:\n  bash_recorder:\n    config:\n      {inner}\n"));
    for (inner, message) in [
        ("recordings: {}", "recording"),
        ("recording: {retention: 3}", "retention_days"),
        ("recording: {max_output_size: 0}", "at least 1 bytes"),
        ("recording: {session_mode: daily}", "per_day"),
        ("recording: {retention_days: -1}", "retention_days"),
        ("execution: {default_timeout: 0}", "default_timeout"),
        ("execution: {default_timeout: 700}", "is more than `max_timeout` (600)"),
        ("execution: {shell: bash}", "not an absolute path"),
        ("execution: {env_overrides: {CI: true}}", "CI"),
        ("execution: {limits: {memory: 1kb}}", "at least 67108864 bytes"),
        ("execution: {sandbox: {}}", "this restricts nothing"),
        ("execution: {sandbox: {network: true}}", "this restricts nothing"),
        ("execution: {sandbox: {network: false, writable: [a]}}", "writable"),
        ("tool_name_style: dots", "dotted"),
    ] {
        let found = of(inner);
        assert!(found.len() == 1 && found[0].contains(message), "{inner}: {found:?}");
        assert!(found[0].starts_with("s.yml:4:"), "{found:?}");
    }
    let disabled = lines("plugins:\n  bash_recorder:\n    enabled: false\n");
    assert!(disabled[0].contains("disabled"), "{disabled:?}");
}

#[test]
fn a_file_of_another_program_has_no_settings() {
    let loaded = load("plugins:\n  dummy: {x: 1}\n");
    assert!(!loaded.is_present && loaded.config.is_none() && loaded.findings.is_empty());
}
