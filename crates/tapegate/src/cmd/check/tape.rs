//! Checks a tape.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use tapegate_core::tape::{
    BATCH, LineProblem, NumberedLine, TapeAudit, TapeFinding, TapeLine, TapeSeverity, TapeTotals,
};
use tapegate_store::tape_source::TapeSource;
use tapegate_store::tape_writer;

use super::Args;
use super::report::{CheckReport, FileSummary, FindingContext, ReportFinding};
use crate::terminal_output;
use crate::views::{plural, visible_text};

/// After this many invalid lines without a valid entry, the file is taken not to be a tape.
const NO_TAPE_LINES: u64 = 20;
/// The check stops after this many faults.
const FAULTS_MAX: u64 = 10_000;

/// Prints the findings for a tape; true if the check failed.
pub(super) fn check(
    args: &Args,
    path: &Path,
    stdin: Option<Box<dyn Read>>,
    out: &mut dyn Write,
) -> anyhow::Result<bool> {
    let name = visible_text::path(path);
    let is_file = stdin.is_none();
    let source = match stdin {
        Some(bytes) => TapeSource::stream(bytes),
        None => TapeSource::open(path, terminal_output::progress(path)),
    };
    let (mut findings, mut totals) =
        audit(source.with_context(|| format!("cannot read `{name}`"))?);
    // Standard input has no file beside it.
    if is_file {
        check_anomaly_file(path, &mut findings, &mut totals)?;
    }
    let main = path.to_string_lossy();
    let found = findings.iter().map(|TapeFinding { line, severity, message }| ReportFinding {
        file: None,
        line: *line,
        severity: *severity,
        message,
        detail: FindingContext::Plain,
    });
    let report = CheckReport { kind: "tape", main: &main, findings: found.collect() };
    report.print(args, Some(summarize(totals)), out)?;
    Ok(report.is_bad(args.strict))
}

fn audit(mut source: TapeSource) -> (Vec<TapeFinding>, TapeTotals) {
    let mut audit = TapeAudit::default();
    let (mut good, mut bad) = (0u64, 0u64);
    let mut given_up = None;
    while let Some(next) = source.reader.next() {
        audit.line(&next);
        match next {
            Ok(_) => good += 1,
            // A disk that fails would fail again at the next line.
            Err(LineProblem::Io { .. }) => break,
            Err(_) => bad += 1,
        }
        // A large file of another kind would list a fault for each of its lines.
        given_up = match (good, bad) {
            (0, NO_TAPE_LINES) => Some("this is not a tape: none of its first lines is an entry"),
            (_, FAULTS_MAX) => Some("too many faults to list"),
            _ => continue,
        };
        break;
    }
    let (mut findings, totals) = audit.finish();
    if good == 0 && bad == 0 {
        // A recorder may leave an empty file, but no command can play it.
        findings.iter_mut().for_each(|finding| finding.severity = TapeSeverity::Error);
    }
    findings.extend(given_up.map(|message| TapeFinding {
        line: 0,
        severity: TapeSeverity::Error,
        message: message.to_owned(),
    }));
    findings.extend(source.findings());
    (findings, totals)
}

/// Counts the frames stored in the file beside a tape because its dialect has no line for them.
fn check_anomaly_file(
    path: &Path,
    findings: &mut Vec<TapeFinding>,
    totals: &mut TapeTotals,
) -> anyhow::Result<()> {
    let anomaly_file = tape_writer::anomaly_path(path);
    if !anomaly_file.exists() {
        return Ok(());
    }
    let name = visible_text::path(&anomaly_file);
    let mut source = TapeSource::open(&anomaly_file, terminal_output::progress(&anomaly_file))
        .with_context(|| format!("cannot read `{name}`"))?;
    let (mut frames, mut batches, mut faults) = (0u64, 0u64, 0u64);
    while let Some(next) = source.reader.next() {
        match next {
            Ok(NumberedLine { entry: TapeLine::Bad(bad), .. }) => match bad.reason == BATCH {
                // Its elements are on the tape as messages.
                true => batches += 1,
                false => frames += 1,
            },
            Ok(_) => {}
            Err(LineProblem::Io { source, .. }) => {
                return Err(source).with_context(|| format!("cannot read `{name}`"));
            }
            Err(_) => faults += 1,
        }
    }
    if frames == 0 && faults == 0 {
        return Ok(());
    }
    totals.anomalies += frames;
    let frames = plural(frames, "frame");
    let batches = match batches {
        0 => String::new(),
        1 => ", and 1 batch as it was sent".to_owned(),
        count => format!(", and {count} batches as they were sent"),
    };
    let message =
        format!("`{name}` holds {frames} that could not be recorded as messages{batches}");
    findings.push(TapeFinding { line: 0, severity: TapeSeverity::Note, message });
    if faults > 0 {
        let message = format!("`{name}` has {} that cannot be read", plural(faults, "line"));
        findings.push(TapeFinding { line: 0, severity: TapeSeverity::Warning, message });
    }
    Ok(())
}

/// What a tape contains.
fn summarize(totals: TapeTotals) -> FileSummary {
    let TapeTotals { client_messages, server_messages, anomalies, unanswered, footer } = totals;
    let messages = plural(client_messages + server_messages, "message");
    let noun = if anomalies == 1 { "anomaly" } else { "anomalies" };
    let text = format!(
        "{messages} ({client_messages} client, {server_messages} server), {anomalies} {noun}"
    );
    let members = vec![
        ("client_messages", client_messages.into()),
        ("server_messages", server_messages.into()),
        ("anomalies", anomalies.into()),
        ("unanswered", unanswered.into()),
        ("footer", footer.into()),
    ];
    FileSummary { text, members }
}
