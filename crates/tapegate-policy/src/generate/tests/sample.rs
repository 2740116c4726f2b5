//! Sample traffic for generating policies, used by this crate's unit and integration tests.

use tapegate_core::side::Side;

use super::RecordedTraffic;

pub(super) fn call(name: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
    )
}

/// Traffic with the server `files`.
pub(super) fn heard(messages: &[String]) -> RecordedTraffic {
    let mut traffic = RecordedTraffic::default();
    for message in messages {
        traffic.observe("files", b"", Side::Client, message.as_bytes());
    }
    traffic.end_tape();
    traffic
}

pub(super) fn sample() -> RecordedTraffic {
    let mut messages = vec![
        call("read", r#"{"path":"/srv/a.txt","limit":10}"#),
        call("read", r#"{"path":"/srv/a.txt","limit":10}"#),
        call("read", r#"{"path":"/srv/b.txt","mode":"text","limit":20}"#),
        call("list", r#"{"dirs":["/srv/a","/srv/b"],"opts":{"deep":true,"force":false}}"#),
        call("fetch", r#"{"url":"https://docs.example/a?b","note":"what is it"}"#),
        call("open", r#"{"file":"src/main.rs"}"#),
        call("open", r#"{"file":"src/deep/a.rs"}"#),
        call("pay", r#"{"amount":30,"currency":"EUR","dry_run":true}"#),
        call("run", r#"{"command":"make all"}"#),
        call("ping", "{}"),
    ];
    for n in 0..10 {
        messages.push(call(
            "write",
            &format!(r#"{{"path":"/srv/out/{n}/x","content":"line {n}","size":{n}.5}}"#),
        ));
    }
    let mut traffic = heard(&messages);
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"review","arguments":{"code":"x"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///srv/a*"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"a","value":"b"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    ] {
        traffic.observe("files", b"", Side::Client, message.as_bytes());
    }
    traffic.observe(
        "files",
        b"",
        Side::Server,
        br#"{"jsonrpc":"2.0","id":"list","result":{"tools":[{"name":"read","inputSchema":{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"limit":{"type":"integer"},"mode":{"type":"string"},"follow":{"type":"boolean"},"head":{"type":"integer"},"cwd":{"type":"string"}}}},{"name":"write","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"size":{"type":"number"}}}},{"name":"rm","inputSchema":{"type":"object"}}]}}"#,
    );
    traffic.end_tape();
    traffic
}
