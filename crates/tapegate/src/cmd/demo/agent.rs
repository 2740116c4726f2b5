//! The demo's agent: takes its server from a config, and does what the descriptions of tools say.
//!
//! A model is told every description as text, and follows instructions in it more often than anyone
//! wants. Here, a script stands in for the model, so that each run shows the same.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};

use super::server::{NOTE, ORDER};
use crate::terminal_output;

/// What the user wants to know.
const CITIES: [&str; 2] = ["Oslo", "Bergen"];

/// Runs the agent with the first server of a config.
pub(super) fn run(config: &Path, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut session = DemoSession::start(config, out)?;
    session.open()?;
    for city in CITIES {
        session.ask_for(city)?;
    }
    session.close()
}

/// A session of the agent with its server.
struct DemoSession<'o> {
    config: PathBuf,
    server: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    out: &'o mut dyn Write,
    last_id: u64,
    /// What the tool's description says now.
    description: String,
    tools_changed: bool,
}

impl<'o> DemoSession<'o> {
    fn start(config: &Path, out: &'o mut dyn Write) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(config).context("cannot read the agent's config")?;
        let servers: Value =
            serde_json::from_str(&text).context("the agent's config is not JSON")?;
        let servers = servers["mcpServers"].as_object().context("the config has no servers")?;
        let (name, entry) = servers.iter().next().context("the config has no server")?;
        let arguments = entry["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let variables = entry["env"].as_object().into_iter().flatten();
        let variables = variables.filter_map(|(name, value)| Some((name, value.as_str()?)));
        let mut command = Command::new(entry["command"].as_str().context("no command")?);
        command.args(arguments).envs(variables).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = command.spawn().context("cannot start the server")?;
        let input = server.stdin.take().context("it has no input")?;
        let output = BufReader::new(server.stdout.take().context("it has no output")?).lines();
        writeln!(out, "{} starts its MCP server `{name}`", speaker("agent"))?;
        Ok(Self {
            config: config.to_owned(),
            server,
            input,
            output,
            out,
            last_id: 0,
            description: String::new(),
            tools_changed: false,
        })
    }

    fn open(&mut self) -> anyhow::Result<()> {
        let client = json!({ "name": "demo-agent", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        self.request("initialize", params)?;
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        self.list()
    }

    /// Reads the descriptions of the tools, as a model does.
    fn list(&mut self) -> anyhow::Result<()> {
        self.tools_changed = false;
        let reply = self.request("tools/list", json!({}))?;
        let tool = &reply["result"]["tools"][0];
        self.description = tool["description"].as_str().unwrap_or_default().to_owned();
        let name = tool["name"].as_str().unwrap_or("no tool");
        self.say("server", &format!("offers {name}: “{}”", self.description))
    }

    /// Calls the tool, with everything that its description asks for.
    fn ask_for(&mut self, city: &str) -> anyhow::Result<()> {
        let mut arguments = json!({ "city": city });
        if let Some(file) = ordered_file(&self.description).map(str::to_owned) {
            self.say("agent", &format!("does what the description says, and reads {file}"))?;
            let text = std::fs::read_to_string(in_home(&self.config, &file)).unwrap_or_default();
            arguments[NOTE] = text.trim_end().into();
        }
        self.say("agent", &format!("calls get_forecast {arguments}"))?;
        let params = json!({ "name": "get_forecast", "arguments": arguments });
        let reply = self.request("tools/call", params)?;
        match reply["result"]["content"][0]["text"].as_str() {
            Some(text) => self.say("server", text)?,
            None => self.say("gate", reply["error"]["message"].as_str().unwrap_or("no answer"))?,
        }
        if self.tools_changed {
            self.say("server", "says that its tools have changed")?;
            self.list()?;
        }
        Ok(())
    }

    fn request(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        for line in self.output.by_ref() {
            let message: Value = serde_json::from_str(&line?).context("not a message")?;
            if message["method"] == "notifications/tools/list_changed" {
                self.tools_changed = true;
            }
            if message["id"] == id {
                return Ok(message);
            }
        }
        anyhow::bail!("the server closed the session before it answered")
    }

    fn send(&mut self, message: &Value) -> anyhow::Result<()> {
        writeln!(self.input, "{message}").context("the server reads nothing any more")
    }

    fn say(&mut self, who: &str, what: &str) -> anyhow::Result<()> {
        writeln!(self.out, "{} {what}", speaker(who))?;
        Ok(self.out.flush()?)
    }

    fn close(self) -> anyhow::Result<()> {
        let Self { mut server, input, .. } = self;
        drop(input);
        let status = server.wait()?;
        anyhow::ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

/// The file whose content the description of a tool wants.
fn ordered_file(description: &str) -> Option<&str> {
    let (_, rest) = description.split_once(ORDER)?;
    rest.split_whitespace().next()
}

/// A path in the demo's home, which is beside the folder of the config.
fn in_home(config: &Path, file: &str) -> PathBuf {
    let root = config.parent().and_then(Path::parent).unwrap_or(config);
    root.join("home").join(file.strip_prefix("~/").unwrap_or(file))
}

/// The start of a line, in colour where standard output may be.
fn speaker(who: &str) -> String {
    let palette = terminal_output::palette_of_output();
    match who {
        "gate" => palette.red(&format!("{who:>6}:")),
        _ => palette.cyan(&format!("{who:>6}:")),
    }
}
