//! Reports in every format, as goldens. `tests/it/reports.rs` checks the goldens against external
//! schemas and readers.

use tapegate_core::json::diff::{DiffOptions, diff};
use tapegate_core::player::{
    DifferingRequest, Divergence, DivergenceReason, MatchMode, NearMatch, ReplaySummary,
    UnusedRequest,
};
use tapegate_core::signature::Signer;

use super::*;
use crate::views::divergence::DivergenceView;
use crate::views::golden::assert_golden;
use crate::views::json;
use crate::views::palette::Palette;

/// Everything that a format could fail on.
const HOSTILE: &str = "<a b=\"c\" d='e'>&amp; ]]> <![CDATA[ \0\u{1}\u{8}\t\n\u{b}\r\r\n\u{1b}[31m\u{7f}\u{85}\u{9b}\u{2028}\u{202e}\u{feff}\u{fffd}\u{fffe}\u{ffff}\u{1f600}\u{10ffff} ${x} {0} [a](https://x) %s \\u0000 -- ?>";

static CHANGED: ReportRule = ReportRule::new(
    "changed",
    "The server answers otherwise than it did.",
    "See whether the change is meant.",
);

fn shell(command: &'static str, tape: impl Into<PathBuf>) -> RunReport {
    let (tape, counts, suites) = (tape.into(), Vec::new(), Vec::new());
    let start = Some(ServerStart {
        number: 1,
        run_id: None,
        pid: 4242,
        parent_pid: 4200,
        finished: true,
        registered: None,
    });
    let (started_us, duration_ms) = (1_763_200_953_488_000, 1234);
    RunReport { command, tape, started_us, duration_ms, counts, suites, start, only_setup: false }
}

fn replayed() -> RunReport {
    let call = |path: &str| {
        let params = format!(r#"{{"name":"read_file","arguments":{{"path":"{path}"}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{params}}}"#)
            .into_bytes()
    };
    let near = NearMatch { number: 7, request: call("/tmp/a"), score: 0.0, session: 1 };
    let diverged = |reason: DivergenceReason, passed_on: bool| Divergence {
        session: 1,
        tape_session: Some(1),
        method: "tools/call".to_owned(),
        name: Some("read_file".to_owned()),
        request: call("/tmp/b"),
        reason,
        next: None,
        nearest: vec![near.clone()],
        passed_on,
    };
    let summary = ReplaySummary {
        matched: 12,
        differing: 1,
        differing_first: vec![DifferingRequest {
            number: 5,
            recorded: call("/tmp/c"),
            request: call("/tmp/d"),
        }],
        courtesies: 2,
        unmatched: 7,
        passed_on: 4,
        server_failed: 0,
        server_failure: None,
        divergences: vec![
            diverged(DivergenceReason::NotRecorded, false),
            diverged(DivergenceReason::Exhausted, true),
        ],
        unused: 2,
        unused_first: vec![
            UnusedRequest { number: 9, method: "tools/list".to_owned(), name: None },
            UnusedRequest {
                number: 11,
                method: "tools/call".to_owned(),
                name: Some("write_file".to_owned()),
            },
        ],
        sessions: 1,
        ..ReplaySummary::default()
    };
    let signer = Signer::default();
    let teller =
        DivergenceView { mode: MatchMode::ByRequest, signer: &signer, palette: Palette::Colour };
    replay::fill(&summary, &teller, shell("replay", "tapes/session.jsonl"))
}

/// A report of another command, with every outcome and with malicious texts.
fn hostile() -> RunReport {
    let terms = DiffOptions { root: json_place(), ignored: &[], listed_max: 3 };
    let old = r#"{"a":"\ud800","b":[1,2],"c":1e999,"d":1}"#;
    let new = r#"{"a":"\udc00","b":{},"e":"\u001b"}"#;
    let found = diff(old.as_bytes(), new.as_bytes(), &terms).unwrap();
    let mut facts = json::differences(&found);
    facts.push(("raw", b"no JSON \xff".to_vec()));
    let case = |outcome: ReportOutcome| ReportCase {
        name: HOSTILE.to_owned(),
        outcome,
        rule: (outcome != ReportOutcome::Passed).then_some((&CHANGED).into()),
        message: HOSTILE.to_owned(),
        details: format!("{HOSTILE}\n{HOSTILE}\n"),
        position: TapePosition { number: Some(3), line: Some(4) },
        duration_ms: Some(61_005),
        facts: facts.clone(),
    };
    let all = [
        ReportOutcome::Passed,
        ReportOutcome::Failed,
        ReportOutcome::Warning,
        ReportOutcome::Skipped,
    ];
    let mut report = shell("serve", "/tmp/t\u{e9} %&<\u{1}>.jsonl");
    report.counts = vec![("compared", 4), ("changed", 1)];
    let cases = all.map(case).into_iter().collect();
    report.suites.push(ReportSuite { name: HOSTILE.to_owned(), cases });
    report.suites.push(ReportSuite { name: "empty".to_owned(), cases: Vec::new() });
    report
}

fn json_place() -> tapegate_core::json::JsonLocation {
    tapegate_core::json::JsonLocation::member("result")
}

fn text(report: &RunReport, file: &str) -> String {
    String::from_utf8(report.format_for(Path::new(file))).unwrap()
}

#[test]
fn reports_are_as_the_goldens_have_them() {
    for (name, report) in
        [("replay", replayed()), ("hostile", hostile()), ("none", shell("replay", "t"))]
    {
        for extension in ["json", "xml", "sarif"] {
            let file = format!("report-{name}.{extension}");
            assert_golden(&file, &text(&report, &file));
        }
    }
}

/// A second start, in which the client sent all recorded requests but one.
fn replayed_again() -> RunReport {
    let unused = UnusedRequest { number: 9, method: "tools/list".to_owned(), name: None };
    let summary = ReplaySummary {
        matched: 3,
        unused: 1,
        unused_first: vec![unused],
        sessions: 1,
        ..ReplaySummary::default()
    };
    let signer = Signer::default();
    let teller =
        DivergenceView { mode: MatchMode::ByRequest, signer: &signer, palette: Palette::Plain };
    let mut shell = shell("replay", "tapes/session.jsonl");
    shell.started_us += 60_000_000;
    replay::fill(&summary, &teller, shell)
}

#[test]
fn starts_are_merged_as_the_goldens_have_it() {
    for extension in ["json", "xml", "sarif"] {
        let file = format!("report-merged.{extension}");
        let first = replayed().format_for(Path::new(&file));
        let mut again = replayed_again();
        let merged = again.append_to(Path::new(&file), &first).unwrap();
        assert_golden(&file, &String::from_utf8(merged.clone()).unwrap());
        // A third start reads what the second has written.
        let third = replayed_again().append_to(Path::new(&file), &merged).unwrap();
        assert!(third.len() > merged.len());
    }
}

/// The numbers of the unused requests listed in a report of any format.
fn listed_unused(report: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(report);
    let after = text.split("no client requested #").skip(1);
    after
        .map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap())
        .collect()
}

#[test]
fn every_format_lists_what_no_start_has_asked_for() {
    for file in ["r.json", "r.xml", "r.sarif"].map(Path::new) {
        let name = file.display();
        // The first start leaves 9 and 11 unused, the second 9; in either order, 9 remains.
        let two = replayed_again().append_to(file, &replayed().format_for(file)).unwrap();
        assert_eq!(listed_unused(&two), [9], "{name}");
        let reverse = replayed().append_to(file, &replayed_again().format_for(file)).unwrap();
        assert_eq!(listed_unused(&reverse), [9], "{name}");
        // An unfinished start removes nothing, and one with another tape has its own list.
        let begun = replayed_again().unfinished().append_to(file, &two).unwrap();
        assert_eq!(listed_unused(&begun), [9], "{name}");
        let mut other = replayed();
        other.tape = "tapes/<other> & \"more\".jsonl".into();
        let both = other.clone().append_to(file, &two).unwrap();
        assert_eq!(listed_unused(&both), [9, 9, 11], "{name}");
        // Another start with that tape uses everything.
        other.suites.pop();
        other.counts.iter_mut().filter(|(key, _)| *key == "unused").for_each(|(_, n)| *n = 0);
        let used = other.append_to(file, &both).unwrap();
        assert_eq!(listed_unused(&used), [9], "{name}");
        if !used.starts_with(b"<?xml") {
            let report: serde_json::Value = serde_json::from_slice(&used).unwrap();
            let total = report.get("unused").unwrap_or(&report["runs"][0]["properties"]["unused"]);
            assert_eq!(total, 1, "{name}");
        }
    }
}

#[test]
fn texts_made_to_do_harm_survive_a_merge() {
    for extension in ["json", "xml", "sarif"] {
        let file = format!("r.{extension}");
        let first = hostile().format_for(Path::new(&file));
        let merged = hostile().append_to(Path::new(&file), &first).unwrap();
        let again = hostile().append_to(Path::new(&file), &merged).unwrap();
        let count = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("61005").count();
        let seconds = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("\"61.005\"").count();
        let found = |bytes: &[u8]| count(bytes) + seconds(bytes);
        assert_eq!((found(&merged), found(&again)), (2 * found(&first), 3 * found(&first)));
    }
}

#[test]
fn a_start_joins_the_run_that_it_names_or_finds() {
    let with = |run_id: Option<&str>| {
        let mut report = replayed_again();
        report.start.as_mut().unwrap().run_id = run_id.map(str::to_owned);
        report
    };
    for file in ["r.json", "r.xml", "r.sarif"].map(Path::new) {
        for there in [None, Some("a<&\">b")] {
            let text = with(there).format_for(file);
            for (run_id, joins) in [(None, true), (there, true), (Some("other"), false)] {
                let merged = with(run_id).append_to(file, &text);
                assert_eq!(merged.is_ok(), joins, "{} {there:?} {run_id:?}", file.display());
            }
        }
        let serve = shell("serve", "s.yaml").append_to(file, &with(None).format_for(file));
        assert_eq!(serve, Err(MergeError::Unreadable), "a report of another command");
        for text in ["", "{}", "the one before", "<?xml"] {
            assert!(with(None).append_to(file, text.as_bytes()).is_err(), "{text}");
        }
    }
}

#[test]
fn nothing_that_was_not_tested_is_all_right_in_any_format() {
    let signer = Signer::default();
    let teller =
        DivergenceView { mode: MatchMode::ByRequest, signer: &signer, palette: Palette::Plain };
    let shell = || shell("replay", "tapes/session.jsonl");
    let untested = || replay::fill(&ReplaySummary::default(), &teller, shell());
    let has = |bytes: &[u8], words: &str| String::from_utf8_lossy(bytes).contains(words);
    for (file, message) in [
        ("r.json", "\"ok\": false"),
        ("r.xml", "errors=\"1\""),
        ("r.sarif", "\"ruleId\": \"untested\""),
    ] {
        let file = Path::new(file);
        let one = untested().format_for(file);
        assert!(has(&one, message), "{}", String::from_utf8_lossy(&one));
        // A start that tested nothing does not invalidate what another one tested.
        let two = replayed_again().append_to(file, &one).unwrap();
        let three = untested().append_to(file, &two).unwrap();
        for merged in [two, three] {
            let text = String::from_utf8_lossy(&merged);
            assert!(text.contains("passed") && !text.contains("errors=\"1\""), "{text}");
            assert!(!text.contains("\"ruleId\": \"untested\""), "{text}");
            assert!(
                !text.starts_with("{\n  \"tool\"") || text.contains("\n  \"ok\": true"),
                "{text}"
            );
        }
    }
}

#[test]
fn the_name_of_a_file_decides_its_format() {
    let report = replayed();
    for name in ["r.xml", "R.XML", "dir.json/r.xml"] {
        assert!(text(&report, name).starts_with("<?xml"), "{name}");
    }
    for name in ["r.sarif", "r.sarif.json", "R.SARIF"] {
        assert!(text(&report, name).contains("\"$schema\""), "{name}");
    }
    for name in ["r.json", "r", "r.txt", "dir.xml/r"] {
        assert!(text(&report, name).starts_with("{\n  \"tool\": \"tapegate\""), "{name}");
    }
}

#[test]
fn json_and_sarif_are_json_whatever_the_texts_hold() {
    for file in ["r.json", "r.sarif"] {
        for report in [hostile(), replayed(), shell("replay", "")] {
            let text = text(&report, file);
            assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        }
    }
    let report: serde_json::Value = serde_json::from_str(&text(&replayed(), "r")).unwrap();
    assert_eq!(report["unmatched"], 7);
    assert_eq!(report["ok"], false);
    assert_eq!(report["cases"][1]["nearest"][0]["differences"][0]["new"], "/tmp/b");
}

#[test]
fn a_replay_that_passed_everything_on_is_all_right() {
    let mut report = replayed();
    assert!(!report.outcome().is_ok());
    report.suites[0].cases.retain(|case| case.outcome != ReportOutcome::Failed);
    assert!(report.outcome().is_ok());
}
