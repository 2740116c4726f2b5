//! What to play and how, resolved from the command line.

use std::path::Path;

use tapegate_core::player::PlayerOptions;
use tapegate_core::signature::Signer;
use tapegate_core::tape::Mask;
use tapegate_core::tape::index::Index;
use tapegate_policy::redact::Redactor;
use tapegate_store::loaded_tape::LoadedTape;

use super::args::{Args, OnUnmatchedArg, TapeSession};
use crate::exit::{Exit, Failure};
use crate::report_files;
use crate::tape_loader::{load, redactor};
use crate::terminal_output;
use crate::upstream::UpstreamTarget;
use crate::verbosity;

/// What to play, and how.
pub(super) struct ReplayPlan {
    pub(super) args: Args,
    pub(super) tape: LoadedTape,
    /// The redactor that the tape was recorded with.
    pub(super) redactor: Option<Redactor>,
    /// The server that unmatched requests are passed to.
    pub(super) upstream: Option<UpstreamTarget>,
    signer: Signer,
}

impl ReplayPlan {
    /// Loads the tape, and rejects arguments that make no sense before anything is started.
    pub(super) fn new(args: Args) -> anyhow::Result<Self> {
        let upstream = args.upstream.optional()?;
        let passthrough = args.on_unmatched == OnUnmatchedArg::Passthrough;
        if passthrough && upstream.is_none() {
            return Err(Failure::new(Exit::Usage, "--on-unmatched passthrough needs a server")
                .hint("name one: `-- CMD ARGS`, `--upstream CMD` or `--upstream-http URL`")
                .into());
        }
        if !passthrough && upstream.is_some() {
            return Err(Failure::new(
                Exit::Usage,
                "a server is named, but nothing is passed through to it",
            )
            .hint("add --on-unmatched passthrough")
            .into());
        }
        if args.recording == Path::new("-") && args.http.is_none() {
            return Err(Failure::new(Exit::Usage, "standard input belongs to the client")
                .hint("name a file, or serve clients with --http")
                .into());
        }
        report_files::check_report_paths(&args.report, &args.recording, "tape")?;
        let signer = Signer::new(args.ignore.clone());
        let mut tape = load(&args.recording, &signer, verbosity::is_quiet())?;
        // Before the player sees the index, so that requests of other sessions do not count as
        // unused.
        choose_session(&mut tape.index, &args)?;
        let redactor =
            redactor(&tape.index, args.tape.redact_key_file.clone(), verbosity::is_quiet())?;
        Ok(Self { args, tape, redactor, upstream, signer })
    }

    pub(super) fn options(&self) -> PlayerOptions {
        let args = &self.args;
        PlayerOptions {
            mode: args.mode(),
            pace: args.timing,
            on_unmatched: args.on_unmatched.into(),
            on_exhausted: args.on_exhausted.into(),
            scope: args.state_scope.into(),
            server_messages: args.server_messages.into(),
            strict_params: args.strict_params,
            strict_reads: args.strict_reads,
            strict_replies: args.strict_replies,
            mask: self.redactor.clone().map(|redactor| Box::new(redactor) as Box<dyn Mask>),
            signer: self.signer.clone(),
        }
    }
}

/// Reduces the index to the session of the tape that is to be played.
fn choose_session(index: &mut Index, args: &Args) -> Result<(), Failure> {
    let count = index.sessions().len();
    match args.session {
        TapeSession::All => {
            let nonempty_count = index.sessions().iter().filter(|asks| !asks.is_empty()).count();
            if nonempty_count > 1 && args.http.is_none() && !verbosity::is_quiet() {
                terminal_output::info(&format!(
                    "the tape has {count} sessions; playing the first; choose another with \
                     --session N or --session last"
                ));
            }
        }
        TapeSession::Last => index.retain_session(index.last_session()),
        TapeSession::Number(number) if number <= count => index.retain_session(number - 1),
        TapeSession::Number(number) => {
            let message = format!("the tape has no session {number}, only {count}");
            return Err(
                Failure::new(Exit::Usage, message).hint("`--session last` plays the last one")
            );
        }
    }
    Ok(())
}
