//! The routes of the API.

use http::Method;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiRoute {
    /// Asks for a decision.
    Evaluate,
    /// Reports that a shim is alive.
    Heartbeat,
    /// Returns the status of a task.
    Task,
    /// Decides again whether an approved call may be sent.
    Revalidate,
    /// Withdraws a task.
    Cancel,
    /// Decides as the user of a client has answered in it.
    Answer,
    /// Writes events to the activity log.
    Events,
    /// Lists the pending approval requests.
    Approvals,
    /// Returns a request and its state.
    Approval,
    /// Lists the grants.
    Grants,
    RevokeGrant,
    /// Approves a request.
    Approve,
    /// Denies a request.
    Deny,
    /// Returns how the channels of a request's workflow stand to it.
    Channels,
    /// Decides as a one-time link says.
    Link,
    /// Shows what a one-time link decides.
    LinkPage,
    /// Takes a signed request from the server of a channel.
    ChannelPost,
    /// Returns the metrics.
    Metrics,
    /// Returns the API description.
    OpenApi,
    /// Returns the policy as the hub read it.
    Snapshot,
    /// Opens the stream of pushes.
    Stream,
    /// Shuts down the hub and its shims.
    Shutdown,
    /// Whether the hub is alive.
    Healthz,
    /// Whether the hub is ready.
    Readyz,
}

/// All routes: method, path and route. `{id}` stands for one path segment.
pub const ROUTES: &[(&str, &str, ApiRoute)] = &[
    ("POST", "/governance/evaluate", ApiRoute::Evaluate),
    ("POST", "/governance/heartbeat", ApiRoute::Heartbeat),
    ("GET", "/governance/task/{id}", ApiRoute::Task),
    ("POST", "/governance/task/{id}/revalidate", ApiRoute::Revalidate),
    ("POST", "/governance/task/{id}/cancel", ApiRoute::Cancel),
    ("POST", "/governance/task/{id}/answer", ApiRoute::Answer),
    ("POST", "/governance/events", ApiRoute::Events),
    ("GET", "/governance/snapshot", ApiRoute::Snapshot),
    ("GET", "/governance/stream", ApiRoute::Stream),
    ("POST", "/governance/shutdown", ApiRoute::Shutdown),
    ("GET", "/approvals", ApiRoute::Approvals),
    // Before those with an id in the middle, since a channel may be called `approve`.
    ("POST", "/approvals/channels/{id}", ApiRoute::ChannelPost),
    // Before the one with an id in its place, which no request has.
    ("GET", "/approvals/grants", ApiRoute::Grants),
    ("POST", "/approvals/grants/{id}/revoke", ApiRoute::RevokeGrant),
    ("GET", "/approvals/{id}", ApiRoute::Approval),
    ("POST", "/approvals/{id}/approve", ApiRoute::Approve),
    ("POST", "/approvals/{id}/deny", ApiRoute::Deny),
    ("GET", "/approvals/{id}/channels", ApiRoute::Channels),
    ("POST", "/approvals/links/{id}", ApiRoute::Link),
    ("GET", "/approvals/links/{id}", ApiRoute::LinkPage),
    ("GET", "/metrics", ApiRoute::Metrics),
    ("GET", "/openapi.json", ApiRoute::OpenApi),
    ("GET", "/healthz", ApiRoute::Healthz),
    ("GET", "/readyz", ApiRoute::Readyz),
];

/// What a method and a path lead to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RouteMatch<'a> {
    /// A route, with the value of `{id}`.
    Route(ApiRoute, &'a str),
    /// A path that exists, but only for these methods.
    Method(Vec<&'static str>),
    /// A path that does not exist.
    Nothing,
}

/// Finds the route for a method and a path.
pub(super) fn find<'a>(method: &Method, path: &'a str) -> RouteMatch<'a> {
    let mut allowed = Vec::new();
    for (wanted, pattern, route) in ROUTES {
        let Some(id) = match_path(pattern, path) else { continue };
        // Link previews and browsers ask for the head of a page first.
        let is_head = *method == Method::HEAD && *route == ApiRoute::LinkPage;
        if method.as_str() == *wanted || is_head {
            return RouteMatch::Route(*route, id);
        }
        allowed.push(*wanted);
    }
    if allowed.is_empty() { RouteMatch::Nothing } else { RouteMatch::Method(allowed) }
}

/// The value of `{id}`, or an empty one, if the path matches.
fn match_path<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (pattern == path).then_some("");
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

impl ApiRoute {
    /// Whether the shims' token is not enough, since an agent may be able to read it.
    pub(super) fn is_for_approvers(self) -> bool {
        matches!(
            self,
            Self::Approval
                | Self::Approvals
                | Self::Approve
                | Self::Channels
                | Self::Deny
                | Self::Grants
                | Self::RevokeGrant
                | Self::Shutdown
        )
    }

    /// Whether the body may be missing though the method is POST.
    pub(super) fn needs_no_body(self) -> bool {
        matches!(self, Self::Shutdown | Self::Cancel)
    }

    /// Whether the path or the body proves what the caller may do, or nothing needs to be proven.
    pub(super) fn needs_no_token(self) -> bool {
        // `/healthz` carries the proof that a shim asks for before it sends its token.
        matches!(self, Self::Healthz | Self::Link | Self::LinkPage | Self::ChannelPost)
    }

    /// Whether the route reads a body. A link does not: its caller is not authenticated.
    pub(super) fn has_body(self) -> bool {
        self != Self::Link
            && ROUTES.iter().any(|(method, _, route)| *route == self && *method == "POST")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_fits_as_a_whole_or_not_at_all() {
        assert_eq!(match_path("/a/{id}", "/a/x"), Some("x"));
        assert_eq!(match_path("/a/{id}/b", "/a/x/b"), Some("x"));
        for path in ["/a/", "/a/x/y", "/a", "/a/x/b/", "/a//b"] {
            assert_eq!(
                (match_path("/a/{id}", path), match_path("/a/{id}/b", path)),
                (None, None),
                "{path}"
            );
        }
    }

    #[test]
    fn a_channel_may_have_the_name_of_a_ruling() {
        for name in ["approve", "deny", "ops"] {
            let path = format!("/approvals/channels/{name}");
            assert_eq!(find(&Method::POST, &path), RouteMatch::Route(ApiRoute::ChannelPost, name));
        }
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        assert_eq!(find(&Method::GET, "/governance/evaluate"), RouteMatch::Method(vec!["POST"]));
        assert_eq!(find(&Method::GET, "/governance/evaluate/"), RouteMatch::Nothing);
        assert_eq!(find(&Method::GET, "/healthz"), RouteMatch::Route(ApiRoute::Healthz, ""));
    }
}
