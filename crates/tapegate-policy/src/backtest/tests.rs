//! A trial judges like a live gate, and the counts match the notes.

use std::sync::Arc;

use tapegate_yaml::files::{FileError, Files, OpenedFile};

use super::tally::GROUPS_MAX;
use super::*;
use crate::decide::DecisionOutcome;
use crate::inspect::TransportKind;
use crate::judge::{MessageArrival, PolicyJudge, SessionState};
use crate::load;
use crate::model::{Policy, Profile};

/// A file that is only in memory.
struct InlineFile(&'static str);

impl Files for InlineFile {
    fn open(&self, path: &str, _: usize) -> Result<OpenedFile, FileError> {
        if path != "p.yaml" {
            return Err(FileError::Missing);
        }
        Ok(OpenedFile { path: path.to_owned(), bytes: self.0.as_bytes().to_vec() })
    }

    fn open_within(&self, _: &str, _: &str, _: usize) -> Result<OpenedFile, FileError> {
        Err(FileError::Missing)
    }

    fn folder_of(&self, _: &str) -> String {
        String::new()
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

const POLICY: &str = "
schema: 1
sources:
  - {id: s, kind: mcp, expose: {mode: blocklist, tools: ['hidden*'], resources: ['file:///etc/*']}}
governance:
  defaults: {action: deny}
  rules:
    - {id: good, match: 'good*', action: forward}
    - {id: ask, match: 'ask*', action: approve}
    - {id: res, method: 'resources/*', action: forward}
    - {id: log, method: 'logging/*', action: deny}
    - {id: sample, method: 'sampling/*', action: deny}
";

fn policy() -> Arc<Policy> {
    let loaded = load::load("p.yaml", &InlineFile(POLICY));
    Arc::new(loaded.policy.unwrap_or_else(|| panic!("{:?}", loaded.findings)))
}

fn terms(policy: &Arc<Policy>, profile: Profile) -> BacktestConfig {
    let active_policy =
        ActivePolicy { policy: Some(Arc::clone(policy)), profile, ..ActivePolicy::default() };
    let settings = GateSettings { source: "s".to_owned(), ..GateSettings::default() };
    BacktestConfig { active_policy, settings }
}

fn said(from: Side, bytes: &[u8]) -> TapeMessage<'_> {
    TapeMessage { wall_us: 0, from, session: None, bytes, terminated: true }
}

/// Messages of every kind, valid and malformed.
const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"good","arguments":{"a":1}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"bad"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hidden_good"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"good","name":"bad"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"good","__proto__":{"arguments":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"good","arguments":{"__proto__":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
    r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"good"}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"good"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"TOOLS/CALL","params":{"name":"bad"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/unsubscribe","params":{"uri":"file:///etc/a"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"good"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"bad"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"good"},{"name":"hidden"}]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
    r#"{"id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
    "7",
    "nonsense",
    "",
];

#[test]
fn what_is_explained_is_what_the_gate_does() {
    let policy = policy();
    for profile in [Profile::Production, Profile::Development] {
        let mut trial = terms(&policy, profile).trial();
        let judge = PolicyJudge { policy: Some(&policy), profile, source: "s", explains: true };
        for from in [Side::Client, Side::Server] {
            for text in MESSAGES {
                let outcome = trial.judge(&said(from, text.as_bytes()));
                let frame = Frame::read(text.as_bytes());
                let carrier = TransportKind::Lines;
                let arrival = MessageArrival { from, carrier, session: 0, wall_us: 0 };
                let judged = judge.judge(&frame, arrival, &mut SessionState::default());
                let expected = match (profile, judged.strict_outcome()) {
                    (Profile::Development, _) | (_, DecisionOutcome::Forward) => {
                        CaseOutcome::Forward
                    }
                    (_, DecisionOutcome::Deny) => CaseOutcome::Deny,
                    (_, DecisionOutcome::Hold { .. }) => CaseOutcome::Approve,
                };
                assert_eq!(outcome.case_outcome, expected, "{from:?} {profile:?} {text}");
                let rules: Vec<_> =
                    outcome.notes.iter().filter_map(|note| note.event.rule.as_deref()).collect();
                let rule =
                    judged.leading_call().and_then(|call| call.decision.as_ref()?.rule.as_deref());
                if judged.faults.is_empty() {
                    assert_eq!(rules, rule.into_iter().collect::<Vec<_>>(), "{from:?} {text}");
                }
                trial.recycle(outcome);
            }
        }
    }
}

#[test]
fn a_member_that_is_merged_is_refused_as_in_a_session() {
    let policy = policy();
    let mut trial = terms(&policy, Profile::Production).trial();
    let merged = MESSAGES.iter().filter(|text| text.contains("__proto__"));
    for text in merged.chain(&[r#"{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"tools":[]}}}"#]) {
        let from = if text.contains("method") { Side::Client } else { Side::Server };
        let outcome = trial.judge(&said(from, text.as_bytes()));
        assert_eq!(outcome.case_outcome, CaseOutcome::Deny, "{text}");
        let reason = outcome
            .notes
            .iter()
            .filter_map(|note| note.event.policy_reason.as_deref())
            .collect::<String>();
        assert!(reason.contains("a member `__proto__`"), "{text}: {reason}");
        trial.recycle(outcome);
    }
}

#[test]
fn what_is_alike_is_one_group_with_its_first_places() {
    let policy = policy();
    let mut trial = terms(&policy, Profile::Production).trial();
    let mut halves = [BacktestTally::default(), BacktestTally::default()];
    for line in 1..=20u64 {
        let text = MESSAGES[line as usize % 3].as_bytes();
        let outcome = trial.judge(&said(Side::Client, text));
        let (half, line) = ((line > 10) as usize, (line - 1) % 10 + 1);
        halves[half]
            .count_message(&outcome, FindingLocation { line, ..FindingLocation::default() });
    }
    let mut all = BacktestTally::default();
    for (half, lines) in halves.into_iter().zip([0, 10]) {
        all.add(half, 0, lines);
    }
    assert_eq!((all.frames, all.stopped), (20, 14));
    let groups: Vec<_> = all
        .groups()
        .into_iter()
        .map(|group| {
            let lines: Vec<u64> = group.places.iter().map(|place| place.line).collect();
            (group.finding_detail.kind, group.finding_detail.name.clone(), group.count, lines)
        })
        .collect();
    let group =
        |sort, name: &str, count, lines: [u64; 5]| (sort, name.to_owned(), count, lines.to_vec());
    assert_eq!(
        groups,
        [
            group(FindingKind::Deny, "bad", 7, [1, 4, 7, 10, 13]),
            group(FindingKind::Hold, "ask", 7, [2, 5, 8, 11, 14]),
            group(FindingKind::Forward, "good", 6, [3, 6, 9, 12, 15]),
        ]
    );
}

#[test]
fn names_without_end_are_counted_without_being_kept() {
    let policy = policy();
    let mut trial = terms(&policy, Profile::Production).trial();
    let mut tally = BacktestTally::default();
    for n in 0..GROUPS_MAX as u64 + 50 {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"bad{n}"}}}}"#
        );
        let outcome = trial.judge(&said(Side::Client, text.as_bytes()));
        tally.count_message(&outcome, FindingLocation::default());
        trial.recycle(outcome);
    }
    assert_eq!(tally.groups().len(), GROUPS_MAX + 1);
    assert_eq!(tally.count_kind(FindingKind::Deny), GROUPS_MAX as u64 + 50);
    assert_eq!(
        (tally.groups()[0].finding_detail.name.as_str(), tally.groups()[0].count),
        ("…", 50)
    );
}
