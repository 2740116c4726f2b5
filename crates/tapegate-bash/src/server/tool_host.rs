//! Runs the tools: settings, recordings and processes, shared by all threads of the server.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use serde_json::Value;
use tapegate_core::actor::ActorSessionId;

use super::arguments::ToolArguments;
use super::caller::CallerRequest;
use super::mailbox::{Mailbox, ToolCallKey};
use super::process_table::ProcessTable;
use super::protocol::RequestError;
use super::tool_result;
use super::tools::{self, BashTool};
use crate::config::BashConfig;
use crate::executor::TERM_GRACE;
use crate::log_record::{LogSeverity, LogSink};
use crate::metrics::BashMetrics;
use crate::recording::entry::AgentContext;
use crate::recording::recorder::{CommandStart, SessionRecorder};

/// How long commands may take to end with the server, after SIGKILL.
const SHUTDOWN_PATIENCE: Duration = Duration::from_millis(1500);

/// What a server starts with.
#[derive(Debug)]
pub struct ServerSetup {
    /// The settings, with absolute paths.
    pub config: BashConfig,
    /// The world around it.
    pub environment: ServerEnvironment,
    /// What holds under a policy; `None` without one.
    pub governance: Option<ToolGovernance>,
    /// Where it logs.
    pub log: LogSink,
}

/// What holds under a policy. Most settings are then those of the start: a file in the project,
/// which a permitted command may write, must not decide what permitted commands do.
#[derive(Debug, Clone, Copy)]
pub struct ToolGovernance {
    /// Why a line is not given to a shell, if that may read it in another way than the policy does.
    pub misreading: fn(&Path, &str) -> Option<String>,
}

/// The world around the server.
#[derive(Debug, Clone, Default)]
pub struct ServerEnvironment {
    /// Its environment variables, as far as commands may have them.
    pub variables: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    /// The conversation it was started for.
    pub conversation_id: Option<String>,
}

/// Runs the tools.
#[derive(Debug)]
pub struct ToolHost {
    config: RwLock<Arc<BashConfig>>,
    environment: ServerEnvironment,
    pub(super) governance: Option<ToolGovernance>,
    /// The keys whose new values wait for a restart.
    waiting_keys: Mutex<Vec<&'static str>>,
    pub(super) log: LogSink,
    pub(super) metrics: Arc<BashMetrics>,
    pub(super) recorder: Arc<SessionRecorder>,
    pub(super) processes: ProcessTable,
    pub(super) mailbox: Arc<Mailbox>,
}

impl ToolHost {
    pub(super) fn new(setup: ServerSetup, mailbox: Arc<Mailbox>) -> Self {
        let ServerSetup { config, environment, governance, log } = setup;
        let metrics = Arc::new(BashMetrics::default());
        let first = first_command(&config, &environment);
        let recording = config.recording.clone();
        let recorder = SessionRecorder::start(recording, &first, log.clone(), Arc::clone(&metrics));
        Self {
            config: RwLock::new(Arc::new(config)),
            environment,
            governance,
            waiting_keys: Mutex::default(),
            log,
            metrics,
            recorder,
            processes: ProcessTable::default(),
            mailbox,
        }
    }

    /// The settings in force.
    pub(super) fn config(&self) -> Arc<BashConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The world around the server.
    pub(super) fn environment(&self) -> &ServerEnvironment {
        &self.environment
    }

    /// The metrics, as Prometheus text.
    pub fn metrics_text(&self) -> String {
        self.metrics.prometheus_text()
    }

    /// Applies new settings; returns whether they differ.
    pub(super) fn reload(&self, config: BashConfig) -> bool {
        let config = match self.governance {
            Some(_) => self.without_waiting_keys(&config),
            None => config,
        };
        let config = Arc::new(config);
        let old = {
            let mut place = self.config.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, Arc::clone(&config))
        };
        let changed = old.changed_keys(&config);
        if changed.is_empty() {
            return false;
        }
        let first = first_command(&config, &self.environment);
        self.recorder.reload(config.recording.clone(), &first);
        let fields = [
            ("session_id", self.recorder.current_session().into()),
            ("changed", changed.join(",").into()),
        ];
        let fields = fields.into_iter().filter(|(_, value): &(_, Value)| !value.is_null());
        self.log.log(LogSeverity::Info, "Configuration changed", fields);
        true
    }

    /// Fails if the shell may read a line in another way than the policy does.
    pub(super) fn check_reading(&self, config: &BashConfig, command: &str) -> Result<(), String> {
        let misreading = self.governance.map(|governance| governance.misreading);
        let found = misreading.and_then(|find| find(&config.execution.shell, command));
        found.map_or(Ok(()), Err)
    }

    /// The settings in force, with those new values that change nothing about what commands may do
    /// and what is recorded. Notes which other ones wait.
    fn without_waiting_keys(&self, config: &BashConfig) -> BashConfig {
        let mut kept = BashConfig::clone(&self.config());
        kept.execution.default_timeout = config.execution.default_timeout;
        kept.execution.max_timeout = config.execution.max_timeout;
        kept.execution.inline_output_size = config.execution.inline_output_size;
        let changed = kept.changed_keys(config);
        if !changed.is_empty() {
            let fields = [("waiting", changed.join(",").into())];
            self.log.log(LogSeverity::Warn, "Configuration change waits for a restart", fields);
        }
        *self.waiting_keys.lock().unwrap_or_else(PoisonError::into_inner) = changed;
        kept
    }

    /// The keys whose new values wait for a restart.
    pub(super) fn waiting_keys(&self) -> Vec<&'static str> {
        self.waiting_keys.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The result of `tools/list`.
    pub(super) fn tool_list(&self) -> Value {
        tools::list(&self.config())
    }

    /// Starts a call. Its answer goes to the mailbox.
    pub(super) fn call(
        self: &Arc<Self>,
        key: &ToolCallKey,
        caller: &CallerRequest,
        params: &Value,
    ) -> Result<(), RequestError> {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| RequestError::params("`name` is missing"))?;
        let tool = BashTool::find(name);
        let tool = tool.ok_or_else(|| RequestError::params(&format!("Unknown tool: {name}")))?;
        let started =
            ToolArguments::of(params, tool.arguments()).and_then(|arguments| match tool {
                BashTool::Execute => self.execute(key, caller, &arguments),
                BashTool::SessionInfo => self.session_info(key, caller),
                BashTool::ListRecent => self.list_recent(key, caller, &arguments),
                BashTool::ReadOutput => self.read_output(key, &arguments),
                BashTool::Stop => self.stop(key, &arguments),
            });
        if let Err(message) = started {
            self.mailbox.answer(key, Ok(tool_result::failure(&message)));
        }
        Ok(())
    }

    /// Answers a call from another thread, because the answer takes time.
    pub(super) fn answer_later(
        self: &Arc<Self>,
        key: &ToolCallKey,
        answer: impl FnOnce(&Self) -> Value + Send + 'static,
    ) -> Result<(), String> {
        let (host, key) = (Arc::clone(self), key.clone());
        let work = move || {
            let result = answer(&host);
            host.mailbox.answer(&key, Ok(result));
        };
        let started = std::thread::Builder::new().name("answer".to_owned()).spawn(work);
        started.map(drop).map_err(|error| format!("The call cannot be served: {error}"))
    }

    /// Cancels a call: its command is ended, and it gets no answer.
    pub(super) fn cancel(&self, key: &ToolCallKey) {
        if self.mailbox.close_call(key)
            && let Some(command) = self.processes.of_call(key)
        {
            command.cancel(TERM_GRACE);
        }
    }

    /// Ends everything that a client has started.
    pub(super) fn end_session(&self, session: ActorSessionId) {
        for key in self.mailbox.calls_of(session) {
            self.mailbox.close_call(&key);
        }
        let commands = self.processes.of_session(session);
        commands.iter().for_each(|command| command.interrupt(TERM_GRACE));
    }

    /// Ends every command, and then every recording.
    pub fn shutdown(&self) {
        let commands = self.processes.all();
        commands.iter().for_each(|command| command.interrupt(TERM_GRACE));
        let deadline = Instant::now() + TERM_GRACE + SHUTDOWN_PATIENCE;
        for command in commands {
            let left = deadline.saturating_duration_since(Instant::now());
            command.wait_until(left, |state| state.outcome.is_some() && state.is_gone);
        }
        self.recorder.shutdown();
    }

    /// What a command of this caller would be recorded as.
    pub(super) fn caller_start(&self, caller: &CallerRequest) -> CommandStart {
        let first = first_command(&self.config(), &self.environment);
        CommandStart { context: caller.context.clone(), ..first }
    }
}

/// The session at the start has no command yet.
fn first_command(config: &BashConfig, environment: &ServerEnvironment) -> CommandStart {
    let folder = config.execution.working_directory.as_ref().unwrap_or(&environment.folder);
    let conversation_id = environment.conversation_id.clone();
    CommandStart {
        working_directory: folder.display().to_string(),
        shell: config.execution.shell.display().to_string(),
        context: AgentContext { conversation_id, ..AgentContext::default() },
        ..CommandStart::default()
    }
}
