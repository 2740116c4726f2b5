//! What is made of a session, as text. `UPDATE_GOLDEN=1` writes it anew.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(clippy::disallowed_methods, reason = "goldens are files")]

use std::fs;
use std::path::Path;

use tapegate_core::side::Side;
use tapegate_policy::generate::{Traffic, Wish, generate};

fn call(name: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
    )
}

/// Traffic with the server `files`.
fn heard(messages: &[String]) -> Traffic {
    let mut traffic = Traffic::default();
    messages.iter().for_each(|message| traffic.hear("files", Side::Client, message.as_bytes()));
    traffic
}

fn sample() -> Traffic {
    let mut messages = vec![
        call("read", r#"{"path":"/srv/a.txt","limit":10}"#),
        call("read", r#"{"path":"/srv/a.txt","limit":10}"#),
        call("read", r#"{"path":"/srv/b.txt","mode":"text","limit":20}"#),
        call("list", r#"{"dirs":["/srv","/tmp"],"opts":{"deep":true}}"#),
        call("ping", "{}"),
    ];
    for n in 0..10 {
        messages.push(call("write", &format!(r#"{{"path":"/srv/out/{n}/x","size":{n}.5}}"#)));
    }
    let mut traffic = heard(&messages);
    for message in [
        r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"review","arguments":{"code":"x"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///srv/a*"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"a","value":"b"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
    ] {
        traffic.hear("files", Side::Client, message.as_bytes());
    }
    traffic.hear(
        "files",
        Side::Server,
        br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","inputSchema":{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"limit":{"type":"integer"},"mode":{"type":"string"},"follow":{"type":"boolean"}}}},{"name":"write","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"size":{"type":"number"}}}},{"name":"rm","inputSchema":{"type":"object"}}]}}"#,
    );
    traffic
}

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/generated").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "{name} is old; UPDATE_GOLDEN=1");
}

#[test]
fn what_is_made_of_a_session_is_as_it_was() {
    let head = vec!["A test.".to_owned()];
    let rules = generate(&sample(), &Wish { head: head.clone(), cedar: None }).unwrap();
    compare("rules.yaml", &rules.policy);
    let wish = Wish { head, cedar: Some("observed.cedar".to_owned()) };
    let asked = generate(&sample(), &wish).unwrap();
    compare("asking.yaml", &asked.policy);
    compare("observed.cedar", &asked.cedar.unwrap());
}
