//! The messages that must be known before a section of a tape can be evaluated on its own.
//!
//! The caller and drifted definitions are known from a few messages. They are found first, so that
//! the sections of a tape can be evaluated in parallel.

use std::io;
use std::path::Path;

use tapegate_core::side::Side;
use tapegate_core::tape::{TapeLine, read_section};
use tapegate_policy::backtest::{HistoryScope, TapeMessage, affects_later_decisions};
use tapegate_store::sections::{self, TapeSection};

use super::backtest_run::timestamp_us;

/// How many messages every section may need first. A tape with more is evaluated in order, which is
/// less work then.
const HEARD_MAX: usize = 64;

/// The context messages, in order.
#[derive(Debug, Default)]
pub(super) struct TapePreamble(Vec<PreambleEvent>);

/// A context message or the start of a recording.
#[derive(Debug)]
struct PreambleEvent {
    /// Its offset on the tape.
    offset: u64,
    /// The message; `None` where another recording begins.
    message: Option<PreambleMessage>,
}

/// A message that is kept.
#[derive(Debug)]
struct PreambleMessage {
    wall_us: i64,
    from: Side,
    session: Option<Vec<u8>>,
    bytes: Vec<u8>,
}

impl TapePreamble {
    /// The context of a tape; `None` if its messages must be evaluated in order.
    pub(super) fn of(path: &Path, memory: HistoryScope) -> io::Result<Option<Self>> {
        match memory {
            HistoryScope::None => return Ok(Some(Self::default())),
            // A pipe can be read only once.
            HistoryScope::Scene if path.is_file() => {}
            HistoryScope::Scene | HistoryScope::All => return Ok(None),
        }
        let mut preamble = Self::default();
        let mut heard = 0;
        // An error is the only way to stop the reading early; this kind occurs nowhere else.
        let enough = || io::Error::from(io::ErrorKind::QuotaExceeded);
        let take = |mut events: Vec<PreambleEvent>| -> io::Result<()> {
            heard += events.len();
            preamble.0.append(&mut events);
            if heard <= HEARD_MAX { Ok(()) } else { Err(enough()) }
        };
        match sections::read(path, Box::new(|_, _| ()), collect_context, take) {
            Ok(_) => Ok(Some(preamble)),
            Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The context before an offset; `None` items mark the start of another recording.
    pub(super) fn events_before(
        &self,
        offset: u64,
    ) -> impl Iterator<Item = Option<TapeMessage<'_>>> {
        let before = self.0.iter().take_while(move |event| event.offset < offset);
        before.map(|event| {
            event.message.as_ref().map(|kept| TapeMessage {
                wall_us: kept.wall_us,
                from: kept.from,
                session: kept.session.as_deref(),
                bytes: &kept.bytes,
                terminated: true,
            })
        })
    }
}

/// The context messages in a section.
fn collect_context(section: TapeSection) -> Vec<PreambleEvent> {
    let mut events = Vec::new();
    read_section(&section.text, section.last, &mut |next| {
        let Ok(numbered) = next else { return };
        let offset = section.offset + numbered.offset;
        match &numbered.entry {
            TapeLine::Header(_) => events.push(PreambleEvent { offset, message: None }),
            TapeLine::Message(message) if !message.ours => {
                let bytes = message.raw.as_ref().map_or(&*message.msg, |raw| raw.as_bytes());
                if affects_later_decisions(message.from, bytes) {
                    let preamble_message = PreambleMessage {
                        wall_us: timestamp_us(message.ts),
                        from: message.from,
                        session: message.session.as_deref().map(<[u8]>::to_vec),
                        bytes: bytes.to_vec(),
                    };
                    events.push(PreambleEvent { offset, message: Some(preamble_message) });
                }
            }
            _ => {}
        }
    });
    events
}
