//! Requests and decisions as JSON, one object per file. The keys are the names of the fields.

use tapegate_core::json::{
    JsonFault, JsonKind, check, compact, elements, string, whole_object, write_str,
};

use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord};

/// An approval is valid for one call. Other kinds of grants would have other names.
const GRANT: &str = "once";
/// The approved call has been sent.
const SPENT: &str = "used";

/// The contents of a decision file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DecisionFile {
    pub(super) decided: ApprovalDecision,
    /// The digest of the request that was decided.
    pub(super) request: String,
    /// Whether the approved call has been sent.
    pub(super) used: bool,
}

/// The text of a request, without its closing brace.
pub(super) fn request(request: &ApprovalRecord) -> Vec<u8> {
    let mut json = SealedObject::default();
    json.text("id", &request.id);
    json.number("created_us", request.created_us);
    json.number("expires_us", request.expires_us);
    json.text("server_id", &request.server_id);
    json.text("method", &request.method);
    json.text("tool", &request.tool);
    if let Some(params) = &request.params {
        match check(params.as_bytes()) {
            Ok(params) => json.raw("params", &compact(params)),
            // Params that are not JSON are kept as text, since an approver must still see them.
            Err(_) => json.text("params", params),
        }
    }
    if !request.params_hash.is_empty() {
        json.text("params_hash", &request.params_hash);
    }
    json.text("call_hash", &request.call_hash);
    json.text("principal", &request.principal);
    json.text("folder", &request.folder);
    json.text("policy", &request.policy);
    json.text("workflow", &request.workflow);
    json.text("reason", &request.reason);
    let mut approvers = Vec::new();
    for approver in &request.approvers {
        approvers.push(if approvers.is_empty() { b'[' } else { b',' });
        write_str(&mut approvers, approver);
    }
    approvers.extend_from_slice(if approvers.is_empty() { b"[]" } else { b"]" });
    json.raw("approvers", &approvers);
    json.text("connection_id", &request.connection_id);
    json.text("request_id", &request.request_id);
    json.number("pid", request.pid.into());
    json.number("asked", request.call_count.into());
    json.number("waiting", request.waiting.into());
    if let Some(left_us) = request.left_us {
        json.number("left_us", left_us);
    }
    json.out
}

/// The text of a decision about the request with this id, without its closing brace.
pub(super) fn decision_text(id: &str, nonce: &str, file: &DecisionFile) -> Vec<u8> {
    let DecisionFile { decided, request, used } = file;
    let mut json = SealedObject::default();
    json.text("id", id);
    json.text("request", request);
    json.text("ruling", decided.ruling.as_str());
    json.text("by", &decided.by);
    json.number("at_us", decided.at_us);
    if let Some(reason) = &decided.reason {
        json.text("reason", reason);
    }
    json.text("grant", if *used { SPENT } else { GRANT });
    json.text("nonce", nonce);
    json.out
}

/// Parses a request. A missing member is empty, unless a decision depends on it.
pub(super) fn read_request(text: &[u8]) -> Option<ApprovalRecord> {
    let members = members(text).ok()?;
    let raw = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| raw(key).and_then(string).unwrap_or_default().into_owned();
    let number = |key: &str| std::str::from_utf8(raw(key)?).ok()?.parse::<i64>().ok();
    let count = |key: &str| number(key).and_then(|count| u32::try_from(count).ok());
    Some(ApprovalRecord {
        id: string(raw("id")?)?.into_owned(),
        created_us: number("created_us")?,
        expires_us: number("expires_us")?,
        server_id: string(raw("server_id")?)?.into_owned(),
        method: text("method"),
        tool: string(raw("tool")?)?.into_owned(),
        params: raw("params").map(|raw| String::from_utf8_lossy(raw).into_owned()),
        params_hash: text("params_hash"),
        call_hash: string(raw("call_hash")?)?.into_owned(),
        principal: text("principal"),
        folder: text("folder"),
        policy: text("policy"),
        workflow: text("workflow"),
        reason: text("reason"),
        approvers: texts(raw("approvers")?)?,
        connection_id: text("connection_id"),
        request_id: text("request_id"),
        pid: count("pid").unwrap_or(0),
        call_count: count("asked").unwrap_or(0),
        waiting: count("waiting").unwrap_or(0),
        left_us: number("left_us"),
    })
}

/// Parses a decision.
pub(super) fn read_decided(text: &[u8]) -> Option<DecisionFile> {
    let members = members(text).ok()?;
    let raw = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| raw(key).and_then(string).map(|text| text.into_owned());
    let grant = text("grant")?;
    let used = grant == SPENT;
    // A grant of a later version may mean something else, so it does not count.
    (used || grant == GRANT).then_some(())?;
    let decided = ApprovalDecision {
        ruling: ApprovalOutcome::of(&text("ruling")?)?,
        by: text("by")?,
        at_us: std::str::from_utf8(raw("at_us")?).ok()?.parse().ok()?,
        reason: text("reason"),
    };
    Some(DecisionFile { decided, request: text("request")?, used })
}

/// The members of an object, with nothing after it.
fn members(text: &[u8]) -> Result<Vec<(String, &[u8])>, JsonFault> {
    let members = whole_object(text)?.into_iter();
    Ok(members.map(|(key, value)| (key.decode().into_owned(), value)).collect())
}

/// The strings of a list that contains nothing else.
fn texts(raw: &[u8]) -> Option<Vec<String>> {
    (JsonKind::of(raw).ok()? == JsonKind::Array).then_some(())?;
    elements(raw).map(|text| Some(string(text.ok()?)?.into_owned())).collect()
}

/// An object that is being written.
#[derive(Default)]
struct SealedObject {
    out: Vec<u8>,
}

impl SealedObject {
    fn text(&mut self, key: &str, text: &str) {
        let mut raw = Vec::new();
        write_str(&mut raw, text);
        self.raw(key, &raw);
    }

    fn raw(&mut self, key: &str, json: &[u8]) {
        self.out.push(if self.out.is_empty() { b'{' } else { b',' });
        write_str(&mut self.out, key);
        self.out.push(b':');
        self.out.extend_from_slice(json);
    }

    fn number(&mut self, key: &str, number: i64) {
        self.raw(key, number.to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> ApprovalRecord {
        ApprovalRecord {
            id: "ap_x".to_owned(),
            created_us: -1,
            expires_us: 7_000_000,
            server_id: "files".to_owned(),
            method: "tools/call".to_owned(),
            tool: "rm \"\u{1b}\n".to_owned(),
            params: Some("{\"arguments\":{\"path\":\"/\"}}".to_owned()),
            params_hash: "ee".to_owned(),
            call_hash: "ff".to_owned(),
            principal: "me".to_owned(),
            folder: "/work".to_owned(),
            policy: "/srv/tapegate.yaml".to_owned(),
            workflow: "default".to_owned(),
            reason: "rule".to_owned(),
            approvers: vec!["alice".to_owned(), "b\"ob".to_owned()],
            connection_id: "c".to_owned(),
            request_id: "r".to_owned(),
            pid: 42,
            call_count: 2,
            waiting: 1,
            left_us: Some(9),
        }
    }

    fn finished(mut text: Vec<u8>) -> Vec<u8> {
        text.push(b'}');
        text
    }

    #[test]
    fn a_request_reads_back_as_it_was() {
        let bare = ApprovalRecord { params: None, approvers: Vec::new(), left_us: None, ..full() };
        for one in [full(), bare] {
            assert_eq!(read_request(&finished(request(&one))).unwrap(), one);
        }
        assert_eq!(full().arguments(), Some("{\"path\":\"/\"}"));
        let odd = ApprovalRecord { params: Some("{\n \"a\": 1}".to_owned()), ..full() };
        let read = read_request(&finished(request(&odd))).unwrap();
        assert_eq!(read.params.unwrap(), "{\"a\":1}");
        let no_json = ApprovalRecord { params: Some("} evil\n".to_owned()), ..full() };
        let shown = read_request(&finished(request(&no_json))).unwrap();
        assert_eq!(shown.params.unwrap(), "\"} evil\\n\"");
        assert_eq!(shown.call_hash, "ff");
    }

    #[test]
    fn a_decision_reads_back_as_it_was() {
        for ruling in [
            ApprovalOutcome::Approved,
            ApprovalOutcome::Denied,
            ApprovalOutcome::Cancelled,
            ApprovalOutcome::Expired,
        ] {
            for reason in [None, Some("because\n".to_owned())] {
                for used in [false, true] {
                    let reason = reason.clone();
                    let decided = ApprovalDecision { ruling, by: "a".to_owned(), at_us: 5, reason };
                    let one = DecisionFile { decided, request: "d1".to_owned(), used };
                    let read =
                        read_decided(&finished(super::decision_text("ap_x", "n", &one))).unwrap();
                    assert_eq!(read, one);
                }
            }
        }
    }

    #[test]
    fn what_was_cut_off_or_lacks_what_matters_is_neither() {
        let text = finished(request(&full()));
        for cut in 0..text.len() {
            assert!(read_request(&text[..cut]).is_none(), "{cut}");
        }
        for key in ["id", "expires_us", "server_id", "call_hash", "approvers", "tool"] {
            let other =
                String::from_utf8(text.clone()).unwrap().replace(&format!("\"{key}\""), "\"x\"");
            assert!(read_request(other.as_bytes()).is_none(), "{key}");
        }
        let one = ApprovalDecision {
            ruling: ApprovalOutcome::Approved,
            by: "a".to_owned(),
            at_us: 5,
            reason: None,
        };
        let one = DecisionFile { decided: one, request: "d1".to_owned(), used: false };
        let text = String::from_utf8(finished(decision_text("ap_x", "n", &one))).unwrap();
        for (now, then) in [
            ("\"approved\"", "\"maybe\""),
            ("\"approved\"", "true"),
            ("\"at_us\":5", "\"at_us\":\"5\""),
            ("\"by\":\"a\"", "\"by\":[\"a\"]"),
            ("\"once\"", "\"always\""),
        ] {
            let edited = text.replace(now, then);
            assert_ne!(edited, text);
            assert!(read_decided(edited.as_bytes()).is_none(), "{edited}");
        }
    }
}
