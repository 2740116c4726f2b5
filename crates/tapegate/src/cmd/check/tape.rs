//! Checks a tape.

use std::io::{Read, Write};
use std::path::Path;

use anyhow::Context;
use tapegate_core::tape::{Audit, BATCH, Finding, Line, Problem, Severity, Totals};
use tapegate_store::source::Source;
use tapegate_store::writer;

use super::{Args, Format, counted, quoted, verdict};
use crate::talk;
use crate::views::visible;

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
    let name = visible::path(path);
    let is_file = stdin.is_none();
    let source = match stdin {
        Some(bytes) => Source::stream(bytes),
        None => Source::open(path, talk::progress(path)),
    };
    let (mut findings, mut totals) =
        audit(source.with_context(|| format!("cannot read `{name}`"))?);
    if is_file {
        beside(path, &mut findings, &mut totals)?;
    }
    match args.format {
        Format::Text => print_text(path, &findings, totals, out)?,
        Format::Json | Format::Jsonl => print_json(path, &findings, totals, out)?,
    }
    let least = if args.strict { Severity::Warning } else { Severity::Error };
    let is_bad = |finding: &Finding| match finding.severity {
        Severity::Error => true,
        Severity::Warning => least == Severity::Warning,
        Severity::Note => false,
    };
    Ok(findings.iter().any(is_bad))
}

fn audit(mut source: Source) -> (Vec<Finding>, Totals) {
    let mut audit = Audit::default();
    let (mut good, mut bad) = (0u64, 0u64);
    let mut given_up = None;
    while let Some(next) = source.reader.next() {
        audit.line(&next);
        match next {
            Ok(_) => good += 1,
            Err(Problem::Io { .. }) => break,
            Err(_) => bad += 1,
        }
        given_up = match (good, bad) {
            (0, NO_TAPE_LINES) => Some("this is not a tape: none of its first lines is an entry"),
            (_, FAULTS_MAX) => Some("too many faults to list"),
            _ => continue,
        };
        break;
    }
    let (mut findings, totals) = audit.finish();
    findings.extend(given_up.map(|words| Finding {
        line: 0,
        severity: Severity::Error,
        words: words.to_owned(),
    }));
    findings.extend(source.findings());
    (findings, totals)
}

/// Counts the frames stored in the file beside a tape because its dialect has no line for them.
fn beside(path: &Path, findings: &mut Vec<Finding>, totals: &mut Totals) -> anyhow::Result<()> {
    let beside = writer::beside(path);
    if !beside.exists() {
        return Ok(());
    }
    let name = visible::path(&beside);
    let mut source = Source::open(&beside, talk::progress(&beside))
        .with_context(|| format!("cannot read `{name}`"))?;
    let (mut frames, mut faults) = (0u64, 0u64);
    while let Some(next) = source.reader.next() {
        match next {
            // The elements of a batch are on the tape as messages.
            Ok(numbered) => {
                frames += u64::from(matches!(numbered.entry, Line::Bad(bad) if bad.reason != BATCH))
            }
            Err(Problem::Io { source, .. }) => {
                return Err(source).with_context(|| format!("cannot read `{name}`"));
            }
            Err(_) => faults += 1,
        }
    }
    if frames == 0 && faults == 0 {
        return Ok(());
    }
    totals.anomalies += frames;
    let frames = counted(frames as usize, "frame");
    let words = format!("`{name}` holds {frames} that could not be recorded as messages");
    findings.push(Finding { line: 0, severity: Severity::Note, words });
    if faults > 0 {
        let words =
            format!("`{name}` has {} that cannot be read", counted(faults as usize, "line"));
        findings.push(Finding { line: 0, severity: Severity::Warning, words });
    }
    Ok(())
}

fn print_text(
    path: &Path,
    findings: &[Finding],
    totals: Totals,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let name = visible::path(path);
    for Finding { line, severity, words } in findings {
        let place = if *line == 0 { String::new() } else { format!(":{line}") };
        writeln!(out, "{name}{place}: {}: {words}", severity_word(*severity))?;
    }
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let verdict = verdict(count(Severity::Error), count(Severity::Warning));
    let Totals { client_messages, server_messages, anomalies, .. } = totals;
    let messages = client_messages + server_messages;
    write!(out, "{name}: {verdict}, {}", counted(messages as usize, "message"))?;
    write!(out, " ({client_messages} client, {server_messages} server), {anomalies}")?;
    writeln!(out, " {}", if anomalies == 1 { "anomaly" } else { "anomalies" })
}

fn print_json(
    path: &Path,
    findings: &[Finding],
    totals: Totals,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let name = quoted(&path.to_string_lossy());
    for Finding { line, severity, words } in findings {
        let severity = severity_word(*severity);
        let words = quoted(words);
        writeln!(
            out,
            "{{\"tape\":{name},\"line\":{line},\"severity\":\"{severity}\",\"finding\":{words}}}"
        )?;
    }
    let Totals { client_messages, server_messages, anomalies, unanswered, footer } = totals;
    writeln!(
        out,
        "{{\"tape\":{name},\"client_messages\":{client_messages},\"server_messages\":{server_messages},\
         \"anomalies\":{anomalies},\"unanswered\":{unanswered},\"footer\":{footer}}}"
    )
}

fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
