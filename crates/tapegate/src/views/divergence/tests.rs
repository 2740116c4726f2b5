//! Every reason, in every mode.

use super::*;
use crate::views::golden::assert_golden;

fn call(id: u32, name: &str, arguments: &str) -> Vec<u8> {
    let params =
        format!(r#"{{"name":"{name}","arguments":{arguments},"_meta":{{"progressToken":{id}}}}}"#);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#).into_bytes()
}

fn near(number: u32, request: Vec<u8>, score: f64) -> NearMatch {
    NearMatch { number, request, score, session: 1 }
}

fn diverged(reason: DivergenceReason, nearest: Vec<NearMatch>) -> Divergence {
    Divergence {
        session: 1,
        tape_session: Some(1),
        method: "tools/call".to_owned(),
        name: Some("read_file".to_owned()),
        request: call(9, "read_file", r#"{"path":"/tmp/b","lines":10}"#),
        reason,
        next: None,
        nearest,
        passed_on: false,
    }
}

fn out_of_order(next: NearMatch, nearest: Vec<NearMatch>) -> Divergence {
    Divergence { next: Some(next), ..diverged(DivergenceReason::OutOfOrder, nearest) }
}

fn told(divergence: &Divergence, mode: MatchMode) -> String {
    let signer = Signer::default();
    let teller = DivergenceView { mode, signer: &signer, palette: Palette::Plain };
    format!("{}\nhint: {}\n", teller.text(divergence), teller.hint(divergence))
}

#[test]
fn every_reason_is_told_as_the_golden_has_it() {
    let other = || near(7, call(3, "read_file", r#"{"path":"/tmp/a","lines":10}"#), 0.5);
    let far = || near(21, call(5, "read_file", r#"{"path":["/tmp/a"],"n":1}"#), 0.0);
    let same = || near(7, call(3, "read_file", r#"{"lines":10.0,"path":"/tmp/b"}"#), 1.0);
    let list = || near(5, br#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#.to_vec(), 0.0);
    let (fuzzy, by_request) = (MatchMode::Fuzzy { threshold: 0.7 }, MatchMode::ByRequest);
    let mut behind = diverged(DivergenceReason::NotRecorded, vec![]);
    (behind.session, behind.passed_on) = (3, true);
    let told = [
        told(&diverged(DivergenceReason::NotRecorded, vec![other(), far()]), by_request),
        told(&diverged(DivergenceReason::NotRecorded, vec![other()]), fuzzy),
        told(&behind, by_request),
        told(&diverged(DivergenceReason::Exhausted, vec![same()]), by_request),
        told(&out_of_order(list(), vec![same()]), MatchMode::Sequential),
        told(&out_of_order(list(), vec![]), MatchMode::Sequential),
        told(&out_of_order(other(), vec![other()]), MatchMode::Sequential),
        told(&out_of_order(far(), vec![other(), far()]), MatchMode::Sequential),
        told(&diverged(DivergenceReason::TapeEnded, vec![same()]), MatchMode::Sequential),
        told(&diverged(DivergenceReason::TapeEnded, vec![]), MatchMode::Sequential),
        told(&diverged(DivergenceReason::Unanswered, vec![same()]), by_request),
        told(&diverged(DivergenceReason::NotCancelled, vec![same()]), by_request),
    ];
    assert_golden("divergence.txt", &told.join("\n"));
}

#[test]
fn other_params_are_shown() {
    let signer = Signer::default();
    let teller =
        DivergenceView { mode: MatchMode::Sequential, signer: &signer, palette: Palette::Plain };
    let (old, new) = (call(1, "t", r#"{"x":1}"#), call(2, "t", r#"{"x":2}"#));
    let text = teller.differs(7, &old, &new);
    assert_eq!(
        text,
        "tools/call t is answered as #7 was, with other params (- recorded, + asked)\n    \
         - params.arguments.x: 1\n    + params.arguments.x: 2\n"
    );
}

#[test]
fn hostile_names_are_made_visible_and_hints_fit_a_shell() {
    let mut divergence = diverged(DivergenceReason::NotRecorded, vec![]);
    divergence.name = Some(format!("\x1b[2J{}", "x".repeat(200)));
    divergence.method = "a\nb".to_owned();
    let text = told(&divergence, MatchMode::ByRequest);
    assert!(!text.contains('\x1b') && text.contains(r"a\nb \u001b[2Jxxx"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 320), "{text}");
    let near = near(1, call(1, "t", r#"{"it's; rm":1}"#), 0.9);
    let mut divergence = diverged(DivergenceReason::NotRecorded, vec![near]);
    divergence.request = call(1, "t", r#"{"it's; rm":2}"#);
    let text = told(&divergence, MatchMode::ByRequest);
    assert!(text.contains(r"--ignore 'params.arguments['\''it\'\''s; rm'\'']' or"), "{text}");
}

#[test]
fn a_hint_names_all_that_must_be_ignored_or_nothing() {
    let hint = |old: &str, new: &str| {
        let mut divergence =
            diverged(DivergenceReason::NotRecorded, vec![near(1, call(1, "t", old), 0.5)]);
        divergence.request = call(1, "t", new);
        let text = told(&divergence, MatchMode::ByRequest);
        text.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(
        hint(r#"{"a":1,"b":[1],"c":1,"d":1}"#, r#"{"a":2,"b":[2],"c":1,"d":1}"#),
        "hint: if the differences do not matter, pass --ignore params.arguments.a \
         --ignore 'params.arguments.b[0]' or --match-mode fuzzy --fuzzy-threshold 0.5"
    );
    let four = hint(r#"{"a":1,"b":1,"c":1,"d":1}"#, r#"{"a":2,"b":2,"c":2,"d":2}"#);
    assert!(four.contains(" pass --ignore PATH or "), "{four}");
}

#[test]
fn what_is_no_message_is_told_all_the_same() {
    let mut divergence = diverged(DivergenceReason::NotRecorded, vec![near(1, b"{".to_vec(), 0.0)]);
    divergence.request = b"\xff".to_vec();
    assert!(
        told(&divergence, MatchMode::ByRequest)
            .starts_with("no answer on the tape for tools/call read_file: ")
    );
}
