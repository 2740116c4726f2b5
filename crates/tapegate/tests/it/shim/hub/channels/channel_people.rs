//! How people answer through each channel, for the tests that have them all do the same.

use std::sync::OnceLock;

use serde_json::Value;

use super::desktop_session::DesktopSession;
use super::sdk_session::SdkSession;
use super::slack_buttons::post_signed;
use super::slack_fake::FakeSlack;
use super::{HubProcess, event, text};
use crate::http_peers::WebServer;
use crate::support::{TmuxServer, approvals_of, script_of, tapegate, wait_for, wait_until};

/// People who answer through one channel.
pub(super) trait ChannelPeople: Sync {
    /// What the policy has about the channel `c`, after its name; empty if people answer in another
    /// way.
    fn section(&self) -> String;

    fn environment(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Called once there is a hub.
    fn begin(&self, _hub: &HubProcess) {}

    /// Waits until the channel tells of a call of this tool.
    fn is_told(&self, run: &SdkSession, tool: &str);

    /// Waits until a hub that was started again can take an answer.
    fn is_told_again(&self, _tool: &str) {}

    /// Answers a call of this tool. Where that is known, returns whether it counted.
    fn answers(&self, of: (&HubProcess, &SdkSession), tool: &str, approve: bool) -> Option<bool>;

    /// Waits until the channel tells how a call has ended.
    fn is_concluded(&self, hub: &HubProcess, tool: &str, word: &str);

    /// Whether the answer to a question can reach another hub than the one that has asked.
    fn outlives_its_hub(&self) -> bool {
        true
    }
}

impl ChannelPeople for WebServer {
    fn section(&self) -> String {
        format!("type: webhook, url: '{}', secret_env: HOOK_SECRET", self.url("/hook"))
    }

    fn is_told(&self, _: &SdkSession, tool: &str) {
        hook_event(self, tool);
    }

    fn answers(
        &self,
        (hub, _): (&HubProcess, &SdkSession),
        tool: &str,
        approve: bool,
    ) -> Option<bool> {
        let link = if approve { "approve_url" } else { "deny_url" };
        Some(hub.follow(text(&hook_event(self, tool)[link])) == 200)
    }

    fn is_concluded(&self, _: &HubProcess, tool: &str, word: &str) {
        let id = hook_event(self, tool)["id"].clone();
        wait_until(word, || {
            let mut events = self.seen().into_iter().map(|seen| event(&seen));
            events.any(|event| {
                event["event"] == "approval.settled"
                    && event["id"] == id
                    && event["outcome"] == word
            })
        });
    }
}

fn hook_event(server: &WebServer, tool: &str) -> Value {
    wait_for("a webhook", || {
        let mut events = server.seen().into_iter().map(|seen| event(&seen));
        events.find(|event| event["tool"] == tool)
    })
}

/// A phone with an ntfy server.
pub(super) struct Phone(pub(super) WebServer);

impl Phone {
    fn message(&self, title: &str) -> Value {
        wait_for(title, || {
            let mut pushed = self.0.seen().into_iter().map(|seen| event(&seen));
            pushed.find(|message| message["title"] == title)
        })
    }
}

impl ChannelPeople for Phone {
    fn section(&self) -> String {
        format!("type: ntfy, url: '{}', links: 'https://gate.example.invalid'", self.0.url("/t"))
    }

    fn is_told(&self, _: &SdkSession, tool: &str) {
        self.message(&format!("Approve s {tool}?"));
    }

    fn answers(
        &self,
        (hub, _): (&HubProcess, &SdkSession),
        tool: &str,
        approve: bool,
    ) -> Option<bool> {
        let message = self.message(&format!("Approve s {tool}?"));
        let button = &message["actions"][usize::from(!approve)];
        let path = text(&button["url"]).strip_prefix("https://gate.example.invalid").unwrap();
        Some(hub.follow(&format!("{}{path}", hub.url)) == 200)
    }

    fn is_concluded(&self, _: &HubProcess, tool: &str, word: &str) {
        self.message(&format!("s {tool} {word}"));
    }
}

/// A Slack channel in which people react.
pub(super) struct Reactions(pub(super) FakeSlack);

impl ChannelPeople for Reactions {
    fn section(&self) -> String {
        let url = self.0.url();
        format!("type: slack, url: '{url}', room: C1, secret_env: SLACK_TOKEN, users: {{ U1: c }}")
    }

    fn is_told(&self, _: &SdkSession, tool: &str) {
        self.0.about(tool);
    }

    fn answers(&self, _: (&HubProcess, &SdkSession), tool: &str, approve: bool) -> Option<bool> {
        self.0.react(&self.0.about(tool).ts, if approve { "+1" } else { "-1" }, "U1");
        None
    }

    fn is_concluded(&self, _: &HubProcess, tool: &str, word: &str) {
        self.0.updated(&self.0.about(tool).ts, &format!("{word}: s {tool}"));
    }
}

/// The same where people press buttons.
pub(super) struct Buttons(pub(super) Reactions);

impl ChannelPeople for Buttons {
    fn section(&self) -> String {
        format!("{}, signing_secret_env: SIGNING_SECRET", self.0.section())
    }

    fn is_told(&self, run: &SdkSession, tool: &str) {
        self.0.is_told(run, tool);
    }

    fn answers(
        &self,
        (hub, _): (&HubProcess, &SdkSession),
        tool: &str,
        approve: bool,
    ) -> Option<bool> {
        let message = self.0.0.about(tool);
        let pressed = message.press(if approve { "Approve" } else { "Deny" }, "U1").unwrap();
        Some(post_signed(hub, &pressed) == 200)
    }

    fn is_concluded(&self, hub: &HubProcess, tool: &str, word: &str) {
        self.0.is_concluded(hub, tool, word);
    }
}

impl ChannelPeople for DesktopSession {
    fn section(&self) -> String {
        "type: desktop, approve_button: true".to_owned()
    }

    fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("DBUS_SESSION_BUS_ADDRESS", self.address())]
    }

    fn is_told(&self, _: &SdkSession, tool: &str) {
        self.shows(&format!("Approve s {tool}?"), 1);
    }

    fn is_told_again(&self, tool: &str) {
        // A notification ends with its connection, so the new hub shows it in place of the old one.
        self.shows(&format!("Approve s {tool}?"), 2);
        self.displays(1);
    }

    fn answers(&self, _: (&HubProcess, &SdkSession), tool: &str, approve: bool) -> Option<bool> {
        self.press(if approve { "Approve" } else { "Deny" }, &format!("Approve s {tool}?"));
        None
    }

    fn is_concluded(&self, _: &HubProcess, tool: &str, word: &str) {
        // The daemon closes a notification whose button was pressed.
        if matches!(word, "expired" | "cancelled") {
            self.shows(&format!("s {tool} {word}"), 1);
        }
    }
}

/// People who use the hub's API.
pub(super) struct ApiUsers;

impl ChannelPeople for ApiUsers {
    fn section(&self) -> String {
        String::new()
    }

    fn is_told(&self, _: &SdkSession, _: &str) {}

    fn answers(
        &self,
        (hub, _): (&HubProcess, &SdkSession),
        tool: &str,
        approve: bool,
    ) -> Option<bool> {
        let verb = if approve { "approve" } else { "deny" };
        let path = format!("POST /approvals/{}/{verb}", request_id(hub, tool));
        Some(hub.ask(&path, r#"{"by":"ann"}"#).status == 200)
    }

    fn is_concluded(&self, hub: &HubProcess, tool: &str, word: &str) {
        has_ended(hub, tool, word);
    }
}

/// A person with `approvals watch` in a terminal.
#[derive(Default)]
pub(super) struct Terminal(OnceLock<TmuxServer>);

impl Terminal {
    fn screen(&self) -> &TmuxServer {
        self.0.get().expect("a terminal")
    }
}

impl ChannelPeople for Terminal {
    fn section(&self) -> String {
        String::new()
    }

    fn begin(&self, hub: &HubProcess) {
        let mut command = tapegate();
        command.args(["approvals", "watch", "--by", "ann", "--state"]).arg(hub.state());
        command.env("TAPEGATE_HOME", hub.state());
        let script = script_of(&command, hub.folder.path());
        self.0.get_or_init(|| TmuxServer::start(&script, 100, 40));
    }

    fn is_told(&self, _: &SdkSession, tool: &str) {
        self.screen().shows(&format!("s · {tool} ─"));
        self.screen().shows("y approve");
    }

    fn answers(
        &self,
        (hub, _): (&HubProcess, &SdkSession),
        tool: &str,
        approve: bool,
    ) -> Option<bool> {
        let (id, before) = (request_id(hub, tool), self.screen().screen());
        // After the end of a call, its keys have nothing to decide.
        if hub.ruling(&id).is_some() && !before.contains("y approve") {
            self.screen().types(if approve { "y" } else { "n" });
            return None;
        }
        // A key does not count in the first half second.
        wait_until("a decision", || {
            self.screen().types(if approve { "y" } else { "n" });
            hub.ruling(&id).is_some()
        });
        None
    }

    fn is_concluded(&self, _: &HubProcess, tool: &str, word: &str) {
        let screen = self.screen();
        wait_until(word, || {
            let text = screen.screen();
            text.lines().any(|line| line.contains(word) && line.contains(tool))
        });
    }
}

/// The user of the client itself, who is asked by MCP elicitation.
pub(super) struct ClientUser;

impl ChannelPeople for ClientUser {
    fn section(&self) -> String {
        String::new()
    }

    fn is_told(&self, run: &SdkSession, tool: &str) {
        run.asked(tool);
    }

    fn answers(
        &self,
        (_, run): (&HubProcess, &SdkSession),
        tool: &str,
        approve: bool,
    ) -> Option<bool> {
        run.choose(tool, if approve { "approve" } else { "deny" });
        None
    }

    fn is_concluded(&self, hub: &HubProcess, tool: &str, word: &str) {
        has_ended(hub, tool, word);
    }

    fn outlives_its_hub(&self) -> bool {
        false
    }
}

/// The id of the request about a tool.
pub(super) fn request_id(hub: &HubProcess, tool: &str) -> String {
    wait_for("the request", || {
        let all = approvals_of(&hub.state()).entries().unwrap();
        all.into_iter().find(|entry| entry.request.tool == tool).map(|entry| entry.request.id)
    })
}

/// Waits until the request about a tool has ended like this.
fn has_ended(hub: &HubProcess, tool: &str, word: &str) {
    let id = request_id(hub, tool);
    wait_until(word, || hub.ruling(&id).is_some_and(|(outcome, _)| outcome.as_str() == word));
}
