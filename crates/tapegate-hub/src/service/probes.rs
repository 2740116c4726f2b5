//! How the hub itself is.

use http::{Response, StatusCode};
use serde::Serialize;
use tapegate_wire::http::ReplyBody;

use super::Hub;
use super::answer::json;

/// That we are alive.
#[derive(Serialize)]
struct Health {
    status: &'static str,
    version: &'static str,
    uptime_seconds: u64,
}

/// Whether we can do our work.
#[derive(Serialize)]
struct Readiness {
    status: &'static str,
    policy_version: String,
    profile: &'static str,
    /// What is wrong with the policy that was last loaded; an older one holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policy_faults: Vec<String>,
    active_servers: usize,
}

impl Hub {
    pub(super) fn healthz(&self) -> Response<ReplyBody> {
        let uptime_seconds = self.clock.now().mono_ns / 1_000_000_000;
        json(&Health { status: "healthy", version: env!("CARGO_PKG_VERSION"), uptime_seconds })
    }

    pub(super) fn readyz(&self) -> Response<ReplyBody> {
        let governed = self.governed();
        let stopping = self.is_stopping();
        let (active_servers, _) = self.shims.borrow_mut().active(self.clock.now());
        let mut response = json(&Readiness {
            status: if stopping { "shutting_down" } else { "ready" },
            policy_version: governed.version().to_owned(),
            profile: governed.profile.name(),
            policy_faults: self.trouble.borrow().clone(),
            active_servers,
        });
        if stopping {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        response
    }
}
