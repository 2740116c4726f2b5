//! What is kept of tasks, and for how long.

use super::*;
use crate::gate::TaskDialect;

fn at(ms: u64) -> Timestamp {
    Timestamp { mono_ns: ms * 1_000_000, wall_us: 0 }
}

fn handle(task_id: String) -> TaskHandle {
    let request_id = format!("call of {task_id}");
    let dialect = TaskDialect::Core;
    TaskHandle { task_id, request_id, ttl_ms: 100, keep_ms: 50, poll_ms: 1, dialect }
}

fn lane(session: u32) -> Lane {
    Lane::session(session)
}

fn insert(tasks: &mut OwnTasks, session: u32, name: &str) {
    assert!(tasks.make_room(at(0), session), "{name}");
    tasks.insert(at(0), lane(session), handle(name.to_owned()), "");
}

fn end(tasks: &mut OwnTasks, ms: u64, name: &str, bytes: usize) {
    let error = format!("{{\"message\":\"{}\"}}", "x".repeat(bytes));
    tasks.end(at(ms), name, TaskOutcome::failed(error.as_bytes()));
}

#[test]
fn a_session_has_a_bounded_number_of_tasks_that_have_not_ended() {
    let mut tasks = OwnTasks::default();
    (0..TASKS_MAX).for_each(|n| insert(&mut tasks, 1, &format!("t{n}")));
    assert!(!tasks.make_room(at(0), 1));
    assert!(tasks.make_room(at(0), 2), "others have room");
    end(&mut tasks, 0, "t5", 0);
    assert!(tasks.make_room(at(0), 1));
    assert!(tasks.find(at(0), 1, "t5").is_none(), "it has made room");
    assert!(tasks.find(at(0), 1, "t0").is_some());
    assert!(tasks.find(at(0), 2, "t0").is_none(), "another session does not know it");
}

#[test]
fn all_sessions_together_have_a_bounded_number_of_tasks() {
    let mut tasks = OwnTasks::default();
    for n in 0..TASKS_TOTAL_MAX {
        insert(&mut tasks, u32::try_from(n / TASKS_MAX).unwrap(), &format!("t{n}"));
    }
    assert!(!tasks.make_room(at(0), 9999));
    end(&mut tasks, 0, "t7", 0);
    assert!(tasks.make_room(at(0), 9999));
}

#[test]
fn the_outcomes_together_have_a_bounded_size_and_the_newest_stays() {
    let mut tasks = OwnTasks::default();
    for name in ["a", "b", "c", "open"] {
        insert(&mut tasks, 1, name);
    }
    end(&mut tasks, 0, "a", OUTCOME_BYTES_MAX / 2);
    end(&mut tasks, 0, "b", OUTCOME_BYTES_MAX / 4);
    end(&mut tasks, 0, "c", OUTCOME_BYTES_MAX / 2);
    assert!(tasks.outcome_bytes() <= OUTCOME_BYTES_MAX);
    let mut known = |name: &str| tasks.find(at(0), 1, name).is_some();
    assert_eq!(["a", "b", "c", "open"].map(&mut known), [false, true, true, true]);
}

#[test]
fn a_task_is_kept_for_its_time_and_for_a_while_after_its_end() {
    let mut tasks = OwnTasks::default();
    for name in ["early", "late", "open"] {
        insert(&mut tasks, 1, name);
    }
    end(&mut tasks, 10, "early", 0);
    end(&mut tasks, 95, "late", 0);
    let mut known = |ms, name: &str| tasks.find(at(ms), 1, name).is_some();
    assert!(known(99, "early") && known(144, "late"));
    assert!(!known(145, "early") && !known(145, "late"));
    assert!(known(1_000_000, "open"));
}

#[test]
fn an_outcome_is_final() {
    let mut tasks = OwnTasks::default();
    insert(&mut tasks, 1, "t");
    tasks.end(at(0), "t", TaskOutcome::Cancelled);
    end(&mut tasks, 1, "t", 3);
    assert_eq!(tasks.find(at(1), 1, "t").unwrap().status(), "cancelled");
}
