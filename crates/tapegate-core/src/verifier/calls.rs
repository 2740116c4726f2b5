//! Which recorded messages may be sent to a live server.
//!
//! Tapes carry commands that were meant once. What is not known to be harmless is a call, and a
//! call is sent only when the user asked for it.

/// How much of what a client said is said again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Calls {
    /// What a client says to learn what a server has.
    List,
    /// Besides, what reads and does not change anything, as far as the server says.
    ReadOnly,
    /// Everything.
    All,
}

/// What a client's message may do to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It only asks what there is.
    Discovers,
    /// It reads, or says what it wants to hear.
    Reads,
    /// It calls a tool, and the tool's annotations say what that does.
    CallsTool,
    /// It is about a task, which belongs to the call that made it.
    FollowsTask,
    /// It takes a request back, which matters only if that was sent.
    TakesBack,
    /// It may do anything.
    Unknown,
}

impl Effect {
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
            assert_eq!(Effect::of_request(method), Effect::Unknown, "{method}");
            assert_eq!(Effect::of_notification(method), Effect::Unknown, "{method}");
        }
        // A method that is harmless as a request says nothing about a notification, and back.
        assert_eq!(Effect::of_notification("tools/list"), Effect::Unknown);
        assert_eq!(Effect::of_request("notifications/initialized"), Effect::Unknown);
    }
}
