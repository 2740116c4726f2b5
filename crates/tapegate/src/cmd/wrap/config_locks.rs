//! The configs of a session: locked, recovered from an earlier session, rewritten and put back.

use std::fs;
use std::path::{Path, PathBuf};

use tapegate_agents::config_guard::{
    self, ConfigGuard, ConfigLock, ConfigLockError, GuardError, RestoreOutcome, backup_of,
};
use tapegate_agents::discovery::ServerScan;
use tapegate_agents::governance::{self, ServerTreatment};
use tapegate_agents::rewrite::EntryRewrite;
use tapegate_agents::tree::ConfigFormat;

use super::agent_choice::AgentChoice;
use super::session_notes::noted_original;
use super::shim_options::ShimOptions;
use super::stored_entries::StoredEntry;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;

/// Configs that no other session can change.
pub(super) struct LockedConfigs(Vec<(ConfigLock, ConfigFormat)>);

/// Configs that are rewritten. Dropping them puts them back.
pub(super) struct RewrittenConfigs(Vec<ConfigGuard>);

/// A config to rewrite, with the edits.
pub(super) struct ConfigRewrite {
    pub(super) path: PathBuf,
    pub(super) format: ConfigFormat,
    pub(super) rewrites: Vec<EntryRewrite>,
    /// The command lines that are kept elsewhere.
    pub(super) stored: Vec<StoredEntry>,
}

/// The edits that put every server behind a shim that can be.
pub(super) fn plan(scan: &ServerScan, shim: &ShimOptions) -> Vec<ConfigRewrite> {
    let mut configs: Vec<ConfigRewrite> = Vec::new();
    for server in &scan.servers {
        if governance::treatment(server) != ServerTreatment::Governed {
            continue;
        }
        // `treatment` has asked the same before.
        let Ok(command) = shim.command(server) else { continue };
        let (command, stored) = shim.stored(server, command);
        let (place, style) = (server.place.clone(), governance::style(server));
        let rewrite = EntryRewrite { place, style, shim: command };
        // Two paths may lead to the same config.
        let path = resolved(&server.config);
        match configs.iter_mut().find(|config| config.path == path) {
            // The same entry, found by way of a link.
            Some(config) if config.rewrites.iter().any(|one| one.place == rewrite.place) => {}
            Some(config) => {
                config.rewrites.push(rewrite);
                config.stored.extend(stored);
            }
            None => {
                let (format, stored) = (server.format, stored.into_iter().collect());
                configs.push(ConfigRewrite { path, format, rewrites: vec![rewrite], stored });
            }
        }
    }
    configs
}

impl LockedConfigs {
    /// Locks every config that names a server that the agent starts, or that an earlier session has
    /// left rewritten.
    pub(super) fn lock(
        agent: &AgentChoice,
        scan: &ServerScan,
        search: &SearchContext<'_>,
    ) -> Result<Self, Failure> {
        let governed = scan.servers.iter().filter(|server| {
            // Governed entries may be those of a killed session, which are put back under the lock.
            server.entry.is_governed || governance::treatment(server) == ServerTreatment::Governed
        });
        let named = governed.map(|server| (server.config.clone(), server.format)).collect();
        Self::lock_all(named, agent, search)
    }

    /// Locks the configs that an earlier session has left rewritten.
    pub(super) fn lock_left(
        agent: &AgentChoice,
        search: &SearchContext<'_>,
    ) -> Result<Self, Failure> {
        Self::lock_all(Vec::new(), agent, search)
    }

    fn lock_all(
        named: Vec<(PathBuf, ConfigFormat)>,
        agent: &AgentChoice,
        search: &SearchContext<'_>,
    ) -> Result<Self, Failure> {
        let left = agent.places(search);
        let user_state = search.user_state_dir()?;
        let left = left.into_iter().filter(|(path, format)| {
            has_backup(path) || noted_original(&user_state, path, *format).is_some()
        });
        let mut paths: Vec<(PathBuf, ConfigFormat)> = Vec::new();
        for (path, format) in named.into_iter().chain(left) {
            let path = resolved(&path);
            if !paths.iter().any(|(known, _)| *known == path) {
                paths.push((path, format));
            }
        }
        let lock = |(path, format): (PathBuf, ConfigFormat)| {
            ConfigLock::acquire(&path).map(|lock| (lock, format)).map_err(lock_failure)
        };
        paths.into_iter().map(lock).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn configs(&self) -> Vec<&Path> {
        self.0.iter().map(|(lock, _)| lock.config()).collect()
    }

    /// Puts back the configs that an earlier session has left rewritten, because it was killed.
    pub(super) fn recover(&self, user_state: &Path) -> Result<(), Failure> {
        for (lock, format) in &self.0 {
            let path = lock.config();
            let restored = match noted_original(user_state, path, *format) {
                Some(original) => config_guard::restore_to(lock, *format, &original).map(Some),
                None => config_guard::restore(lock, *format),
            };
            match restored {
                Ok(None) => {}
                Ok(Some(outcome)) => {
                    terminal_output::warn(&format!(
                        "`{}` was left rewritten by a session that was killed; {}",
                        path.display(),
                        outcome_text(path, &outcome)
                    ));
                }
                Err(error) => return Err(restore_failure(path, &error)),
            }
        }
        Ok(())
    }

    /// Rewrites the configs. If one of them cannot be, all are as they were.
    pub(super) fn rewrite(self, configs: &[ConfigRewrite]) -> Result<RewrittenConfigs, Failure> {
        let mut locks = self.0;
        let mut guards = Vec::new();
        for config in configs {
            let at = locks.iter().position(|(lock, _)| lock.config() == config.path);
            let lock = match at {
                Some(at) => locks.swap_remove(at).0,
                // It has come to name a server since the others were locked.
                None => ConfigLock::acquire(&config.path).map_err(lock_failure)?,
            };
            let guard = ConfigGuard::rewrite(lock, config.format, &config.rewrites);
            // An error drops the guards, and each puts its config back.
            guards.push(guard.map_err(rewrite_failure)?);
        }
        Ok(RewrittenConfigs(guards))
    }
}

impl RewrittenConfigs {
    /// Puts the configs back, and reports what is not exactly as it was. False if one is not back.
    pub(super) fn restore(mut self) -> bool {
        let mut is_done = true;
        for guard in &mut self.0 {
            match guard.restore() {
                Ok(None | Some(RestoreOutcome::Exactly)) => {}
                Ok(Some(outcome)) => {
                    let path = guard.config();
                    let text = format!("`{}`: {}", path.display(), outcome_text(path, &outcome));
                    match outcome {
                        RestoreOutcome::Merged(conflicts) if conflicts.is_empty() => {
                            terminal_output::info(&text);
                        }
                        _ => terminal_output::warn(&text),
                    }
                }
                Err(error) => {
                    let failure = restore_failure(guard.config(), &error);
                    terminal_output::error(&failure.message, failure.hint.as_deref());
                    // The others are still put back.
                    is_done = false;
                }
            }
        }
        is_done
    }

    /// Leaves the configs rewritten.
    pub(super) fn keep(self) {
        self.0.into_iter().for_each(ConfigGuard::keep);
    }
}

/// What has become of a config, for people.
pub(crate) fn outcome_text(path: &Path, outcome: &RestoreOutcome) -> String {
    match outcome {
        RestoreOutcome::Exactly => "it is restored".to_owned(),
        RestoreOutcome::Merged(conflicts) if conflicts.is_empty() => {
            "its servers are restored, and what else has changed in it is kept".to_owned()
        }
        RestoreOutcome::Merged(conflicts) => format!(
            "its servers are restored; changes to {} are lost, and what else has changed is kept",
            conflicts.join(", ")
        ),
        RestoreOutcome::Replaced(aside) => format!(
            "it could no longer be parsed and is restored from its backup; its last content is in `{}`",
            aside.display()
        ),
        RestoreOutcome::Recreated => {
            format!("`{}` was removed or emptied, and is there again", path.display())
        }
    }
}

pub(crate) fn lock_failure(error: ConfigLockError) -> Failure {
    match &error {
        ConfigLockError::Taken { .. } => Failure::new(Exit::Findings, &error)
            .hint("end the other session first; one session at a time can rewrite a config"),
        ConfigLockError::Io { .. } => Failure::new(Exit::Io, &error)
            .hint("the lock and the backup of a config are written to its folder"),
    }
}

fn rewrite_failure(error: GuardError) -> Failure {
    let (exit, hint) = match &error {
        // The text of the config is the cause, not the disk.
        GuardError::Rewrite { .. } => (Exit::Invalid, "no config was changed"),
        GuardError::ReadOnly { .. } => {
            (Exit::Io, "make it writable; or use --overlay, which touches no config")
        }
        _ => (Exit::Io, "no config was changed"),
    };
    Failure::new(exit, &error).hint(hint)
}

pub(crate) fn restore_failure(path: &Path, error: &std::io::Error) -> Failure {
    let (backup, path) = (backup_of(path), path.display());
    let message = format!("cannot restore `{path}`: {error}");
    Failure::new(Exit::Io, message).hint(format!(
        "the original is in `{}`; once the cause is removed, run `{}`",
        backup.display(),
        program_name::command(format!("unwrap --config-path {path}"))
    ))
}

/// Whether a config has a backup beside it, or beside what it is a link to.
pub(crate) fn has_backup(path: &Path) -> bool {
    config_guard::has_backup(&resolved(path))
}

/// The config itself, not a link to it.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}
