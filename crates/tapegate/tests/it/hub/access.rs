//! Access control: token, Host, Origin, methods and paths.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{HubFolder, RunningHub, call, log};
use crate::support::write_key;

#[test]
fn nobody_gets_in_without_the_token_of_this_run() {
    let place = HubFolder::new();
    let hub = place.start();
    let (address, token) = (&hub.address, &hub.token);
    let ask = |header: &str| {
        let host = format!("Host: {address}\r\nConnection: close\r\n");
        hub.send(format!("GET /governance/snapshot HTTP/1.1\r\n{host}{header}\r\n")).status
    };
    assert_eq!(ask(&format!("Authorization: Bearer {token}\r\n")), 200);
    assert_eq!(ask(&format!("authorization: bearer {token}\r\n")), 200);
    let other: String = token.chars().rev().collect();
    for header in [
        String::new(),
        "Authorization: Bearer \r\n".to_owned(),
        "Authorization: Bearer\r\n".to_owned(),
        format!("Authorization: Bearer {other}\r\n"),
        format!("Authorization: Bearer {}\r\n", &token[1..]),
        format!("Authorization: Bearer {token}0\r\n"),
        format!("Authorization: Basic {token}\r\n"),
        format!("Authorization: {token}\r\n"),
        format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {other}\r\n"),
        format!("X-Token: {token}\r\nCookie: token={token}\r\n"),
    ] {
        assert_eq!(ask(&header), 401, "{header}");
    }
    // Without a token, a client learns only whether the hub is alive.
    for path in ["/metrics", "/readyz", "/openapi.json", "/approvals", "/nothing"] {
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        let reply = hub.send(request);
        assert_eq!(reply.status, 401, "{path}");
        assert!(reply.head.to_lowercase().contains("www-authenticate: bearer"));
    }
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    assert_eq!(hub.send(request).json()["status"], "healthy");
    for token in [token, &hub.approver_token] {
        assert!(!hub.said.lock().unwrap().contains(token), "a token is told to nobody");
    }
    let mode = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode(&place.file("endpoint")), mode(&place.file(""))), (0o600, 0o700));
    for token_file in [place.token_file(), place.approver_token_file()] {
        assert_eq!((mode(&token_file), mode(token_file.parent().unwrap())), (0o600, 0o700));
    }
}

#[test]
fn the_shims_token_neither_approves_nor_ends_the_hub() {
    let place = HubFolder::new();
    let mut hub = place.start_deciding();
    let id = hub.evaluate("pay")["task_id"].as_str().unwrap().to_owned();
    let ask = |request_line: &str, token: &str| {
        let (headers, body) = (hub.headers_with(token), r#"{"by":"ann"}"#);
        hub.send(format!(
            "{request_line} HTTP/1.1\r\n{headers}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        ))
    };
    let (approve, deny) =
        (format!("POST /approvals/{id}/approve"), format!("POST /approvals/{id}/deny"));
    for line in ["GET /approvals", &approve, &deny, "POST /governance/shutdown"] {
        assert_eq!(ask(line, "wrong").status, 401, "{line}");
        let refused = ask(line, &hub.token);
        assert_eq!(refused.status, 403, "{line}: {}", refused.body);
        assert!(refused.body.contains("approvers' token"), "{}", refused.body);
    }
    for line in ["GET /readyz", "GET /metrics", "GET /openapi.json", "GET /governance/snapshot"] {
        assert_eq!(ask(line, &hub.token).status, 200, "{line}");
        assert_eq!(ask(line, &hub.approver_token).status, 200, "{line}");
    }
    assert_eq!(ask(&approve, &hub.approver_token).json()["status"], "approved");
    assert_eq!(ask("POST /governance/shutdown", &hub.approver_token).status, 200);
    assert_eq!(hub.end().code(), Some(0));
}

#[test]
fn who_may_not_decide_and_tries_is_in_the_activity_log() {
    let place = HubFolder::new();
    let hub = place.start_deciding();
    let id = hub.evaluate("pay")["task_id"].as_str().unwrap().to_owned();
    let attempts = || -> Vec<Value> {
        let text = log(&place.state());
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.filter(|event| event["governance_decision"] == "refused").collect()
    };
    let post = |path: &str, token: &str| {
        let headers = hub.headers_with(token);
        let type_of = "Content-Type: application/json\r\nContent-Length: 2\r\n";
        hub.send(format!("POST {path} HTTP/1.1\r\n{headers}{type_of}\r\n{{}}")).status
    };
    let approve = format!("/approvals/{id}/approve");
    assert_eq!(post(&approve, "wrong"), 401);
    assert_eq!(post(&approve, &hub.token), 403);
    assert_eq!(post("/governance/shutdown", &hub.token), 403);
    let found = attempts();
    assert_eq!(found.len(), 3, "{found:?}");
    for event in &found {
        let of = |key: &str| event[key].as_str().unwrap_or_default();
        let (kind, level, component) = (of("kind"), of("level"), of("component"));
        assert_eq!((kind, level, component), ("approval", "error", "hub"), "{event}");
        assert_eq!(of("event"), "refused", "{event}");
    }
    assert_eq!((&found[0]["approval_id"], &found[2]["approval_id"]), (&id.into(), &Value::Null));
    assert!(found[1]["policy_reason"].as_str().unwrap().contains("approvers' token"));
    // A request refused for another reason does not count as an attempt.
    assert_eq!(post("/approvals/ap_0000000000000000/deny", &hub.approver_token), 400);
    assert_eq!(attempts().len(), 3);
    drop(hub);
    // A hub does not start with a key that is not the project's.
    let wrong = place.folder.path().join("wrong");
    write_key(&wrong, &[0; 32]);
    let refused = place.fails(&["--non-interactive", "--key-file", wrong.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1));
    let last = attempts().pop().unwrap();
    assert!(last["command"].as_str().unwrap().starts_with("hub"), "{last}");
    assert!(last["policy_reason"].as_str().unwrap().contains("not this project's key"), "{last}");
    assert_eq!(attempts().len(), 4);
}

#[test]
fn web_pages_and_other_names_for_this_machine_are_refused() {
    let place = HubFolder::new();
    let hub = place.start();
    let port = hub.address.rsplit(':').next().unwrap();
    let ask = |host: &str, more: &str| {
        let token = &hub.token;
        hub.send(format!(
            "GET /readyz HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n{more}Connection: close\r\n\r\n"
        ))
    };
    assert_eq!(ask(&format!("localhost:{port}"), "").status, 200);
    assert_eq!(ask("[::1]", "Origin: http://localhost:3000\r\n").status, 200);
    let refused = |host: &str, more: &str| {
        let reply = ask(host, more);
        (reply.status, reply.json()["error"]["code"].clone())
    };
    for host in ["evil.test", "127.0.0.1.evil.test", "localhost.evil.test:80", "10.0.0.1", ""] {
        assert_eq!(refused(host, ""), (403, "forbidden".into()), "{host}");
    }
    for origin in ["null", "http://evil.test", "https://localhost.evil.test", "file://"] {
        let reply = refused("localhost", &format!("Origin: {origin}\r\n"));
        assert_eq!(reply, (403, "forbidden".into()), "{origin}");
    }
}

#[test]
fn a_wrong_method_or_path_or_type_is_told_what_is_right() {
    let place = HubFolder::new();
    let hub = place.start();
    let reply = hub.get("/governance/evaluate");
    assert_eq!(reply.status, 405);
    assert!(reply.head.to_lowercase().contains("allow: post"), "{}", reply.head);
    assert_eq!(hub.post("/metrics", "{}").status, 405);
    for path in ["/", "/governance", "/governance/evaluate/", "/governance/task/", "/../token"] {
        assert_eq!(hub.get(path).status, 404, "{path}");
    }
    let send = |headers: &str| {
        let (ours, body) = (hub.headers(), call("ls", "{}"));
        let length = body.len();
        hub.send(format!(
            "POST /governance/evaluate HTTP/1.1\r\n{ours}{headers}Content-Length: {length}\r\n\r\n{body}"
        ))
        .status
    };
    assert_eq!(send("Content-Type: application/json; charset=utf-8\r\n"), 200);
    assert_eq!(send("Content-Type: APPLICATION/JSON\r\n"), 200);
    assert_eq!(send(""), 415);
    assert_eq!(send("Content-Type: text/plain\r\n"), 415);
    assert_eq!(send("Content-Type: application/json\r\nContent-Encoding: gzip\r\n"), 415);
}

#[test]
fn ec_stdio_040_a_port_in_use_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let place = HubFolder::new();
    for flag in ["--port", "--governance-port"] {
        let done = place.fails(&[flag, &port]);
        assert_eq!(done.status.code(), Some(4));
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(message.contains(&format!("error: port {port} is already in use")), "{message}");
        assert!(message.contains("hint: "), "{message}");
    }
}

#[test]
fn the_token_can_be_put_where_somebody_wants_it() {
    let (place, away) = (HubFolder::new(), tempfile::tempdir().unwrap());
    let elsewhere = away.path().join("secret");
    let approvers = away.path().join("more-secret");
    let hub = place.start_with(&[
        "--token-file",
        elsewhere.to_str().unwrap(),
        "--approver-token-file",
        approvers.to_str().unwrap(),
    ]);
    assert!(!place.token_file().exists() && !place.approver_token_file().exists());
    assert_eq!(hub.get("/readyz").status, 200);
    assert!(!hub.said.lock().unwrap().contains("lies inside the project"));
    // Calls must not name either file, whichever caller asks.
    let names = [elsewhere.clone(), approvers];
    for path in &names {
        let read = call("read", &format!("{{\"path\":{path:?}}}"));
        let answer = hub.post("/governance/evaluate", &read).json();
        assert_eq!(answer["policy_id"], "tapegate:own-files", "{answer}");
    }
    let told = hub.get("/governance/snapshot").json()["own_files"].clone();
    assert_eq!(told, serde_json::json!(names));
    drop(hub);
    for flag in ["--token-file", "--approver-token-file"] {
        let inside = place.folder.path().join("secret");
        let hub = place.start_with(&[flag, inside.to_str().unwrap()]);
        let message = hub.said.lock().unwrap().clone();
        let warned = format!("the token file `{}` lies inside the project", inside.display());
        assert!(
            message.contains(&warned) && message.contains(&format!("another by {flag}")),
            "{message}"
        );
    }
    let one = elsewhere.to_str().unwrap();
    let done = place.fails(&["--token-file", one, "--approver-token-file", one]);
    assert_eq!(done.status.code(), Some(64));
    let message = String::from_utf8_lossy(&done.stderr);
    assert!(message.contains("cannot share the file") && message.contains("hint: "), "{message}");
}

#[test]
fn no_file_of_the_project_holds_the_token_and_one_of_an_earlier_version_is_removed() {
    let (place, away) = (HubFolder::new(), tempfile::tempdir().unwrap());
    fs::create_dir_all(place.file("")).unwrap();
    fs::write(place.file("token"), "left by an earlier version").unwrap();
    let mut command = place.command(&[]);
    command.env("XDG_STATE_HOME", away.path());
    let hub = RunningHub::start(command);
    assert_eq!(hub.evaluate("rm")["decision"], "deny");
    for token in [&hub.token, &hub.approver_token] {
        assert!(holding(away.path(), token) == 1, "the token lies in the user's state folder");
        assert_eq!(holding(place.folder.path(), token), 0);
    }
    let message = hub.said.lock().unwrap().clone();
    let removed = format!("removed `{}`", place.file("token").display());
    assert!(message.contains(&removed) && !place.file("token").exists(), "{message}");
}

/// How many files below a folder contain a text.
fn holding(folder: &Path, text: &str) -> usize {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: std::path::PathBuf| match path.is_dir() {
        true => holding(&path, text),
        false => usize::from(String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text)),
    };
    entries.map(count).sum()
}
