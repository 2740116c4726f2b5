//! All errors in a file of cases are reported at once, and cases get the policy's decisions.

use std::path::Path;

use super::*;

fn found(text: &str) -> Vec<String> {
    let mut findings = Findings::default();
    parse(text.as_bytes(), &mut findings);
    let list = findings.into_list().into_iter();
    list.map(|Finding { spot, path, message: message_text, .. }| {
        let path = if path.is_empty() { String::new() } else { format!("{path}: ") };
        format!("{}:{} {path}{message_text}", spot.line, spot.column)
    })
    .collect()
}

#[test]
fn everything_that_is_wrong_is_told_with_its_place() {
    let text = "\
config: 7
profil: production
at: yesterday
cases:
  - {call: a, expect: forwards}
  - {call: a, method: b, expect: deny}
  - {expect: deny, gate: gates}
  - {call: a, expect: deny, workflow: w}
  - {call: a, uri: b, expect: deny, arguments: [1]}
  - {message: '{}', uri: b, expect: deny}
  - {method: m, uri: a, prompt: b, expect: deny}
  - call: a
";
    assert_eq!(
        found(text),
        [
            "1:9 config: this must be text, but it is a number; put it in quotes",
            "2:1 there is no key `profil` here; did you mean `profile`?",
            "3:5 at: `yesterday` is not a time such as `2026-03-20T14:22:11Z`",
            "5:23 cases[0].expect: this must be `forward`, `deny` or `approve`, not `forwards`; did you mean `forward`?",
            "6:5 cases[1]: give either `call` or `method`, not both",
            "7:5 cases[2]: the case calls nothing; write `call: TOOL`, or `method` with `uri` or `prompt`",
            "7:26 cases[2].gate: this must be `framing`, `visibility`, `rules`, `governance`, `cedar`, `policy` or `approval`, not `gates`",
            "8:39 cases[3].workflow: `workflow` applies only with `expect: approve`",
            "9:5 cases[4]: `call` names a tool, which has no `prompt` or `uri`",
            "10:5 cases[5]: `uri` is already in `message`; remove it",
            "11:5 cases[6]: give either `prompt` or `uri`, not both",
            "12:5 cases[7]: `expect` is missing",
        ]
    );
    assert_eq!(found(""), ["1:1 there is nothing in this file"]);
    assert_eq!(found("cases: []"), ["1:1 there are no cases"]);
    assert_eq!(found("config: a"), ["1:1 `cases` is missing"]);
}

#[test]
fn a_case_has_what_the_file_says_unless_it_says_otherwise() {
    let text = "\
server: files
principal: {name: ci, roles: [a, b]}
at: 2026-03-20T14:22:11Z
cases:
  - {call: read, arguments: {path: /x, n: 1.0}, expect: forward}
  - {method: prompts/get, prompt: p, server: other, principal: me, profile: development, expect: approve, workflow: w}
  - {name: odd, message: '{}', expect: deny, gate: framing}
";
    let mut findings = Findings::default();
    let suite = parse(text.as_bytes(), &mut findings).unwrap();
    assert!(!findings.has_errors());
    let [read, prompt, odd] = &suite.cases[..] else { panic!() };
    assert_eq!((read.name.as_str(), read.spot.line), ("files: tools/call read", 5));
    let CaseInput::Call { arguments: Some(arguments), .. } = &read.input else { panic!() };
    assert_eq!(arguments, br#"{"path":"/x","n":1.0}"#);
    assert_eq!((read.principal.name.as_str(), read.principal.roles.len()), ("ci", 2));
    assert_eq!(read.wall_us, Some(1_774_016_531_000_000));
    assert_eq!((prompt.server.as_str(), prompt.profile), ("other", Profile::Development));
    assert_eq!((prompt.principal.name.as_str(), prompt.principal.roles.len()), ("me", 0));
    assert_eq!(prompt.expect.workflow.as_deref(), Some("w"));
    assert_eq!((odd.name.as_str(), odd.expect.gate), ("odd", Some(GateName::Framing)));
}

#[test]
fn cases_of_the_same_name_are_warned_of() {
    let text =
        "cases:\n  - {name: a, call: a, expect: deny}\n  - {name: a, call: b, expect: deny}\n";
    assert_eq!(found(text), ["3:5 cases[1]: the name `a` is already used on line 2"]);
    assert!(found("cases: [{call: a, expect: deny}, {call: a, expect: deny}]").is_empty());
}

/// Compares the published schema with the tables; `UPDATE_GOLDEN=1` rewrites it.
#[test]
#[expect(clippy::disallowed_methods, reason = "a golden is a file")]
fn the_published_schema_is_that_of_the_tables() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/policy-test.schema.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, schema()).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == schema(), "{} is out of date; update it with UPDATE_GOLDEN=1", path.display());
}
