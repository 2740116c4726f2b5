//! kill -9 at random moments: configs always recover byte for byte, and no process is left.
//!
//! 300 rounds in all, 50 a test, so that the tests run side by side. In half of them, the agent's
//! input is closed first, and the kill comes while the session puts everything back.
//!
//! `WRAP_KILLS=300` runs as many rounds in each test, and `DICE` repeats a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};

use super::overlay;
use crate::support::SeededRandom;
use crate::wrap_machine::{EndedWrap, WrapMachine, WrapProcess};

/// How many rounds each test has.
const ROUNDS: u64 = 50;
/// How long the end of a session takes, about.
const END_US: u64 = 60_000;

/// When something is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KillMoment {
    /// From before the rewrite until after the last call.
    Session,
    /// When the agent has nothing more to do: the session ends by itself.
    End,
}

/// What is killed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KillTarget {
    /// One process, or several.
    Some,
    /// `wrap` and its hub, so that another process has to put the configs back.
    Both,
}

fn rounds() -> u64 {
    let rounds = std::env::var("WRAP_KILLS").ok().and_then(|count| count.parse().ok());
    rounds.unwrap_or(ROUNDS)
}

fn kill(pids: &[Pid]) {
    pids.iter().for_each(|pid| _ = kill_process(*pid, Signal::KILL));
}

/// Kills some processes of a session, and returns whether both `wrap` and its hub were among them.
fn kill_some(
    machine: &WrapMachine,
    wrap: u32,
    target: KillTarget,
    dice: &mut SeededRandom,
) -> bool {
    let wrap = Pid::from_raw(wrap.cast_signed()).into_iter().collect::<Vec<_>>();
    let (hub, shims) = (machine.processes_of("hub"), machine.processes_of("shim"));
    let first = if target == KillTarget::Both { 6 } else { 0 };
    match first + dice.below(8 - first) {
        0 => kill(&wrap),
        1 => kill(&machine.agents()),
        2 => kill(&shims),
        3 => kill(&shims[..shims.len().min(1)]),
        4 => kill(&hub),
        5 => kill(&[wrap, shims].concat()),
        6 => {
            kill(&[hub, wrap].concat());
            return true;
        }
        _ => {
            kill(&machine.processes());
            return true;
        }
    }
    false
}

/// Waits for the moment, kills, and waits for the end of what still runs. Returns whether nothing was
/// left that could put things right.
fn kill_at(
    machine: &WrapMachine,
    mut session: WrapProcess,
    (moment, target): (KillMoment, KillTarget),
    round: u64,
    dice: &mut SeededRandom,
) -> (bool, EndedWrap) {
    match moment {
        KillMoment::Session => dice.pause_us([40_000, 150_000, 500_000][round as usize % 3]),
        KillMoment::End => {
            session.says("ready");
            drop(session.input.take());
            dice.pause_us(END_US);
        }
    }
    let may_be_left = kill_some(machine, session.id(), target, dice);
    // Whatever still runs ends by itself once the agent has nothing to wait for.
    drop(session.input.take());
    let ended = session.end();
    machine.ends_every_process();
    (may_be_left, ended)
}

/// Lets another process put the configs back. It may be killed as well, several times.
fn recover(machine: &WrapMachine, kills: u64, dice: &mut SeededRandom) {
    for _ in 0..kills {
        let command = match dice.below(2) {
            0 => machine.command(&["unwrap"]),
            _ => machine.wrap(&[], &["call"]),
        };
        let recovering = WrapProcess::start(command);
        dice.pause_us(END_US);
        match dice.below(2) {
            0 => recovering.signal(Signal::KILL),
            _ => kill(&machine.processes()),
        }
        recovering.end();
        machine.ends_every_process();
    }
    match dice.below(2) {
        0 => assert!(machine.command(&["unwrap"]).output().unwrap().status.success()),
        _ => drop(machine.start(&[], &["call"]).end().exits(0)),
    }
    machine.ends_every_process();
}

/// The files, without locks: one that no process holds does no harm, and is gone with the next
/// session.
fn files_without_locks(machine: &WrapMachine) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = machine.files();
    files.retain(|path, _| !path.to_string_lossy().ends_with(".tapegate-lock"));
    files
}

/// Sessions with three servers in two configs, in each of which something is killed.
fn kill_sessions(moment: KillMoment, target: KillTarget) {
    let mut dice = SeededRandom::roll();
    let machine = WrapMachine::new();
    machine.claude(&["one", "two"]);
    machine.write("project/.mcp.json", &machine.config(&["three"]));
    let before = machine.files();
    let starts = ["start=~/.claude.json#mcpServers", "start=.mcp.json#mcpServers"];
    let steps = [&starts[..], &["call", "say=ready", "line"]].concat();
    for round in 0..rounds() {
        let session = machine.start(&[], &steps);
        let (may_be_left, ended) = kill_at(&machine, session, (moment, target), round, &mut dice);
        if may_be_left {
            let kills = if target == KillTarget::Both { dice.below(4) } else { 0 };
            recover(&machine, kills, &mut dice);
        }
        let after = files_without_locks(&machine);
        let changed: Vec<_> =
            after.iter().filter(|file| before.get(file.0) != Some(file.1)).collect();
        assert!(after == before, "round {round}: {changed:?}: {ended:?}");
    }
    machine.start(&[], &["call"]).end().exits(0);
    assert_eq!(machine.files(), before);
}

#[test]
fn whatever_is_killed_during_a_session_the_configs_recover_and_no_process_is_left() {
    kill_sessions(KillMoment::Session, KillTarget::Some);
}

#[test]
fn whatever_is_killed_while_a_session_ends_the_configs_recover_and_no_process_is_left() {
    kill_sessions(KillMoment::End, KillTarget::Some);
}

#[test]
fn a_recovery_that_is_killed_is_completed_by_the_next_one() {
    kill_sessions(KillMoment::Session, KillTarget::Both);
}

#[test]
fn a_recovery_of_a_session_that_was_killed_at_its_end_is_completed_by_the_next_one() {
    kill_sessions(KillMoment::End, KillTarget::Both);
}

#[test]
fn one_shim_of_several_is_killed_and_the_others_and_the_session_go_on() {
    let mut dice = SeededRandom::roll();
    let machine = WrapMachine::new();
    machine.claude(&["one", "two", "three"]);
    let before = machine.files();
    let steps = ["start=~/.claude.json#mcpServers", "call", "say=ready", "line", "close", "exit=7"];
    for round in 0..rounds() {
        let mut session = machine.start(&[], &steps);
        session.says("ready");
        let mut shims = machine.processes_of("shim");
        assert_eq!(shims.len(), 3);
        let is_at_end = round % 2 == 1;
        if is_at_end {
            drop(session.input.take());
            dice.pause_us(END_US);
        }
        let killed = shims.remove(dice.below(3) as usize);
        kill(&[killed]);
        if !is_at_end {
            machine.has_no_zombie();
            let mut others = machine.processes_of("shim");
            others.retain(|pid| *pid != killed);
            assert_eq!(others, shims, "round {round}");
        }
        drop(session.input.take());
        let ended = session.end().exits(7);
        machine.ends_every_process();
        assert_eq!(machine.files(), before, "round {round}: {ended:?}");
    }
}

#[test]
fn with_an_overlay_no_config_is_touched_and_no_folder_is_left_whatever_is_killed() {
    let mut dice = SeededRandom::roll();
    let machine = WrapMachine::new();
    machine.claude(&["one", "two"]);
    let before = machine.files();
    let steps = ["start=~/.claude.json#mcpServers", "call", "say=ready", "line"];
    for round in 0..rounds() {
        let session = overlay::start(&machine, &[], &steps);
        let moment = [KillMoment::Session, KillMoment::End][round as usize % 2];
        let (may_be_left, ended) =
            kill_at(&machine, session, (moment, KillTarget::Some), round, &mut dice);
        assert_eq!(machine.files(), before, "round {round}: {ended:?}");
        // Before its hub knows of it, a folder has nothing in it.
        let folders = overlay::folders(&machine).into_iter();
        let full = folders.filter(|folder| fs::read_dir(folder).unwrap().next().is_some());
        assert!(full.count() == 0 || may_be_left, "round {round}: {ended:?}");
        assert!(machine.command(&["unwrap"]).output().unwrap().status.success());
        assert!(overlay::folders(&machine).is_empty(), "round {round}: {ended:?}");
    }
}
