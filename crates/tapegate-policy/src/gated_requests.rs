//! Which requests are gated, and what they name.

use std::borrow::Cow;

use tapegate_core::gate::ListMethod;
use tapegate_core::json::JsonStr;

use crate::methods::fold;

/// The kinds of items that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OfferKind {
    /// A tool, by its name.
    Tool,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its URI.
    Resource,
    /// A resource template, by its text.
    Template,
}

/// A request that uses something a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GatedMethod {
    /// `tools/call`.
    Call,
    /// `prompts/get`.
    Prompt,
    /// `resources/read`.
    Read,
    /// `resources/subscribe`.
    Subscribe,
    /// `resources/unsubscribe`, which only visibility can stop.
    Unsubscribe,
    /// `completion/complete`, for a prompt or a template.
    Complete,
    /// `subscriptions/listen`, for each resource in it.
    Listen,
}

impl GatedMethod {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Call,
        Self::Prompt,
        Self::Read,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Complete,
        Self::Listen,
    ];

    /// The gated request with this method, in any spelling: see [`fold`].
    pub fn of(method: &str) -> Option<Self> {
        Self::exact(method).or_else(|| match fold(method) {
            // Folding changed nothing, so the exact comparison above has already failed for this
            // text.
            Cow::Borrowed(_) => None,
            Cow::Owned(folded) => Self::exact(&folded),
        })
    }

    /// The same for a method as it appears in a message.
    pub fn read(method: JsonStr<'_>) -> Option<Self> {
        // The most frequent method is compared byte by byte.
        let plain = Some(Self::Call).filter(|call| method.raw == call.method().as_bytes());
        plain.or_else(|| Self::of(&method.decode()))
    }

    fn exact(method: &str) -> Option<Self> {
        Some(match method {
            "tools/call" => Self::Call,
            "prompts/get" => Self::Prompt,
            "resources/read" => Self::Read,
            "resources/subscribe" => Self::Subscribe,
            "resources/unsubscribe" => Self::Unsubscribe,
            "completion/complete" => Self::Complete,
            "subscriptions/listen" => Self::Listen,
            _ => return None,
        })
    }

    pub fn method(self) -> &'static str {
        match self {
            Self::Call => "tools/call",
            Self::Prompt => "prompts/get",
            Self::Read => "resources/read",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::Complete => "completion/complete",
            Self::Listen => "subscriptions/listen",
        }
    }

    /// The kind of item that the request uses under this name.
    pub fn offer(self, name: &str) -> OfferKind {
        match self {
            Self::Call => OfferKind::Tool,
            Self::Prompt => OfferKind::Prompt,
            // The type of the `ref` is not known here. `decide` checks a name such as `a:b` as both
            // kinds.
            Self::Complete if !name.contains("://") => OfferKind::Prompt,
            Self::Complete => OfferKind::Template,
            _ => OfferKind::Resource,
        }
    }
}

impl OfferKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    /// Its name in text for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }

    /// The member of a list reply that holds items of this kind.
    pub fn list(self) -> &'static str {
        match self {
            Self::Tool => "tools",
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }

    /// The method that lists items of this kind.
    pub fn list_method(self) -> &'static str {
        self.list_request().name()
    }

    /// The request that lists items of this kind.
    pub fn list_request(self) -> ListMethod {
        match self {
            Self::Tool => ListMethod::Tools,
            Self::Prompt => ListMethod::Prompts,
            Self::Resource => ListMethod::Resources,
            Self::Template => ListMethod::Templates,
        }
    }

    /// The member of an item that identifies it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Tool | Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_known_however_they_are_spelled() {
        for gated in GatedMethod::ALL {
            assert_eq!(GatedMethod::of(gated.method()), Some(gated));
            assert_eq!(GatedMethod::of(&gated.method().to_uppercase()), Some(gated));
            assert_eq!(GatedMethod::of(&format!(" {}\0", gated.method())), Some(gated));
        }
        for other in ["tools/list", "tools/calls", "", "logging/setLevel", "tools /call"] {
            assert_eq!(GatedMethod::of(other), None, "{other}");
        }
    }
}
