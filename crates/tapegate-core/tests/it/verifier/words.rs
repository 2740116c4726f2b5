//! Short descriptions of findings.

use tapegate_core::verifier::{Became, Change, Changes, Finding, What};

use super::Done;

/// Short descriptions of the findings, one per line.
pub(super) fn shown(done: &Done) -> String {
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).unwrap();
    let changes = |changes: &Changes| {
        let change = |change: &Change| {
            let side = |json: &Option<Vec<u8>>| json.as_deref().map(text).unwrap_or_default();
            format!("{}: {} > {}", change.place, side(&change.recorded), side(&change.live))
        };
        changes.listed.iter().map(change).collect::<Vec<_>>().join("; ")
    };
    let became = |became: &Became| match became {
        Became::Added(text_) => format!("added {}", text(text_)),
        Became::Removed(text_) => format!("removed {}", text(text_)),
        Became::Changed(changed) => changes(changed),
    };
    let line = |finding: &Finding| {
        let what = match &finding.what {
            What::Answer(changed) => changes(changed),
            What::Server(changed) => format!("server {}", changes(changed)),
            What::Version { recorded, live } => {
                format!("version {} > {}", text(recorded), text(live))
            }
            What::Item { list, name, became: how } => format!("{list:?} {name} {}", became(how)),
            What::Notice(how) => format!("notice {}", became(how)),
            What::Question(how) => format!("question {}", became(how)),
            What::Error { live, .. } => format!("error {}", text(live)),
            What::Result { live, .. } => format!("result {}", text(live)),
            What::NoAnswer { waited_ms } => format!("silence of {waited_ms} ms"),
            What::Ended { why } => format!("ended: {why}"),
            other => format!("{other:?}"),
        };
        let number = finding.about.number.map(|number| format!("#{number} ")).unwrap_or_default();
        let times = if finding.times > 1 { format!(" ×{}", finding.times) } else { String::new() };
        format!("{number}{}: {what}{times}", finding.about.method)
    };
    done.report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
