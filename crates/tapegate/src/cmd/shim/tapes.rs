//! The tapes of governed sessions: where each is written, and when old ones are removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tapegate_core::tape::{Dialect, EntryWriterOptions, RecordError, Recorder, TapeEntry};
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};
use tapegate_policy::model::RecordingSettings;
use tapegate_store::OpenError;
use tapegate_store::state_dir::{self, StateDirError};
use tapegate_store::tape_writer::{OnExisting, TapeWriter};

use super::plan::ShimPlan;
use super::shim_policy::ShimPolicy;
use crate::tape_writer::{NewTape, TAPE_FOLDER, TAPE_POLICY};
use crate::upstream::UpstreamTarget;

/// How often a tape is synced to the disk.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// A recorder that records nothing, for when recording is off.
pub(super) struct DisabledTape;

/// The name of a session's tape, by which events refer to it.
pub(super) fn session_id(connection_id: &str, at: Timestamp) -> String {
    let mut stamp = Vec::new();
    write_rfc3339(&mut stamp, at.wall_us, SubSecond::Millis);
    let stamp = String::from_utf8_lossy(&stamp).replace([':', '.'], "-");
    format!("{stamp}-{connection_id}")
}

/// Makes the state and tape folders private to the user. Returns what had to be changed.
pub(super) fn secure_folders(
    plan: &ShimPlan,
    rule: &ShimPolicy,
) -> Result<Vec<String>, StateDirError> {
    let recording = rule.active_policy.policy.as_ref().map(|policy| &policy.recording);
    let tapes = folder(plan, recording);
    let mut changed = Vec::new();
    changed.extend(state_dir::secure(&plan.state)?);
    if recording.is_none_or(|recording| recording.enabled) {
        // The parent too: a link there would lead all tapes elsewhere.
        for folder in tapes.parent().into_iter().chain([tapes.as_path()]) {
            changed.extend(state_dir::secure(folder)?);
        }
    }
    Ok(changed)
}

/// Opens the tape of a session.
pub(super) fn open(
    plan: &ShimPlan,
    rule: &ShimPolicy,
    upstream: &UpstreamTarget,
) -> Result<TapeWriter, OpenError> {
    let recording = rule.active_policy.policy.as_ref().map(|policy| &policy.recording);
    let folder = folder(plan, recording);
    if let Some(retention) = recording.and_then(|recording| recording.retention) {
        remove_old_tapes(&folder, retention);
    }
    // Projects may share a state folder; these members say which project the tape belongs to.
    let policy = plan.policy_name();
    let mut members = vec![(TAPE_FOLDER, plan.folder.as_str())];
    members.extend((!policy.is_empty()).then_some((TAPE_POLICY, policy.as_str())));
    let tape = NewTape {
        path: folder.join(format!("{}.jsonl", plan.session_id)),
        entry_writer: EntryWriterOptions {
            dialect: Dialect::Thoughtjack,
            raw: true,
            shared: plan.args.http.is_some(),
        },
        flush_interval: FLUSH_INTERVAL,
        existing: OnExisting::Number,
        name: Some(&plan.server_id),
        tags: Vec::new(),
        upstream: &upstream.header_text(),
        members,
        redactor: rule.masking.clone(),
    };
    tape.open(plan.clock.now())
}

fn folder(plan: &ShimPlan, recording: Option<&RecordingSettings>) -> PathBuf {
    let named = recording.and_then(|recording| recording.folder.as_deref());
    let base = plan.config.as_deref().and_then(Path::parent).unwrap_or(Path::new("."));
    let tapes = named.map_or_else(|| plan.state.join("tapes"), |folder| base.join(folder));
    tapes.join(sanitize_file_name(&plan.server_id))
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
fn sanitize_file_name(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let word: String = text.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    // An id such as `..` must not lead out of the tapes folder.
    let word = word.trim_start_matches('.');
    if word.is_empty() { "server".to_owned() } else { word.to_owned() }
}

impl Recorder for DisabledTape {
    fn append(&mut self, _: &TapeEntry<'_>) {}

    fn commit(&mut self) -> Result<(), RecordError> {
        Ok(())
    }

    fn close(&mut self, _: Timestamp) -> Result<(), RecordError> {
        Ok(())
    }
}
