//! Tests the player with playbooks. The first part is the tape: `c2s TEXT` and `s2c TEXT`, preceded
//! by `@MS` for the time of what follows, `resumed s2c TEXT` for a message on a resumed stream,
//! `session NAME` for the session of what follows; `== WORD…` sets options. Then `>> SEAT TEXT` is
//! a message of a client, `>> SEAT left`, `>> SEAT due`, `>> SEAT behind TEXT`,
//! `>> SEAT behind-gone WHY`, `>> SEAT shared` (before anything else there), `>> wait MS` are other
//! events; `<<` is an action or a report of the player. `UPDATE_GOLDEN=1` rewrites these lines.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::rc::Rc;

use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::json::path::JsonPath;
use tapegate_core::player::{
    MatchMode, OnExhausted, OnUnmatched, Player, PlayerOptions, ReplayNotice, ServerMessages,
    StateScope,
};
use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeReader;
use tapegate_core::tape::index::{BodySource, Indexer};
use tapegate_core::time::{SubSecond, Timestamp, write_rfc3339};

use crate::playbooks;

#[test]
fn the_player_keeps_to_its_playbooks() {
    playbooks::check("player", play);
}

/// Bodies in memory.
pub(crate) struct TextBodies(pub(crate) Vec<u8>);

impl BodySource for TextBodies {
    fn body(&mut self, offset: u64, length: u32) -> io::Result<&[u8]> {
        let start = offset as usize;
        self.0.get(start..start + length as usize).ok_or(io::ErrorKind::UnexpectedEof.into())
    }
}

/// A player for a tape.
pub(crate) fn player(
    tape: Vec<u8>,
    options: PlayerOptions,
    notice: Box<dyn FnMut(ReplayNotice<'_>)>,
) -> Player {
    let mut indexer = Indexer::new(options.signer.clone());
    let mut reader = TapeReader::new(&tape[..]);
    while let Some(line) = reader.next() {
        indexer.push(&line.unwrap());
    }
    let (index, _) = indexer.finish();
    Player::new(index, Box::new(TextBodies(tape)), options, notice)
}

pub(crate) fn options(output_text: &str) -> PlayerOptions {
    let mut options = PlayerOptions {
        mode: MatchMode::Sequential,
        pace: 0.0,
        on_unmatched: OnUnmatched::Error,
        on_exhausted: OnExhausted::Error,
        scope: StateScope::Session,
        server_messages: ServerMessages::All,
        strict_params: false,
        strict_reads: false,
        strict_replies: false,
        mask: None,
        signer: Signer::default(),
    };
    for word in output_text.split_whitespace() {
        match word {
            "sequential" => options.mode = MatchMode::Sequential,
            "by-request" => options.mode = MatchMode::ByRequest,
            "fuzzy" => options.mode = MatchMode::Fuzzy { threshold: 0.7 },
            "realistic" => options.pace = 1.0,
            "scaled:0.5" => options.pace = 0.5,
            "warn" => options.on_unmatched = OnUnmatched::Warn,
            "passthrough" => options.on_unmatched = OnUnmatched::Passthrough,
            "last" => options.on_exhausted = OnExhausted::Last,
            "cycle" => options.on_exhausted = OnExhausted::Cycle,
            "global" => options.scope = StateScope::Global,
            "notifications" => options.server_messages = ServerMessages::Notifications,
            "no-server-messages" => options.server_messages = ServerMessages::None,
            "strict-params" => options.strict_params = true,
            "strict-reads" => options.strict_reads = true,
            "strict-replies" => options.strict_replies = true,
            word => {
                let path = word.strip_prefix("ignore=").unwrap_or_else(|| panic!("{word}?"));
                options.signer = Signer::new(vec![JsonPath::read(path).unwrap()]);
            }
        }
    }
    options
}

/// The tape that a playbook describes, and its options.
#[derive(Default)]
struct PlaybookTape {
    tape: Vec<u8>,
    options: String,
    session: Option<String>,
    at_ms: i64,
    seq: u32,
}

impl PlaybookTape {
    /// Takes a line of the playbook's first part; false if it does not belong to it.
    fn take(&mut self, line: &str) -> bool {
        let mut rest = line;
        if let Some((at, text)) = line.strip_prefix('@').and_then(|text| text.split_once(' ')) {
            self.at_ms = at.parse().unwrap();
            rest = text;
        }
        let resumed = rest.strip_prefix("resumed ");
        rest = resumed.unwrap_or(rest);
        match rest.split_once(' ') {
            Some(("==", output_text)) => output_text.clone_into(&mut self.options),
            Some(("session", name)) => self.session = Some(name.to_owned()),
            Some((dir @ ("c2s" | "s2c"), text)) => {
                self.seq += 1;
                let mut ts = Vec::new();
                write_rfc3339(&mut ts, self.at_ms * 1000, SubSecond::Micros);
                let ts = String::from_utf8(ts).unwrap();
                let session = self.session.iter().map(|name| format!(",\"session\":\"{name}\""));
                let session: String = session.collect();
                let resumed = if resumed.is_some() { ",\"resumed\":true" } else { "" };
                let seq = self.seq;
                let line = format!(
                    "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"{ts}\",\"dir\":\"{dir}\",\"msg\":{text}{session}{resumed}}}\n"
                );
                self.tape.extend(line.bytes());
            }
            _ => return false,
        }
        true
    }
}

fn play(book: &str) -> String {
    let mut script = PlaybookTape::default();
    let out = Rc::new(RefCell::new(String::new()));
    let mut playing: Option<Player> = None;
    let (mut ms, mut seats) = (0, BTreeSet::new());
    for line in book.lines().filter(|line| !line.starts_with("<<")) {
        writeln!(out.borrow_mut(), "{line}").unwrap();
        if playing.is_none() && script.take(line) {
            continue;
        }
        let Some(event) = line.strip_prefix(">> ") else { continue };
        let player = playing.get_or_insert_with(|| {
            let notices = Rc::clone(&out);
            let notice = move |notice: ReplayNotice<'_>| tell(&mut notices.borrow_mut(), &notice);
            player(script.tape.clone(), options(&script.options), Box::new(notice))
        });
        let (word, rest) = event.split_once(' ').unwrap();
        if word == "wait" {
            ms += rest.parse::<u64>().unwrap();
            continue;
        }
        let at = Timestamp { wall_us: 0, mono_ns: ms * 1_000_000 };
        let seat = ActorSessionId(word.parse().unwrap());
        let mut act = |act: ActorAction<'_>| {
            let line = match act {
                ActorAction::Say(parts)
                | ActorAction::Tell { parts, .. }
                | ActorAction::Play { parts, .. } => {
                    format!("say {}", String::from_utf8_lossy(&parts.concat()))
                }
                ActorAction::Part(id) => format!("part {}", String::from_utf8_lossy(id)),
                ActorAction::Ask(parts) => {
                    format!("ask {}", String::from_utf8_lossy(&parts.concat()))
                }
                ActorAction::Raw { .. } | ActorAction::Run { .. } | ActorAction::Leave { .. } => {
                    unreachable!()
                }
                ActorAction::Stop => "stop".to_owned(),
            };
            writeln!(out.borrow_mut(), "<< {} {line}", seat.0).unwrap();
        };
        if seats.insert(seat) {
            player.handle(
                at,
                seat,
                ActorEvent::Taken { shared: rest == "shared", streams: false },
                &mut act,
            );
        }
        let cue = match rest.split_once(' ').unwrap_or((rest, "")) {
            ("shared", _) => continue,
            ("left", _) => ActorEvent::Left,
            ("due", _) => ActorEvent::Due,
            ("behind", text) => ActorEvent::Behind(text.as_bytes()),
            ("behind-gone", why) => ActorEvent::BehindGone { reason: why },
            _ => ActorEvent::Said(rest.as_bytes()),
        };
        player.handle(at, seat, cue, &mut act);
        if let Some(due) = player.next_wakeup(seat) {
            let busy = if player.is_busy(seat) { ", busy" } else { "" };
            writeln!(out.borrow_mut(), "<< {} due at {} ms{busy}", seat.0, due / 1_000_000)
                .unwrap();
        }
    }
    if let Some(player) = &mut playing {
        let summary = player.summary();
        let mut out = out.borrow_mut();
        write!(out, "<< matched {}, unmatched {}", summary.matched, summary.unmatched).unwrap();
        writeln!(out, ", unused {}", summary.unused).unwrap();
    }
    out.take()
}

fn tell(out: &mut String, notice: &ReplayNotice<'_>) {
    match notice {
        // Nearly all requests match, and the answer shows which one did.
        ReplayNotice::Matched { .. } => Ok(()),
        ReplayNotice::Debug(output_text) => writeln!(out, "<< debug: {output_text}"),
        ReplayNotice::Warn(output_text) => writeln!(out, "<< warning: {output_text}"),
        ReplayNotice::Differs { number, .. } => writeln!(out, "<< differs from {number}"),
        ReplayNotice::Replied(reply) => {
            let (method, output_text) = (&reply.method, reply.change.as_str());
            let fails = if reply.fails { ", which fails" } else { "" };
            writeln!(out, "<< replied: {method} of {}: {output_text}{fails}", reply.number)
        }
        ReplayNotice::Diverged(divergence) => {
            let nearest: Vec<String> = divergence
                .nearest
                .iter()
                .map(|near| format!("{} ({:.2})", near.number, near.score))
                .collect();
            let name = divergence.name.as_deref().unwrap_or("-");
            let (method, reason) = (&divergence.method, divergence.reason);
            let next = divergence.next.as_ref().map(|near| format!(", next {}", near.number));
            let (next, nearest) = (next.unwrap_or_default(), nearest.join(", "));
            writeln!(out, "<< diverged: {method} {name}, {reason:?}{next}, nearest {nearest}")
        }
    }
    .unwrap();
}
