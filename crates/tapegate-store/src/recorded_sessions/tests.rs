//! Sessions are found from tapes alone, and counted from the log.

use tempfile::TempDir;

use super::*;

/// A tape of a shim. Returns its path.
fn write_tape(state: &Path, place: &str, recorded_at: &str, session: &str) -> PathBuf {
    let path = state.join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let header = format!(
        r#"{{"type":"header","version":"1.0","name":"s","recorded_at":"{recorded_at}","upstream":"x","thoughtjack_version":"0.1.0","recorder":"tapegate/0.1.0","folder":"/p"{session}}}"#
    );
    fs::write(&path, format!("{header}\n")).unwrap();
    path
}

fn write_log(state: &Path, events: &[String]) {
    let links = r#""seq":1,"prev":"0","hash":"1"}"#;
    let line = |event: &String| {
        format!("{{\"timestamp\":\"2026-03-20T14:22:12.000000Z\",{event},{links}\n")
    };
    fs::write(state.join("activity.jsonl"), events.iter().map(line).collect::<String>()).unwrap();
}

#[test]
fn tapes_with_the_same_session_belong_together_and_the_newest_session_is_first() {
    let folder = TempDir::new().unwrap();
    let state = folder.path();
    let of_agent = r#","agent":"claude-code","agent_session":"abc1""#;
    let two = write_tape(
        state,
        "tapes/b/2026-01-01T00-00-02-000Z-22.jsonl",
        "2026-01-01T00:00:02.000000Z",
        of_agent,
    );
    let one = write_tape(
        state,
        "tapes/a/2026-01-01T00-00-01-000Z-11-2.jsonl",
        "2026-01-01T00:00:01.000000Z",
        of_agent,
    );
    let own = write_tape(
        state,
        "tapes/a/2026-01-01T00-00-03-000Z-33.jsonl",
        "2026-01-01T00:00:03.000000Z",
        "",
    );
    // Neither of these is the tape of a session.
    write_tape(
        state,
        "tapes/a/2026-01-01T00-00-03-000Z-33.jsonl.anomalies.jsonl",
        "2026-01-01T00:00:03.000000Z",
        "",
    );
    fs::write(state.join("tapes/a/notes.jsonl"), "{}\n").unwrap();
    fs::write(state.join("tapes/a/2026Z-4.jsonl"), "").unwrap();
    let found = find(state).unwrap();
    let ids: Vec<&str> = found.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, ["33", "abc1"]);
    let paths =
        |at: usize| found[at].tapes.iter().map(|tape| tape.path.clone()).collect::<Vec<_>>();
    assert_eq!((paths(0), paths(1)), (vec![own], vec![one, two]));
    assert_eq!((found[1].agent.as_deref(), found[1].counts), (Some("claude-code"), None));
}

#[test]
fn the_log_has_the_counts_and_the_tapes_in_other_folders() {
    let folder = TempDir::new().unwrap();
    let state = folder.path();
    let tape = write_tape(
        state,
        "elsewhere/2026-01-01T00-00-01-000Z-11.jsonl",
        "2026-01-01T00:00:01.000000Z",
        "",
    );
    let session = |event: &str, tape: &str| {
        format!(r#""kind":"session","connection_id":"11","event":"{event}","tape":"{tape}""#)
    };
    let decision = |request: &str, word: &str| {
        format!(
            r#""kind":"decision","connection_id":"11.2","method":"tools/call","request_id":"{request}","governance_decision":"{word}""#
        )
    };
    write_log(
        state,
        &[
            session("started", &tape.display().to_string()),
            session("started", "/gone/2026-01-01T00-00-01-000Z-12.jsonl"),
            decision("1", "pending_approval"),
            decision("1", "denied"),
            decision("2", "forward"),
            session("ended", &tape.display().to_string()),
        ],
    );
    let found = find(state).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].counts, Some(CallCounts { calls: 2, denials: 1 }));
    assert_eq!(found[0].tapes[0].path, tape);
}

#[test]
fn a_state_folder_without_tapes_has_no_session() {
    let folder = TempDir::new().unwrap();
    assert_eq!(find(folder.path()).unwrap(), []);
    assert_eq!(find(&folder.path().join("missing")).unwrap(), []);
}
