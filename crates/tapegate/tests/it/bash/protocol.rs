//! Both eras of the protocol, progress, and names of tools.

use serde_json::{Value, json};

use super::client::BashClient;

#[test]
fn one_style_of_names_is_listed_and_both_are_called() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, expected) in [
        (&[][..], "bash_recorder.execute"),
        (&["--tool-name-style", "underscore"], "bash_recorder_execute"),
    ] {
        let mut client = BashClient::spawn(folder.path(), flags);
        let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
        assert_eq!((&tools[0]["name"], tools.as_array().unwrap().len()), (&json!(expected), 5));
        for name in ["bash_recorder.execute", "bash_recorder_execute"] {
            let call = json!({"name": name, "arguments": {"command": "echo x"}});
            let answer = client.request("tools/call", &call);
            assert_eq!(answer["result"]["structuredContent"]["stdout"], "x\n");
        }
    }
}

#[test]
fn a_client_without_a_handshake_is_served_too() {
    let mut client = BashClient::start();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
    });
    let hello = client.request("server/discover", &json!({"_meta": meta}));
    assert_eq!(hello["result"]["supportedVersions"], json!(["2026-07-28"]));
    let tools = client.request("tools/list", &json!({"_meta": meta}));
    assert_eq!(tools["result"]["resultType"], "complete");
    let call =
        json!({"name": "bash_recorder.execute", "arguments": {"command": "echo m"}, "_meta": meta});
    let result = client.request("tools/call", &call)["result"].clone();
    assert_eq!(
        (&result["resultType"], &result["structuredContent"]["stdout"]),
        (&json!("complete"), &json!("m\n"))
    );
    let old = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2027-01-01"}});
    assert_eq!(client.request("tools/list", &old)["error"]["code"], -32022);
    assert_eq!(client.request("no/such", &json!({"_meta": meta}))["error"]["code"], -32601);
    assert_eq!(client.end()[0]["agent_id"], "modern");
}

#[test]
fn progress_is_reported_only_if_it_is_wanted() {
    let mut client = BashClient::start();
    let mark = client.mark();
    let command = format!("printf '\\033[1mworking\\033[0m\\n'; tail -s {mark} -f /dev/null");
    let call = json!({
        "name": "bash_recorder.execute", "arguments": {"command": command, "timeout": 3},
        "_meta": {"progressToken": "p"},
    });
    client.request("tools/call", &call);
    let reports: Vec<Value> = std::mem::take(&mut client.notifications);
    assert!((2..=6).contains(&reports.len()), "{reports:?}");
    assert!(reports.iter().all(|one| one["params"]["message"] == "working"), "{reports:?}");
    let values: Vec<u64> =
        reports.iter().map(|one| one["params"]["progress"].as_u64().unwrap()).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
    client
        .call("execute", &json!({"command": format!("tail -s {mark} -f /dev/null"), "timeout": 2}));
    assert!(client.notifications.is_empty());
}

#[test]
fn what_is_no_request_gets_an_error_and_the_session_goes_on() {
    let mut client = BashClient::start();
    client.send(&json!([{"jsonrpc": "2.0", "id": "b", "method": "ping"}, 7]));
    let (first, second) = (client.receive(), client.receive());
    assert_eq!((&first["id"], &first["result"]), (&json!("b"), &json!({})));
    assert_eq!(second["error"]["code"], -32600);
    client.send(&json!("text"));
    assert_eq!(client.receive()["error"]["code"], -32700);
    assert_eq!(client.request("resources/list", &json!({}))["error"]["code"], -32601);
    assert_eq!(client.execute("echo on")["stdout"], "on\n");
}
