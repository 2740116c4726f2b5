//! Playing a tape reproduces it, except for ids, times, tokens and the order of concurrent
//! messages.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use proptest::prelude::*;
use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::frame::Frame;
use tapegate_core::json;
use tapegate_core::player::ReplayNotice;
use tapegate_core::side::Side;
use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeReader;
use tapegate_core::tape::index::{Index, Indexer, NONE};
use tapegate_core::time::Timestamp;

use crate::player::{options, player};

/// The next step of a generated conversation.
#[derive(Debug, Clone, Copy)]
enum ConversationStep {
    /// The client makes a request, with or without a progress token.
    Ask { tool: u8, token: bool },
    /// The client sends a notification.
    Tell,
    /// The server answers one of the open requests.
    Answer(u8),
    /// The server reports progress on one of the open requests.
    Progress(u8),
    /// The server sends a notification.
    Log,
    /// The server makes a request to the client.
    Sample,
    /// The client answers one of the server's open requests.
    Reply(u8),
}

fn moves() -> impl Strategy<Value = Vec<ConversationStep>> {
    let one = prop_oneof![
        (0u8..4, any::<bool>()).prop_map(|(tool, token)| ConversationStep::Ask { tool, token }),
        Just(ConversationStep::Tell),
        any::<u8>().prop_map(ConversationStep::Answer),
        any::<u8>().prop_map(ConversationStep::Answer),
        any::<u8>().prop_map(ConversationStep::Progress),
        Just(ConversationStep::Log),
        Just(ConversationStep::Sample),
        any::<u8>().prop_map(ConversationStep::Reply),
    ];
    proptest::collection::vec(one, 0..60)
}

/// A conversation in the order it happened.
type Conversation = Vec<(Side, String)>;

/// Carries out the moves. Every message of the server has a mark of its own, and ids repeat.
fn conversation(moves: &[ConversationStep]) -> Conversation {
    let mut out = vec![(
        Side::Client,
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"sampling":{}}}}"#
            .to_owned(),
    )];
    out.push((Side::Server, r#"{"jsonrpc":"2.0","id":0,"result":{"mark":0}}"#.to_owned()));
    let (mut open, mut asked): (VecDeque<(u32, bool)>, VecDeque<u32>) = Default::default();
    let (mut next, mut sampled) = (1, 1);
    for (mark, step) in moves.iter().enumerate() {
        let mark = mark + 1;
        let pick = |count: usize, place: u8| (count > 0).then(|| usize::from(place) % count);
        match *step {
            ConversationStep::Ask { tool, token } => {
                let meta = match token {
                    true => format!(",\"_meta\":{{\"progressToken\":{next}}}"),
                    false => String::new(),
                };
                out.push((Side::Client, format!("{{\"jsonrpc\":\"2.0\",\"id\":{next},\"method\":\"tools/call\",\"params\":{{\"name\":\"t{tool}\",\"n\":{next}{meta}}}}}")));
                open.push_back((next, token));
                next += 1;
            }
            ConversationStep::Tell => out.push((
                Side::Client,
                r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#.to_owned(),
            )),
            ConversationStep::Answer(place) => {
                let Some(place) = pick(open.len(), place) else { continue };
                let Some((id, _)) = open.remove(place) else { continue };
                out.push((Side::Server, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"mark\":{mark}}}}}")));
            }
            ConversationStep::Progress(place) => {
                let Some(place) = pick(open.len(), place) else { continue };
                let (id, token) = open[place];
                if token {
                    out.push((Side::Server, format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{id},\"progress\":1,\"mark\":{mark}}}}}")));
                }
            }
            ConversationStep::Log => out.push((Side::Server, format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"mark\":{mark}}}}}"))),
            ConversationStep::Sample => {
                out.push((Side::Server, format!("{{\"jsonrpc\":\"2.0\",\"id\":{sampled},\"method\":\"sampling/createMessage\",\"params\":{{\"mark\":{mark}}}}}")));
                asked.push_back(sampled);
                sampled += 1;
            }
            ConversationStep::Reply(place) => {
                let Some(place) = pick(asked.len(), place) else { continue };
                let Some(id) = asked.remove(place) else { continue };
                out.push((Side::Client, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"reply\":{id}}}}}")));
            }
        }
    }
    // Leave nothing open: a request without an answer cannot be played.
    let rest = open.iter().map(|(id, _)| {
        (
            Side::Server,
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"mark\":\"end\"}}}}"),
        )
    });
    out.extend(rest);
    out
}

fn tape(conversation: &Conversation) -> Vec<u8> {
    let mut out = Vec::new();
    for (place, (from, text)) in conversation.iter().enumerate() {
        let dir = if *from == Side::Client { "c2s" } else { "s2c" };
        let seq = place + 1;
        let line = format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"{dir}\",\"msg\":{text}}}\n"
        );
        out.extend(line.bytes());
    }
    out
}

/// Plays the client's side of a conversation against the tape, with ids and tokens of its own.
fn replay(recorded: &Conversation, mode: &str) -> (Conversation, u64) {
    let happened = Rc::new(RefCell::new(Conversation::new()));
    let trouble = Rc::new(RefCell::new(0));
    let count = Rc::clone(&trouble);
    let notice = move |notice: ReplayNotice<'_>| {
        if !matches!(notice, ReplayNotice::Debug(_) | ReplayNotice::Matched { .. }) {
            *count.borrow_mut() += 1;
        }
    };
    let mut player = player(tape(recorded), options(mode), Box::new(notice));
    let (at, seat) = (Timestamp::default(), ActorSessionId(1));
    let mut cue = |text: Option<&str>| {
        if let Some(text) = text {
            happened.borrow_mut().push((Side::Client, text.to_owned()));
        }
        let cue = text.map_or(ActorEvent::Taken { shared: false, streams: false }, |text| {
            ActorEvent::Said(text.as_bytes())
        });
        player.handle(at, seat, cue, &mut |act| {
            if let ActorAction::Say(parts)
            | ActorAction::Tell { parts, .. }
            | ActorAction::Play { parts, .. } = act
            {
                let text = String::from_utf8(parts.concat()).unwrap();
                happened.borrow_mut().push((Side::Server, text));
            }
        });
    };
    cue(None);
    for (_, text) in recorded.iter().filter(|(from, _)| *from == Side::Client) {
        // Requests get other ids and tokens; answers keep the id of their request.
        let request = Frame::read(text.as_bytes()).envelope().unwrap().method.is_some();
        let text = match request {
            true => text.replace("\"id\":", "\"id\":1000").replace("Token\":", "Token\":77"),
            false => text.clone(),
        };
        cue(Some(&text));
    }
    let trouble = *trouble.borrow();
    (happened.take(), trouble)
}

fn index(text: &[u8]) -> Index {
    let mut indexer = Indexer::new(Signer::default());
    let mut reader = TapeReader::new(text);
    while let Some(line) = reader.next() {
        indexer.push(&line.unwrap());
    }
    indexer.finish().0
}

/// The marks and answers that belong to each message of the client, by its position.
fn scenes(conversation: &Conversation) -> Vec<Vec<String>> {
    let index = index(&tape(conversation));
    let marks: HashMap<u32, String> = (0..index.len() as u32)
        .map(|slot| {
            let text = conversation[slot as usize].1.as_bytes();
            let part = ["params", "result"].iter().find_map(|part| json::member(text, part));
            let mark =
                part.and_then(|part| json::member(part, "mark").or(json::member(part, "reply")));
            (slot, String::from_utf8_lossy(mark.unwrap_or(b"-")).into_owned())
        })
        .collect();
    let is_anchor = |slot: &u32| {
        let (from, text) = &conversation[*slot as usize];
        let asks = Frame::read(text.as_bytes()).envelope().unwrap().method.is_some();
        *from == Side::Client && asks
    };
    let anchors = (0..index.len() as u32).filter(is_anchor);
    anchors
        .map(|anchor| {
            let mut scene = Vec::new();
            let mut slot = index.entry(anchor).next;
            while slot != NONE {
                scene.push(marks[&slot].clone());
                slot = index.entry(slot).next;
            }
            scene
        })
        .collect()
}

proptest! {
    #[test]
    fn playing_a_tape_gives_the_tape_again(moves in moves()) {
        let recorded = conversation(&moves);
        for mode in ["sequential", "by-request", "fuzzy"] {
            let (happened, trouble) = replay(&recorded, mode);
            prop_assert_eq!(trouble, 0, "{}", mode);
            prop_assert_eq!(scenes(&happened), scenes(&recorded), "{}", mode);
            // Once more, with the tape of the replay.
            let (again, _) = replay(&happened, mode);
            prop_assert_eq!(scenes(&again), scenes(&recorded), "{}", mode);
        }
    }
}
