//! The methods of the protocol, in every revision from 2024-11-05 to 2026-07-28.
//!
//! The table is also in `docs/policy.md`, and a test compares the two. A method that is not in it, or
//! that comes from the other side, is unknown and follows `governance.defaults`.

use std::borrow::Cow;

use tapegate_core::side::Side;

use crate::gated_requests::GatedMethod;
use MethodTreatment::{Conversation, Housekeeping, Logged, Unknown};

/// How a method is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MethodTreatment {
    /// It uses something that the server offers: visibility, rules and defaults decide.
    Gated(GatedMethod),
    /// No session works without it: it passes, unless a rule gives its whole name.
    Conversation,
    /// It passes, unless a rule names it.
    Housekeeping,
    /// It is logged and passes, unless a rule names it.
    Logged,
    /// The protocol has no such method: rules that name it and `governance.defaults` decide.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
pub struct ProtocolMethod {
    /// Its name. A final `*` stands for any single step.
    pub name: &'static str,
    /// How it is treated if the client sends it.
    pub from_client: MethodTreatment,
    /// How it is treated if the server sends it.
    pub from_server: MethodTreatment,
}

const fn row(
    name: &'static str,
    from_client: MethodTreatment,
    from_server: MethodTreatment,
) -> ProtocolMethod {
    ProtocolMethod { name, from_client, from_server }
}

/// The methods of the protocol that are not gated.
pub const PROTOCOL: &[ProtocolMethod] = &[
    row("initialize", Conversation, Unknown),
    row("initialized", Conversation, Unknown),
    row("notifications/initialized", Conversation, Unknown),
    row("server/discover", Conversation, Unknown),
    row("ping", Conversation, Conversation),
    row("pong", Conversation, Conversation),
    row("notifications/cancelled", Conversation, Conversation),
    row("notifications/progress", Conversation, Conversation),
    row("notifications/tools/list_changed", Unknown, Conversation),
    row("notifications/prompts/list_changed", Unknown, Conversation),
    row("notifications/resources/list_changed", Unknown, Conversation),
    row("notifications/resources/updated", Unknown, Conversation),
    row("notifications/subscriptions/acknowledged", Unknown, Conversation),
    row("notifications/message", Unknown, Housekeeping),
    row("notifications/elicitation/complete", Unknown, Housekeeping),
    row("notifications/roots/list_changed", Housekeeping, Unknown),
    row("tools/list", Housekeeping, Unknown),
    row("prompts/list", Housekeeping, Unknown),
    row("resources/list", Housekeeping, Unknown),
    row("resources/templates/list", Housekeeping, Unknown),
    row("logging/setLevel", Housekeeping, Unknown),
    row("tasks/get", Housekeeping, Logged),
    row("tasks/result", Housekeeping, Logged),
    row("tasks/list", Housekeeping, Logged),
    row("tasks/cancel", Housekeeping, Logged),
    row("tasks/update", Housekeeping, Unknown),
    row("notifications/tasks", Housekeeping, Housekeeping),
    row("notifications/tasks/*", Housekeeping, Housekeeping),
    row("sampling/createMessage", Unknown, Logged),
    row("elicitation/create", Unknown, Logged),
    row("roots/list", Unknown, Logged),
];

impl MethodTreatment {
    /// How a method is treated when `from` sends it.
    ///
    /// Only gated methods are recognised in other spellings, since a server that folds case would
    /// run them. Any other unusual spelling is unknown, which is the stricter treatment.
    pub fn of(method: &str, from: Side) -> Self {
        if from == Side::Client
            && let Some(gated) = GatedMethod::of(method)
        {
            return Self::Gated(gated);
        }
        // Exact here: a misspelt `Ping` is unknown and follows the default, the stricter treatment.
        let known = PROTOCOL.iter().find(|known| known.matches(method));
        known.map_or(Unknown, |known| match from {
            Side::Client => known.from_client,
            Side::Server => known.from_server,
        })
    }

    /// Whether it is in the activity log even if no rule names it.
    pub fn is_logged(self) -> bool {
        matches!(self, Self::Gated(_) | Logged | Unknown)
    }
}

impl ProtocolMethod {
    fn matches(&self, method: &str) -> bool {
        match self.name.strip_suffix('*') {
            None => self.name == method,
            Some(start) => method.strip_prefix(start).is_some_and(|step| !step.contains('/')),
        }
    }
}

/// The side that sends a method; the client if both do or the method is unknown.
pub fn sender(method: &str) -> Side {
    let by_server = MethodTreatment::of(method, Side::Server) != Unknown;
    let by_client = MethodTreatment::of(method, Side::Client) != Unknown;
    if by_server && !by_client { Side::Server } else { Side::Client }
}

/// A method as rules compare it: trimmed and in lower case, because a server may be lenient about
/// both.
pub fn fold(method: &str) -> Cow<'_, str> {
    let plain = |byte: u8| byte.is_ascii_graphic() && !byte.is_ascii_uppercase();
    if method.bytes().all(plain) {
        return Cow::Borrowed(method);
    }
    let blank = |c: char| c.is_whitespace() || c.is_control() || c == '\u{feff}';
    let letters = method.trim_matches(blank).chars();
    // Some letters are only equal in upper case: `ſ` is an `s`.
    Cow::Owned(letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_does_not_have_is_unknown() {
        for method in ["admin/run", "tools/execute", "", "Tools/List", "notifications/tasks/a/b"] {
            assert_eq!(MethodTreatment::of(method, Side::Client), Unknown, "{method}");
            assert_eq!(MethodTreatment::of(method, Side::Server), Unknown, "{method}");
        }
    }

    #[test]
    fn a_method_from_the_wrong_side_is_unknown() {
        assert_eq!(
            MethodTreatment::of("tools/call", Side::Client),
            MethodTreatment::Gated(GatedMethod::Call)
        );
        assert_eq!(MethodTreatment::of("tools/call", Side::Server), Unknown);
        assert_eq!(MethodTreatment::of("sampling/createMessage", Side::Client), Unknown);
        assert_eq!(MethodTreatment::of("sampling/createMessage", Side::Server), Logged);
        assert_eq!(MethodTreatment::of("notifications/tasks/status", Side::Server), Housekeeping);
    }

    #[test]
    fn folding_takes_off_blanks_and_case() {
        for method in [" Tools/CALL", "tools/call\u{a0}", "\u{feff}tool\u{17f}/call\0"] {
            assert_eq!(fold(method), "tools/call");
        }
        assert!(matches!(fold("tools/call"), Cow::Borrowed(_)));
    }
}
