//! The definitions of the tools, from the settings.

use serde_json::{Value, json};

use crate::config::{BashConfig, ToolNameStyle};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BashTool {
    Execute,
    SessionInfo,
    ListRecent,
    ReadOutput,
    Stop,
}

/// The tools in the order in which they are listed.
const TOOLS: [(BashTool, &str); 5] = [
    (BashTool::Execute, "execute"),
    (BashTool::SessionInfo, "session_info"),
    (BashTool::ListRecent, "list_recent"),
    (BashTool::ReadOutput, "read_output"),
    (BashTool::Stop, "stop"),
];
/// How long a result may be before Claude Code puts it into a file.
const RESULT_CHARS_MAX: u64 = 500_000;

impl BashTool {
    /// The tool with this name, in either style.
    pub(super) fn find(name: &str) -> Option<Self> {
        let rest = name.strip_prefix("bash_recorder")?;
        let rest = rest.strip_prefix(['.', '_'])?;
        TOOLS.iter().find(|(_, name)| *name == rest).map(|(tool, _)| *tool)
    }

    /// The names of its arguments.
    pub(super) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Execute => {
                &["command", "timeout", "working_directory", "description", "run_in_background"]
            }
            Self::SessionInfo => &[],
            Self::ListRecent => &["count"],
            Self::ReadOutput => {
                &["process_id", "since_offset", "since_stderr_offset", "max_bytes", "wait_seconds"]
            }
            Self::Stop => &["process_id", "signal"],
        }
    }
}

/// All tools, as `tools/list` shows them.
pub(super) fn list(config: &BashConfig) -> Value {
    let mark = match config.tool_names {
        ToolNameStyle::Dotted => '.',
        ToolNameStyle::Underscore => '_',
    };
    let tools: Vec<Value> = TOOLS
        .iter()
        .map(|(tool, name)| {
            let mut definition = match tool {
                BashTool::Execute => execute(config),
                BashTool::SessionInfo => session_info(),
                BashTool::ListRecent => list_recent(),
                BashTool::ReadOutput => read_output(config),
                BashTool::Stop => stop(),
            };
            definition["name"] = format!("bash_recorder{mark}{name}").into();
            definition
        })
        .collect();
    json!({"tools": tools})
}

fn read_only() -> Value {
    json!({"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false})
}

fn nullable(kind: &str) -> Value {
    json!({"type": [kind, "null"]})
}

/// Describes the limits of the sandbox, for the description of the tool.
fn sandbox_text(config: &BashConfig) -> String {
    let sandbox = &config.execution.sandbox;
    let mut text = String::new();
    if let Some(roots) = &sandbox.write_roots {
        let roots: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
        text = match roots.is_empty() {
            true => "Files cannot be changed. ".to_owned(),
            false => format!("Files can be changed only below {}. ", roots.join(", ")),
        };
    }
    if !sandbox.network {
        text.push_str("There is no network. ");
    }
    text
}

fn execute(config: &BashConfig) -> Value {
    let execution = &config.execution;
    let (default, max) = (execution.default_timeout, execution.max_timeout);
    let recorded = match config.recording.enabled {
        true => "Every command is recorded.",
        false => "Commands are not recorded.",
    };
    let description = format!(
        "Execute a shell command with {shell} and record the execution.\n\n\
         Each command runs in a fresh shell: `cd` and exported variables do not persist, so pass \
         working_directory. Standard input is closed; use non-interactive flags. The timeout is \
         {default} s by default and {max} s at most; after it everything the command started is \
         killed and the output so far is returned. For servers and other long commands set \
         run_in_background and use read_output and stop. Output beyond {inline} bytes per stream \
         is cut in the middle and can be read with read_output. A nonzero exit code is a result, \
         not an error. {sandbox}{recorded}",
        shell = execution.shell.display(),
        inline = execution.inline_output_size,
        sandbox = sandbox_text(config),
    );
    json!({
        "name": "",
        "title": "Execute a command",
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "The bash command to execute"},
                "timeout": {
                    "type": "integer", "description": "Timeout in seconds",
                    "default": default, "minimum": 1, "maximum": max,
                },
                "working_directory": {"type": "string", "description": "Directory to run command in"},
                "description": {
                    "type": "string",
                    "description": "Human-readable description of the command's purpose",
                },
                "run_in_background": {
                    "type": "boolean", "default": false,
                    "description": "Return at once; read_output shows the output, stop ends it. Without a timeout it runs until the server ends",
                },
            },
            "required": ["command"],
        },
        "outputSchema": execute_output(),
        "annotations": {
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false,
            "openWorldHint": true,
        },
        "_meta": {"anthropic/maxResultSizeChars": RESULT_CHARS_MAX},
    })
}

/// The result of `execute`: the keys of the document, and where they say something, ours.
fn execute_output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "stdout": {"type": "string"},
            "stderr": {"type": "string"},
            "exit_code": nullable("integer"),
            "timed_out": {"type": "boolean"},
            "duration_ms": {"type": "integer"},
            "recording_id": nullable("string"),
            "working_directory": {"type": "string"},
            "signal": {"type": "string", "description": "The signal that ended the shell"},
            "truncated": {"type": "boolean", "description": "Whether output was cut in the middle"},
            "stdout_bytes": {"type": "integer"},
            "stderr_bytes": {"type": "integer"},
            "process_id": {"type": "string", "description": "For read_output and stop"},
            "background_children": {"type": "boolean"},
            "notice": {"type": "string"},
        },
        "required": [
            "stdout", "stderr", "exit_code", "timed_out", "duration_ms", "recording_id",
            "working_directory",
        ],
    })
}

fn session_info() -> Value {
    json!({
        "name": "",
        "title": "Recording session",
        "description": "Get information about the current recording session",
        "inputSchema": {"type": "object", "properties": {}},
        "outputSchema": {
            "type": "object",
            "properties": {
                "session_id": nullable("string"),
                "entry_count": {"type": "integer"},
                "recording_enabled": {"type": "boolean"},
                "status": nullable("string"),
                "created_at": nullable("string"),
                "session_mode": {"type": "string"},
                "recording_directory": {"type": "string"},
                "health": {"type": "object"},
            },
            "required": ["session_id", "entry_count", "recording_enabled"],
        },
        "annotations": read_only(),
    })
}

fn list_recent() -> Value {
    json!({
        "name": "",
        "title": "Recent commands",
        "description": "List recent recordings of the current session, newest first",
        "inputSchema": {
            "type": "object",
            "properties": {
                "count": {
                    "type": "integer", "description": "How many", "default": 10, "minimum": 1,
                    "maximum": 100,
                },
            },
        },
        "outputSchema": {
            "type": "object",
            "properties": {"recordings": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "entry_id": {"type": "string"},
                    "command": {"type": "string"},
                    "exit_code": nullable("integer"),
                    "timed_out": {"type": "boolean"},
                    "duration_ms": {"type": "integer"},
                    "timestamp": {"type": "string"},
                },
                "required": ["entry_id", "command", "exit_code", "duration_ms", "timestamp"],
            }}},
            "required": ["recordings"],
        },
        "annotations": read_only(),
    })
}

fn read_output(config: &BashConfig) -> Value {
    let inline = config.execution.inline_output_size;
    json!({
        "name": "",
        "title": "Read output",
        "description": "Read output of a background command, or output that was cut. Without \
            offsets, continues where the last read of this process ended",
        "inputSchema": {
            "type": "object",
            "properties": {
                "process_id": {"type": "string", "description": "As returned by execute"},
                "since_offset": {"type": "integer", "minimum": 0, "description": "Byte of stdout to start at"},
                "since_stderr_offset": {"type": "integer", "minimum": 0, "description": "Byte of stderr to start at"},
                "max_bytes": {
                    "type": "integer", "minimum": 1, "maximum": inline, "default": inline,
                    "description": "How much to return per stream",
                },
                "wait_seconds": {
                    "type": "integer", "minimum": 0, "maximum": 600, "default": 0,
                    "description": "Wait this long for new output or the end",
                },
            },
            "required": ["process_id"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "process_id": {"type": "string"},
                "running": {"type": "boolean"},
                "stdout": {"type": "string"},
                "stderr": {"type": "string"},
                "next_offset": {"type": "integer"},
                "next_stderr_offset": {"type": "integer"},
                "skipped_bytes": {"type": "integer", "description": "Bytes that are no longer kept"},
                "exit_code": nullable("integer"),
                "timed_out": {"type": "boolean"},
                "signal": {"type": "string"},
                "duration_ms": {"type": "integer"},
                "recording_id": nullable("string"),
                "notice": {"type": "string"},
            },
            "required": [
                "process_id", "running", "stdout", "stderr", "next_offset", "next_stderr_offset",
                "exit_code",
            ],
        },
        "annotations": read_only(),
    })
}

fn stop() -> Value {
    json!({
        "name": "",
        "title": "Stop a command",
        "description": "Stop a background command and everything it started: SIGTERM, and SIGKILL \
            after 2 s. With signal, only sends that signal",
        "inputSchema": {
            "type": "object",
            "properties": {
                "process_id": {"type": "string", "description": "As returned by execute"},
                "signal": {
                    "type": "string",
                    "enum": ["SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "SIGUSR1", "SIGUSR2", "SIGQUIT"],
                    "description": "Send this signal instead",
                },
            },
            "required": ["process_id"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "process_id": {"type": "string"},
                "running": {"type": "boolean"},
                "exit_code": nullable("integer"),
                "timed_out": {"type": "boolean"},
                "signal": {"type": "string"},
                "duration_ms": {"type": "integer"},
                "recording_id": nullable("string"),
                "notice": {"type": "string"},
            },
            "required": ["process_id", "running", "exit_code"],
        },
        "annotations": {
            "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true,
            "openWorldHint": false,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_styles_of_names_are_known_and_one_is_listed() {
        for name in ["bash_recorder.execute", "bash_recorder_execute"] {
            assert_eq!(BashTool::find(name), Some(BashTool::Execute));
        }
        for name in ["execute", "bash_recorderexecute", "bash_recorder.", "bash_recorder.rm", ""] {
            assert_eq!(BashTool::find(name), None, "{name}");
        }
        let mut config = BashConfig::default();
        let names = |config: &BashConfig| -> Vec<String> {
            let tools = list(config)["tools"].as_array().unwrap().clone();
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(&config)[..2], ["bash_recorder.execute", "bash_recorder.session_info"]);
        config.tool_names = ToolNameStyle::Underscore;
        assert!(names(&config).iter().all(|name| !name.contains('.')));
    }

    #[test]
    fn schemas_follow_the_settings_and_name_every_argument() {
        let mut config = BashConfig::default();
        (config.execution.default_timeout, config.execution.max_timeout) = (60, 90);
        let tools = list(&config)["tools"].as_array().unwrap().clone();
        let timeout = &tools[0]["inputSchema"]["properties"]["timeout"];
        assert_eq!((&timeout["default"], &timeout["maximum"]), (&json!(60), &json!(90)));
        for (tool, (kind, name)) in tools.iter().zip(TOOLS) {
            let known: Vec<&str> = kind.arguments().to_vec();
            let properties = tool["inputSchema"]["properties"].as_object().unwrap();
            assert!(properties.keys().eq(known.iter()), "{name}");
            let members = tool["outputSchema"]["properties"].as_object().unwrap();
            for required in tool["outputSchema"]["required"].as_array().unwrap() {
                assert!(members.contains_key(required.as_str().unwrap()), "{name}: {required}");
            }
        }
    }
}
