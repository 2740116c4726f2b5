//! The messages that must be known before a section of a tape can be evaluated on its own.
//!
//! The caller and drifted definitions are known from a few messages. They are found first, so that
//! the sections of a tape can be evaluated in parallel.

use std::io;
use std::path::Path;

use tapegate_core::side::Side;
use tapegate_core::tape::{Line, read_section};
use tapegate_policy::backtest::{Memory, Said, sets_scene};
use tapegate_store::sections::{self, Section};

use super::walk::moment;

/// How many messages every section may need first. A tape with more is evaluated in order, which is
/// less work then.
const HEARD_MAX: usize = 64;

/// The context messages, in order.
#[derive(Debug, Default)]
pub(super) struct Scene(Vec<Event>);

/// A context message or the start of a recording.
#[derive(Debug)]
struct Event {
    /// Its offset on the tape.
    offset: u64,
    /// The message; `None` where another recording begins.
    said: Option<Kept>,
}

/// A message that is kept.
#[derive(Debug)]
struct Kept {
    wall_us: i64,
    from: Side,
    session: Option<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Scene {
    /// The context of a tape; `None` if its messages must be evaluated in order.
    pub(super) fn of(path: &Path, memory: Memory) -> io::Result<Option<Self>> {
        match memory {
            Memory::None => return Ok(Some(Self::default())),
            // A pipe can be read only once.
            Memory::Scene if path.is_file() => {}
            Memory::Scene | Memory::All => return Ok(None),
        }
        let mut scene = Self::default();
        let mut heard = 0;
        let enough = || io::Error::from(io::ErrorKind::QuotaExceeded);
        let take = |mut events: Vec<Event>| -> io::Result<()> {
            heard += events.len();
            scene.0.append(&mut events);
            if heard <= HEARD_MAX { Ok(()) } else { Err(enough()) }
        };
        match sections::read(path, Box::new(|_, _| ()), gather, take) {
            Ok(_) => Ok(Some(scene)),
            Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The context before an offset; `None` items mark the start of another recording.
    pub(super) fn before(&self, offset: u64) -> impl Iterator<Item = Option<Said<'_>>> {
        let before = self.0.iter().take_while(move |event| event.offset < offset);
        before.map(|event| {
            event.said.as_ref().map(|kept| Said {
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
fn gather(section: Section) -> Vec<Event> {
    let mut events = Vec::new();
    read_section(&section.text, section.last, &mut |next| {
        let Ok(numbered) = next else { return };
        let offset = section.offset + numbered.offset;
        match &numbered.entry {
            Line::Header(_) => events.push(Event { offset, said: None }),
            Line::Message(message) if !message.ours => {
                let bytes = message.raw.as_ref().map_or(&*message.msg, |raw| raw.as_bytes());
                if sets_scene(message.from, bytes) {
                    let said = Kept {
                        wall_us: moment(message.ts),
                        from: message.from,
                        session: message.session.as_deref().map(<[u8]>::to_vec),
                        bytes: bytes.to_vec(),
                    };
                    events.push(Event { offset, said: Some(said) });
                }
            }
            _ => {}
        }
    });
    events
}
