//! Grants as JSON, one object per file. The keys are the names of the fields.

use tapegate_core::grant_pattern::{ArgumentRange, GrantPattern};
use tapegate_core::json::{elements, string, write_str};

use super::grants::{ApprovalGrant, GrantCoverage};
use super::text::{SealedObject, members};

/// The text of a grant, without its closing brace.
pub(super) fn write(grant: &ApprovalGrant) -> Vec<u8> {
    let mut json = SealedObject::default();
    json.text("id", &grant.id);
    json.text("request_id", &grant.request_id);
    json.number("created_us", grant.created_us);
    json.number("expires_us", grant.expires_us);
    json.text("by", &grant.by);
    json.text("server_id", &grant.server_id);
    json.text("method", &grant.method);
    json.text("tool", &grant.tool);
    json.text("workflow", &grant.workflow);
    json.text("folder", &grant.folder);
    json.text("policy", &grant.policy);
    if let Some(session) = &grant.session {
        json.text("session", session);
    }
    match &grant.coverage {
        GrantCoverage::SameCall(hash) => json.text("call_hash", hash),
        GrantCoverage::Patterns { hash, patterns } => {
            json.text("rest_hash", hash);
            json.raw("patterns", &pattern_list(patterns));
        }
    }
    if let Some((by, at_us)) = &grant.revoked {
        json.text("revoked_by", by);
        json.number("revoked_us", *at_us);
    }
    json.into_text()
}

/// A list of lists: the argument, the word of the range and its text.
fn pattern_list(patterns: &[GrantPattern]) -> Vec<u8> {
    let mut list = Vec::new();
    for pattern in patterns {
        list.push(if list.is_empty() { b'[' } else { b',' });
        let (word, text) = pattern.range.parts();
        for (at, part) in [pattern.argument.as_str(), word, text].into_iter().enumerate() {
            list.push(if at == 0 { b'[' } else { b',' });
            write_str(&mut list, part);
        }
        list.push(b']');
    }
    list.extend_from_slice(if list.is_empty() { b"[]" } else { b"]" });
    list
}

/// Parses a grant. One with anything missing, or of a later version, does not count.
pub(super) fn read(text: &[u8]) -> Option<ApprovalGrant> {
    let members = members(text).ok()?;
    let raw = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| Some(string(raw(key)?)?.into_owned());
    let number = |key: &str| std::str::from_utf8(raw(key)?).ok()?.parse::<i64>().ok();
    let coverage = match (text("call_hash"), text("rest_hash")) {
        (Some(hash), None) => GrantCoverage::SameCall(hash),
        (None, Some(hash)) => {
            let patterns = elements(raw("patterns")?).map(|raw| pattern(raw.ok()?));
            GrantCoverage::Patterns { hash, patterns: patterns.collect::<Option<_>>()? }
        }
        _ => return None,
    };
    let revoked = match raw("revoked_us") {
        Some(_) => Some((text("revoked_by")?, number("revoked_us")?)),
        None => None,
    };
    let session = match raw("session") {
        Some(_) => Some(text("session")?),
        None => None,
    };
    Some(ApprovalGrant {
        id: text("id")?,
        request_id: text("request_id")?,
        created_us: number("created_us")?,
        expires_us: number("expires_us")?,
        by: text("by")?,
        server_id: text("server_id")?,
        method: text("method")?,
        tool: text("tool")?,
        workflow: text("workflow")?,
        folder: text("folder")?,
        policy: text("policy")?,
        session,
        coverage,
        revoked,
    })
}

fn pattern(raw: &[u8]) -> Option<GrantPattern> {
    let parts: Vec<String> =
        elements(raw).map(|part| Some(string(part.ok()?)?.into_owned())).collect::<Option<_>>()?;
    let [argument, word, text] = <[String; 3]>::try_from(parts).ok()?;
    Some(GrantPattern { argument, range: ArgumentRange::of(&word, &text)? })
}
