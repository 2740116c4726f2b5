//! Tests of what is requested from servers of various kinds.

use super::*;

/// Runs a server that answers each request with `answer`: a result, or the message of an error.
fn play(answer: impl Fn(&str, &str) -> Result<String, String>) -> (Vec<String>, Lister) {
    let mut lister = Lister::default();
    let mut asked = Vec::new();
    let mut queue = vec![lister.start()];
    while let Some(line) = queue.pop() {
        let text = String::from_utf8(line.clone()).unwrap();
        let frame = Frame::read(&line);
        let envelope = frame.envelope().unwrap();
        assert!(envelope.version_ok && !envelope.repeated, "{text}");
        let method = envelope.method.unwrap().decode().into_owned();
        let cursor = envelope.params.and_then(|params| json::member(params, "cursor"));
        let cursor = cursor.and_then(json::string).unwrap_or_default().into_owned();
        asked.push(format!("{method} {cursor}").trim().to_owned());
        let Some(id) = envelope.id.map(String::from_utf8_lossy) else { continue };
        let reply = match answer(&method, &cursor) {
            Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
            Err(message) => format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"{message}"}}}}"#
            ),
        };
        assert!(asked.len() < 3000, "it never ends");
        let mut more = lister.receive(reply.as_bytes());
        more.reverse();
        queue.extend(more);
    }
    (asked, lister)
}

const ALL: &str = r#"{"capabilities":{"tools":{},"resources":{},"prompts":{}}}"#;

#[test]
fn every_page_of_every_list_is_asked_for() {
    let (asked, lister) = play(|method, cursor| match (method, cursor) {
        ("initialize", _) => Ok(ALL.to_owned()),
        ("tools/list", "") => Ok(r#"{"tools":[1],"nextCursor":"é"}"#.to_owned()),
        ("tools/list", "é") => Ok(r#"{"tools":[2]}"#.to_owned()),
        _ => Ok("{}".to_owned()),
    });
    assert_eq!(
        asked,
        [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/list é",
            "resources/list",
            "resources/templates/list",
            "prompts/list"
        ]
    );
    assert!(lister.is_finished());
    let listed = lister.finish().unwrap();
    assert_eq!((listed.pages.len(), listed.missing.len()), (5, 0));
    assert_eq!(listed.pages[1].topic, Topic::Tools);
    assert!(listed.pages[1].answer.ends_with(br#""result":{"tools":[2]}}"#));
}

#[test]
fn only_tools_are_asked_for_where_nothing_else_is_announced() {
    let (asked, lister) = play(|method, _| match method {
        "initialize" => Ok(r#"{"capabilities":{}}"#.to_owned()),
        _ => Ok("{}".to_owned()),
    });
    assert_eq!(asked, ["initialize", "notifications/initialized", "tools/list"]);
    assert!(lister.finish().is_ok());
}

#[test]
fn a_server_without_sessions_is_discovered_and_told_the_version_each_time() {
    let (asked, lister) = play(|method, _| match method {
        "initialize" => Err("no such method".to_owned()),
        "server/discover" => Ok(ALL.to_owned()),
        _ => Ok("{}".to_owned()),
    });
    assert_eq!(asked[..3], ["initialize", "server/discover", "tools/list"]);
    let listed = lister.finish().unwrap();
    assert_eq!((listed.pages.len(), listed.missing.len()), (4, 0));
}

#[test]
fn what_is_no_server_says_why() {
    let (_, lister) = play(|_, _| Err("go away".to_owned()));
    assert!(lister.is_finished());
    let refused = |reason: &str| ListingFailure::Refused(reason.to_owned());
    assert_eq!(lister.finish().unwrap_err(), refused("go away"));
    assert_eq!(Lister::default().finish().unwrap_err(), refused("it did not answer"));
}

#[test]
fn a_process_that_sends_back_what_it_is_sent_is_told_from_a_server_that_refuses() {
    let mut lister = Lister::default();
    let first = lister.start();
    assert_eq!(lister.receive(&first), Vec::<Vec<u8>>::new(), "an answer would come back, too");
    assert!(lister.is_finished());
    assert_eq!(lister.finish().unwrap_err(), ListingFailure::Echo);
}

#[test]
fn a_list_that_fails_or_never_ends_is_named_and_the_others_are_asked_for() {
    let (_, lister) = play(|method, _| match method {
        "initialize" => Ok(ALL.to_owned()),
        "tools/list" => Ok(r#"{"tools":[],"nextCursor":"x"}"#.to_owned()),
        "resources/list" => Err("broken".to_owned()),
        _ => Ok("{}".to_owned()),
    });
    let listed = lister.finish().unwrap();
    let missing: Vec<_> =
        listed.missing.iter().map(|one| (one.method, one.reason.as_str())).collect();
    let endless = ("tools/list", "the list does not come to an end");
    assert_eq!(missing, [endless, ("resources/list", "broken")]);
}

#[test]
fn a_list_of_ever_new_pages_is_left_at_some_point() {
    let (asked, lister) = play(|method, cursor| match method {
        "initialize" => Ok(r#"{"capabilities":{}}"#.to_owned()),
        _ => Ok(format!(r#"{{"tools":[],"nextCursor":"{cursor}x"}}"#)),
    });
    assert_eq!(asked.len(), 2 + PAGES_MAX);
    assert_eq!(lister.finish().unwrap().missing.len(), 1);
}

#[test]
fn what_the_server_asks_is_answered_and_strangers_are_not_heard() {
    let mut lister = Lister::default();
    lister.start();
    let ping = lister.receive(br#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert_eq!(ping, [br#"{"jsonrpc":"2.0","id":"p","result":{}}"#.to_vec()]);
    let other = lister.receive(br#"{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}"#);
    assert!(String::from_utf8_lossy(&other[0]).contains("-32601"));
    for stranger in [
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
        "noise",
        "[]",
    ] {
        assert!(lister.receive(stranger.as_bytes()).is_empty(), "{stranger}");
    }
    assert!(!lister.is_finished());
}

#[test]
fn what_depends_on_the_client_is_listed_too_and_nothing_is_given_for_it() {
    let mut lister = Lister::default();
    let hello = String::from_utf8(lister.start()).unwrap();
    for capability in ["roots", "sampling", "elicitation"] {
        assert!(hello.contains(&format!("\"{capability}\":{{}}")), "{hello}");
        assert!(META.contains(&format!("\"{capability}\":{{}}")));
    }
    let mut answer = |method: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":"s-1","method":"{method}"}}"#);
        String::from_utf8(lister.receive(line.as_bytes()).concat()).unwrap()
    };
    assert_eq!(answer("roots/list"), r#"{"jsonrpc":"2.0","id":"s-1","result":{"roots":[]}}"#);
    assert!(answer("sampling/createMessage").contains("-32601"));
}
