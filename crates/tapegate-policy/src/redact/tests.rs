//! Redaction of whole messages.

use std::borrow::Cow;

use tapegate_core::json;
use tapegate_core::tape::Mask;

use super::*;

const TOKEN: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4";

fn redactor(rules: &[&str]) -> Redactor {
    Redactor::new(RedactionRules::parse(rules).unwrap(), RedactionKey::for_tape([5; 32]))
}

/// Masks a message and replaces the digits of placeholders by `#`.
#[track_caller]
fn masked(rules: &[&str], message: &str) -> (String, Vec<String>) {
    let redactor = redactor(rules);
    let once = redactor.message(message.as_bytes());
    let text = String::from_utf8(once.text.to_vec()).unwrap();
    assert!(json::check(text.as_bytes()).is_ok(), "{text}");
    let again = redactor.message(text.as_bytes());
    assert!(matches!(again.text, Cow::Borrowed(_)) && again.paths.is_empty(), "{text}");
    (hide_digits(&text), once.paths)
}

fn hide_digits(text: &str) -> String {
    let mut out = text.to_owned();
    let mut at = 0;
    while let Some(found) = out[at..].find("[REDACTED:") {
        at += found + 1;
        let colon = at + "REDACTED:".len() + out[at + "REDACTED:".len()..].find(':').unwrap();
        out.replace_range(colon + 1..colon + 13, "#");
    }
    out
}

#[track_caller]
fn check(rules: &[&str], message: &str, expected: &str, paths: &[&str]) {
    let (text, found) = masked(rules, message);
    assert_eq!(text, expected);
    assert_eq!(found, paths);
}

#[track_caller]
fn untouched(rules: &[&str], message: &str) {
    let redactor = redactor(rules);
    let masked = redactor.message(message.as_bytes());
    assert!(matches!(masked.text, Cow::Borrowed(_)), "{}", String::from_utf8_lossy(&masked.text));
    assert!(masked.paths.is_empty());
}

#[test]
fn a_path_masks_a_value_of_any_sort_and_nothing_else() {
    for value in ["\"hunter2\"", "7", "null", "true", "[1,{}]", r#"{"a":"b"}"#] {
        check(
            &["$.params.arguments.password"],
            &format!(r#"{{ "id":1.0,"params":{{"arguments":{{"password" : {value} ,"x":1e3}}}}}}"#),
            r#"{ "id":1.0,"params":{"arguments":{"password" : "[REDACTED:path:#]" ,"x":1e3}}}"#,
            &["/params/arguments/password"],
        );
    }
}

#[test]
fn recursive_and_wildcard_paths_reach_every_place() {
    check(
        &["result..token", "result.list[*].k", "result.list[1].only"],
        r#"{"token":1,"result":{"token":1,"list":[{"token":2,"k":3},{"only":4,"k":[{"token":5}]}]}}"#,
        r#"{"token":1,"result":{"token":"[REDACTED:path:#]","list":[{"token":"[REDACTED:path:#]","k":"[REDACTED:path:#]"},{"only":"[REDACTED:path:#]","k":"[REDACTED:path:#]"}]}}"#,
        &[
            "/result/token",
            "/result/list/0/token",
            "/result/list/0/k",
            "/result/list/1/only",
            "/result/list/1/k",
        ],
    );
}

#[test]
fn escaped_and_odd_keys_are_reached_and_pointed_at() {
    check(
        &["params['a/b~c']", "..pass"],
        r#"{"params":{"a\/b~c":1,"\u0070ass":2}}"#,
        r#"{"params":{"a\/b~c":"[REDACTED:path:#]","\u0070ass":"[REDACTED:path:#]"}}"#,
        &["/params/a~1b~0c", "/params/pass"],
    );
}

#[test]
fn patterns_mask_only_the_secret_in_strings_and_keys() {
    check(
        &["secrets"],
        &format!(r#"{{"result":{{"n":12,"text":"é is {TOKEN}.","{TOKEN}":["x"]}}}}"#),
        r#"{"result":{"n":12,"text":"é is [REDACTED:github:#].","[REDACTED:github:#]":["x"]}}"#,
        &["/result/text", &format!("/result/{}", redactor(&[]).key.placeholder("github", TOKEN))],
    );
}

#[test]
fn escapes_hide_nothing() {
    let escaped = format!(r"\u0067{}", &TOKEN[1..]);
    check(
        &["github"],
        &format!(r#"{{"params":{{"a":"<{escaped}>"}}}}"#),
        r#"{"params":{"a":"<[REDACTED:github:#]>"}}"#,
        &["/params/a"],
    );
    check(
        &["url-credentials"],
        r#"{"params":{"uri":"https:\/\/u:p@h\/"}}"#,
        r#"{"params":{"uri":"https://[REDACTED:url-credentials:#]@h/"}}"#,
        &["/params/uri"],
    );
}

#[test]
fn a_batch_is_an_array_of_messages() {
    check(
        &["params.x"],
        r#"[{"id":1,"params":{"x":1}},{"params":{"y":1}},7]"#,
        r#"[{"id":1,"params":{"x":"[REDACTED:path:#]"}},{"params":{"y":1}},7]"#,
        &["/0/params/x"],
    );
}

#[test]
fn what_the_protocol_needs_is_never_masked() {
    let envelope = format!(
        r#"{{"jsonrpc":"2.0","id":"{TOKEN}","method":"{TOKEN}","params":{{"name":"{TOKEN}","_meta":{{"progressToken":"{TOKEN}","io.modelcontextprotocol/subscriptionId":"{TOKEN}","io.modelcontextprotocol/related-task":{{"taskId":"{TOKEN}"}}}},"cursor":"{TOKEN}","requestState":"{TOKEN}","requestedSchema":{{"{TOKEN}":1}},"ref":{{"type":"ref/prompt","name":"{TOKEN}"}}}}}}"#
    );
    let result = format!(
        r#"{{"id":1,"result":{{"nextCursor":"{TOKEN}","tools":[{{"name":"{TOKEN}","inputSchema":{{"d":"{TOKEN}"}},"outputSchema":{{}}}}],"inputRequests":{{"a":{{"method":"{TOKEN}","params":{{"requestedSchema":{{"x":"{TOKEN}"}}}}}}}}}}}}"#
    );
    let error = r#"{"id":1,"error":{"code":-32000}}"#;
    for message in [envelope.as_str(), result.as_str(), error] {
        for rules in [&["secrets", "entropy"][..], &["..*"], &["*"], &["params", "result", "error"]]
        {
            untouched(rules, message);
        }
    }
}

#[test]
fn the_same_names_among_a_users_data_are_masked() {
    check(
        &["..cursor", "..inputSchema"],
        r#"{"params":{"cursor":"c","arguments":{"cursor":"c","inputSchema":{}}}}"#,
        r#"{"params":{"cursor":"c","arguments":{"cursor":"[REDACTED:path:#]","inputSchema":"[REDACTED:path:#]"}}}"#,
        &["/params/arguments/cursor", "/params/arguments/inputSchema"],
    );
}

#[test]
fn a_rule_for_a_whole_part_of_the_envelope_masks_its_members() {
    check(
        &["params"],
        r#"{"method":"tools/call","params":{"name":"n","_meta":{"progressToken":1,"x":2},"arguments":{"a":1}}}"#,
        r#"{"method":"tools/call","params":{"name":"n","_meta":{"progressToken":1,"x":"[REDACTED:path:#]"},"arguments":"[REDACTED:path:#]"}}"#,
        &["/params/_meta/x", "/params/arguments"],
    );
    check(&["result"], r#"{"result":"x"}"#, r#"{"result":"[REDACTED:path:#]"}"#, &["/result"]);
}

#[test]
fn the_placeholder_follows_the_meaning_not_the_writing() {
    let redactor = redactor(&["params.a", "secrets"]);
    let mask = |text: &str| {
        let masked = redactor.message(text.as_bytes()).text.to_vec();
        String::from_utf8(masked).unwrap()
    };
    let one = mask(r#"{"params":{"a":{"x":1,"y":"é"}}}"#);
    assert_eq!(one, mask(r#"{"params":{"a":{ "y":"\u00e9","x":1.0 }}}"#));
    assert_ne!(one, mask(r#"{"params":{"a":{"x":2,"y":"é"}}}"#));
}

#[test]
fn a_redaction_after_another_can_be_repeated_on_a_live_message() {
    let message = format!(r#"{{"params":{{"a":{{"b":"x {TOKEN}","c":[1]}},"d":"{TOKEN}"}}}}"#);
    for (one, other) in [
        ("secrets", "params.a"),
        ("params.a", "secrets"),
        ("params.a.b", "params.a"),
        ("params.a", "params.a.b"),
        ("secrets,..c", "secrets,params.*"),
        ("..c", "..a"),
    ] {
        let (first, second) = (redactor(&[one]), redactor(&[other]));
        let on_tape = first.message(message.as_bytes()).text.to_vec();
        let both = second.with_tape_rules(&first.header_extra()).unwrap();
        let on_tape = both.message(&on_tape).text.to_vec();
        let both = Redactor::from_header(&both.header_extra(), None).unwrap().unwrap();
        let live = both.message(message.as_bytes()).text.to_vec();
        assert_eq!(String::from_utf8(on_tape), String::from_utf8(live), "{one} {other}");
    }
}

#[test]
fn what_is_too_deep_to_look_through_is_masked_as_a_whole() {
    let deep = format!("{}\"{TOKEN}\"{}", "[".repeat(100_000), "]".repeat(100_000));
    let (text, paths) = masked(&["secrets"], &format!(r#"{{"params":{{"a":{deep}}}}}"#));
    assert!(!text.contains(TOKEN) && text.contains("[REDACTED:depth:#]"));
    assert_eq!(paths.len(), 1);
    untouched(&["..z"], &format!(r#"{{"params":{{"a":{deep}}}}}"#));
}

#[test]
fn pointers_are_bounded() {
    let many = vec![format!("\"{TOKEN}\""); 3000].join(",");
    let (_, paths) = masked(&["secrets"], &format!(r#"{{"params":{{"a":[{many}]}}}}"#));
    assert_eq!((paths.len(), paths[1000].as_str()), (1001, ""));
    let (_, paths) =
        masked(&["secrets"], &format!(r#"{{"params":{{"{}":"{TOKEN}"}}}}"#, "k".repeat(5000)));
    assert_eq!(paths, ["/params"]);
}

#[test]
fn a_message_without_secrets_is_borrowed() {
    untouched(
        &["secrets", "params.arguments.password"],
        r#"{"params":{"arguments":{"x":"\u00e9 https://a.b"}}}"#,
    );
    untouched(&[], &format!(r#"{{"params":{{"x":"{TOKEN}"}}}}"#));
}

#[test]
fn text_that_is_no_json_is_masked_by_patterns_and_withheld_for_paths() {
    let garbage = |rules: &[&str], raw: &[u8]| {
        let redactor = redactor(rules);
        let once = redactor.non_message(raw).to_vec();
        assert_eq!(redactor.non_message(&once), once);
        hide_digits(&String::from_utf8_lossy(&once))
    };
    let line = format!("oops {TOKEN} \u{fffd}");
    assert_eq!(garbage(&["secrets"], line.as_bytes()), "oops [REDACTED:github:#] \u{fffd}");
    let bytes = [b"\xff ", TOKEN.as_bytes(), b" \xfe"].concat();
    assert_eq!(garbage(&["secrets"], &bytes), "\u{fffd} [REDACTED:github:#] \u{fffd}");
    assert_eq!(garbage(&["params.x"], b"{\"x"), "[REDACTED:withheld-3-bytes:#]");
    assert_eq!(
        garbage(&["secrets"], b"listening on http://localhost:80"),
        "listening on http://localhost:80"
    );
    assert_eq!(garbage(&["secrets"], b"{\"a\":\"ghp_a1B2"), "{\"a\":\"[REDACTED:github:#]");
    assert_eq!(
        garbage(&["secrets"], b"Authorization: Bearer a1"),
        "Authorization: [REDACTED:bearer:#]"
    );
    let hidden = format!("{{\"a\":\"\\u0067{}\" oops", &TOKEN[1..]);
    assert_eq!(garbage(&["secrets"], hidden.as_bytes()), "[REDACTED:github:#]");
    assert_eq!(
        garbage(&["params.x"], br#"[{"params":{"x":1}}]"#),
        r#"[{"params":{"x":"[REDACTED:path:#]"}}]"#
    );
    assert_eq!(garbage(&[], b"\xff"), "\u{fffd}");
}

#[test]
fn a_message_that_is_none_is_withheld() {
    let redactor = redactor(&["secrets"]);
    let torn = format!("{{\"a\":\"{TOKEN}\"");
    let masked = redactor.message(torn.as_bytes());
    let text = String::from_utf8(masked.text.to_vec()).unwrap();
    assert_eq!(hide_digits(&text), r#"{"redacted":"[REDACTED:withheld-39-bytes:#]"}"#);
}

#[test]
fn bytes_that_look_packed_are_withheld() {
    let packed: Vec<u8> = (0..64u8).map(|n| n.wrapping_mul(151) ^ 0x8b).collect();
    let left = redactor(&["secrets"]).non_message(&packed).into_owned();
    assert!(left.starts_with(b"[REDACTED:withheld-64-bytes:"), "{}", left.escape_ascii());
    let nearly_text = b"a line of text with one odd byte \xff in it";
    assert_eq!(redactor(&["secrets"]).non_message(nearly_text), &nearly_text[..]);
}
