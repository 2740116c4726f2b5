//! Tests that spelling does not count and meaning does.

use proptest::prelude::*;

use super::*;

fn request(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

fn sign(signer: &Signer, text: &str) -> Signature {
    signer.sign(text.as_bytes(), Frame::read(text.as_bytes()).envelope().unwrap())
}

/// Whether two messages ask for the same thing, checked in every way there is.
#[track_caller]
fn same(signer: &Signer, one: &str, two: &str) -> bool {
    let same = signer.asks_for_same(one.as_bytes(), two.as_bytes());
    let canonical = |text: &str| signer.canonical(text.as_bytes());
    let method = |text: &str| json_method(text);
    let equal = canonical(one) == canonical(two) && method(one) == method(two);
    assert_eq!(same, equal, "{one}\n{two}");
    assert_eq!(same, sign(signer, one).hash == sign(signer, two).hash, "{one}\n{two}");
    for text in [one, two].map(str::as_bytes) {
        // All ways to compute a hash give the same result.
        let (mut envelope, mut along) = (Envelope::default(), ParamsDigest::new(signer.seed));
        envelope.scan(&mut Cursor::from_utf8_at(text, 0), &mut along).unwrap();
        let walked = digest::of_walk(&signer.seed, signer.walk(&envelope).unwrap()).unwrap();
        assert_eq!(signer.sign(text, &envelope), signer.signature(&envelope, walked));
        if signer.ignored.is_empty() {
            assert_eq!(
                signer.sign(text, &envelope),
                signer.signature_from_digest(&envelope, &along)
            );
        }
    }
    same
}

fn json_method(text: &str) -> Option<String> {
    let frame = Frame::read(text.as_bytes());
    frame.envelope()?.method.map(|method| method.decode().into_owned())
}

fn ignoring(paths: &[&str]) -> Signer {
    Signer::new(paths.iter().map(|path| JsonPath::read(path).unwrap()).collect())
}

#[test]
fn spelling_does_not_count() {
    let signer = Signer::default();
    for (one, two) in [
        (
            r#"{"name":"x","arguments":{"a":1,"b":[true,null]}}"#,
            r#" { "arguments" : {"b":[ true,null], "\u0061":1.0},"name":"\u0078" } "#,
        ),
        (r#"{"a":12345678901234567890123}"#, r#"{"a":1234567890123456789012.30e1}"#),
        (r#"{"a":-0}"#, r#"{"a":0.000}"#),
        (r#"{"a":"a\/b\ud83d\ude00\n"}"#, "{\"a\":\"a/b😀\\u000a\"}"),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"b":2,"a":1,"a":3}"#),
        (r#"{"x":{"b":{},"a":[]}}"#, r#"{"x":{"a":[],"b":{}}}"#),
    ] {
        assert!(same(&signer, &request(one), &request(two)), "{one} {two}");
    }
}

#[test]
fn meaning_counts() {
    let signer = Signer::default();
    let all = [
        "{}",
        "[]",
        r#"{"a":1}"#,
        r#"{"a":"1"}"#,
        r#"{"a":-1}"#,
        r#"{"a":10}"#,
        r#"{"a":[1]}"#,
        r#"{"a":[[1]]}"#,
        r#"{"a":[]}"#,
        r#"{"a":{}}"#,
        r#"{"a":null}"#,
        r#"{"a":true}"#,
        r#"{"a":false}"#,
        r#"{"a":""}"#,
        r#"{"b":1}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":2,"b":1}"#,
        r#"{"a":[1,2]}"#,
        r#"{"a":[2,1]}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"a":9007199254740993}"#,
        r#"{"a":9007199254740992}"#,
        r#"{"a":12345678901234567890123}"#,
        r#"{"a":12345678901234567890124}"#,
        r#"{"a":"\ud800"}"#,
        r#"{"a":"\\ud800"}"#,
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"c":{"b":1}}}"#,
        r#"{"a":"null"}"#,
        r#"{"a":1e99999999999999999999}"#,
        r#"{"cursor":"x"}"#,
        r#"{"inputResponses":{"a":1}}"#,
        r#"{"inputResponses":{"b":1}}"#,
        r#"{"arguments":{"_meta":1}}"#,
        r#"{"arguments":{"cursor":1}}"#,
        r#"{"arguments":{"cursor":2}}"#,
        r#"{"a":"aaaaaaaaaaaaaaaa"}"#,
        r#"{"a":"aaaaaaaaaaaaaaaa\u0000"}"#,
        r#"{"a":"\u0000"}"#,
    ];
    for (index, one) in all.iter().enumerate() {
        for other in &all[index + 1..] {
            assert!(!same(&signer, &request(one), &request(other)), "{one} {other}");
        }
    }
}

#[test]
fn repeated_keys_count_in_their_order() {
    let signer = Signer::default();
    let [one, two] = [r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#].map(request);
    // The hashes may be equal; the comparison is not fooled.
    assert!(!signer.asks_for_same(one.as_bytes(), two.as_bytes()));
    assert_ne!(signer.canonical(one.as_bytes()), signer.canonical(two.as_bytes()));
}

#[test]
fn volatile_parts_do_not_count() {
    let signer = Signer::default();
    for (one, two) in [
        (r#"{"name":"x","_meta":{"progressToken":1}}"#, r#"{"name":"x"}"#),
        (r#"{"_meta":1,"\u005fmeta":[2]}"#, "{}"),
        (r#"{"cursor":"abc"}"#, r#"{"cursor":7}"#),
        (r#"{"cursor":null}"#, "{}"),
        (r#"{"inputResponses":{"a":{"x":[1]},"b":2}}"#, r#"{"inputResponses":{"b":null,"a":{}}}"#),
    ] {
        assert!(same(&signer, &request(one), &request(two)), "{one} {two}");
    }
    let absent = r#"{"method":"tools/call","id":"other"}"#;
    assert!(same(&signer, absent, &request("{}")));
}

#[test]
fn initialize_counts_by_its_method_alone() {
    let signer = Signer::default();
    let [one, two] = ["{\"a\":1}", "[]"]
        .map(|params| format!(r#"{{"id":1,"method":"initialize","params":{params}}}"#));
    assert!(same(&signer, &one, &two));
    assert!(!same(&signer, &one, r#"{"id":1,"method":"initialise"}"#));
}

#[test]
fn what_stands_in_the_place_of_an_id_must_be_one() {
    let signer = Signer::default();
    let asked = r#"{"id":1,"method":"m"}"#;
    for id in ["2", "-2", "\"x-1\"", "\"\"", "1.5e3", "\"\\u0061\"", "null"] {
        assert!(same(&signer, &format!(r#"{{"id":{id},"method":"m"}}"#), asked), "{id}");
    }
    for more in [r#"1,"params":{"a":1}"#, r#""","params":{"a":"b"}"#] {
        assert!(!same(&signer, &format!(r#"{{"id":{more},"method":"m"}}"#), asked), "{more}");
    }
}

#[test]
fn what_is_ignored_does_not_count_at_any_depth() {
    let one =
        r#"{"name":"x","arguments":{"at":1,"list":[1,{"at":2,"k":3}],"deep":{"l":[{"at":9}]}}}"#;
    let two = r#"{"name":"x","arguments":{"at":5,"list":[1,{"k":3}],"deep":{"l":[{"at":[]}]}}}"#;
    let [one, two] = [one, two].map(request);
    assert!(same(&ignoring(&["..at"]), &one, &two));
    assert!(same(&ignoring(&["$.params.arguments"]), &one, &two));
    assert!(same(&ignoring(&["params"]), &one, &two));
    assert!(same(&ignoring(&["params.arguments.at", "params..list[1].at", "..l[*]"]), &one, &two));
    for paths in
        [&["params.arguments.at"][..], &["at"], &["params.at"], &["..deep", "..list[0]"], &[]]
    {
        assert!(!same(&ignoring(paths), &one, &two), "{paths:?}");
    }
}

#[test]
fn like_is_the_method_and_what_it_is_about() {
    let signer = Signer::default();
    let like = |method: &str, params: &str| {
        sign(&signer, &format!(r#"{{"id":1,"method":"{method}","params":{params}}}"#)).like
    };
    assert_eq!(
        like("tools/call", r#"{"name":"a","arguments":{}}"#),
        like(r"tools\/call", r#"{"name":"\u0061"}"#)
    );
    assert_ne!(like("tools/call", r#"{"name":"a"}"#), like("tools/call", r#"{"name":"b"}"#));
    assert_ne!(like("tools/call", r#"{"name":"a"}"#), like("prompts/get", r#"{"name":"a"}"#));
    assert_ne!(like("resources/read", r#"{"uri":"a"}"#), like("resources/read", r#"{"uri":"b"}"#));
    assert_eq!(
        like("tools/list", r#"{"name":"a"}"#),
        like("tools/list", r#"{"name":"b","cursor":1}"#)
    );
}

#[test]
fn the_canonical_text_is_sorted_plain_and_without_volatile_parts() {
    let text = request(r#"{"b":1.50,"_meta":{},"a":{"d":"\u00e9\n\/","c":[1e2,{}]},"cursor":"x"}"#);
    let canonical = Signer::default().canonical(text.as_bytes());
    assert_eq!(
        String::from_utf8(canonical).unwrap(),
        r#"{"a":{"c":[100,{}],"d":"é\n/"},"b":1.5,"cursor":"…"}"#
    );
}

#[test]
fn a_million_levels_need_no_stack() {
    let signer = ignoring(&["..x", "..*[7]..y"]);
    let deep = |inner: &str| {
        request(&format!("{}{inner}{}", "{\"a\":[".repeat(500_000), "]}".repeat(500_000)))
    };
    let (one, two) = (deep("1"), deep("2"));
    assert!(same(&signer, &one, &one.replace("\"id\":1", "\"id\":2")));
    assert!(!same(&signer, &one, &two));
}

/// A value: its text in two spellings.
fn value() -> impl Strategy<Value = (String, String)> {
    let scalar = prop_oneof![
        (any::<i32>(), 0..4usize)
            .prop_map(|(n, zeros)| (n.to_string(), format!("{n}{}e-{zeros}", "0".repeat(zeros)))),
        "[a-c\"\\\\é😀\n]{0,6}".prop_map(|text| (quoted(&text), escaped(&text))),
        prop_oneof![Just("null"), Just("true"), Just("false")]
            .prop_map(|word| (word.to_owned(), word.to_owned())),
    ];
    scalar.prop_recursive(4, 24, 4, |inner| {
        let array = proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| {
            let join = |texts: Vec<String>| format!("[{}]", texts.join(" , "));
            let (one, two): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            (join(one), join(two))
        });
        let object =
            proptest::collection::btree_map("[a-c]{0,2}", inner, 0..4).prop_map(|members| {
                let member = |key: String, value: &str| format!("{key} :{value}");
                let one: Vec<_> =
                    members.iter().map(|(key, (one, _))| member(quoted(key), one)).collect();
                let two: Vec<_> =
                    members.iter().rev().map(|(key, (_, two))| member(escaped(key), two)).collect();
                (format!("{{{}}}", one.join(",")), format!("{{\n{}}}", two.join(",\t")))
            });
        prop_oneof![array, object]
    })
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    crate::json::write_str(&mut out, text);
    String::from_utf8(out).unwrap()
}

fn escaped(text: &str) -> String {
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    format!("\"{units}\"")
}

proptest! {
    #[test]
    fn any_value_in_two_spellings_is_the_same((one, two) in value()) {
        let signer = Signer::default();
        let [one, two] = [one, two].map(|text| request(&format!("{{\"v\":{text}}}")));
        prop_assert!(same(&signer, &one, &two));
    }

    #[test]
    fn any_two_values_are_the_same_if_their_canonical_texts_are((one, _) in value(), (two, _) in value()) {
        // `same` of this module checks all comparisons against each other.
        same(&Signer::default(), &request(&one), &request(&two));
        same(&ignoring(&["..a", "params[0]", "params.*.b"]), &request(&one), &request(&two));
    }

    #[test]
    fn canonical_text_is_its_own_canonical_text((one, _) in value()) {
        let signer = Signer::default();
        let once = String::from_utf8(signer.canonical(request(&format!("{{\"v\":{one}}}")).as_bytes())).unwrap();
        let twice = String::from_utf8(signer.canonical(request(&once).as_bytes())).unwrap();
        prop_assert_eq!(once, twice);
    }
}

#[test]
fn values_are_the_same_whatever_their_spelling_and_nothing_of_them_is_left_out() {
    let same =
        |one: &str, two: &str| super::canonical(one.as_bytes()) == super::canonical(two.as_bytes());
    assert!(same(r#"{"a":1.0,"b":["\u0041"]}"#, r#" {"b": ["A"], "a": 1} "#));
    assert!(!same(r#"{"_meta":1}"#, "{}"));
    assert!(!same(r#"{"cursor":1}"#, r#"{"cursor":2}"#));
    assert!(!same(r#"{"inputResponses":{"a":1}}"#, r#"{"inputResponses":{"a":2}}"#));
    assert!(!same("[1,2]", "[2,1]"));
    assert!(!same("1", "\"1\""));
    let deep = |inner: &str| "[".repeat(100_000) + inner + &"]".repeat(100_000);
    assert!(same(&deep("1"), &deep("1")));
    assert!(!same(&deep("1"), &deep("2")));
}
