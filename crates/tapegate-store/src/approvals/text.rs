//! Requests and decisions as JSON, one object per file. The keys are the names of the fields.

use tapegate_core::json::{
    JsonFault, JsonKind, check, compact, elements, string, whole_object, write_str,
};

use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, Escalation};

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
    if request.is_principal_named {
        json.raw("principal_named", b"true");
    }
    json.text("folder", &request.folder);
    json.text("policy", &request.policy);
    json.text("workflow", &request.workflow);
    json.text("reason", &request.reason);
    json.raw("approvers", &text_list(&request.approvers));
    if request.quorum > 1 {
        json.number("quorum", request.quorum.into());
    }
    if let Some(Escalation { workflow, at_us, approvers }) = &request.escalation {
        json.text("escalates_to", workflow);
        json.number("escalates_us", *at_us);
        json.raw("escalation_approvers", &text_list(approvers));
    }
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

fn text_list(texts: &[String]) -> Vec<u8> {
    let mut list = Vec::new();
    for text in texts {
        list.push(if list.is_empty() { b'[' } else { b',' });
        write_str(&mut list, text);
    }
    list.extend_from_slice(if list.is_empty() { b"[]" } else { b"]" });
    list
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

/// An approval of a request that needs several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct VoteFile {
    pub(super) by: String,
    pub(super) at_us: i64,
    /// The digest of the request.
    pub(super) request: String,
}

/// The text of a vote, without its closing brace.
pub(super) fn vote_text(id: &str, vote: &VoteFile) -> Vec<u8> {
    let mut json = SealedObject::default();
    json.text("id", id);
    json.text("request", &vote.request);
    json.text("by", &vote.by);
    json.number("at_us", vote.at_us);
    json.out
}

/// Parses a vote.
pub(super) fn read_vote(text: &[u8]) -> Option<VoteFile> {
    let members = members(text).ok()?;
    let raw = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| Some(string(raw(key)?)?.into_owned());
    let at_us = std::str::from_utf8(raw("at_us")?).ok()?.parse().ok()?;
    Some(VoteFile { by: text("by")?, at_us, request: text("request")? })
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
        is_principal_named: raw("principal_named") == Some(b"true"),
        folder: text("folder"),
        policy: text("policy"),
        workflow: text("workflow"),
        reason: text("reason"),
        approvers: texts(raw("approvers")?)?,
        // A quorum that cannot be read must not become one approval.
        quorum: match raw("quorum") {
            Some(_) => count("quorum")?,
            None => 0,
        },
        escalation: match raw("escalates_us") {
            Some(_) => Some(Escalation {
                workflow: text("escalates_to"),
                at_us: number("escalates_us")?,
                approvers: texts(raw("escalation_approvers")?)?,
            }),
            None => None,
        },
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
pub(super) fn members(text: &[u8]) -> Result<Vec<(String, &[u8])>, JsonFault> {
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
pub(super) struct SealedObject {
    out: Vec<u8>,
}

impl SealedObject {
    pub(super) fn text(&mut self, key: &str, text: &str) {
        let mut raw = Vec::new();
        write_str(&mut raw, text);
        self.raw(key, &raw);
    }

    pub(super) fn raw(&mut self, key: &str, json: &[u8]) {
        self.out.push(if self.out.is_empty() { b'{' } else { b',' });
        write_str(&mut self.out, key);
        self.out.push(b':');
        self.out.extend_from_slice(json);
    }

    /// The text without its closing brace.
    pub(super) fn into_text(self) -> Vec<u8> {
        self.out
    }

    pub(super) fn number(&mut self, key: &str, number: i64) {
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
            is_principal_named: true,
            folder: "/work".to_owned(),
            policy: "/srv/tapegate.yaml".to_owned(),
            workflow: "default".to_owned(),
            reason: "rule".to_owned(),
            approvers: vec!["alice".to_owned(), "b\"ob".to_owned()],
            quorum: 2,
            escalation: Some(Escalation {
                workflow: "seniors".to_owned(),
                at_us: 5,
                approvers: vec!["carol".to_owned()],
            }),
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
        let bare = ApprovalRecord {
            params: None,
            approvers: Vec::new(),
            quorum: 0,
            escalation: None,
            left_us: None,
            ..full()
        };
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
