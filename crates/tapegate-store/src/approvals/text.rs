//! Requests and decisions as JSON, one object a file. The keys are the names of the fields.

use tapegate_core::json::{Cursor, Fault, Kind, check, compact, string, write_str};

use super::{Decided, Request, Ruling};

/// The text of a request.
pub(super) fn request(request: &Request) -> Vec<u8> {
    let mut json = Object::default();
    json.text("id", &request.id);
    json.raw("created_us", request.created_us.to_string().as_bytes());
    json.raw("expires_us", request.expires_us.to_string().as_bytes());
    json.text("server_id", &request.server_id);
    json.text("method", &request.method);
    json.text("tool", &request.tool);
    if let Some(arguments) = &request.arguments {
        match check(arguments.as_bytes()) {
            Ok(arguments) => json.raw("arguments", &compact(arguments)),
            // What is no JSON is shown all the same: somebody is to decide about it.
            Err(_) => json.text("arguments", arguments),
        }
    }
    json.text("call_hash", &request.call_hash);
    json.text("principal", &request.principal);
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
    json.raw("pid", request.pid.to_string().as_bytes());
    json.end()
}

/// The text of a decision.
pub(super) fn decided(decided: &Decided) -> Vec<u8> {
    let mut json = Object::default();
    json.text("ruling", decided.ruling.word());
    json.text("by", &decided.by);
    json.raw("at_us", decided.at_us.to_string().as_bytes());
    if let Some(reason) = &decided.reason {
        json.text("reason", reason);
    }
    json.end()
}

/// Reads a request. What is not there is empty, except for what a decision depends on.
pub(super) fn read_request(text: &[u8]) -> Option<Request> {
    let members = members(text).ok()?;
    let raw = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| raw(key).and_then(string).unwrap_or_default().into_owned();
    let number = |key: &str| std::str::from_utf8(raw(key)?).ok()?.parse::<i64>().ok();
    Some(Request {
        id: string(raw("id")?)?.into_owned(),
        created_us: number("created_us")?,
        expires_us: number("expires_us")?,
        server_id: string(raw("server_id")?)?.into_owned(),
        method: text("method"),
        tool: string(raw("tool")?)?.into_owned(),
        arguments: raw("arguments").map(|raw| String::from_utf8_lossy(raw).into_owned()),
        call_hash: string(raw("call_hash")?)?.into_owned(),
        principal: text("principal"),
        workflow: text("workflow"),
        reason: text("reason"),
        approvers: texts(raw("approvers")?)?,
        connection_id: text("connection_id"),
        request_id: text("request_id"),
        pid: number("pid").and_then(|pid| u32::try_from(pid).ok()).unwrap_or(0),
    })
}

/// Reads a decision.
pub(super) fn read_decided(text: &[u8]) -> Option<Decided> {
    let members = members(text).ok()?;
    let raw = |key: &str| members.iter().rev().find(|(name, _)| name == key).map(|(_, raw)| *raw);
    let text = |key: &str| raw(key).and_then(string).map(|text| text.into_owned());
    Some(Decided {
        ruling: Ruling::of(&text("ruling")?)?,
        by: text("by")?,
        at_us: std::str::from_utf8(raw("at_us")?).ok()?.parse().ok()?,
        reason: text("reason"),
    })
}

/// The members of an object, which must be all there is.
fn members(text: &[u8]) -> Result<Vec<(String, &[u8])>, Fault> {
    let mut cursor = Cursor::new(text)?;
    let mut members = Vec::new();
    if cursor.open()? == Kind::Object {
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            members.push((key.decode().into_owned(), cursor.value()?));
        }
    }
    cursor.end()?;
    Ok(members)
}

/// The texts of a list that holds nothing else.
fn texts(raw: &[u8]) -> Option<Vec<String>> {
    let mut cursor = Cursor::new(raw).ok()?;
    let mut texts = Vec::new();
    let mut first = true;
    (cursor.open().ok()? == Kind::Array).then_some(())?;
    while cursor.element(&mut first).ok()? {
        texts.push(cursor.string().ok()?.decode().into_owned());
    }
    Some(texts)
}

/// An object that is being written.
#[derive(Default)]
struct Object {
    out: Vec<u8>,
}

impl Object {
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

    fn end(mut self) -> Vec<u8> {
        self.out.extend_from_slice(b"}\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Request {
        Request {
            id: "ap_x".to_owned(),
            created_us: -1,
            expires_us: 7_000_000,
            server_id: "files".to_owned(),
            method: "tools/call".to_owned(),
            tool: "rm \"\u{1b}\n".to_owned(),
            arguments: Some("{\"path\":\"/\"}".to_owned()),
            call_hash: "ff".to_owned(),
            principal: "me".to_owned(),
            workflow: "default".to_owned(),
            reason: "rule".to_owned(),
            approvers: vec!["alice".to_owned(), "b\"ob".to_owned()],
            connection_id: "c".to_owned(),
            request_id: "r".to_owned(),
            pid: 42,
        }
    }

    #[test]
    fn a_request_reads_back_as_it_was() {
        let bare = Request { arguments: None, approvers: Vec::new(), ..full() };
        for one in [full(), bare] {
            assert_eq!(read_request(&request(&one)).unwrap(), one);
        }
        let odd = Request { arguments: Some("{\n \"a\": 1}".to_owned()), ..full() };
        assert_eq!(read_request(&request(&odd)).unwrap().arguments.unwrap(), "{\"a\":1}");
        let no_json = Request { arguments: Some("} evil\n".to_owned()), ..full() };
        let shown = read_request(&request(&no_json)).unwrap();
        assert_eq!(shown.arguments.unwrap(), "\"} evil\\n\"");
        assert_eq!(shown.call_hash, "ff");
    }

    #[test]
    fn a_decision_reads_back_as_it_was() {
        for ruling in [Ruling::Approved, Ruling::Denied, Ruling::Cancelled, Ruling::Expired] {
            for reason in [None, Some("because\n".to_owned())] {
                let one = Decided { ruling, by: "a".to_owned(), at_us: 5, reason };
                assert_eq!(read_decided(&decided(&one)).unwrap(), one);
            }
        }
    }

    #[test]
    fn what_was_cut_off_or_lacks_what_matters_is_neither() {
        let text = request(&full());
        for cut in 0..text.len() - 1 {
            assert!(read_request(&text[..cut]).is_none(), "{cut}");
        }
        for key in ["id", "expires_us", "server_id", "call_hash", "approvers", "tool"] {
            let other =
                String::from_utf8(text.clone()).unwrap().replace(&format!("\"{key}\""), "\"x\"");
            assert!(read_request(other.as_bytes()).is_none(), "{key}");
        }
        assert!(read_decided(b"{\"ruling\":\"maybe\",\"by\":\"a\",\"at_us\":1}").is_none());
        assert!(read_decided(b"{\"ruling\":\"approved\",\"by\":\"a\"}").is_none());
    }
}
