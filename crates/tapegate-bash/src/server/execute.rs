//! The tool that runs a command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use rustix::fs::{Access, access};
use serde_json::{Value, json};
use tapegate_core::hex;

use super::arguments::ToolArguments;
use super::caller::CallerRequest;
use super::mailbox::ToolCallKey;
use super::output_text::{InlineText, inline};
use super::tool_host::ToolHost;
use super::tool_result;
use crate::config::BashConfig;
use crate::executor::{
    self, COMMAND_BYTES_MAX, CommandEnd, CommandObserver, CommandOutcome, RunningCommand,
    ShellCommand, StreamCapture,
};
use crate::log_record::LogSeverity;
use crate::recording::entry::{AgentContext, EntryFacts, EntryOutput, RecordedStream};
use crate::recording::env_capture;
use crate::recording::recorder::{CommandStart, EntryTicket, FinishedCommand, RecordingOutcome};
use crate::signal_name::signal_name;

/// Variables that keep programs from waiting for an answer, unless they are set.
const QUIET_VARIABLES: [(&str, &str); 3] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0")];

/// Records the end of a command and answers its call.
struct CommandCall {
    host: Arc<ToolHost>,
    config: Arc<BashConfig>,
    key: ToolCallKey,
    number: u64,
    process_id: String,
    ticket: Option<EntryTicket>,
    recording: Option<RecordingOutcome>,
    context: AgentContext,
    command_hash: String,
    working_directory: String,
    env: Vec<(OsString, OsString)>,
    is_background: bool,
    /// What the caller must know besides the result.
    notices: Vec<String>,
}

impl ToolHost {
    /// Starts a command; the error is for the caller, and then nothing was executed.
    pub(super) fn execute(
        self: &Arc<Self>,
        key: &ToolCallKey,
        caller: &CallerRequest,
        arguments: &ToolArguments<'_>,
    ) -> Result<(), String> {
        let config = self.config();
        let command = arguments.required_text("command")?;
        check_command(command)?;
        self.check_reading(&config, command)?;
        let is_background = arguments.flag("run_in_background")?;
        let (timeout, notices) = timeout(&config, arguments.number("timeout", 1)?);
        let named = arguments.text("working_directory")?;
        let folder = working_directory(&config, &self.environment().folder, named)?;
        let running = self.processes.running_count();
        if running >= config.execution.max_running {
            return Err(format!(
                "{running} commands are running, which is the limit; wait for one or stop one"
            ));
        }
        let env = command_env(&config, self.environment().variables.clone(), &folder);
        // In the background, only a time that the caller sets ends a command: servers run for days.
        let limit = arguments.number("timeout", 1)?.is_some() || !is_background;
        let start = CommandStart {
            command: command.to_owned(),
            description: arguments.text("description")?.map(str::to_owned),
            working_directory: folder.display().to_string(),
            shell: config.execution.shell.display().to_string(),
            timeout_seconds: timeout,
            background: is_background,
            context: caller.context.clone(),
        };
        let shell_command = ShellCommand {
            shell: config.execution.shell.clone(),
            command: command.to_owned(),
            folder: folder.clone(),
            env: env.clone(),
            limits: config.execution.limits,
            sandbox: config.execution.sandbox.clone(),
            timeout: limit.then(|| Duration::from_secs(timeout)),
            head_bytes_max: head_bytes_max(&config),
        };
        let reserved = self.processes.reserve(key.session);
        let (number, process_id) =
            reserved.map_err(|error| format!("The command cannot be started: {error}"))?;
        let call = CommandCall {
            host: Arc::clone(self),
            key: key.clone(),
            number,
            process_id,
            // After all checks, so a refused command leaves no mark.
            ticket: self.recorder.begin(start),
            recording: None,
            context: caller.context.clone(),
            command_hash: command_hash(command),
            working_directory: folder.display().to_string(),
            env: if config.recording.capture_env { env } else { Vec::new() },
            is_background,
            notices,
            config,
        };
        call.start(shell_command)
    }
}

impl CommandCall {
    fn start(self, command: ShellCommand) -> Result<(), String> {
        let (host, key, number) = (Arc::clone(&self.host), self.key.clone(), self.number);
        let (is_background, folder) = (self.is_background, self.working_directory.clone());
        let id = self.process_id.clone();
        let started = executor::start(command, |running| {
            // Before the command runs, so that a cancellation always finds it.
            host.processes.add((number, &id), &key, running, is_background);
            Box::new(self)
        });
        if let Err(error) = started {
            host.processes.remove(number);
            return Err(format!("The command cannot be started: {error}"));
        }
        if is_background {
            let result = json!({
                "stdout": "", "stderr": "", "exit_code": null, "timed_out": false,
                "duration_ms": 0, "recording_id": null, "working_directory": folder,
                "process_id": id,
                "notice": format!("running; read_output process_id={id} shows its output, stop ends it; it is recorded when it ends"),
            });
            // Only now, since the call would otherwise promise a command that did not start.
            host.mailbox.answer(&key, Ok(tool_result::success(result)));
        }
        Ok(())
    }

    fn finished(&self, command: &RunningCommand, outcome: &CommandOutcome) -> FinishedCommand {
        let state = command.state();
        let recording = &self.config.recording;
        let recorded = |stream: &StreamCapture| {
            let max = recording.max_output_size;
            // The head may be longer than the recording permits, because replies need it.
            let head = &stream.head()[..stream.head().len().min(max)];
            let is_truncated = stream.total_bytes() > max as u64;
            recording.capture_output.then(|| RecordedStream::new(head, is_truncated))
        };
        let output = EntryOutput {
            stdout: recorded(&state.stdout),
            stderr: recorded(&state.stderr),
            total_bytes: [state.stdout.total_bytes(), state.stderr.total_bytes()],
        };
        let facts = EntryFacts {
            signal: signal_of(outcome),
            cancelled: outcome.cancelled,
            interrupted: outcome.interrupted,
            background: self.is_background,
            background_children: outcome.has_children,
        };
        let environment = recording.capture_env;
        FinishedCommand {
            duration_ms: outcome.duration.as_millis() as u64,
            timed_out: outcome.timed_out,
            exit_code: exit_code(outcome),
            output,
            environment: environment
                .then(|| env_capture::capture(&self.env, &recording.env_allowlist)),
            facts,
        }
    }

    fn recording_id(&self) -> Option<String> {
        self.recording.as_ref().and_then(RecordingOutcome::id).map(str::to_owned)
    }

    fn log_execution(&self, session_id: Option<String>, outcome: &CommandOutcome) {
        let fields = [
            ("session_id", session_id.into()),
            ("entry_id", self.recording_id().into()),
            ("trace_id", self.context.trace_id.clone().into()),
            ("command_hash", self.command_hash.as_str().into()),
            ("duration_ms", (outcome.duration.as_millis() as u64).into()),
            ("exit_code", exit_code(outcome).into()),
        ];
        let fields = fields.into_iter().filter(|(_, value): &(_, Value)| !value.is_null());
        self.host.log.log(LogSeverity::Debug, "Command executed", fields);
    }

    /// The result for the caller.
    fn result(&self, command: &RunningCommand, outcome: &CommandOutcome) -> Value {
        let max = self.config.execution.inline_output_size;
        let state = command.state();
        let (stdout, stderr) = (inline(&state.stdout, max), inline(&state.stderr, max));
        let is_cut = stdout.cut_bytes + stderr.cut_bytes > 0;
        let mut result = json!({
            "stdout": stdout.text,
            "stderr": stderr.text,
            "exit_code": exit_code(outcome),
            "timed_out": outcome.timed_out,
            "duration_ms": outcome.duration.as_millis() as u64,
            "recording_id": self.recording_id(),
            "working_directory": self.working_directory,
        });
        if let Some(signal) = signal_of(outcome) {
            result["signal"] = signal.into();
        }
        if is_cut {
            result["truncated"] = true.into();
            result["stdout_bytes"] = state.stdout.total_bytes().into();
            result["stderr_bytes"] = state.stderr.total_bytes().into();
        }
        if outcome.has_children {
            result["background_children"] = true.into();
        }
        // Only then is there more to read, so that other results stay short.
        if is_cut || outcome.has_children {
            result["process_id"] = self.process_id.as_str().into();
        }
        // The table is never locked while the state of a command is.
        drop(state);
        if result.get("process_id").is_some() {
            self.host.processes.change(self.number, |entry| entry.is_known = true);
        }
        let notices = self.all_notices(outcome, [("stdout", &stdout), ("stderr", &stderr)]);
        if !notices.is_empty() {
            result["notice"] = notices.join("; ").into();
        }
        let mut result = tool_result::success(result);
        if let Some(RecordingOutcome::Failed(reason)) = &self.recording {
            // For programs; models read the notice.
            result["_meta"] = json!({"recording_error": reason});
        }
        result
    }

    fn all_notices(
        &self,
        outcome: &CommandOutcome,
        streams: [(&str, &InlineText); 2],
    ) -> Vec<String> {
        let mut notices = self.notices.clone();
        let id = &self.process_id;
        if outcome.timed_out {
            notices.push(format!(
                "killed after {:.0} s; last output {:.0} s ago; set run_in_background for commands that take longer",
                outcome.duration.as_secs_f64(),
                outcome.silence.as_secs_f64()
            ));
        }
        if outcome.end == CommandEnd::Lost {
            notices.push("its supervisor was killed, so the exit code is not known".to_owned());
        }
        if outcome.has_children {
            notices.push(format!(
                "processes that it started are still running: read_output process_id={id} shows their output, stop ends them"
            ));
        }
        for (name, stream) in streams {
            if stream.cut_bytes > 0 {
                notices.push(format!(
                    "{} bytes in the middle of {name} were cut: read_output process_id={id} returns what is kept",
                    stream.cut_bytes
                ));
            }
            if stream.is_lossy {
                notices.push(format!("{name} has bytes that are not UTF-8, shown as U+FFFD"));
            }
        }
        notices.extend(self.recording.as_ref().and_then(RecordingOutcome::notice));
        notices
    }
}

impl Drop for CommandCall {
    fn drop(&mut self) {
        // A command that was never started leaves no entry.
        self.host.recorder.forget(self.ticket.take());
    }
}

impl CommandObserver for CommandCall {
    fn on_progress(&mut self, elapsed: Duration, last_line: Option<&str>) {
        let line = last_line.map(without_controls).filter(|line| !line.is_empty());
        self.host.mailbox.progress(&self.key, elapsed.as_secs(), line.as_deref());
    }

    fn record(&mut self, command: &RunningCommand, outcome: &CommandOutcome) {
        if let CommandEnd::NotStarted(_) = outcome.end {
            return self.host.recorder.forget(self.ticket.take());
        }
        let finished = self.finished(command, outcome);
        let seconds = outcome.duration.as_secs_f64();
        // Before the write, which may fail and has a counter of its own.
        self.host.metrics.count_command(finished.exit_code, finished.timed_out, seconds);
        let session_id = self.ticket.as_ref().map(|ticket| ticket.session_id().to_owned());
        self.recording = Some(self.host.recorder.finish(self.ticket.take(), finished));
        let recording = self.recording.clone();
        self.host.processes.change(self.number, |entry| entry.recording = recording);
        self.log_execution(session_id, outcome);
    }

    fn report(&mut self, command: &RunningCommand, outcome: &CommandOutcome) {
        let result = match &outcome.end {
            CommandEnd::NotStarted(reason) => tool_result::failure(&format!(
                "The command was not executed: cannot start {}: {reason}",
                self.config.execution.shell.display()
            )),
            _ => self.result(command, outcome),
        };
        // A call in the background was answered at its start.
        if !self.is_background {
            self.host.mailbox.answer(&self.key, Ok(result));
        }
    }

    fn on_gone(&mut self, _: &RunningCommand) {
        self.host.processes.retire(self.number);
    }
}

/// The exit code, unless the command was ended.
pub(super) fn exit_code(outcome: &CommandOutcome) -> Option<i32> {
    let was_ended = outcome.timed_out || outcome.cancelled || outcome.interrupted;
    match outcome.end {
        // A shell that we end may still exit with 0, which must not look like success.
        CommandEnd::Exited(code) if !was_ended => Some(code),
        _ => None,
    }
}

/// The signal that ended the shell.
pub(super) fn signal_of(outcome: &CommandOutcome) -> Option<String> {
    match outcome.end {
        CommandEnd::Signaled(signal) => Some(signal_name(signal)),
        _ => None,
    }
}

fn check_command(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("Invalid argument: command must not be empty".to_owned());
    }
    if command.contains('\0') {
        return Err("Invalid argument: command must not contain a NUL byte".to_owned());
    }
    if command.len() > COMMAND_BYTES_MAX {
        return Err(format!(
            "Invalid argument: command has {} bytes, and the limit is {COMMAND_BYTES_MAX}; write it to a file and run that",
            command.len()
        ));
    }
    Ok(())
}

/// The hash by which logs name a command, whose text may have secrets in it.
fn command_hash(command: &str) -> String {
    let hash = digest(&SHA256, command.as_bytes());
    format!("sha256:{}", hex::encode(hash.as_ref()))
}

/// How long the command may run, and what to say about it.
fn timeout(config: &BashConfig, wanted: Option<u64>) -> (u64, Vec<String>) {
    let max = config.execution.max_timeout;
    match wanted {
        Some(wanted) if wanted > max => {
            (max, vec![format!("timeout {wanted} s is above the limit; {max} s was used")])
        }
        Some(wanted) => (wanted, Vec::new()),
        None => (config.execution.default_timeout, Vec::new()),
    }
}

fn working_directory(
    config: &BashConfig,
    server_folder: &Path,
    named: Option<&str>,
) -> Result<PathBuf, String> {
    let default = config.execution.working_directory.as_deref().unwrap_or(server_folder);
    let folder = named.map_or_else(|| default.to_owned(), |named| default.join(named));
    let name = folder.display();
    match folder.metadata() {
        Ok(there) if !there.is_dir() => {
            Err(format!("Invalid working directory: {name} is not a directory"))
        }
        // Checked here, because the shell's own error would not name the folder.
        Ok(_) if access(&folder, Access::EXEC_OK).is_err() => {
            Err(format!("Invalid working directory: {name} cannot be entered: permission denied"))
        }
        Ok(_) => Ok(folder),
        Err(error) => {
            let reason = match error.kind() {
                std::io::ErrorKind::NotFound => "does not exist".to_owned(),
                _ => format!("cannot be used: {error}"),
            };
            Err(format!("Invalid working directory: {name} {reason}"))
        }
    }
}

/// The environment of a command.
fn command_env(
    config: &BashConfig,
    inherited: Vec<(OsString, OsString)>,
    folder: &Path,
) -> Vec<(OsString, OsString)> {
    let mut env: std::collections::BTreeMap<OsString, OsString> = Default::default();
    if config.execution.inherit_env {
        // First, so that variables of the user replace them.
        env.extend(QUIET_VARIABLES.map(|(name, value)| (name.into(), value.into())));
        env.extend(inherited);
        // Shells trust an inherited `PWD` if it leads to the same folder, even by another path.
        env.insert("PWD".into(), folder.into());
    }
    let overrides = config.execution.env_overrides.iter();
    env.extend(overrides.map(|(name, value)| (name.into(), value.into())));
    env.into_iter().collect()
}

/// How much of the beginning of a stream is kept: enough for the recording and for the reply.
fn head_bytes_max(config: &BashConfig) -> usize {
    let recorded = match config.recording.enabled && config.recording.capture_output {
        true => config.recording.max_output_size,
        false => 0,
    };
    // One head serves both, so output is kept in memory once.
    recorded.max(config.execution.inline_output_size)
}

/// A line without escape sequences and control characters.
fn without_controls(line: &str) -> String {
    let mut text = String::new();
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            // A sequence ends with a letter; everything before it is parameters.
            '\u{1b}' => _ = letters.find(|letter| letter.is_ascii_alphabetic()),
            letter if letter.is_control() => {}
            letter => text.push(letter),
        }
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_name_a_command_by_its_sha_256() {
        let expected = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(command_hash("abc"), expected);
    }

    #[test]
    fn progress_lines_have_no_escapes() {
        assert_eq!(without_controls("\u{1b}[1;32mok\u{1b}[0m\t 3/4\u{7} "), "ok 3/4");
        assert_eq!(without_controls("\u{1b}["), "");
    }

    #[test]
    fn the_environment_is_inherited_or_only_what_is_set() {
        let mut config = BashConfig::default();
        config.execution.env_overrides = vec![("PAGER".to_owned(), "less".to_owned())];
        let inherited = vec![("GIT_PAGER".into(), "delta".into()), ("A".into(), "1".into())];
        let env = command_env(&config, inherited.clone(), Path::new("/w"));
        let get = |env: &[(OsString, OsString)], name: &str| {
            env.iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.to_str().unwrap().to_owned())
        };
        assert_eq!(get(&env, "PAGER").as_deref(), Some("less"));
        assert_eq!(get(&env, "GIT_PAGER").as_deref(), Some("delta"));
        assert_eq!(get(&env, "GIT_TERMINAL_PROMPT").as_deref(), Some("0"));
        assert_eq!(get(&env, "PWD").as_deref(), Some("/w"));
        config.execution.inherit_env = false;
        let env = command_env(&config, inherited, Path::new("/w"));
        assert_eq!(env, [("PAGER".into(), "less".into())]);
    }

    #[test]
    fn a_timeout_above_the_limit_is_lowered_and_that_is_said() {
        let config = BashConfig::default();
        assert_eq!(timeout(&config, None), (120, vec![]));
        assert_eq!(timeout(&config, Some(600)), (600, vec![]));
        let (used, notices) = timeout(&config, Some(601));
        assert_eq!(
            (used, notices[0].as_str()),
            (600, "timeout 601 s is above the limit; 600 s was used")
        );
    }
}
