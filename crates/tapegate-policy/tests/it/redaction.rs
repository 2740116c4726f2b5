//! Properties of masking that hold for any message.

use proptest::prelude::*;
use tapegate_core::json;
use tapegate_core::tape::Mask;
use tapegate_policy::redact::{RedactionKey, RedactionRules, Redactor};

fn redactor(rules: &[&str]) -> Redactor {
    Redactor::new(RedactionRules::parse(rules).unwrap(), RedactionKey::for_tape([5; 32]))
}

/// Secrets of several formats, with characters that occur nowhere else in a test.
fn secret() -> impl Strategy<Value = String> {
    prop_oneof![
        "ghp_[A-Z]{4}7[a-z0-9]{31}",
        "sk-ant-api03-[A-Z]{4}7[a-z0-9_-]{30}",
        "sk-proj-[A-Z]{4}7[a-z0-9]{30}",
        "AKIA[A-Z2-7]{16}",
        "xoxb-[0-9]{11}-[a-zA-Z0-9]{24}",
        "eyJ[a-zA-Z0-9]{20}\\.eyJ[a-zA-Z0-9]{20}\\.[a-zA-Z0-9]{20}",
        "-----BEGIN PRIVATE KEY-----\n[A-Za-z0-9]{40}\n-----END PRIVATE KEY-----",
    ]
}

/// JSON of any shape, with the odd spacing, numbers and escapes that real senders write.
fn value(leaf: impl Strategy<Value = String> + 'static) -> impl Strategy<Value = String> {
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("1e309".to_owned()),
        Just("-0.10".to_owned()),
        Just("\"\\ud800 \\/ \\u00e9\"".to_owned()),
        "[a-zA-Z0-9 é:/@.\\-]{0,12}".prop_map(|text| quoted(&text)),
        leaf,
    ];
    scalar.prop_recursive(5, 40, 5, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..5);
        let key = prop_oneof!["[a-z]{1,3}", Just("password".to_owned()), Just("name".to_owned())];
        let object = prop::collection::vec((key, inner), 0..5);
        prop_oneof![
            list.prop_map(|items| format!("[ {}]", items.join(" ,"))),
            object.prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(key, value)| format!("\"{key}\" :{value}")).collect();
                format!("{{{}}}", members.join(", "))
            }),
        ]
    })
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::write_str(&mut out, text);
    String::from_utf8(out).unwrap()
}

/// `text` as a JSON string with some characters escaped that need not be.
fn escaped(text: &str, which: u64) -> String {
    let letters = text.chars().enumerate().map(|(index, letter)| match letter {
        _ if which >> (index % 64) & 1 == 1 => format!("\\u{:04x}", u32::from(letter)),
        '\n' => "\\n".to_owned(),
        _ => letter.to_string(),
    });
    format!("\"{}\"", letters.collect::<String>())
}

fn message(body: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0" ,"id":7,"method":"tools/call","params":{{"name":"n","arguments":{body}}}}}"#
    )
}

fn rules() -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(
        vec![
            "secrets",
            "entropy",
            "..password",
            "params.arguments.*",
            "..[0]",
            "..a",
            "params..b.*",
        ],
        0..=5,
    )
}

/// Checks that `after` is `before` with some values replaced by placeholder strings, walking both.
fn same_but_for_placeholders(before: &[u8], after: &[u8]) -> bool {
    if before == after {
        return true;
    }
    let text = String::from_utf8_lossy(after);
    if text.starts_with('"') && text.contains("[REDACTED:") {
        return true;
    }
    let (Some(one), Some(other)) = (children(before), children(after)) else { return false };
    one.len() == other.len()
        && one.iter().zip(&other).all(|((gap_one, value_one), (gap_other, value_other))| {
            gap_one == gap_other && same_but_for_placeholders(value_one, value_other)
        })
}

/// The children of a container with the bytes before each, and the bytes after the last.
fn children(text: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let mut cursor = json::Cursor::new(text).ok()?;
    let kind = cursor.open().ok()?;
    let (mut children, mut at) = (Vec::new(), 0);
    loop {
        let more = match kind {
            json::JsonKind::Object => cursor.next_key().ok()?.is_some(),
            _ => cursor.next_item().ok()?,
        };
        if !more {
            children.push((cursor.slice(at, cursor.position()), &b"null"[..]));
            return Some(children);
        }
        let value = cursor.value().ok()?;
        let end = cursor.position();
        children.push((cursor.slice(at, end - value.len()), value));
        at = end;
    }
}

proptest! {
    #[test]
    fn a_masked_message_is_json_and_only_masked_values_differ(body in value(secret().prop_map(|s| quoted(&s))), rules in rules()) {
        let (redactor, before) = (redactor(&rules), message(&body));
        let masked = redactor.message(before.as_bytes());
        prop_assert!(json::check(&masked.text).is_ok());
        prop_assert!(same_but_for_placeholders(before.as_bytes(), &masked.text), "{}", String::from_utf8_lossy(&masked.text));
        prop_assert_eq!(masked.paths.is_empty(), masked.text == before.as_bytes());
    }

    #[test]
    fn masking_twice_is_masking_once(body in value(secret().prop_map(|s| quoted(&s))), rules in rules()) {
        let (redactor, before) = (redactor(&rules), message(&body));
        let once = redactor.message(before.as_bytes()).text;
        let twice = redactor.message(&once);
        prop_assert_eq!(&twice.text, &once);
        prop_assert!(twice.paths.is_empty());
    }

    #[test]
    fn a_planted_secret_never_survives(
        secret in secret(),
        which: u64,
        around in "[ a-z\"\\\\é]{0,5}",
        layers in 0..3_u32,
        depth in 0..8_usize,
        body in value(Just("\"PLANT\"".to_owned())),
    ) {
        let mut planted = format!("{around} {secret} {around}");
        for _ in 0..layers {
            planted = format!("{{\"a\":{}}}", escaped_json(&planted, which));
        }
        let body = format!("{}[{body},\"PLANT\"]{}", "{\"k\":[".repeat(depth), "]}".repeat(depth));
        let before = message(&body.replace("\"PLANT\"", &escaped_json(&planted, which)));
        let masked = redactor(&["secrets"]).message(before.as_bytes()).text.into_owned();
        let mut shown = String::from_utf8(masked).unwrap();
        for _ in 0..5 {
            prop_assert!(!shown.contains(&secret), "{before}\n{shown}");
            shown = unescaped(&shown);
        }
        let key = message(&format!("{{{}:1}}", escaped(&secret, which)));
        let masked = redactor(&["secrets"]).message(key.as_bytes()).text.into_owned();
        prop_assert!(String::from_utf8(masked).unwrap().contains("\"[REDACTED:"));
    }

    #[test]
    fn a_planted_secret_never_survives_in_garbage(secret in secret(), before in any::<Vec<u8>>(), after in any::<Vec<u8>>()) {
        let raw = [&before[..], b" ", secret.as_bytes(), b" ", &after[..]].concat();
        let redactor = redactor(&["secrets"]);
        let once = redactor.non_message(&raw).into_owned();
        prop_assert!(!String::from_utf8_lossy(&once).contains(&secret));
        prop_assert_eq!(redactor.non_message(&once).into_owned(), once);
    }

    #[test]
    fn what_the_protocol_needs_never_changes(secret in secret(), rules in rules(), schema in value(Just("\"x\"".to_owned()))) {
        let (secret, mut rules) = (quoted(&secret), rules);
        rules.extend(["..*", "params", "result", "error", "*"]);
        for text in [
            format!(r#"{{"jsonrpc":{secret},"id":{secret},"method":{secret},"params":{{"name":{secret},"cursor":{secret},"requestId":{secret},"taskId":{secret},"_meta":{{"progressToken":{secret}}},"requestState":{secret},"requestedSchema":{schema}}}}}"#),
            format!(r#"{{"id":{secret},"result":{{"nextCursor":{secret},"protocolVersion":{secret},"tools":[{{"name":{secret},"inputSchema":{schema},"outputSchema":{schema}}}]}}}}"#),
            format!(r#"[{{"id":1,"error":{{"code":{secret}}}}}]"#),
        ] {
            let masked = redactor(&rules).message(text.as_bytes()).text.into_owned();
            prop_assert_eq!(String::from_utf8(masked).unwrap(), text);
        }
    }

    #[test]
    fn no_rule_text_panics(text in any::<String>()) {
        let _ = RedactionRules::parse([text.as_str()]);
        let _ = RedactionRules::parse([format!("$.{text}"), format!("['{text}']"), format!("a[{text}")]);
    }

    #[test]
    fn no_upstream_panics_and_masking_twice_is_masking_once(text in "[a-zA-Z0-9=:/?&@'\"\\\\ é$#{}._-]{0,60}", secret in secret()) {
        use tapegate_policy::redact::mask_upstream;
        let text = format!("{text} --token {text} https://u:{text}@h?key={text} {secret}");
        let once = mask_upstream(&text);
        prop_assert!(!once.contains(&secret));
        prop_assert_eq!(mask_upstream(&once), once);
    }
}

/// `text` without one layer of the escapes that [`escaped`] and [`quoted`] make.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let unit = escape.get(1..5).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let (shown, length) = match (escape.chars().next(), unit.and_then(char::from_u32)) {
            (Some('u'), Some(letter)) => (letter, 5),
            (Some('n'), _) => ('\n', 1),
            (Some(letter), _) => (letter, letter.len_utf8()),
            (None, _) => break,
        };
        out.push(shown);
        rest = &escape[length..];
    }
    out + rest
}

fn escaped_json(text: &str, which: u64) -> String {
    let plain = text.chars().all(|letter| !matches!(letter, '"' | '\\') && !letter.is_control());
    if plain { escaped(text, which) } else { quoted(text) }
}
