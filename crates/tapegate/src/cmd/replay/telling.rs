//! What a replay prints while it runs.

use tapegate_core::player::{Mode, Notice};
use tapegate_core::signature::Signer;

use super::args::{Args, OnUnmatchedWord};
use crate::talk;
use crate::verbosity;
use crate::views::divergence;
use crate::views::palette::Palette;
use crate::views::replied;
use crate::views::visible;

/// How many warnings are printed in full.
const WARNINGS_MAX: u32 = 200;

/// How many characters of a message are printed.
const WORDS_MAX: usize = 1000;

/// Prints notices of the player, as far as the verbosity asks for them.
pub(super) struct Teller {
    mode: Mode,
    signer: Signer,
    palette: Palette,
    verbose: bool,
    quiet: bool,
    /// Whether a request that is not on the tape ends the replay.
    fatal: bool,
    warnings: u32,
}

impl Teller {
    pub(super) fn new(args: &Args) -> Self {
        Self {
            mode: args.mode(),
            signer: Signer::new(args.ignore.clone()),
            palette: talk::palette(),
            verbose: verbosity::is_verbose(),
            quiet: verbosity::is_quiet(),
            fatal: args.on_unmatched == OnUnmatchedWord::Error,
            warnings: 0,
        }
    }

    pub(super) fn tell(&mut self, notice: &Notice<'_>) {
        match notice {
            // These texts may come from clients, servers and tapes, so escape them.
            Notice::Debug(words) if self.verbose => {
                talk::say(&format!("debug: {}", visible::inline(words, WORDS_MAX)));
            }
            Notice::Matched { number, asked, how } if self.verbose => {
                let what = divergence::subject_of(asked);
                talk::say(&format!("debug: {what} is answered as #{number}, {how}"));
            }
            Notice::Debug(_) | Notice::Matched { .. } => {}
            Notice::Warn(words) => self.warn(&visible::inline(words, WORDS_MAX)),
            Notice::Differs { number, recorded, asked } => {
                let words = self.divergence().differs(*number, recorded, asked);
                self.warn(words.trim_end());
            }
            Notice::Diverged(divergence) => {
                let (teller, text) = (self.divergence(), self.divergence().text(divergence));
                if self.fatal {
                    talk::error(text.trim_end(), Some(&teller.hint(divergence)));
                } else {
                    self.warn(text.trim_end());
                }
            }
            Notice::Replied(reply) => {
                let text = replied::text(reply, self.palette);
                if reply.fails && self.fatal {
                    talk::error(text.trim_end(), Some(replied::HINT));
                } else {
                    self.warn(text.trim_end());
                }
            }
        }
    }

    /// The formatter for a single divergence.
    pub(super) fn divergence(&self) -> divergence::Teller<'_> {
        let Self { mode, signer, palette, .. } = self;
        divergence::Teller { mode: *mode, signer, palette: *palette }
    }

    fn warn(&mut self, words: &str) {
        if self.quiet {
            return;
        }
        self.warnings += 1;
        match self.warnings.cmp(&WARNINGS_MAX) {
            std::cmp::Ordering::Less => talk::warn(words),
            std::cmp::Ordering::Equal => {
                talk::warn(words);
                talk::warn("further warnings of this kind are omitted");
            }
            std::cmp::Ordering::Greater => {}
        }
    }
}
