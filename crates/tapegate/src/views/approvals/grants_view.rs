//! Formats grants: as a table and as JSON.

use tapegate_core::json::compact;
pub(crate) use tapegate_hub::grant_plan::covers;
use tapegate_store::approvals::{ApprovalGrant, GrantCoverage, GrantState};

use super::{NAME_CHARS_MAX, aligned, span, time_text};
use crate::views::json::JsonWriter;
use crate::views::visible_text;

/// A table of grants with a heading.
pub(crate) fn table(grants: &[ApprovalGrant], now_us: i64) -> String {
    if grants.is_empty() {
        return "nothing is granted\n".to_owned();
    }
    let heads = ["ID", "STATE", "LEFT", "BY", "COVERS"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for grant in grants {
        let state = grant.state(now_us);
        let left = match state {
            GrantState::Active => span(grant.expires_us - now_us),
            _ => "-".to_owned(),
        };
        let by = visible_text::inline(&grant.by, NAME_CHARS_MAX);
        rows.push(vec![grant.id.clone(), state.as_str().to_owned(), left, by, covers(grant)]);
    }
    aligned(&rows)
}

/// What a grant covers, and for how long.
pub(crate) fn covers_for(grant: &ApprovalGrant) -> String {
    let most = span(grant.expires_us.saturating_sub(grant.created_us));
    match grant.session {
        Some(_) => format!("{}, until the session ends, for {most} at most", covers(grant)),
        None => format!("{}, for {most}", covers(grant)),
    }
}

/// A grant as one line of JSON. The keys are stable (docs/approvals.md).
pub(crate) fn json(grant: &ApprovalGrant, now_us: i64) -> Vec<u8> {
    let object = JsonWriter::object(|json| {
        json.text("id", &grant.id);
        json.text("state", grant.state(now_us).as_str());
        json.text("request", &grant.request_id);
        json.text("created_at", &time_text(grant.created_us));
        json.text("expires_at", &time_text(grant.expires_us));
        json.text("granted_by", &grant.by);
        json.text("server_id", &grant.server_id);
        json.text("method", &grant.method);
        json.text("tool", &grant.tool);
        json.text("workflow", &grant.workflow);
        json.text("folder", &grant.folder);
        json.text("policy", &grant.policy);
        grant.session.iter().for_each(|session| json.text("session", session));
        if let GrantCoverage::Patterns { patterns, .. } = &grant.coverage {
            json.object_member("arguments", |json| {
                for pattern in patterns {
                    let (word, text) = pattern.range.parts();
                    json.object_member(&pattern.argument, |json| json.text(word, text));
                }
            });
        }
        if let Some((by, _)) = grant.revoked.as_ref().filter(|(by, _)| !by.is_empty()) {
            json.text("revoked_by", by);
        }
    });
    let mut line = compact(&object).into_owned();
    line.push(b'\n');
    line
}
