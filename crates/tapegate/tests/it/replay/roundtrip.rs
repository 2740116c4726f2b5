//! Recording a replay gives the same tape, up to ids, times and tokens; and so does a replay of
//! that.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::Value;
use tapegate_core::side::Side;
use tapegate_core::signature::Signer;
use tapegate_core::tape::TapeReader;
use tapegate_core::tape::index::{Index, Indexer, NONE};

use super::{MODES, ask, overwatch, tape};
use crate::support::{SeededRandom, kept, record};

const ROUNDS: usize = 8;

/// A conversation in the order it happened.
type RecordedConversation = Vec<(Side, String)>;

/// Generates a conversation with many concurrent requests of both sides, some of them identical.
#[derive(Default)]
struct ConversationBuilder {
    said: RecordedConversation,
    /// The client's unanswered requests, and whether they want progress.
    open: VecDeque<(u32, bool)>,
    /// The server's unanswered requests.
    asked: VecDeque<u32>,
    next: u32,
}

impl ConversationBuilder {
    fn make_up(dice: &mut SeededRandom) -> RecordedConversation {
        let mut talk = Self { next: 1, ..Self::default() };
        talk.client(r#""id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"roots":{}}}"#);
        talk.server(r#""id":0,"result":{"mark":0}"#);
        for mark in 1..60 {
            match dice.below(9) {
                0 | 1 => talk.ask(dice),
                2 => talk.client(r#""method":"notifications/roots/list_changed""#),
                3..=5 => talk.answer(mark, dice),
                6 => talk.tell(mark, dice),
                7 => talk.ask_back(mark),
                _ => talk.answer_back(dice),
            }
        }
        // Nothing is left open: a request that was never answered cannot be played.
        while !talk.open.is_empty() {
            talk.answer(100, dice);
        }
        talk.said
    }

    fn client(&mut self, rest: &str) {
        self.said.push((Side::Client, format!(r#"{{"jsonrpc":"2.0",{rest}}}"#)));
    }

    fn server(&mut self, rest: &str) {
        self.said.push((Side::Server, format!(r#"{{"jsonrpc":"2.0",{rest}}}"#)));
    }

    fn ask(&mut self, dice: &mut SeededRandom) {
        let (id, tool, token, n) = (self.next, dice.below(4), dice.below(2) == 0, dice.below(3));
        let meta = format!(r#","_meta":{{"progressToken":{id}}}"#);
        let meta = if token { &*meta } else { "" };
        self.open.push_back((id, token));
        self.next += 1;
        self.client(&format!(
            r#""id":{id},"method":"tools/call","params":{{"name":"t{tool}","arguments":{{"n":{n}}}{meta}}}"#
        ));
    }

    fn answer(&mut self, mark: u32, dice: &mut SeededRandom) {
        let place = dice.below(self.open.len().max(1) as u64) as usize;
        let Some((id, _)) = self.open.remove(place) else { return };
        self.server(&match mark % 7 {
            0 => format!(r#""id":{id},"error":{{"code":-1,"message":"{mark}"}}"#),
            _ => format!(r#""id":{id},"result":{{"mark":{mark}}}"#),
        });
    }

    fn tell(&mut self, mark: u32, dice: &mut SeededRandom) {
        let place = dice.below(self.open.len().max(1) as u64) as usize;
        self.server(&match self.open.get(place) {
            Some((id, true)) => format!(
                r#""method":"notifications/progress","params":{{"progressToken":{id},"progress":{mark}}}"#
            ),
            _ => format!(r#""method":"notifications/message","params":{{"mark":{mark}}}"#),
        });
    }

    fn ask_back(&mut self, mark: u32) {
        self.asked.push_back(mark);
        self.server(&format!(
            r#""id":{mark},"method":"sampling/createMessage","params":{{"mark":{mark}}}"#
        ));
    }

    fn answer_back(&mut self, dice: &mut SeededRandom) {
        let place = dice.below(self.asked.len().max(1) as u64) as usize;
        let Some(id) = self.asked.remove(place) else { return };
        self.client(&format!(r#""id":{id},"result":{{"reply":{id}}}"#));
    }
}

fn script(conversation: &RecordedConversation) -> String {
    let sign = |from: Side| if from == Side::Client { '>' } else { '<' };
    conversation.iter().map(|(from, text)| format!("{} {text}\n", sign(*from))).collect()
}

/// Plays the client of a conversation, with other ids and tokens, against its tape, and records
/// that.
fn replayed(
    said: &RecordedConversation,
    tape: &Path,
    mode: &str,
) -> (RecordedConversation, Vec<u8>) {
    let command = format!(
        "exec {} replay -q -r {} --match-mode {mode}",
        env!("CARGO_BIN_EXE_tapegate"),
        tape.display()
    );
    let mut run = record(&[]).sh(&command).start();
    let by_client = said.iter().filter(|(from, _)| *from == Side::Client);
    for (number, (_, text)) in by_client.filter(|(_, text)| !is_ping(text)).enumerate() {
        let text = match text.contains("\"method\"") {
            true => text.replace("\"id\":", "\"id\":1000").replace("Token\":", "Token\":77"),
            false => text.clone(),
        };
        run.send(format!("{text}\n{}\n", ask(format!("\"ping-{number}\""), "ping")).as_bytes());
        // Everything sent to it arrives before this.
        run.gets(&format!("\"ping-{number}\""));
    }
    let end = run.end_of_input().exits(0).checks();
    let happened = kept(end.run.tape_path()).into_iter().map(|kept| (kept.from, kept.text()));
    (happened.collect(), std::fs::read(end.run.tape_path()).unwrap())
}

fn is_ping(text: &str) -> bool {
    text.contains("\"method\":\"ping\"")
}

fn index(tape: &[u8]) -> Index {
    let mut indexer = Indexer::new(Signer::default());
    let mut reader = TapeReader::new(tape);
    while let Some(line) = reader.next() {
        indexer.push(&line.unwrap());
    }
    indexer.finish().0
}

/// The messages of both sides, scene by scene, without ids and tokens.
fn scenes(said: &RecordedConversation, tape: &[u8]) -> Vec<Vec<Value>> {
    let index = index(tape);
    let plain = |slot: u32| {
        let mut message: Value = serde_json::from_str(&said[slot as usize].1).unwrap();
        for place in ["/id", "/params/progressToken", "/params/_meta/progressToken"] {
            message.pointer_mut(place).into_iter().for_each(|value| *value = Value::Null);
        }
        message
    };
    let begins = |slot: &u32| {
        let (from, text) = &said[*slot as usize];
        *from == Side::Client && text.contains("\"method\"") && !is_ping(text)
    };
    let firsts = (0..said.len() as u32).filter(begins);
    let scene = |first: u32| {
        let next = |slot: &u32| Some(index.entry(*slot).next).filter(|next| *next != NONE);
        std::iter::successors(Some(first), next).map(plain).collect()
    };
    firsts.map(scene).collect()
}

#[test]
fn a_recorded_replay_is_the_tape_again() {
    let mut dice = SeededRandom::roll();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.jsonl");
    for round in 0..ROUNDS {
        let old = ConversationBuilder::make_up(&mut dice);
        let text = if round % 2 == 0 { tape(&script(&old)) } else { overwatch(&script(&old)) };
        std::fs::write(&path, &text).unwrap();
        let wanted = scenes(&old, text.as_bytes());
        for mode in MODES {
            let (new, of_new) = replayed(&old, &path, mode);
            assert_eq!(scenes(&new, &of_new), wanted, "{mode}\n{}", script(&old));
            let copy = folder.path().join("new.jsonl");
            std::fs::write(&copy, &of_new).unwrap();
            let (again, of_again) = replayed(&new, &copy, mode);
            assert_eq!(scenes(&again, &of_again), wanted, "{mode} again\n{}", script(&old));
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}
