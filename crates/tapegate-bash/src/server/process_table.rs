//! The commands of a server: those that run, and those whose output may still be read.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tapegate_core::actor::ActorSessionId;
use tapegate_store::random;

use super::mailbox::ToolCallKey;
use crate::executor::RunningCommand;
use crate::recording::recorder::RecordingOutcome;

/// How many finished commands keep their output.
const FINISHED_MAX: usize = 16;

/// The commands by number.
#[derive(Debug, Default)]
pub(super) struct ProcessTable(Mutex<ProcessEntries>);

#[derive(Debug, Default)]
struct ProcessEntries {
    last_number: u64,
    entries: BTreeMap<u64, ProcessEntry>,
    /// Sessions that several clients use, which must not guess each other's ids.
    shared: BTreeSet<ActorSessionId>,
}

/// A command.
#[derive(Debug, Clone)]
pub(super) struct ProcessEntry {
    pub(super) command: Arc<RunningCommand>,
    pub(super) key: ToolCallKey,
    /// The id by which clients name it.
    pub(super) id: String,
    /// Whether a client was told its id.
    pub(super) is_known: bool,
    /// What became of its recording, once it has ended.
    pub(super) recording: Option<RecordingOutcome>,
    /// Where the next read begins, for each stream.
    pub(super) offsets: [u64; 2],
}

impl ProcessTable {
    fn entries(&self) -> MutexGuard<'_, ProcessEntries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number and the id of the next command of a client.
    pub(super) fn reserve(&self, session: ActorSessionId) -> io::Result<(u64, String)> {
        let mut table = self.entries();
        table.last_number += 1;
        let number = table.last_number;
        // Where a session is all that tells clients apart, only the one that was told an id may
        // use it.
        Ok((
            number,
            match table.shared.contains(&session) {
                true => format!("p{number}-{}", random::id()?),
                false => format!("p{number}"),
            },
        ))
    }

    /// Notes that several clients use a session.
    pub(super) fn note_shared(&self, session: ActorSessionId) {
        self.entries().shared.insert(session);
    }

    /// Notes that a session has no client left.
    pub(super) fn forget_session(&self, session: ActorSessionId) {
        self.entries().shared.remove(&session);
    }

    /// Adds a command. `is_known` is whether its client will be told its id at once.
    pub(super) fn add(
        &self,
        (number, id): (u64, &str),
        key: &ToolCallKey,
        command: &Arc<RunningCommand>,
        is_known: bool,
    ) {
        let entry = ProcessEntry {
            command: Arc::clone(command),
            key: key.clone(),
            id: id.to_owned(),
            is_known,
            recording: None,
            offsets: [0; 2],
        };
        self.entries().entries.insert(number, entry);
    }

    /// Forgets a command that could not be started.
    pub(super) fn remove(&self, number: u64) {
        self.entries().entries.remove(&number);
    }

    /// Changes what is known of a command.
    pub(super) fn change(&self, number: u64, change: impl FnOnce(&mut ProcessEntry)) {
        if let Some(entry) = self.entries().entries.get_mut(&number) {
            change(entry);
        }
    }

    /// Forgets a command that is over, unless a client may still read its output; and the oldest
    /// of those if they are many.
    pub(super) fn retire(&self, number: u64) {
        let mut table = self.entries();
        // No client can ask for it.
        if table.entries.get(&number).is_some_and(|entry| !entry.is_known) {
            table.entries.remove(&number);
        }
        let is_over = |entry: &&ProcessEntry| entry.command.state().is_gone;
        let over: Vec<u64> = table
            .entries
            .iter()
            .filter(|(_, entry)| is_over(entry))
            .map(|(number, _)| *number)
            .collect();
        for number in &over[..over.len().saturating_sub(FINISHED_MAX)] {
            table.entries.remove(number);
        }
    }

    /// The command with an id that a client was told.
    pub(super) fn find(&self, session: ActorSessionId, id: &str) -> Option<(u64, ProcessEntry)> {
        let table = self.entries();
        // Ids of a session are consecutive, so a client could guess those that it was not told.
        let mut known = table.known(session).filter(|(_, entry)| entry.id == id);
        known.next().map(|(number, entry)| (*number, entry.clone()))
    }

    /// The ids that a client was told; none if others were told some of them.
    pub(super) fn known_ids(&self, session: ActorSessionId) -> Vec<String> {
        let table = self.entries();
        if table.shared.contains(&session) {
            return Vec::new();
        }
        table.known(session).map(|(_, entry)| entry.id.clone()).collect()
    }

    /// What became of the recording of a command.
    pub(super) fn recording(&self, number: u64) -> Option<RecordingOutcome> {
        self.entries().entries.get(&number)?.recording.clone()
    }

    /// How many commands are running.
    pub(super) fn running_count(&self) -> usize {
        let table = self.entries();
        // Commands that are over but left processes do not count, or a few daemons would use up the
        // limit.
        table.entries.values().filter(|entry| entry.command.state().outcome.is_none()).count()
    }

    /// The command of a call.
    pub(super) fn of_call(&self, key: &ToolCallKey) -> Option<Arc<RunningCommand>> {
        let table = self.entries();
        // The latest: a client may use an id again once it was answered.
        let mut found = table.entries.values().rev().filter(|entry| entry.key == *key);
        found.next().map(|entry| Arc::clone(&entry.command))
    }

    /// The commands of a client.
    pub(super) fn of_session(&self, session: ActorSessionId) -> Vec<Arc<RunningCommand>> {
        let table = self.entries();
        let found = table.entries.values().filter(|entry| entry.key.session == session);
        found.map(|entry| Arc::clone(&entry.command)).collect()
    }

    /// Every command.
    pub(super) fn all(&self) -> Vec<Arc<RunningCommand>> {
        self.entries().entries.values().map(|entry| Arc::clone(&entry.command)).collect()
    }
}

impl ProcessEntries {
    /// The commands of a session whose ids were told.
    fn known(&self, session: ActorSessionId) -> impl Iterator<Item = (&u64, &ProcessEntry)> {
        self.entries.iter().filter(move |(_, it)| it.is_known && it.key.session == session)
    }
}
