//! What a replay prints while it runs.

use tapegate_core::player::{MatchMode, ReplayNotice};
use tapegate_core::signature::Signer;

use super::args::{Args, OnUnmatchedArg};
use crate::terminal_output;
use crate::verbosity;
use crate::views::client_reply;
use crate::views::divergence;
use crate::views::palette::Palette;
use crate::views::visible_text;

/// How many warnings are printed in full.
const WARNINGS_MAX: u32 = 200;

/// How many characters of a message are printed.
const WORDS_MAX: usize = 1000;

/// Prints notices of the player, as far as the verbosity asks for them.
pub(super) struct ReplayReporter {
    mode: MatchMode,
    signer: Signer,
    palette: Palette,
    verbose: bool,
    quiet: bool,
    /// Whether a request that is not on the tape ends the replay.
    fatal: bool,
    warnings: u32,
}

impl ReplayReporter {
    pub(super) fn new(args: &Args) -> Self {
        Self {
            mode: args.mode(),
            signer: Signer::new(args.ignore.clone()),
            palette: terminal_output::palette(),
            verbose: verbosity::is_verbose(),
            quiet: verbosity::is_quiet(),
            fatal: args.on_unmatched == OnUnmatchedArg::Error,
            warnings: 0,
        }
    }

    pub(super) fn report(&mut self, notice: &ReplayNotice<'_>) {
        match notice {
            // These texts may come from clients, servers and tapes, so escape them.
            ReplayNotice::Debug(message) if self.verbose => {
                terminal_output::info(&format!(
                    "debug: {}",
                    visible_text::inline(message, WORDS_MAX)
                ));
            }
            ReplayNotice::Matched { number, request: asked, how } if self.verbose => {
                let what = divergence::subject_of(asked);
                terminal_output::info(&format!("debug: {what} is answered as #{number}, {how}"));
            }
            ReplayNotice::Debug(_) | ReplayNotice::Matched { .. } => {}
            ReplayNotice::Warn(message) => self.warn(&visible_text::inline(message, WORDS_MAX)),
            ReplayNotice::Differs { number, recorded, request: asked } => {
                let message = self.divergence().differs(*number, recorded, asked);
                self.warn(message.trim_end());
            }
            ReplayNotice::Diverged(divergence) => {
                let (teller, text) = (self.divergence(), self.divergence().text(divergence));
                if self.fatal {
                    terminal_output::error(text.trim_end(), Some(&teller.hint(divergence)));
                } else {
                    self.warn(text.trim_end());
                }
            }
            ReplayNotice::Replied(reply) => {
                let text = client_reply::text(reply, self.palette);
                if reply.fails && self.fatal {
                    terminal_output::error(text.trim_end(), Some(client_reply::HINT));
                } else {
                    self.warn(text.trim_end());
                }
            }
        }
    }

    /// The formatter for a single divergence.
    pub(super) fn divergence(&self) -> divergence::DivergenceView<'_> {
        let Self { mode, signer, palette, .. } = self;
        divergence::DivergenceView { mode: *mode, signer, palette: *palette }
    }

    fn warn(&mut self, message: &str) {
        if self.quiet {
            return;
        }
        self.warnings += 1;
        // A client that loops would fill its own log with our warnings.
        match self.warnings.cmp(&WARNINGS_MAX) {
            std::cmp::Ordering::Less => terminal_output::warn(message),
            std::cmp::Ordering::Equal => {
                terminal_output::warn(message);
                terminal_output::warn("further warnings of this kind are omitted");
            }
            std::cmp::Ordering::Greater => {}
        }
    }
}
