//! Whole tapes before and after.

use super::super::{RedactionKey, RedactionRules};
use super::*;

const TOKEN: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4";

fn redactor(rules: &[&str]) -> Redactor {
    Redactor::new(RedactionRules::parse(rules).unwrap(), RedactionKey::for_tape([5; 32]))
}

#[track_caller]
fn redact(rules: &[&str], text: &str) -> (String, RedactionReport) {
    let mut out = Vec::new();
    let report = redact_tape(TapeReader::new(text.as_bytes()), &mut out, &redactor(rules)).unwrap();
    let out = String::from_utf8(out).unwrap();
    assert!(!out.contains(TOKEN) && !out.contains("hunter2"), "{out}");
    let mut again = Vec::new();
    let second =
        redact_tape(TapeReader::new(out.as_bytes()), &mut again, &redactor(rules)).unwrap();
    assert_eq!(String::from_utf8(again).unwrap(), out, "redacted twice");
    assert_eq!(second.lines_masked, 0);
    (out, report)
}

fn place(kind: &str) -> String {
    redactor(&[]).key.placeholder(kind, TOKEN)
}

const HEADER: &str = r#"{"type":"header","version":"1.0","recorded_at":"t","upstream":"srv --token hunter2","thoughtjack_version":"1","x":[1]}"#;

#[test]
fn a_thoughtjack_tape_keeps_everything_but_the_secrets() {
    let same = r#"{ "type":"message","ts":"t","seq":1,"dir":"c2s","msg":{"id":1 ,"method":"m"},"odd":1.50 }"#;
    let call = format!(
        r#"{{"type":"message","seq":2,"ts":"t","dir":"s2c","msg":{{"id":1,"result":{{"t":"{TOKEN}"}}}},"latency_ms":3,"redacted":["/result/a"],"note":"{TOKEN}"}}"#
    );
    let footer = r#"{"type":"footer","total_messages":2,"duration_ms":1,"client_messages":1,"server_messages":1}"#;
    let (out, report) = redact(&["secrets"], &format!("{HEADER}\n{same}\n{call}\n{footer}\n"));
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(
        lines[0],
        format!(
            r#"{{"type":"header","version":"1.0","recorded_at":"t","upstream":"srv --token [REDACTED]","thoughtjack_version":"1","x":[1],"redaction":{{"rules":["secrets"],"key":"{}"}}}}"#,
            "05".repeat(32)
        )
    );
    assert_eq!((lines[1], lines[3]), (same, footer));
    let place = place("github");
    assert_eq!(
        lines[2],
        format!(
            r#"{{"type":"message","seq":2,"ts":"t","dir":"s2c","msg":{{"id":1,"result":{{"t":"{place}"}}}},"latency_ms":3,"redacted":["/result/a","/result/t"],"note":"{place}"}}"#
        )
    );
    assert_eq!((report.lines, report.lines_masked, report.places, report.headers), (4, 2, 3, 1));
}

#[test]
fn raw_bytes_of_an_overwatch_tape_are_masked_too() {
    let good = format!(
        r#"{{"ts":"t","direction":"client_to_server","parsed":{{"params":{{"t":"{TOKEN}"}}}},"raw":"{{\"params\": {{\"t\":\"{TOKEN}\"}}}}"}}"#
    );
    let bytes = [b"\xff ", TOKEN.as_bytes(), b" "].concat();
    let bad = format!(
        r#"{{"ts":"t","direction":"server_to_client","raw":"\ufffd {TOKEN}","parse_error":"not UTF-8","raw_b64":"{}"}}"#,
        base64_encode(&bytes)
    );
    let (out, report) = redact(&["github"], &format!("{good}\n{bad}\n"));
    let place = place("github");
    assert_eq!(
        out,
        format!(
            "{{\"ts\":\"t\",\"direction\":\"client_to_server\",\"parsed\":{{\"params\":{{\"t\":\"{place}\"}}}},\"raw\":\"{{\\\"params\\\": {{\\\"t\\\":\\\"{place}\\\"}}}}\",\"redacted\":[\"/params/t\"]}}\n\
             {{\"ts\":\"t\",\"direction\":\"server_to_client\",\"raw\":\"\u{fffd} {place} \",\"parse_error\":\"not UTF-8\"}}\n"
        )
    );
    assert_eq!((report.lines, report.lines_masked, report.headers), (2, 2, 0));
}

#[test]
fn bytes_that_hold_no_secret_stay_exact() {
    let bad = r#"{"ts":"t","direction":"server_to_client","raw":"\ufffd","parse_error":"x","raw_b64":"/w=="}"#;
    assert_eq!(redact(&["github"], bad).0, format!("{bad}\n"));
    let (out, _) = redact(&["..password"], bad);
    assert!(out.contains("[REDACTED:withheld-1-bytes:") && !out.contains("raw_b64"), "{out}");
}

#[test]
fn repeated_and_unknown_members_hide_nothing() {
    let twice = format!(
        r#"{{"type":"message","seq":1,"ts":"t","dir":"c2s","msg":{{"id":1}},"msg":{{"params":{{"p":"hunter2"}}}},"raw_b64":"{}"}}"#,
        base64_encode(TOKEN.as_bytes())
    );
    let strange = format!(
        r#"{{"type":"strange","msg":{{"params":{{"p":"hunter2"}}}},"{TOKEN}":1,"by":"{TOKEN}"}}"#
    );
    let by = format!(
        r#"{{"type":"message","seq":1,"ts":"t","dir":"c2s","msg":{{"id":1}},"by":"{TOKEN}","session":"{TOKEN}"}}"#
    );
    let (out, report) = redact(&["params.p", "secrets"], &format!("{twice}\n{strange}\n{by}\n"));
    assert!(!out.contains(&base64_encode(TOKEN.as_bytes())), "{out}");
    assert_eq!((report.lines, report.lines_masked), (3, 3));
}

#[test]
fn a_torn_tail_is_left_out_and_faults_are_told() {
    let line = r#"{"ts":"t","direction":"client_to_server","parsed":1}"#;
    let (out, report) = redact(
        &["secrets"],
        &format!(
            "{line}\n{{\"password\":\"hunter2\n{line}\n{{\"x\":1}}\n{line}\n{{\"ts\":\"{TOKEN}"
        ),
    );
    assert_eq!(out, format!("{line}\n{line}\n{line}\n"));
    assert_eq!(report.torn_bytes, Some(39));
    let told: Vec<_> = report.skipped.iter().map(|skipped| skipped.line).collect();
    assert_eq!(told, [2, 4]);
}

#[test]
fn rules_of_an_earlier_redaction_are_kept_with_its_key() {
    let first = Redactor::new(
        RedactionRules::parse(["params.a"]).unwrap(),
        RedactionKey::for_tape([9; 32]),
    );
    let message =
        r#"{"type":"message","seq":1,"ts":"t","dir":"c2s","msg":{"params":{"a":1,"b":2}}}"#;
    let mut once = Vec::new();
    redact_tape(TapeReader::new(format!("{HEADER}\n{message}\n").as_bytes()), &mut once, &first)
        .unwrap();
    let (twice, _) = redact(&["params.b"], std::str::from_utf8(&once).unwrap());
    let line = TapeLine::read(twice.lines().next().unwrap().as_bytes()).unwrap();
    let TapeLine::Header(header) = line else { panic!("no header: {twice}") };
    let both = Redactor::from_header(&header.extra, None).unwrap().unwrap();
    let rules: Vec<_> = both.passes.iter().map(|rules| rules.texts().join(" ")).collect();
    assert_eq!(rules, ["params.a", "params.b"]);
    let live = both.message(br#"{"params":{"a":1,"b":2}}"#).text.into_owned();
    assert!(twice.contains(std::str::from_utf8(&live).unwrap()), "{twice}");
    assert_eq!(twice.matches("\"redaction\"").count(), 1);
}

#[test]
fn a_tape_redacted_with_somebodys_own_key_is_not_touched_without_it() {
    let own = Redactor::new(
        RedactionRules::parse(["params.a"]).unwrap(),
        RedactionKey::from_secret(b"mine"),
    );
    let mut once = Vec::new();
    redact_tape(TapeReader::new(HEADER.as_bytes()), &mut once, &own).unwrap();
    let error = redact_tape(TapeReader::new(once.as_slice()), &mut Vec::new(), &redactor(&["aws"]))
        .unwrap_err();
    assert!(matches!(error, TapeError::Header { line: 1, .. }));
    assert!(redact_tape(TapeReader::new(once.as_slice()), &mut Vec::new(), &own).is_ok());
}

#[test]
fn a_value_that_is_masked_again_by_another_rule_counts() {
    let call = format!(
        r#"{{"type":"message","seq":1,"ts":"t","dir":"s2c","msg":{{"id":1,"result":{{"t":"a {TOKEN}"}}}}}}"#
    );
    let (first, _) = redact(&["secrets"], &format!("{HEADER}\n{call}\n"));
    let (second, report) = redact(&["result.t"], &first);
    assert!(second.contains("[REDACTED:path:"), "{second}");
    assert_eq!((report.lines_masked, report.places), (1, 1), "{second}");
}
