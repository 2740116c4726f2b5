//! The tapes of governed sessions: where each is written, and when old ones are removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tapegate_core::tape::{Dialect, EntryWriterOptions, Mask};
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::RecordingSettings;
use tapegate_policy::policy_gate::ActivePolicy;
use tapegate_policy::redact::mask_upstream;
use tapegate_store::OpenError;
use tapegate_store::new_tape::{
    NewTape, TAPE_AGENT, TAPE_AGENT_SESSION, TAPE_FOLDER, TAPE_POLICY, sanitize_file_name,
};
use tapegate_store::state_dir::{self, StateDirError};
use tapegate_store::tape_writer::{OnExisting, TapeWriter};

use crate::plan::{ServerDescription, ShimPlan};

/// How often a tape is synced to the disk.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The name of a session's tape, by which events refer to it.
pub fn session_id(connection_id: &str, at: Timestamp) -> String {
    let mut stamp = Vec::new();
    write_rfc3339(&mut stamp, at.wall_us, SubSecond::Millis);
    let stamp = String::from_utf8_lossy(&stamp).replace([':', '.'], "-");
    format!("{stamp}-{connection_id}")
}

/// Makes the state and tape folders private to the user. Returns what had to be changed.
pub fn secure_folders(
    plan: &ShimPlan,
    active_policy: &ActivePolicy,
) -> Result<Vec<String>, StateDirError> {
    let recording = active_policy.policy.as_ref().map(|policy| &policy.recording);
    let tapes = folder(plan, recording);
    let mut changed = Vec::new();
    changed.extend(state_dir::secure(&plan.state)?);
    if plan.is_recording(active_policy) {
        // The parent too: a link there would lead all tapes elsewhere.
        for folder in tapes.parent().into_iter().chain([tapes.as_path()]) {
            changed.extend(state_dir::secure(folder)?);
        }
    }
    Ok(changed)
}

/// Opens the tape of a session.
pub(crate) fn open(
    plan: &ShimPlan,
    active_policy: &ActivePolicy,
    server: &ServerDescription,
) -> Result<TapeWriter, OpenError> {
    let recording = active_policy.policy.as_ref().map(|policy| &policy.recording);
    let folder = folder(plan, recording);
    if let Some(retention) = recording.and_then(|recording| recording.retention) {
        remove_old_tapes(&folder, retention);
    }
    // Projects may share a state folder; these members say which project the tape belongs to.
    let policy = plan.policy_name();
    let mut members = vec![(TAPE_FOLDER, plan.folder.as_str())];
    members.extend((!policy.is_empty()).then_some((TAPE_POLICY, policy.as_str())));
    if let Some(session) = &plan.agent_session {
        let named = [(TAPE_AGENT, &session.agent), (TAPE_AGENT_SESSION, &session.id)];
        members.extend(named.map(|(key, text)| (key, text.as_str())));
    }
    let redactor = active_policy.masking.as_deref().cloned();
    let mask = redactor.map(|redactor| Box::new(redactor) as Box<dyn Mask>);
    let tape = NewTape {
        path: folder.join(format!("{}.jsonl", plan.session_id)),
        entry_writer: EntryWriterOptions {
            dialect: Dialect::Thoughtjack,
            raw: true,
            shared: matches!(plan.client, TransportKind::Http),
        },
        flush_interval: FLUSH_INTERVAL,
        existing: OnExisting::Number,
        name: Some(&plan.server_id),
        tags: Vec::new(),
        upstream: &mask_upstream(&server.text),
        members,
        mask,
    };
    tape.open(plan.clock.now())
}

fn folder(plan: &ShimPlan, recording: Option<&RecordingSettings>) -> PathBuf {
    if let Some(tapes) = &plan.tapes {
        return tapes.join(sanitize_file_name(&plan.server_id));
    }
    let named = recording.and_then(|recording| recording.folder.as_deref());
    let base = plan.config.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let tapes = named.map_or_else(|| plan.state.join("tapes"), |folder| base.join(folder));
    tapes.join(folder_name(&plan.server_id))
}

/// Removes tapes that were last written longer than `retention` ago. Failures are ignored: the next
/// session tries again.
fn remove_old_tapes(folder: &Path, retention: Duration) {
    let now = SystemTime::now();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let tape = entry.file_name().to_string_lossy().ends_with(".jsonl");
        // By the last write, so the tape of a session that still runs is kept.
        let written = entry.metadata().and_then(|file| file.modified());
        let age = written.ok().and_then(|written| now.duration_since(written).ok());
        if tape && age.is_some_and(|age| age > retention) {
            fs::remove_file(entry.path()).ok();
        }
    }
}

/// Turns a server id into a folder name.
fn folder_name(server_id: &str) -> String {
    match sanitize_file_name(server_id) {
        word if word.is_empty() => "server".to_owned(),
        word => word,
    }
}
