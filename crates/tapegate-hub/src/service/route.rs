//! What can be asked for, and by which method.

use http::Method;

/// Something that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// A decision.
    Evaluate,
    /// A shim is alive.
    Heartbeat,
    /// How a task stands.
    Task,
    /// Whether an approved call may still be sent.
    Revalidate,
    /// Taking a task back.
    Cancel,
    /// Lines for the activity log.
    Events,
    /// Every request that nobody has decided about.
    Approvals,
    /// Saying yes.
    Approve,
    /// Saying no.
    Deny,
    /// What is counted.
    Metrics,
    /// What can be asked for.
    OpenApi,
    /// The policy as it was read.
    Snapshot,
    /// What is said without being asked.
    Stream,
    /// The end.
    Shutdown,
    /// Whether we are alive.
    Healthz,
    /// Whether we can do our work.
    Readyz,
}

/// Everything that can be asked for: method, path, and what it is. `{id}` stands for one segment.
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
    /// This, with what stands for `{id}`.
    Route(Route, &'a str),
    /// There is such a path, for these methods.
    Method(Vec<&'static str>),
    /// Nothing.
    Nothing,
}

/// What a method and a path lead to.
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

/// What stands for `{id}` if the path fits.
fn fit<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (pattern == path).then_some("");
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

impl Route {
    /// Whether the shims' token is not enough: an agent may be able to read it.
    pub(super) fn is_for_approvers(self) -> bool {
        matches!(self, Self::Approvals | Self::Approve | Self::Deny | Self::Shutdown)
    }

    /// Whether it may be asked for without a body, though the method has one.
    pub(super) fn needs_no_body(self) -> bool {
        matches!(self, Self::Shutdown | Self::Cancel)
    }

    /// Whether a body is looked at.
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
