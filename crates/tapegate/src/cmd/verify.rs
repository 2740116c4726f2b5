//! `tapegate verify`: reports what has changed about a server since a tape was recorded.

mod args;
mod session;

use std::io::Write;

use tapegate_core::signature::Signer;
use tapegate_core::tape::Mask;
use tapegate_core::verifier::VerifierOptions;

pub(crate) use args::Args;

use crate::exit::{Exit, Failure};
use crate::verbosity;
use crate::{report_files, tape_loader};

pub(crate) fn run(args: Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.tape.entries.apply();
    let upstream = args.upstream.required("to verify")?.link(args.upstream.headers());
    report_files::check_report_paths(&args.report, &args.recording, "tape")?;
    let signer = Signer::default();
    let tape = tape_loader::load(&args.recording, &signer, verbosity::is_quiet())?;
    let redactor = tape_loader::redactor(
        &tape.index,
        args.tape.redact_key_file.clone(),
        verbosity::is_quiet(),
    )?;
    upstream.check_reachable().map_err(|error| Failure::new(session::exit_of(&error), error))?;
    let options = VerifierOptions {
        calls: args.calls.into(),
        ignored: args.ignore.clone(),
        shape_only: args.schema_only,
        timeout: args.timeout,
        mask: redactor.map(|redactor| Box::new(redactor) as Box<dyn Mask>),
        signer,
    };
    session::run(&args, &upstream, tape, options, out)
}
