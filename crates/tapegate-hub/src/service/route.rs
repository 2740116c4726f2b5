//! The routes of the API.

use http::Method;

/// A route of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
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
    /// Writes events to the activity log.
    Events,
    /// Lists the pending approval requests.
    Approvals,
    /// Approves a request.
    Approve,
    /// Denies a request.
    Deny,
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
pub const ROUTES: &[(&str, &str, Route)] = &[
    ("POST", "/governance/evaluate", Route::Evaluate),
    ("POST", "/governance/heartbeat", Route::Heartbeat),
    ("GET", "/governance/task/{id}", Route::Task),
    ("POST", "/governance/task/{id}/revalidate", Route::Revalidate),
    ("POST", "/governance/task/{id}/cancel", Route::Cancel),
    ("POST", "/governance/events", Route::Events),
    ("GET", "/governance/snapshot", Route::Snapshot),
    ("GET", "/governance/stream", Route::Stream),
    ("POST", "/governance/shutdown", Route::Shutdown),
    ("GET", "/approvals", Route::Approvals),
    ("POST", "/approvals/{id}/approve", Route::Approve),
    ("POST", "/approvals/{id}/deny", Route::Deny),
    ("GET", "/metrics", Route::Metrics),
    ("GET", "/openapi.json", Route::OpenApi),
    ("GET", "/healthz", Route::Healthz),
    ("GET", "/readyz", Route::Readyz),
];

/// What a method and a path lead to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// A route, with the value of `{id}`.
    Route(Route, &'a str),
    /// A path that exists, but only for these methods.
    Method(Vec<&'static str>),
    /// A path that does not exist.
    Nothing,
}

/// Finds the route for a method and a path.
pub(super) fn find<'a>(method: &Method, path: &'a str) -> Found<'a> {
    let mut allowed = Vec::new();
    for (wanted, pattern, route) in ROUTES {
        let Some(id) = fit(pattern, path) else { continue };
        if method.as_str() == *wanted {
            return Found::Route(*route, id);
        }
        allowed.push(*wanted);
    }
    if allowed.is_empty() { Found::Nothing } else { Found::Method(allowed) }
}

/// The value of `{id}`, or an empty one, if the path matches.
fn fit<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (pattern == path).then_some("");
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

impl Route {
    /// Whether the shims' token is not enough, since an agent may be able to read it.
    pub(super) fn is_for_approvers(self) -> bool {
        matches!(self, Self::Approvals | Self::Approve | Self::Deny | Self::Shutdown)
    }

    /// Whether the body may be missing though the method is POST.
    pub(super) fn needs_no_body(self) -> bool {
        matches!(self, Self::Shutdown | Self::Cancel)
    }

    /// Whether the route reads a body.
    pub(super) fn has_body(self) -> bool {
        ROUTES.iter().any(|(method, _, route)| *route == self && *method == "POST")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_fits_as_a_whole_or_not_at_all() {
        assert_eq!(fit("/a/{id}", "/a/x"), Some("x"));
        assert_eq!(fit("/a/{id}/b", "/a/x/b"), Some("x"));
        for path in ["/a/", "/a/x/y", "/a", "/a/x/b/", "/a//b"] {
            assert_eq!((fit("/a/{id}", path), fit("/a/{id}/b", path)), (None, None), "{path}");
        }
    }

    #[test]
    fn a_wrong_method_is_told_the_right_ones() {
        assert_eq!(find(&Method::GET, "/governance/evaluate"), Found::Method(vec!["POST"]));
        assert_eq!(find(&Method::GET, "/governance/evaluate/"), Found::Nothing);
        assert_eq!(find(&Method::GET, "/healthz"), Found::Route(Route::Healthz, ""));
    }
}
