//! An actor for tests that follows textual commands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tapegate_core::actor::{Act, Actor, Cue, Errand, Helper, Seat};
use tapegate_core::time::At;

/// All events of an actor, one line each.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// Executes commands: `say WORD`, `huge BYTES`, `later MS WORD`, `stop`, `ask WORD`, `piece WORD`,
/// `end WORD`, `fill PIECES`, `hoard BYTES`, `run PROGRAM…`, `post URL`, `leave`, `break`. Anything
/// else is echoed.
#[derive(Default)]
pub(crate) struct Parrot {
    log: Log,
    heard: Arc<AtomicUsize>,
    later: BTreeMap<(Seat, u64, usize), String>,
    count: usize,
    /// How many pieces of a line are still to be sent.
    pieces: usize,
    /// How large a backlog it reports.
    hoard: usize,
}

impl Parrot {
    /// A parrot that logs its events and counts the clients' lines.
    pub(crate) fn new(log: &Log, heard: &Arc<AtomicUsize>) -> Rc<RefCell<Self>> {
        let (log, heard) = (Arc::clone(log), Arc::clone(heard));
        Rc::new(RefCell::new(Self { log, heard, ..Self::default() }))
    }

    fn obey(&mut self, at: At, seat: Seat, line: &[u8], act: &mut dyn FnMut(Act<'_>)) {
        let text = std::str::from_utf8(line).unwrap();
        match text.split_once(' ').unwrap_or((text, "")) {
            ("say", word) => act(Act::Say(&[word.as_bytes()])),
            ("huge", count) => {
                let text = "x".repeat(count.parse().unwrap());
                act(Act::Say(&[b"\"", text.as_bytes(), b"\""]));
            }
            ("later", rest) => {
                let (ms, word) = rest.split_once(' ').unwrap();
                let due = at.mono_ns + ms.parse::<u64>().unwrap() * 1_000_000;
                self.count += 1;
                self.later.insert((seat, due, self.count), word.to_owned());
            }
            ("stop", _) => {
                act(Act::Say(&[b"stopping"]));
                act(Act::Stop);
            }
            ("ask", word) => act(Act::Ask(&[word.as_bytes()])),
            ("piece", word) => {
                act(Act::Raw { about: None, bytes: word.as_bytes(), ends: false });
            }
            ("end", word) => act(Act::Raw { about: None, bytes: word.as_bytes(), ends: true }),
            ("fill", count) => self.pieces = count.parse().unwrap(),
            ("hoard", count) => self.hoard = count.parse().unwrap(),
            ("run", words) => {
                let argv: Vec<String> = words.split(' ').map(str::to_owned).collect();
                let env = [("TAPEGATE_TEST".to_owned(), "yes".to_owned())];
                let by = Helper::Command { argv: &argv, env: &env, folder: Some("/") };
                act(Act::Run { ticket: 7, errand: errand(by) });
            }
            ("post", url) => {
                let headers = [("x-key".to_owned(), "s3cret".to_owned())];
                let by = Helper::Http { url, headers: &headers };
                act(Act::Run { ticket: 8, errand: errand(by) });
            }
            ("leave", _) => act(Act::Leave { about: None, abrupt: false }),
            ("break", _) => act(Act::Leave { about: None, abrupt: true }),
            _ => act(Act::Say(&[line])),
        }
    }

    fn next(&self, seat: Seat) -> Option<(Seat, u64, usize)> {
        self.later.range((seat, 0, 0)..).map(|(key, _)| *key).next().filter(|key| key.0 == seat)
    }
}

/// A handler call with enough time on any machine, unless it is known to take longer.
fn errand(by: Helper<'_>) -> Errand<'_> {
    let is_endless = matches!(by, Helper::Command { argv, .. } if argv[..] == ["sleep", "600"]);
    let timeout_ns = if is_endless { 500_000_000 } else { 60_000_000_000 };
    Errand { by, body: b"{\"asked\":1}", bytes_max: 1000, timeout_ns }
}

impl Actor for Parrot {
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>)) {
        let shown = match &cue {
            Cue::Said(line) => String::from_utf8_lossy(line).into_owned(),
            Cue::Behind(line) => format!("behind {}", String::from_utf8_lossy(line)),
            Cue::TooLarge { message, bytes_max } => {
                format!("too large {} {bytes_max}", message.bytes_total)
            }
            cue => format!("{cue:?}"),
        };
        if shown.len() < 100 {
            self.log.lock().unwrap().push(format!("{} {shown}", seat.0));
        }
        match cue {
            Cue::Said(line) => {
                self.heard.fetch_add(1, Ordering::Relaxed);
                self.obey(at, seat, line, act);
            }
            Cue::Behind(line) => act(Act::Say(&[b"behind ", line])),
            Cue::BehindGone { why } => act(Act::Say(&[b"gone: ", why.as_bytes()])),
            Cue::TooLarge { .. } => act(Act::Say(&[b"too large"])),
            Cue::Done { ticket, outcome } => {
                let (sort, words) = match outcome {
                    Ok(bytes) => ("ok", String::from_utf8_lossy(bytes).into_owned()),
                    Err(why) => ("failed", why.to_owned()),
                };
                act(Act::Say(&[format!("done {ticket} {sort} {words}").as_bytes()]));
            }
            Cue::Due if self.pieces > 0 => {
                self.pieces -= 1;
                let ends = self.pieces == 0;
                act(Act::Raw { about: None, bytes: &[b'x'; 32 * 1024], ends });
            }
            Cue::Due => {
                let key = self.next(seat).expect("something was due");
                assert!(key.1 <= at.mono_ns, "woken too early");
                let word = self.later.remove(&key).unwrap();
                act(Act::Say(&[word.as_bytes()]));
            }
            Cue::Empty => self.later.retain(|key, _| key.0 != seat),
            Cue::Taken { .. } | Cue::Left => {}
        }
    }

    fn due(&self, seat: Seat) -> Option<u64> {
        let filling = (self.pieces > 0).then_some(0);
        filling.or_else(|| self.next(seat).map(|key| key.1))
    }

    fn busy(&self, seat: Seat) -> bool {
        self.next(seat).is_some() || self.pieces > 0
    }

    fn backlog(&self, _: Seat) -> usize {
        self.hoard
    }
}
