//! Sessions are opened, written, rolled over and closed as the document says.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::recording::entry::AgentContext;
use crate::recording::session_reader;

struct RecorderFixture {
    folder: tempfile::TempDir,
    messages: Arc<Mutex<Vec<String>>>,
}

impl RecorderFixture {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), messages: Arc::default() }
    }

    fn config(&self) -> RecordingConfig {
        let directory = self.folder.path().join("a/.cuff/recordings");
        RecordingConfig { directory, ..RecordingConfig::default() }
    }

    fn start(&self, config: RecordingConfig) -> Arc<SessionRecorder> {
        let messages = Arc::clone(&self.messages);
        let log = LogSink::new(move |record| {
            let fields: Vec<String> =
                record.fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            messages.lock().unwrap().push(format!("{} {}", record.message, fields.join(" ")));
        });
        SessionRecorder::start(config, &command("", None), log, Arc::default())
    }

    fn logged(&self, text: &str) -> bool {
        self.messages.lock().unwrap().iter().any(|message| message.contains(text))
    }

    fn sessions(&self) -> Vec<session_reader::SessionSummary> {
        let folder = RecordingFolder::new(self.config().directory);
        let found = session_reader::sessions(&folder).unwrap();
        found.iter().map(|session| session_reader::summary(session).unwrap()).collect()
    }
}

fn command(text: &str, conversation: Option<&str>) -> CommandStart {
    let conversation_id = conversation.map(str::to_owned);
    CommandStart {
        command: text.to_owned(),
        working_directory: "/w".to_owned(),
        shell: "/bin/bash".to_owned(),
        timeout_seconds: 120,
        context: AgentContext { conversation_id, ..AgentContext::default() },
        ..CommandStart::default()
    }
}

fn finished(exit_code: i32) -> FinishedCommand {
    FinishedCommand { duration_ms: 5, exit_code: Some(exit_code), ..FinishedCommand::default() }
}

fn record(recorder: &SessionRecorder, text: &str, conversation: Option<&str>) -> RecordingOutcome {
    let ticket = recorder.begin(command(text, conversation));
    recorder.finish(ticket, finished(0))
}

#[test]
fn commands_are_recorded_in_private_files_with_metadata_and_index() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    let late = recorder.begin(command("late", None));
    let RecordingOutcome::Recorded(id) = record(&recorder, "early", None) else { panic!() };
    assert!(id.starts_with("e_") && id.ends_with("_002"), "{id}");
    recorder.finish(late, finished(3));
    recorder.shutdown();
    let sessions = fixture.sessions();
    let [session] = &sessions[..] else { panic!("{sessions:?}") };
    let metadata = &session.metadata;
    assert_eq!((metadata.entry_count, metadata.succeeded, metadata.failed), (2, 1, 1));
    assert_eq!((metadata.status.as_str(), metadata.total_duration_ms), ("shutdown", 10));
    // The order of the file is the order of the ends; numbers are given at the start.
    let mut order = Vec::new();
    session_reader::entries(&session.path, &mut |entry| {
        order.push((entry.sequence_number, entry.command.into_owned()));
        Ok(())
    })
    .unwrap();
    assert_eq!(order, [(2, "early".to_owned()), (1, "late".to_owned())]);
    let index = index::read(&RecordingFolder::new(fixture.config().directory)).unwrap();
    assert_eq!(index[&metadata.session_id], index::IndexedSession::from(session));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = RecordingFolder::new(fixture.config().directory);
    for path in [folder.path(), &folder.sessions(), folder.path().parent().unwrap()] {
        assert_eq!(mode(path), 0o700, "{}", path.display());
    }
    for path in [folder.index(), folder.metadata(&metadata.session_id), session.path.clone()] {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert!(!folder.pending(&metadata.session_id).exists());
    assert!(fixture.logged("Session finalized plugin=\"bash_recorder\" session_id="));
}

#[test]
fn a_session_without_commands_leaves_nothing_behind() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    assert_eq!(fixture.sessions().len(), 1);
    recorder.shutdown();
    assert!(fixture.sessions().is_empty());
    let index = index::read(&RecordingFolder::new(fixture.config().directory)).unwrap();
    assert!(index.is_empty());
}

#[test]
fn conversations_have_sessions_of_their_own_and_modes_are_respected() {
    for (mode, expected) in
        [(SessionMode::PerConversation, 3), (SessionMode::PerDay, 1), (SessionMode::Continuous, 1)]
    {
        let fixture = RecorderFixture::new();
        let recorder = fixture.start(RecordingConfig { session_mode: mode, ..fixture.config() });
        for conversation in [Some("a"), Some("b"), None, Some("a")] {
            record(&recorder, "x", conversation);
        }
        recorder.shutdown();
        assert_eq!(fixture.sessions().len(), expected, "{mode:?}");
    }
}

#[test]
fn a_day_that_is_over_closes_its_session_as_complete() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    let running = recorder.begin(command("over midnight", None));
    recorder.state().sessions[0].key = SessionKey::Day("2020-01-01".to_owned());
    record(&recorder, "today", None);
    let statuses = |fixture: &RecorderFixture| {
        let sessions = fixture.sessions();
        let mut all: Vec<_> =
            sessions.into_iter().map(|it| (it.metadata.entry_count, it.metadata.status)).collect();
        all.sort();
        all
    };
    // A command that still runs keeps its session open.
    assert_eq!(statuses(&fixture), [(0, "active".into()), (1, "active".into())]);
    recorder.finish(running, finished(0));
    assert_eq!(statuses(&fixture), [(1, "active".into()), (1, "complete".into())]);
}

#[test]
fn a_killed_server_leaves_an_interrupted_session_with_what_was_running() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    record(&recorder, "done", None);
    let _running = recorder.begin(command("was running", None));
    // As kill -9 does: the lock goes, the files stay.
    recorder.state().sessions.clear();
    let path = fixture.sessions()[0].path.clone();
    fs::write(&path, [fs::read(&path).unwrap(), b"{\"torn".to_vec()].concat()).unwrap();
    let second = fixture.start(fixture.config());
    second.shutdown();
    let sessions = fixture.sessions();
    assert_eq!(sessions.len(), 1);
    assert_eq!(
        (sessions[0].metadata.status.as_str(), sessions[0].metadata.entry_count),
        (INTERRUPTED, 2)
    );
    let text = fs::read_to_string(&path).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (last["command"].as_str(), &last["interrupted"]),
        (Some("was running"), &Value::Bool(true))
    );
    assert!(last["exit_code"].is_null() && text.lines().count() == 2);
    assert!(fixture.logged("Interrupted session closed"));
}

#[test]
fn a_second_server_leaves_the_sessions_of_the_first_alone() {
    let fixture = RecorderFixture::new();
    let one = fixture.start(fixture.config());
    record(&one, "one", None);
    let two = fixture.start(fixture.config());
    record(&two, "two", None);
    assert!(matches!(record(&one, "again", None), RecordingOutcome::Recorded(_)));
    let counts: Vec<u64> = fixture.sessions().iter().map(|it| it.metadata.entry_count).collect();
    assert_eq!(counts.iter().sum::<u64>(), 3);
    one.shutdown();
    two.shutdown();
    let index = index::read(&RecordingFolder::new(fixture.config().directory)).unwrap();
    assert_eq!(index.values().map(|it| it.entry_count).sum::<u64>(), 3);
}

#[test]
fn a_folder_that_cannot_be_written_does_not_stop_commands_and_is_tried_again() {
    let fixture = RecorderFixture::new();
    // A file where the folder should be: this also stops root.
    let blocker = fixture.folder.path().join("a");
    fs::write(&blocker, "").unwrap();
    let recorder = fixture.start(fixture.config());
    assert!(fixture.logged("degraded=true"));
    assert!(matches!(record(&recorder, "x", None), RecordingOutcome::Failed(_)));
    let health = recorder.health();
    assert!(!health.recording_enabled && !health.directory_writable);
    fs::remove_file(&blocker).unwrap();
    assert!(matches!(record(&recorder, "y", None), RecordingOutcome::Recorded(_)));
    assert!(fixture.logged("Recording recovered from disabled state"));
    assert!(recorder.health().recording_enabled);
}

#[test]
fn new_settings_close_sessions_with_the_status_of_the_document() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    record(&recorder, "x", None);
    let running = recorder.begin(command("runs", None));
    let elsewhere = fixture.folder.path().join("elsewhere");
    let config = RecordingConfig { directory: elsewhere.clone(), ..fixture.config() };
    recorder.reload(config.clone(), &command("", None));
    record(&recorder, "y", None);
    // What was running is recorded where it was started.
    recorder.finish(running, finished(0));
    let first = &fixture.sessions()[0];
    assert_eq!((first.metadata.status.as_str(), first.metadata.entry_count), ("config_reload", 2));
    recorder.reload(RecordingConfig { enabled: false, ..config.clone() }, &command("", None));
    assert_eq!(record(&recorder, "z", None), RecordingOutcome::Off);
    let folder = RecordingFolder::new(elsewhere);
    let found = session_reader::sessions(&folder).unwrap();
    let second = session_reader::summary(&found[0]).unwrap();
    assert_eq!(second.metadata.status, "recording_disabled");
    recorder.reload(config, &command("", None));
    assert!(matches!(record(&recorder, "again", None), RecordingOutcome::Recorded(_)));
}

#[test]
fn old_sessions_are_deleted_at_the_start_unless_they_are_kept_forever() {
    let fixture = RecorderFixture::new();
    let folder = RecordingFolder::new(fixture.config().directory);
    fs::create_dir_all(folder.sessions()).unwrap();
    let old = "20200118_143052_a7b3c9d2-e4f5";
    let mut metadata = SessionMetadata::new(old, session_reader::created_from_id(old).unwrap());
    metadata.status = "complete".to_owned();
    metadata.write(&folder.metadata(old)).unwrap();
    fs::write(folder.entries(old), "").unwrap();
    fixture.start(RecordingConfig { retention_days: 0, ..fixture.config() }).shutdown();
    assert!(folder.entries(old).exists());
    // A clock that is far ahead makes everything look old, so one start is not enough.
    fixture.start(fixture.config()).shutdown();
    assert!(folder.entries(old).exists());
    assert!(fixture.logged("Old recordings will be deleted"));
    let notes: Value = serde_json::from_slice(&fs::read(folder.retention()).unwrap()).unwrap();
    let since = |at: &str| fs::write(folder.retention(), notes.to_string().replace(&today(), at));
    fixture.start(fixture.config()).shutdown();
    assert!(folder.entries(old).exists(), "the same day");
    since("2099-01-01").unwrap();
    fixture.start(fixture.config()).shutdown();
    assert!(folder.entries(old).exists(), "the note is of a wrong clock");
    since("2026-01-01").unwrap();
    fixture.start(fixture.config()).shutdown();
    assert!(!folder.entries(old).exists() && !folder.metadata(old).exists());
    assert!(fixture.logged("Old recordings deleted") && !folder.retention().exists());
}

fn today() -> String {
    session_id::date(now_us())
}

#[test]
fn a_session_that_is_not_too_old_any_more_starts_over() {
    let fixture = RecorderFixture::new();
    let folder = RecordingFolder::new(fixture.config().directory);
    let recorder = fixture.start(fixture.config());
    record(&recorder, "x", None);
    recorder.shutdown();
    // As a start with a wrong clock notes it.
    let notes = serde_json::json!({"too_old_since": {"a": "2036-01-01T00:00:00Z"}});
    fs::write(folder.retention(), notes.to_string()).unwrap();
    fixture.start(fixture.config()).shutdown();
    assert_eq!(fixture.sessions().len(), 1);
    assert!(!folder.retention().exists());
}

#[test]
fn a_command_that_ends_after_a_recovery_is_not_recorded_and_says_so() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    record(&recorder, "before", None);
    let running = recorder.begin(command("runs", None));
    let cancelled = recorder.begin(command("is never started", None));
    // As a full disk does: the entry of another command cannot be written.
    let error = || io::Error::from(io::ErrorKind::StorageFull);
    recorder.disable(&mut recorder.state(), &error(), &WriteFailure::default());
    let folder = RecordingFolder::new(fixture.config().directory);
    assert_eq!(fs::read_dir(folder.sessions()).unwrap().count(), 2, "no mark is left");
    assert!(matches!(record(&recorder, "after", None), RecordingOutcome::Recorded(_)));
    let RecordingOutcome::Failed(reason) = recorder.finish(running, finished(0)) else { panic!() };
    assert_eq!(reason, error().to_string());
    recorder.forget(cancelled);
    assert!(recorder.state().abandoned.is_empty());
    recorder.shutdown();
    let mut commands = Vec::new();
    let mut statuses = Vec::new();
    for session in fixture.sessions() {
        statuses.push(session.metadata.status.clone());
        session_reader::entries(&session.path, &mut |entry| {
            commands.push(entry.command.clone().into_owned());
            Ok(())
        })
        .unwrap();
    }
    commands.sort();
    statuses.sort();
    assert_eq!(commands, ["after", "before"]);
    assert_eq!(statuses, [INTERRUPTED, "shutdown"]);
    assert!(fixture.logged("error_type=\"disk_full\" degraded=true"));
}

#[test]
fn a_disk_that_is_nearly_full_is_reported_once() {
    let fixture = RecorderFixture::new();
    let recorder = fixture.start(fixture.config());
    let mut state = recorder.state();
    for (free_bytes, expected) in [(1 << 40, 0), (5 << 20, 1), (4 << 20, 1), (1 << 40, 1), (0, 2)] {
        recorder.note_free_space(&mut state, free_bytes);
        let messages = fixture.messages.lock().unwrap();
        let low = messages.iter().filter(|message| message.starts_with("Disk space low"));
        assert_eq!(low.count(), expected, "{free_bytes}");
    }
    let messages = fixture.messages.lock().unwrap().join("\n");
    assert!(messages.contains("session_id=") && messages.contains("free_bytes=5242880"));
}
