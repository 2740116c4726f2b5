//! How a hub tells people of calls that wait.

use std::collections::BTreeMap;

/// A channel of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelSettings {
    /// The protocol.
    pub kind: ChannelKind,
    /// Where to send to.
    pub url: String,
    /// Where the secret is, if there is one.
    pub secret: Option<ChannelSecret>,
    /// Where people reach the hub, for one-time links.
    pub links: Option<String>,
    /// In whose name one-time links decide.
    pub approver: String,
    /// The id of the Slack channel; otherwise empty.
    pub room: String,
    /// The names of Slack users, by id.
    pub users: BTreeMap<String, String>,
    /// Where the secret is that signs what the channel's server sends to the hub.
    pub signing_secret: Option<ChannelSecret>,
    /// Whether a desktop notification has a button that approves.
    pub approve_button: bool,
}

impl ChannelSettings {
    /// The protocol's row.
    pub fn protocol(&self) -> &'static ChannelProtocol {
        self.kind.protocol()
    }
}

/// What the policy language knows of a protocol.
#[derive(Debug)]
pub struct ChannelProtocol {
    /// The protocol.
    pub kind: ChannelKind,
    /// The word in policies, logs and metrics.
    pub word: &'static str,
    /// Keys that must be given, with what they are.
    pub required: &'static [(&'static str, &'static str)],
    /// The `url` if none is given; empty if it must be, or has no meaning.
    pub default_url: &'static str,
    /// Keys that may be given.
    pub optional: &'static [&'static str],
    /// Whether `secret_env` or `secret_file` must be given.
    pub needs_secret: bool,
    /// Which one-time links its messages have.
    pub links: LinkUse,
    /// Whether answers count as those of `approver`, because they do not tell who gave them.
    pub has_approver: bool,
}

/// Which one-time links the messages of a channel have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkUse {
    /// None.
    Never,
    /// Only if `links` says where people reach the hub.
    IfConfigured,
    /// By default, links to the hub's own address.
    Always,
}

/// All protocols. A new one needs its row here, and its file in the hub.
pub const CHANNEL_PROTOCOLS: &[ChannelProtocol] = &[
    ChannelProtocol {
        kind: ChannelKind::Webhook,
        word: "webhook",
        required: &[URL],
        default_url: "",
        optional: &["secret_env", "secret_file", "links", "approver"],
        needs_secret: true,
        links: LinkUse::Always,
        has_approver: true,
    },
    ChannelProtocol {
        kind: ChannelKind::Ntfy,
        word: "ntfy",
        required: &[URL],
        default_url: "",
        optional: &["secret_env", "secret_file", "links", "approver"],
        // A topic may be open to everyone who knows its name.
        needs_secret: false,
        links: LinkUse::IfConfigured,
        has_approver: true,
    },
    ChannelProtocol {
        kind: ChannelKind::Slack,
        word: "slack",
        required: &[("room", "the id of the Slack channel, such as `C024BE91L`")],
        default_url: "https://slack.com/api",
        optional: &[
            "url",
            "secret_env",
            "secret_file",
            "users",
            "signing_secret_env",
            "signing_secret_file",
        ],
        needs_secret: true,
        links: LinkUse::Never,
        has_approver: false,
    },
    ChannelProtocol {
        kind: ChannelKind::Desktop,
        word: "desktop",
        required: &[],
        default_url: "",
        optional: &["approver", "approve_button"],
        needs_secret: false,
        links: LinkUse::Never,
        has_approver: true,
    },
];

const URL: (&str, &str) = ("url", "where to send to");

/// The protocol of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelKind {
    /// A signed POST.
    Webhook,
    /// A push through an ntfy server.
    Ntfy,
    /// A message in Slack.
    Slack,
    /// A notification on the desktop of the hub's user.
    Desktop,
}

/// Where the secret of a channel is. The secret itself is never part of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelSecret {
    /// In a variable of the hub's environment.
    Variable(String),
    /// In a file.
    File(String),
}

impl ChannelKind {
    /// The protocol's row.
    pub fn protocol(self) -> &'static ChannelProtocol {
        let row = CHANNEL_PROTOCOLS.iter().find(|protocol| protocol.kind == self);
        row.unwrap_or(&CHANNEL_PROTOCOLS[0])
    }

    /// The word in policies, logs and metrics.
    pub fn as_str(self) -> &'static str {
        self.protocol().word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_has_its_row() {
        use ChannelKind::{Desktop, Ntfy, Slack, Webhook};
        for kind in [Webhook, Ntfy, Slack, Desktop] {
            assert_eq!(kind.protocol().kind, kind);
        }
    }
}
