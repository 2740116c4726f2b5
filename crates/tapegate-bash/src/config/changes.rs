//! Which settings differ, for the log.

use super::{BashConfig, ExecutionConfig, RecordingConfig};

impl BashConfig {
    /// The keys whose values differ, as the file names them.
    pub fn changed_keys(&self, other: &Self) -> Vec<&'static str> {
        // Taken apart, so that the compiler names a key that is missing below.
        let Self { recording, execution, tool_names } = self;
        let mut keys = recording_keys(recording, &other.recording).to_vec();
        keys.extend(execution_keys(execution, &other.execution));
        keys.push(("tool_name_style", *tool_names == other.tool_names));
        keys.into_iter().filter(|(_, same)| !same).map(|(key, _)| key).collect()
    }
}

/// Each key, and whether both have the same value.
fn recording_keys(one: &RecordingConfig, other: &RecordingConfig) -> [(&'static str, bool); 8] {
    let RecordingConfig {
        enabled,
        directory,
        capture_env,
        env_allowlist,
        capture_output,
        max_output_size,
        session_mode,
        retention_days,
    } = one;
    [
        ("recording.enabled", *enabled == other.enabled),
        ("recording.directory", *directory == other.directory),
        ("recording.capture_env", *capture_env == other.capture_env),
        ("recording.env_allowlist", *env_allowlist == other.env_allowlist),
        ("recording.capture_output", *capture_output == other.capture_output),
        ("recording.max_output_size", *max_output_size == other.max_output_size),
        ("recording.session_mode", *session_mode == other.session_mode),
        ("recording.retention_days", *retention_days == other.retention_days),
    ]
}

fn execution_keys(one: &ExecutionConfig, other: &ExecutionConfig) -> [(&'static str, bool); 10] {
    let ExecutionConfig {
        default_timeout,
        max_timeout,
        working_directory,
        shell,
        inherit_env,
        env_overrides,
        inline_output_size,
        max_running,
        limits,
        sandbox,
    } = one;
    [
        ("execution.default_timeout", *default_timeout == other.default_timeout),
        ("execution.max_timeout", *max_timeout == other.max_timeout),
        ("execution.working_directory", *working_directory == other.working_directory),
        ("execution.shell", *shell == other.shell),
        ("execution.inherit_env", *inherit_env == other.inherit_env),
        ("execution.env_overrides", *env_overrides == other.env_overrides),
        ("execution.inline_output_size", *inline_output_size == other.inline_output_size),
        ("execution.max_running", *max_running == other.max_running),
        ("execution.limits", *limits == other.limits),
        ("execution.sandbox", *sandbox == other.sandbox),
    ]
}
