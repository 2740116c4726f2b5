//! The tables of the settings: their keys, values and meaning.

use tapegate_yaml::shape::Shape::{
    Any, Bool, Bytes, Choice, List, MapOf, Name, Table, Text, Whole,
};
use tapegate_yaml::table;

/// The largest time, in seconds: a year.
const SECONDS_MAX: u64 = 31_536_000;

table! { SETTINGS "settings", Take, "A settings file.";
    "plugins": Table(&PLUGINS) => "The plugins, by name.";
}

table! { PLUGINS "plugins", Take, "The plugins, by name.";
    "bash_recorder": Table(&PLUGIN) => "The bash tool.";
}

table! { PLUGIN "bash_recorder", Refuse, "The bash tool.";
    "enabled": Bool => "Whether the tool may be started. Default: true.";
    "type": Text => "Accepted and not used: how OpenCuff loads the plugin.";
    "module": Text => "Accepted and not used: where OpenCuff finds the plugin.";
    "config": Table(&CONFIG) => "Its settings.";
}

table! { CONFIG "config", Refuse, "The settings of the bash tool.";
    "recording": Table(&RECORDING) => "How commands are recorded.";
    "execution": Table(&EXECUTION) => "How commands are run.";
    "tool_name_style": Choice(&["dotted", "underscore"]), own_extension =>
        "How tools are named: `bash_recorder.execute`, or `bash_recorder_execute` for clients that refuse a dot. Default: dotted.";
}

table! { RECORDING "recording", Refuse, "How commands are recorded.";
    "enabled": Bool => "Whether commands are recorded. Default: true.";
    "directory": Name => "Folder of the recordings. Default: `.cuff/recordings`.";
    "capture_env": Bool => "Whether environment variables are recorded. Default: false.";
    "env_allowlist": List(&Name) =>
        "Variables that are recorded with `capture_env`; `X_*` stands for all that begin with `X_`. Default: PATH, HOME, USER, SHELL, PWD.";
    "capture_output": Bool => "Whether output is recorded. Default: true.";
    "max_output_size": Bytes => "How much of each stream is recorded. Default: 1000000.";
    "session_mode": Choice(&["per_conversation", "per_day", "continuous"]) =>
        "What a session is. Default: per_conversation, which is per_day if the client names no conversation.";
    "retention_days": Whole(0, 36_500) =>
        "After how many days recordings are deleted; 0 keeps them. Default: 30.";
}

table! { EXECUTION "execution", Refuse, "How commands are run.";
    "default_timeout": Whole(1, SECONDS_MAX) =>
        "How long a command may run, in seconds, if the caller does not say. Default: 120.";
    "max_timeout": Whole(1, SECONDS_MAX) => "How long it may run at most. Default: 600.";
    "working_directory": Any =>
        "Where commands run if the caller does not say. Default: the folder of the server.";
    "shell": Name => "The shell, as an absolute path. Default: /bin/bash.";
    "inherit_env": Bool => "Whether commands get the server's environment. Default: true.";
    "env_overrides": MapOf(&Text) => "Variables that are set or replaced.";
    "inline_output_size": Bytes, own_extension =>
        "How much of each stream an answer contains: half of it from the beginning, half from the end. Default: 30000.";
    "max_running": Whole(1, 4096), own_extension =>
        "How many commands may run at once. Default: 256.";
    "limits": Table(&LIMITS), own_extension => "Limits that the kernel enforces.";
    "sandbox": Table(&SANDBOX), own_extension =>
        "What the kernel keeps commands from. Linux only; if the kernel cannot enforce it, the tool does not start.";
}

table! { SANDBOX "sandbox", Refuse, "What the kernel keeps commands from.";
    "write_roots": List(&Name), own_extension =>
        "The folders and files that commands may change, and everything below them; relative to the folder of the server. Devices such as /dev/null always. Default: all.";
    "network": Bool, own_extension =>
        "Whether commands may use the network, also of this machine. Unix sockets are not affected. Default: true.";
}

table! { LIMITS "limits", Refuse, "Limits that the kernel enforces for each process of a command.";
    "processes": Whole(1, 4_194_304), own_extension =>
        "How many processes the user may have. The kernel does not apply it to root.";
    "memory": Bytes, own_extension => "Address space of a process, at least 64mb.";
    "cpu_seconds": Whole(1, SECONDS_MAX), own_extension => "Processor time of a process.";
    "file_size": Bytes, own_extension => "Size of a file that it writes.";
    "open_files": Whole(16, 1_048_576), own_extension => "Files that it has open.";
}
