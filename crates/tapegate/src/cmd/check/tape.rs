//! Looking over a tape.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use tapegate_core::tape::{Audit, Finding, Problem, Severity, Totals};
use tapegate_store::source::Source;
use tapegate_store::writer;

use super::{Args, Format, counted, quoted, verdict};
use crate::talk;
use crate::views::visible;

/// After this many lines that are no entry, and none that is, a file is taken for something else.
const NO_TAPE_LINES: u64 = 20;
/// After this many faults nobody reads on.
const FAULTS_MAX: u64 = 10_000;

/// Prints what is found on a tape; true if it is bad.
pub(super) fn check(args: &Args, path: &Path, out: &mut dyn Write) -> anyhow::Result<bool> {
    let (findings, totals) = audit(path)?;
    match args.format {
        Format::Text => print_text(path, &findings, totals, out)?,
        Format::Json => print_json(path, &findings, totals, out)?,
    }
    let least = if args.strict { Severity::Warning } else { Severity::Error };
    let is_bad = |finding: &Finding| match finding.severity {
        Severity::Error => true,
        Severity::Warning => least == Severity::Warning,
        Severity::Note => false,
    };
    Ok(findings.iter().any(is_bad))
}

fn audit(path: &Path) -> anyhow::Result<(Vec<Finding>, Totals)> {
    let name = visible::path(path);
    let mut source = Source::open(path, talk::progress(path))
        .with_context(|| format!("cannot read `{name}`"))?;
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
            (0, NO_TAPE_LINES) => Some("this is no tape: none of its first lines is an entry"),
            (_, FAULTS_MAX) => Some("there are too many faults to list"),
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
    let beside = writer::beside(path);
    if beside.exists() {
        let words = format!("what was no message lies in `{}`", visible::path(&beside));
        findings.push(Finding { line: 0, severity: Severity::Note, words });
    }
    Ok((findings, totals))
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
