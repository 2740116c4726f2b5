//! Which items are cut from lists, and which are not.

use tapegate_core::frame::Frame;

use super::*;

/// Hides every name that starts with `x`.
struct NoX;

impl ListVisibility for NoX {
    fn may_hide(&self, offer: OfferKind) -> bool {
        offer != OfferKind::Prompt
    }

    fn is_visible(&self, _: OfferKind, name: &str) -> bool {
        !name.starts_with('x')
    }
}

fn filtered(result: &str) -> (String, FilteredReply) {
    let message = format!(r#"{{"jsonrpc":"2.0","id":1, "result": {result} }}"#);
    let frame = Frame::read(message.as_bytes());
    let result = frame.envelope().unwrap().result.unwrap();
    let filtered = filter(message.as_bytes(), result, &NoX);
    let text =
        filtered.text.clone().map_or(message.clone(), |text| String::from_utf8(text).unwrap());
    assert!(tapegate_core::json::check(text.as_bytes()).is_ok(), "{text}");
    let frame = Frame::read(text.as_bytes());
    let result = frame.envelope().unwrap().result.unwrap();
    let again = filter(text.as_bytes(), result, &NoX);
    assert_eq!(again.text, None, "{text}");
    (String::from_utf8(result.to_vec()).unwrap(), filtered)
}

#[track_caller]
fn becomes(before: &str, after: &str) {
    let (text, filtered) = filtered(before);
    assert_eq!(text, after);
    assert_eq!(filtered.text.is_some(), before != after);
}

#[test]
fn only_what_is_hidden_is_cut_out_wherever_it_stands() {
    becomes(r#"{"tools":[]}"#, r#"{"tools":[]}"#);
    becomes(
        r#"{"tools":[{"name":"a"} , {"name":"b"}]}"#,
        r#"{"tools":[{"name":"a"} , {"name":"b"}]}"#,
    );
    becomes(
        r#"{"tools": [ {"name":"x1"} , { "name" : "a", "k": 1.0 } ,{"name":"x2"},{"name":"\u0078"}, {"name":"b"} , {"name":"x3"} ] ,"nextCursor":"p2"}"#,
        r#"{"tools": [ { "name" : "a", "k": 1.0 } ,{"name":"b"} ] ,"nextCursor":"p2"}"#,
    );
    becomes(r#"{"tools":[ {"name":"x"} ]}"#, r#"{"tools":[  ]}"#);
    becomes(r#"{"tools":[{"name":"x"},{"name":"xx"}]}"#, r#"{"tools":[]}"#);
    becomes(r#"{"tools":[{"name":"a"},{"name":"x"}]}"#, r#"{"tools":[{"name":"a"}]}"#);
}

#[test]
fn every_kind_is_known_by_its_own_key() {
    becomes(
        r#"{"resources":[{"uri":"x:1","name":"a"},{"uri":"a:1","name":"x"}]}"#,
        r#"{"resources":[{"uri":"a:1","name":"x"}]}"#,
    );
    becomes(
        r#"{"resourceTemplates":[{"uriTemplate":"x:{a}"},{"uriTemplate":"a:{x}"}]}"#,
        r#"{"resourceTemplates":[{"uriTemplate":"a:{x}"}]}"#,
    );
    becomes(r#"{"prompts":[{"name":"x"},7]}"#, r#"{"prompts":[{"name":"x"},7]}"#);
}

#[test]
fn what_has_no_name_that_all_readers_agree_on_is_hidden() {
    for item in [
        "7",
        "null",
        "{}",
        r#"{"name":7}"#,
        r#"{"name":null}"#,
        r#"{"Name":"a"}"#,
        r#"{"name":"a","name":"x"}"#,
        r#"{"name":"x","name":"a"}"#,
        r#"{"name":"a","NAME":"x"}"#,
        r#"{"name":"a","name":1}"#,
        r#"["x"]"#,
    ] {
        becomes(&format!(r#"{{"tools":[{{"name":"a"}},{item}]}}"#), r#"{"tools":[{"name":"a"}]}"#);
    }
}

#[test]
fn a_list_under_a_name_that_some_readers_take_for_it_is_a_list() {
    for key in ["Tools", "TOOLS", r"\u0074ools", "tool_s", r"t\ud800ools"] {
        let list = |items: &str| format!(r#"{{"{key}":[{items}]}}"#);
        becomes(&list(r#"{"name":"x"},{"name":"a"}"#), &list(r#"{"name":"a"}"#));
    }
    becomes(r#"{"tools":[],"tools":[{"name":"x"}]}"#, r#"{"tools":[],"tools":[]}"#);
    becomes(r#"{"tools":{"0":{"name":"x"}}}"#, r#"{"tools":[]}"#);
}

#[test]
fn a_reply_that_was_filtered_is_not_for_everybody_to_keep() {
    becomes(
        r#"{"ttlMs":1000,"tools":[{"name":"x"}],"cacheScope":"public","resultType":"complete"}"#,
        r#"{"ttlMs":0,"tools":[],"cacheScope":"private","resultType":"complete"}"#,
    );
    becomes(
        r#"{"tools":[{"name":"x"}],"cacheScope":"private", "ttlMs":1}"#,
        r#"{"tools":[],"cacheScope":"private", "ttlMs":0}"#,
    );
    becomes(
        r#"{"TTLMS":1e9,"tools":[{"name":"x"}],"cacheScope":null,"ttlMs":"7"}"#,
        r#"{"TTLMS":0,"tools":[],"cacheScope":"private","ttlMs":0}"#,
    );
    let kept = r#"{"tools":[{"name":"a"}],"cacheScope":"public","ttlMs":1}"#;
    becomes(kept, kept);
}

#[test]
fn what_was_hidden_is_told_by_name() {
    let (_, filtered) = filtered(r#"{"tools":[{"name":"x"},{"name":"a"},{}],"prompts":[{}]}"#);
    assert_eq!(filtered.hidden_count(), 2);
    assert_eq!(
        filtered.lists,
        [
            FilteredList {
                offer: OfferKind::Tool,
                kept: 1,
                hidden: vec!["x".to_owned(), String::new()]
            },
            FilteredList { offer: OfferKind::Prompt, kept: 1, hidden: Vec::new() },
        ]
    );
}
