//! What is to be played, and how.

use std::path::Path;

use tapegate_core::player::Options;
use tapegate_core::signature::Signer;
use tapegate_core::tape::Mask;
use tapegate_policy::redact::Redactor;
use tapegate_store::loaded::Loaded;

use super::args::{Args, OnUnmatchedWord};
use crate::exit::{Exit, Failure};
use crate::loading::{load, redactor};
use crate::reporting;
use crate::upstream::Upstream;

/// What is to be played, and how.
pub(super) struct Plan {
    pub(super) args: Args,
    pub(super) tape: Loaded,
    /// What the tape was redacted with.
    pub(super) redactor: Option<Redactor>,
    /// The server behind the tape.
    pub(super) upstream: Option<Upstream>,
    signer: Signer,
}

impl Plan {
    /// Loads the tape. What makes no sense is an error before anything is started.
    pub(super) fn new(args: Args) -> anyhow::Result<Self> {
        let upstream = args.upstream.named()?;
        let passthrough = args.on_unmatched == OnUnmatchedWord::Passthrough;
        if passthrough && upstream.is_none() {
            return Err(Failure::new(Exit::Usage, "--on-unmatched passthrough needs a server")
                .hint("name one: `-- CMD ARGS`, `--upstream CMD` or `--upstream-http URL`")
                .into());
        }
        if !passthrough && upstream.is_some() {
            return Err(Failure::new(Exit::Usage, "a server is asked only what is passed through")
                .hint("add --on-unmatched passthrough")
                .into());
        }
        if args.recording == Path::new("-") && args.http.is_none() {
            return Err(Failure::new(Exit::Usage, "standard input is the client's")
                .hint("name a file, or serve clients by --http")
                .into());
        }
        reporting::look_for_places(&args.report, &args.recording, "tape")?;
        let signer = Signer::new(args.ignore.clone());
        let tape = load(&args.recording, &signer, args.quiet)?;
        let redactor = redactor(&tape.index, args.redact_key_file.clone(), args.quiet)?;
        Ok(Self { args, tape, redactor, upstream, signer })
    }

    pub(super) fn options(&self) -> Options {
        let args = &self.args;
        Options {
            mode: args.mode(),
            pace: args.timing,
            on_unmatched: args.on_unmatched.into(),
            on_exhausted: args.on_exhausted.into(),
            scope: args.state_scope.into(),
            server_messages: args.server_messages.into(),
            strict_params: args.strict_params,
            strict_reads: args.strict_reads,
            mask: self.redactor.clone().map(|redactor| Box::new(redactor) as Box<dyn Mask>),
            signer: self.signer.clone(),
        }
    }
}
