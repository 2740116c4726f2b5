//! Tests the engine by playbooks. First comes the scenario, as YAML; `%% NAME` starts another one,
//! and `== WORD…` ends them and sets options: `handlers`, `reloads`, `delay=MS` for all answers,
//! `seed=N`.
//!
//! Then `>> SEAT TEXT` is a message from a client: JSON, or short `ID METHOD PARAMS` for a request,
//! `m` before the id for a sessionless one, `-` in its place for a notification, `reply ID RESULT`
//! for an answer. `>> SEAT taken WORD…` connects a client that is `shared` or has `streams`;
//! `left`, `empty`, `due`, `done TICKET TEXT`, `failed TICKET WHY` are other events; `>> wait MS`
//! lets time pass and `>> reload NAME` loads the other scenario. `<<` is an action or a note of the
//! engine. `UPDATE_GOLDEN=1` rewrites these lines.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId, HandlerTarget};
use tapegate_core::time::Timestamp;
use tapegate_scenario::engine::{Engine, EngineNote, EngineSetup};
use tapegate_scenario::model::{Delivery, LogLevel};

use crate::harness::scenario;

#[test]
fn the_engine_keeps_to_its_playbooks() {
    keeps_to("");
}

#[test]
fn ec_phase_003_an_answer_is_delivered_before_the_phase_changes() {
    keeps_to("ec_phase_003_");
}

#[test]
fn ec_phase_006_a_phase_is_left_in_time_without_traffic() {
    keeps_to("ec_phase_006_");
}

#[test]
fn ec_phase_008_an_event_wins_over_a_timeout() {
    keeps_to("ec_phase_008_");
}

#[test]
fn ec_phase_013_requests_wait_while_a_shared_phase_changes() {
    keeps_to("ec_phase_013_");
}

#[test]
fn ec_phase_014_a_client_that_comes_again_begins_again() {
    keeps_to("ec_phase_014_");
}

#[test]
fn ec_phase_015_a_phase_is_the_baseline_and_its_own_changes() {
    keeps_to("ec_phase_015_");
}

#[test]
fn ec_phase_032_an_event_and_a_time_are_never_needed_together() {
    keeps_to("ec_phase_032_");
}

#[test]
fn ec_dyn_003_what_a_handler_says_is_passed_on_as_it_is() {
    keeps_to("ec_dyn_003_");
}

#[test]
fn ec_dyn_021_handlers_must_be_allowed() {
    keeps_to("ec_dyn_021_");
}

/// Runs every playbook whose name starts with `name` and compares its output.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the playbooks are files")]
fn keeps_to(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/playbooks");
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_meant = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(name);
    let mut paths: Vec<PathBuf> = all.filter(is_meant).collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut wrong = Vec::new();
    for path in paths {
        let book = fs::read_to_string(&path).unwrap();
        let played = play(&book);
        // Only the test that covers all playbooks rewrites them.
        if name.is_empty() && std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&path, &played).unwrap();
        } else if played != book {
            wrong.push(format!("{}:\n{played}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A playbook being run.
struct PlaybookRun {
    engine: Engine,
    scenarios: HashMap<String, String>,
    out: Rc<RefCell<String>>,
    ms: u64,
    seats: BTreeSet<ActorSessionId>,
}

/// Runs a playbook; returns it with the actual output.
fn play(book: &str) -> String {
    let lines: Vec<&str> = book.lines().filter(|line| !line.starts_with("<<")).collect();
    let end = lines.iter().position(|line| line.starts_with("==")).unwrap();
    let (head, events) = lines.split_at(end + 1);
    let mut scenarios: HashMap<String, String> = HashMap::new();
    let mut name = String::new();
    for line in &head[..end] {
        match line.strip_prefix("%% ") {
            Some(next) => next.clone_into(&mut name),
            None => writeln!(scenarios.entry(name.clone()).or_default(), "{line}").unwrap(),
        }
    }
    let out = Rc::new(RefCell::new(head.join("\n") + "\n"));
    let setup = setup(head[end], Rc::clone(&out));
    let engine = Engine::new(scenario(&scenarios[""]), setup);
    let mut playing =
        PlaybookRun { engine, scenarios, out: Rc::clone(&out), ms: 0, seats: BTreeSet::new() };
    for line in events {
        writeln!(out.borrow_mut(), "{line}").unwrap();
        if let Some(event) = line.strip_prefix(">> ") {
            playing.event(event);
        }
    }
    if let Some(output_text) = playing.engine.failure() {
        writeln!(out.borrow_mut(), "<< failure: {output_text}").unwrap();
    }
    out.take()
}

fn setup(output_text: &str, out: Rc<RefCell<String>>) -> EngineSetup {
    let mut setup = EngineSetup {
        env: Rc::new(|name| (name == "PLAYBOOK").then(|| "played \"here\"".to_owned())),
        watch: Rc::new(move |_, seat, note| tell(&mut out.borrow_mut(), seat, &note)),
        ..EngineSetup::default()
    };
    for word in output_text.trim_start_matches('=').split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("handlers", _) => setup.handlers = true,
            ("reloads", _) => setup.reloads = true,
            ("seed", seed) => setup.seed = seed.parse().unwrap(),
            ("delay", ms) => {
                let delay_ns = ms.parse::<u64>().unwrap() * 1_000_000;
                setup.delivery = Some(Delivery::ResponseDelay { delay_ns });
            }
            _ => panic!("{word}?"),
        }
    }
    setup
}

impl PlaybookRun {
    fn event(&mut self, event: &str) {
        let (word, rest) = event.split_once(' ').unwrap_or((event, ""));
        match word {
            "wait" => self.ms += rest.parse::<u64>().unwrap(),
            "reload" => {
                self.engine.reload(scenario(&self.scenarios[rest]));
                self.seats.clone().into_iter().for_each(|seat| self.tell_due(seat));
            }
            _ => self.at_seat(ActorSessionId(word.parse().unwrap()), rest),
        }
    }

    fn at_seat(&mut self, seat: ActorSessionId, rest: &str) {
        let (verb, more) = rest.split_once(' ').unwrap_or((rest, ""));
        if self.seats.insert(seat) {
            let output_text = if verb == "taken" { more } else { "" };
            let (shared, streams) =
                (output_text.contains("shared"), output_text.contains("streams"));
            self.cue(seat, ActorEvent::Taken { shared, streams });
        }
        let (ticket, what) = more.split_once(' ').unwrap_or((more, ""));
        let ticket = || ticket.parse().unwrap();
        match verb {
            "taken" => {}
            "left" => self.cue(seat, ActorEvent::Left),
            "empty" => {
                self.cue(seat, ActorEvent::Empty);
                self.seats.remove(&seat);
            }
            "due" => self.cue(seat, ActorEvent::Due),
            "done" => {
                self.cue(seat, ActorEvent::Done { call_id: ticket(), outcome: Ok(what.as_bytes()) })
            }
            "failed" => self.cue(seat, ActorEvent::Done { call_id: ticket(), outcome: Err(what) }),
            _ => self.cue(seat, ActorEvent::Said(line(rest).as_bytes())),
        }
        self.tell_due(seat);
    }

    fn cue(&mut self, seat: ActorSessionId, cue: ActorEvent<'_>) {
        let at = Timestamp {
            wall_us: 1_763_200_000_000_000 + self.ms as i64 * 1000,
            mono_ns: self.ms * 1_000_000,
        };
        let out = Rc::clone(&self.out);
        self.engine.handle(at, seat, cue, &mut |act| {
            writeln!(out.borrow_mut(), "<< {} {}", seat.0, show(act)).unwrap();
        });
    }

    fn tell_due(&mut self, seat: ActorSessionId) {
        let busy = if self.engine.is_busy(seat) { ", busy" } else { "" };
        if let Some(due) = self.engine.next_wakeup(seat) {
            writeln!(self.out.borrow_mut(), "<< {} due at {} ms{busy}", seat.0, due / 1_000_000)
                .unwrap();
        }
    }
}

/// A client message as JSON.
fn line(text: &str) -> String {
    let (id, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (method, params) = rest.split_once(' ').unwrap_or((rest, ""));
    let known = id == "-" || id == "reply" || id.trim_start_matches('m').parse::<u32>().is_ok();
    if !known || method.is_empty() {
        return text.to_owned();
    }
    if id == "reply" {
        return format!("{{\"jsonrpc\":\"2.0\",\"id\":{method},\"result\":{params}}}");
    }
    let mut params = params.to_owned();
    let number = id.strip_prefix('m');
    if number.is_some() {
        let meta = "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\
                    \"io.modelcontextprotocol/clientCapabilities\":{\"elicitation\":{},\"sampling\":{}}}";
        params = match params.strip_prefix('{').unwrap_or("}") {
            "}" => format!("{{{meta}}}"),
            inner => format!("{{{meta},{inner}"),
        };
    }
    let id = match (id, number) {
        ("-", _) => String::new(),
        (id, number) => format!(",\"id\":{}", number.unwrap_or(id)),
    };
    let params = if params.is_empty() { String::new() } else { format!(",\"params\":{params}") };
    format!("{{\"jsonrpc\":\"2.0\"{id},\"method\":\"{method}\"{params}}}")
}

fn show(act: ActorAction<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match act {
        ActorAction::Say(parts) => format!("say {}", text(&parts.concat())),
        ActorAction::Tell { about, parts } => {
            format!("tell {} {}", text(about), text(&parts.concat()))
        }
        ActorAction::Raw { about, bytes, ends } => {
            let about = about.map_or("-".to_owned(), text);
            format!("raw {about} {:?}{}", text(bytes), if ends { ", and no more" } else { "" })
        }
        ActorAction::Run { call_id: ticket, handler_call: errand } => {
            let by = match errand.by {
                HandlerTarget::Http { url, .. } => url.to_owned(),
                HandlerTarget::Command { argv, .. } => argv.join(" "),
            };
            format!(
                "run {ticket} `{by}` within {} ms {}",
                errand.timeout_ns / 1_000_000,
                text(errand.body)
            )
        }
        ActorAction::Leave { abrupt, .. } => {
            format!("leave{}", if abrupt { " abruptly" } else { "" })
        }
        ActorAction::Part(id) => format!("part {}", text(id)),
        ActorAction::Ask(_) | ActorAction::Play { .. } => unreachable!(),
        ActorAction::Stop => "stop".to_owned(),
    }
}

fn tell(out: &mut String, seat: ActorSessionId, note: &EngineNote<'_>) {
    let seat = seat.0;
    match note {
        EngineNote::Said { .. } | EngineNote::Log { level: LogLevel::Debug, .. } => Ok(()),
        EngineNote::Unread => writeln!(out, "<< {seat} unread"),
        EngineNote::Phase { from, to, reason: why } => {
            writeln!(out, "<< {seat} phase {from} is over, {to} begins: {why}")
        }
        EngineNote::Log { level, message: words } => writeln!(out, "<< {seat} {level:?}: {words}"),
        EngineNote::Effect { name, left_out: None } => writeln!(out, "<< {seat} begins {name}"),
        EngineNote::Effect { name, left_out: Some(reason) } => {
            writeln!(out, "<< {seat} leaves out {name}: {reason}")
        }
        EngineNote::Asked { id, method } => {
            writeln!(out, "<< {seat} asks {method} as {}", String::from_utf8_lossy(id))
        }
    }
    .unwrap();
}
