//! `tapegate verify`: reports what has changed about a server since a tape was recorded.

mod args;
mod session;

use std::io::Write;

use tapegate_core::signature::Signer;
use tapegate_core::tape::Mask;
use tapegate_core::verifier::Options;

pub(crate) use args::Args;

use crate::exit::{Exit, Failure};
use crate::verbosity;
use crate::{loading, reporting};

pub(crate) fn run(args: Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    let upstream = args.upstream.wanted("to verify")?.link(args.upstream.headers());
    reporting::look_for_places(&args.report, &args.recording, "tape")?;
    let signer = Signer::default();
    let tape = loading::load(&args.recording, &signer, verbosity::is_quiet())?;
    let redactor =
        loading::redactor(&tape.index, args.redact_key_file.clone(), verbosity::is_quiet())?;
    upstream.look_for().map_err(|error| Failure::new(session::exit_of(&error), error))?;
    let options = Options {
        calls: args.calls.into(),
        ignored: args.ignore.clone(),
        shape_only: args.schema_only,
        timeout: args.timeout,
        mask: redactor.map(|redactor| Box::new(redactor) as Box<dyn Mask>),
        signer,
    };
    session::run(&args, &upstream, tape, options, out)
}
