//! Short descriptions of findings.

use tapegate_core::verifier::{
    Discrepancy, ItemChange, RecordedChange, RecordedChanges, VerifyFinding,
};

use super::HarnessResult;

/// Short descriptions of the findings, one per line.
pub(super) fn shown(done: &HarnessResult) -> String {
    let text = |json: &[u8]| String::from_utf8(json.to_vec()).unwrap();
    let changes = |changes: &RecordedChanges| {
        let change = |change: &RecordedChange| {
            let side = |json: &Option<Vec<u8>>| json.as_deref().map(text).unwrap_or_default();
            format!("{}: {} > {}", change.location, side(&change.recorded), side(&change.live))
        };
        changes.listed.iter().map(change).collect::<Vec<_>>().join("; ")
    };
    let became = |became: &ItemChange| match became {
        ItemChange::Added(text_) => format!("added {}", text(text_)),
        ItemChange::Removed(text_) => format!("removed {}", text(text_)),
        ItemChange::Changed(changed) => changes(changed),
    };
    let line = |finding: &VerifyFinding| {
        let what = match &finding.discrepancy {
            Discrepancy::Answer(changed) => changes(changed),
            Discrepancy::Server(changed) => format!("server {}", changes(changed)),
            Discrepancy::Version { recorded, live } => {
                format!("version {} > {}", text(recorded), text(live))
            }
            Discrepancy::Item { list, name, item_change: how } => {
                format!("{list:?} {name} {}", became(how))
            }
            Discrepancy::Notice(how) => format!("notice {}", became(how)),
            Discrepancy::Question(how) => format!("question {}", became(how)),
            Discrepancy::Error { live, .. } => format!("error {}", text(live)),
            Discrepancy::Result { live, .. } => format!("result {}", text(live)),
            Discrepancy::NoAnswer { waited_ms } => format!("silence of {waited_ms} ms"),
            Discrepancy::Ended { reason: why } => format!("ended: {why}"),
            other => format!("{other:?}"),
        };
        let number = finding.about.number.map(|number| format!("#{number} ")).unwrap_or_default();
        let times = if finding.times > 1 { format!(" ×{}", finding.times) } else { String::new() };
        format!("{number}{}: {what}{times}", finding.about.method)
    };
    done.report.findings.iter().map(line).collect::<Vec<_>>().join("\n")
}
