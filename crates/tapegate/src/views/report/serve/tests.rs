//! A verdict as text and in every format, as goldens.

use std::path::Path;

use tapegate_core::actor::ActorSessionId;
use tapegate_core::time::Timestamp;
use tapegate_scenario::expect::{Expectation, ExpectationJudge};
use tapegate_scenario::finding::Findings;
use tapegate_scenario::yaml;

use super::*;
use crate::views::golden::assert_golden;
use crate::views::palette::Palette;
use crate::views::report::run_start::ServerStart;

const EXPECT: &str = "\
- id: no-key
  title: No key leaves
  severity: critical
  help: Look over arguments
  never: { method: tools/call, contains: CANARY }
- { id: no-storm, severity: low, never: { method: tools/list }, count: 3 }
- { id: cancels, title: \"It gives up \\e[31m\", must: { method: notifications/cancelled } }
- { id: later, title: Nothing happens later, never: { name: x }, after: { name: y } }
";

fn judged() -> ExpectationReport {
    let mut findings = Findings::default();
    let node = yaml::parse(EXPECT, 0, &mut findings).unwrap();
    let list = node.as_list().unwrap();
    let list: Vec<Expectation> =
        list.iter().filter_map(|one| Expectation::read(one, &mut findings)).collect();
    assert_eq!(findings.into_list(), vec![]);
    let mut judge = ExpectationJudge::new(&list);
    for number in 0..5 {
        let call = format!(
            r#"{{"id":{number},"method":"tools/call","params":{{"name":"send","arguments":{{"a":"CANARY \u001b[31m <&>"}}}}}}"#
        );
        judge.receive_line(Timestamp::default(), ActorSessionId(1), call.as_bytes(), "attack");
    }
    judge.receive_line(
        Timestamp::default(),
        ActorSessionId(2),
        br#"{"id":1,"method":"tools/list"}"#,
        "",
    );
    judge.verdict()
}

#[test]
fn a_verdict_is_as_the_goldens_have_it() {
    let report = RunReport {
        command: "serve",
        tape: "scenarios/s.yaml".into(),
        started_us: 1_763_200_953_488_000,
        duration_ms: 1234,
        counts: Vec::new(),
        suites: Vec::new(),
        only_setup: false,
        start: Some(ServerStart {
            number: 1,
            run_id: None,
            pid: 4242,
            parent_pid: 4200,
            finished: true,
            registered: None,
        }),
    };
    let report = fill(&judged(), report);
    for extension in ["json", "xml", "sarif"] {
        let file = format!("report-serve.{extension}");
        let text = String::from_utf8(report.format_for(Path::new(&file))).unwrap();
        assert_golden(&file, &text);
    }
    assert_golden("verdict.txt", &verdict::text(&judged(), Palette::Plain));
}
