//! The agents: their configs, their environment, and how they are started and asked.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::peers;

#[derive(Clone, Copy, Debug)]
pub(super) enum AgentKind {
    ClaudeCode,
    Codex,
    Gemini,
    Opencode,
    Cline,
    Continue,
}

impl AgentKind {
    /// Its name on our command lines.
    pub(super) fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Cline => "cline",
            Self::Continue => "continue",
        }
    }

    /// What starts it.
    pub(super) fn program(self) -> Vec<String> {
        let agent = |path: &str| peers::tools(&format!("agents/node_modules/{path}"));
        let script =
            |path: &str| vec![peers::node(), peers::tools(&format!("npm/node_modules/{path}"))];
        match self {
            Self::ClaudeCode => vec![agent("@anthropic-ai/claude-code-linux-x64/claude")],
            Self::Codex => vec![agent("codex/vendor/x86_64-unknown-linux-musl/bin/codex")],
            Self::Gemini => script("@google/gemini-cli/bundle/gemini.js"),
            Self::Opencode => vec![agent("opencode-linux-x64/bin/opencode")],
            Self::Cline => vec![agent("@cline/cli-linux-x64/bin/cline")],
            Self::Continue => script("@continuedev/cli/dist/cn.js"),
        }
    }

    /// A run in which the model calls a tool.
    pub(super) fn call(self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::ClaudeCode => {
                &["-p", "Call the tools.", "--permission-mode", "bypassPermissions"]
            }
            Self::Codex => &["exec", "--skip-git-repo-check", "Call the tools."],
            Self::Gemini => &["-m", "gemini-2.5-flash", "--yolo", "-p", "Call the tools."],
            Self::Opencode => &["run", "Call the tools."],
            Self::Cline => &["Call the tools."],
            Self::Continue => &["--auto", "-p", "Call the tools."],
        };
        let words = words.iter().map(|word| (*word).to_owned());
        self.program().into_iter().chain(words).collect()
    }

    /// The name by which it offers a tool to its model, without what it puts before all of them.
    pub(super) fn tool(self, name: &str) -> String {
        match self {
            Self::Codex => name.replace('-', "_"),
            _ => name.to_owned(),
        }
    }

    /// Its own check of its servers, if that connects to them.
    pub(super) fn list(self) -> Option<Vec<String>> {
        let connects = matches!(self, Self::ClaudeCode | Self::Gemini | Self::Opencode);
        let words = ["mcp", "list"].map(str::to_owned);
        connects.then(|| self.program().into_iter().chain(words).collect())
    }

    /// Variables for the model at `url`.
    pub(super) fn environment(self, url: &str) -> Vec<(&'static str, String)> {
        let on = |name| (name, "1".to_owned());
        match self {
            Self::ClaudeCode => vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("ANTHROPIC_API_KEY", "none".to_owned()),
                ("ENABLE_TOOL_SEARCH", "false".to_owned()),
                // Its first question would go to the model before all servers are connected.
                ("MCP_CONNECTION_NONBLOCKING", "0".to_owned()),
                on("DISABLE_TELEMETRY"),
                on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"),
            ],
            Self::Codex => vec![("SCRIPTED_KEY", "none".to_owned())],
            Self::Gemini => vec![
                ("GEMINI_API_KEY", "none".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", url.to_owned()),
            ],
            Self::Opencode => {
                vec![on("OPENCODE_DISABLE_MODELS_FETCH"), on("OPENCODE_DISABLE_AUTOUPDATE")]
            }
            Self::Cline => Vec::new(),
            Self::Continue => vec![("CONTINUE_TELEMETRY_ENABLED", "0".to_owned())],
        }
    }

    /// Its config, relative to the home folder, written as a person might: with comments and odd
    /// blanks where the agent takes them.
    pub(super) fn config(
        self,
        server: &[String],
        url: &str,
        project: &Path,
    ) -> (&'static str, String) {
        let (command, args) = (json!(server[0]), json!(server[1..]));
        match self {
            Self::ClaudeCode => (
                ".claude.json",
                format!(
                    "{{\"mcpServers\" : {{\n\t\"ev\":{{\"type\":\"stdio\",\"command\":{command},\"args\":{args}}}}},\n \"hasCompletedOnboarding\":true, \"unknown ü\" : [1.50, {{\"x\": null}}],\n \"projects\": {{\"/other\": {{\"mcpServers\": {{\"other\": {{\"command\": \"x\"}}}}, \"allowedTools\": [\"Read\"]}}}},\n \"theme\": \"light\"}}"
                ),
            ),
            Self::Codex => (
                ".codex/config.toml",
                format!(
                    "# mine\r\nmodel = 'm' # ü\r\nmodel_provider = 'scripted'\r\napproval_policy = 'never'\r\nsandbox_mode = 'danger-full-access'\r\n[model_providers.scripted]\r\nname = 'scripted'\r\nbase_url = '{url}/v1'\r\nwire_api = 'responses'\r\nenv_key = 'SCRIPTED_KEY'\r\n\r\n[mcp_servers.ev] # the server\r\ncommand = {command} # here\r\nargs = {args}\r\nstartup_timeout_sec = 120\r\n"
                ),
            ),
            Self::Gemini => (
                ".gemini/settings.json",
                format!(
                    "{{ // mine\n  \"security\": {{\"auth\": {{\"selectedType\": \"gemini-api-key\"}}}},\n  \"general\": {{\"enableAutoUpdate\": false}},\n  \"privacy\": {{\"usageStatisticsEnabled\": false}},\n  /* servers */ \"mcpServers\": {{\"ev\": {{\"command\": {command}, \"args\": {args}, \"trust\": true}}}}\n}}\n"
                ),
            ),
            Self::Opencode => (
                ".config/opencode/opencode.jsonc",
                // Without the schema, opencode writes it into the file.
                format!(
                    "{{ // mine\n \"$schema\": \"https://opencode.ai/config.json\",\n \"autoupdate\": false, \"share\": \"disabled\", \"model\": \"scripted/m\",\n \"provider\": {{\"scripted\": {{\"npm\": \"@ai-sdk/openai-compatible\", \"name\": \"scripted\", \"options\": {{\"baseURL\": \"{url}/v1\", \"apiKey\": \"none\"}}, \"models\": {{\"m\": {{\"name\": \"m\"}}}}}}}},\n \"mcp\": {{\"ev\": {{\"type\": \"local\", \"command\": {words},}},}},\n}}\n",
                    words = json!(server)
                ),
            ),
            Self::Cline => (
                ".cline/data/settings/cline_mcp_settings.json",
                format!(
                    "{{\"mcpServers\":{{\"ev\":{{\"transport\":{{\"type\":\"stdio\",\"command\":{command},\"args\":{args}}}}}}}}}"
                ),
            ),
            Self::Continue => (
                ".continue/config.yaml",
                format!(
                    "name: t # mine\nversion: 0.0.1\nschema: v1\nmodels:\n  - {{name: m, provider: openai, model: m, apiBase: '{url}/v1', apiKey: none, roles: [chat], capabilities: [tool_use]}}\nmcpServers:\n  # in {project}\n  - name: ev\n    command: {command}\n    args: {args}\n",
                    project = project.display()
                ),
            ),
        }
    }
}

/// The tools of a server, as Codex's app server lists them.
pub(super) fn codex_tools(mut command: Command, server: &str) -> Vec<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("it starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut send = |message: Value| writeln!(input, "{message}").expect("it reads");
    let mut answer = |id: u64| {
        let messages = lines.by_ref().map(|line| line.expect("a line"));
        let mut messages = messages.map(|line| serde_json::from_str::<Value>(&line).expect("JSON"));
        messages.find(|message| message["id"] == id).expect("an answer")
    };
    let client = json!({ "clientInfo": { "name": "test", "version": "1" } });
    send(json!({ "id": 1, "method": "initialize", "params": client }));
    answer(1);
    send(json!({ "method": "initialized" }));
    send(json!({ "id": 2, "method": "mcpServerStatus/list", "params": {} }));
    let listed = answer(2);
    child.kill().expect("it can be killed");
    child.wait().expect("it is reaped");
    let servers = listed["result"]["data"].as_array().cloned().unwrap_or_default();
    let tools = servers.iter().find(|one| one["name"] == server).map(|one| one["tools"].clone());
    let tools = tools.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    tools.keys().cloned().collect()
}
