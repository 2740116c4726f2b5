//! Which recorded messages may be sent to a live server.
//!
//! Tapes contain commands that were meant for one occasion. Anything not known to be harmless
//! counts as a call, and a call is sent only if the user asked for it.

/// Which of the client's recorded messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallSelection {
    /// Only messages that list what a server offers.
    List,
    /// Also messages that read without side effects, as far as the server declares it.
    ReadOnly,
    /// Everything.
    All,
}

/// What a message from the client may do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageEffect {
    /// It only lists what the server offers.
    Discovers,
    /// It reads, or chooses what the server sends.
    Reads,
    /// It calls a tool; the tool's annotations declare what that does.
    CallsTool,
    /// It refers to a task, which belongs to the call that created it.
    FollowsTask,
    /// It cancels a request, which matters only if that was sent.
    TakesBack,
    /// It may do anything.
    Unknown,
}

impl MessageEffect {
    /// What a request with this method may do.
    pub(super) fn of_request(method: &str) -> Self {
        match method {
            "initialize" | "ping" | "server/discover" => Self::Discovers,
            "tools/list" | "resources/list" | "resources/templates/list" | "prompts/list" => {
                Self::Discovers
            }
            "resources/read" | "prompts/get" | "completion/complete" | "tasks/list" => Self::Reads,
            "resources/subscribe" | "resources/unsubscribe" | "subscriptions/listen" => Self::Reads,
            "logging/setLevel" => Self::Reads,
            "tools/call" => Self::CallsTool,
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel" => Self::FollowsTask,
            // New methods of the protocol count as calls until they are known to be harmless.
            _ => Self::Unknown,
        }
    }

    /// What a notification with this method may do.
    pub(super) fn of_notification(method: &str) -> Self {
        match method {
            "notifications/initialized" | "notifications/roots/list_changed" => Self::Discovers,
            "notifications/cancelled" => Self::TakesBack,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_call() {
        for method in ["", "tools/Call", "tools/call ", "tools/list2", "files/delete", "resources"]
        {
            assert_eq!(MessageEffect::of_request(method), MessageEffect::Unknown, "{method}");
            assert_eq!(MessageEffect::of_notification(method), MessageEffect::Unknown, "{method}");
        }
        // A method that is harmless as a request is not thereby harmless as a notification, nor
        // vice versa.
        assert_eq!(MessageEffect::of_notification("tools/list"), MessageEffect::Unknown);
        assert_eq!(MessageEffect::of_request("notifications/initialized"), MessageEffect::Unknown);
    }
}
