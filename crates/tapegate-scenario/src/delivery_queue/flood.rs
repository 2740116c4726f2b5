//! A message sent many times.

use tapegate_core::actor::ActorAction;
use tapegate_core::time::Timestamp;

const SECOND_NS: u64 = 1_000_000_000;

/// A message sent many times.
#[derive(Debug)]
pub(super) struct MessageFlood {
    pub(super) message: Box<[u8]>,
    /// The request that caused it.
    pub(super) about: Option<Box<[u8]>>,
    pub(super) from_ns: u64,
    /// How often per second; if `None`, all at once.
    pub(super) per_second: Option<u32>,
    /// How often in total; if `None`, without end.
    pub(super) times: Option<u64>,
    /// How often it was sent or skipped.
    pub(super) next: u64,
    /// Whether it is sent as raw bytes, so that no bridge parses it.
    pub(super) raw: bool,
}

impl MessageFlood {
    /// When the next one is due.
    pub(super) fn due_ns(&self) -> u64 {
        let Some(rate) = self.per_second else { return self.from_ns };
        // Computed from the start each time, so that rounding does not add up.
        let after = u128::from(self.next) * u128::from(SECOND_NS) / u128::from(rate.max(1));
        self.from_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX))
    }

    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.message.len()
    }

    /// Sends the copies that are due and fit into `budget`; returns whether the flood is over.
    pub(super) fn send(
        &mut self,
        at: Timestamp,
        budget: &mut usize,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> bool {
        // Before sending, or a client that pauses would get all missed copies in one burst.
        self.drop_backlog(at);
        while !self.is_finished() && *budget > 0 && self.due_ns() <= at.mono_ns {
            match &self.about {
                _ if self.raw => {
                    act(ActorAction::Raw { about: None, bytes: &self.message, ends: true })
                }
                Some(about) => act(ActorAction::Tell { about, parts: &[&self.message] }),
                None => act(ActorAction::Say(&[&self.message])),
            }
            // With its line end.
            *budget = budget.saturating_sub(self.message.len() + 1);
            self.next += 1;
        }
        self.is_finished()
    }

    fn is_finished(&self) -> bool {
        self.times.is_some_and(|times| self.next >= times)
    }

    /// Skips copies more than a second late, so that a slow reader builds up no larger backlog.
    fn drop_backlog(&mut self, at: Timestamp) {
        let Some(rate) = self.per_second else { return };
        let before = at.mono_ns.saturating_sub(self.from_ns).saturating_sub(SECOND_NS);
        let owed = u128::from(before) * u128::from(rate) / u128::from(SECOND_NS);
        self.next = self.next.max(u64::try_from(owed).unwrap_or(u64::MAX));
    }
}

/// How many copies fit into a duration at a rate.
pub(super) fn times(per_second: u32, duration_ns: u64) -> u64 {
    let times = u128::from(duration_ns) * u128::from(per_second);
    u64::try_from(times.div_ceil(u128::from(SECOND_NS))).unwrap_or(u64::MAX)
}
