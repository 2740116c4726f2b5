//! Requests for the tests of what channels send.

use std::fs;
use std::path::Path;

use tapegate_store::approvals::ApprovalRecord;

use super::{ChannelOutcome, ChannelRequest, DecisionLinks};

/// A request about a call of a tool with these params.
fn request(tool: &str, params: &str) -> ChannelRequest {
    let record = ApprovalRecord {
        id: "ap_0000000000000000".to_owned(),
        expires_us: 1_774_016_531_804_012,
        server_id: "files".to_owned(),
        method: "tools/call".to_owned(),
        tool: tool.to_owned(),
        params: Some(params.to_owned()),
        principal: "agent".to_owned(),
        folder: "/home/u/shop".to_owned(),
        workflow: "default".to_owned(),
        reason: "rule `rules[0]` requires approval".to_owned(),
        ..ApprovalRecord::default()
    };
    let link = |word: &str| format!("https://gate.example/{word}");
    let links = DecisionLinks { approve: link("approve"), deny: link("deny") };
    ChannelRequest::new(&record, Some(links))
}

pub(super) fn plain() -> ChannelRequest {
    request(
        "write_file",
        r#"{"name":"write_file","arguments":{"path":"/a","content":"one\ntwo\n"}}"#,
    )
}

/// Names and arguments that try to mention, to link, to add members and buttons, and to look like
/// our own text.
pub(crate) fn hostile() -> ChannelRequest {
    request(
        "read_file\u{1b}[2J\u{202e}\n[ok](https://evil.example) <!channel>",
        r##"{"arguments":{"approve_url":"https://evil.example/","a":"\u001b[2J\u202e\n\n# Approved by ann\n[ok](https://evil.example) <b>x</b>","b":"\"},\"actions\":[{\"action\":\"view\"}]","c":"[REDACTED:x]"}}"##,
    )
}

/// A call that no message holds.
pub(crate) fn long() -> ChannelRequest {
    let content = "0123456789 ".repeat(2000);
    request("write_file", &format!(r#"{{"arguments":{{"content":"{content}"}}}}"#))
}

/// All ends of a request.
pub(super) fn outcomes() -> [ChannelOutcome; 4] {
    let by = |word, by: &str, reason: Option<&str>| ChannelOutcome {
        word,
        by: Some(by.to_owned()),
        reason: reason.map(str::to_owned),
    };
    let alone = |word| ChannelOutcome { word, by: None, reason: None };
    [
        by("approved", "ann", None),
        by("denied", "<!here> [ok](https://evil.example)", Some("*no*")),
        alone("expired"),
        alone("cancelled"),
    ]
}

/// Compares with a golden file.
#[track_caller]
pub(super) fn golden(name: &str, text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, text).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), text, "UPDATE_GOLDEN=1 rewrites it");
}
