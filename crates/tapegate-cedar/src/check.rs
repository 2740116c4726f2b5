//! Checks a policy against the types of the calls it can apply to, in Cedar's strict mode.

use cedar_policy::{Policy, PolicySet, Schema, ValidationError, ValidationMode, Validator};
use miette::Diagnostic;

use crate::attribute_reads::AttributeReads;
use crate::selector::ToolSelector;
use crate::types::{CedarType, RecordType};

/// A problem found in a policy.
#[derive(Debug)]
pub(crate) struct PolicyFinding {
    /// The offset from the start of the policy; `None` for the whole policy.
    pub(crate) at: Option<usize>,
    pub(crate) error: bool,
    pub(crate) message: String,
}

/// Checks a policy. `common` is the arguments that all tools it can apply to have in common.
pub(crate) fn check(
    policy: &Policy,
    schema: Schema,
    common: Option<&RecordType>,
) -> Vec<PolicyFinding> {
    let mut set = PolicySet::new();
    if let Err(error) = set.add(policy.clone()) {
        return vec![PolicyFinding { at: None, error: true, message: error.to_string() }];
    }
    let result = Validator::new(schema).validate(&set, ValidationMode::Strict);
    let errors = result.validation_errors();
    let mut findings: Vec<PolicyFinding> = errors
        .map(|error| PolicyFinding {
            at: place(error),
            error: true,
            message: explain(error, common),
        })
        .collect();
    // The same place is reported once per request type, in any order; once is enough.
    findings.sort_by(|one, two| (one.at, &one.message).cmp(&(two.at, &two.message)));
    findings.dedup_by_key(|finding| finding.at);
    if findings.is_empty() {
        // The first warning gives the reason; others follow from it.
        let warning = result.validation_warnings().next().map(|warning| {
            let message = without_policy_prefix(&warning.to_string());
            PolicyFinding { at: place(warning), error: false, message }
        });
        findings.extend(warning);
    }
    findings
}

/// Checks that the tools a policy applies to have the arguments it reads. Cedar itself treats a
/// test for an impossible attribute as one that is false.
pub(crate) fn check_known_arguments(
    statement: &str,
    reads: &AttributeReads,
    selector: &ToolSelector,
    common: &RecordType,
) -> Vec<PolicyFinding> {
    let missing = reads.arguments.missing_in(common);
    let say = |path: Vec<String>| {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let name = path.join(".");
        let at = parts.last().and_then(|last| find_word(statement, last));
        match common.why_left_out(&parts) {
            Some(reason) => PolicyFinding {
                at,
                error: true,
                message: format!(
                    "the argument `{name}` cannot be read here: {reason}; name the tool by \
                     `resource == …`, or do not read the argument"
                ),
            },
            None => {
                let near =
                    similar_member(&parts, common).map(|near| format!("; did you mean `{near}`?"));
                // A prompt may have arguments that no tool has.
                let error = !selector.includes_non_tools();
                let near = near.unwrap_or_default();
                let message = format!("no tool that the policy can apply to has `{name}`{near}");
                PolicyFinding { at, error, message }
            }
        }
    };
    missing.into_iter().map(say).collect()
}

/// A member whose name is similar to the last one of a path.
fn similar_member<'a>(path: &[&str], record: &'a RecordType) -> Option<&'a str> {
    match path {
        [] => None,
        [last] => {
            let alike = |name: &&String| distance(name, last) <= 2;
            record
                .members
                .keys()
                .filter(alike)
                .min_by_key(|name| distance(name, last))
                .map(|n| &**n)
        }
        [name, rest @ ..] => match &record.members.get(*name)?.kind {
            CedarType::Record(inner) => similar_member(rest, inner),
            _ => None,
        },
    }
}

/// The edit distance: insertions, deletions and replacements.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (n, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], n + 1);
        for (m, other) in two.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[m + 1];
            row[m + 1] = changed.min(row[m] + 1).min(row[m + 1] + 1);
        }
    }
    row[two.len()]
}

/// The offset of a name in a policy, as a whole word.
pub(crate) fn find_word(statement: &str, name: &str) -> Option<usize> {
    let part = |one: char| one.is_alphanumeric() || one == '_';
    statement.match_indices(name).map(|(at, _)| at).find(|at| {
        let before = statement[..*at].chars().next_back().is_some_and(part);
        let after = statement[at + name.len()..].chars().next().is_some_and(part);
        !before && !after
    })
}

/// The offset that Cedar reports.
pub(crate) fn place(diagnostic: &dyn Diagnostic) -> Option<usize> {
    diagnostic.labels()?.next().map(|label| label.offset())
}

/// Cedar's message, with a hint on how to fix the error.
fn explain(error: &ValidationError, common: Option<&RecordType>) -> String {
    let message = without_policy_prefix(&error.to_string());
    match (error, argument(&message)) {
        (ValidationError::UnsafeOptionalAttributeAccess(_), Some(path)) => {
            let guards = has_guards(&path);
            match common.and_then(|common| common.members.get(&path)) {
                Some(member) if member.required => format!(
                    "only tools always have the argument `{path}`; name the action `tools/call`, \
                     or write {guards} before it is read"
                ),
                _ => format!(
                    "the argument `{path}` may be missing; write {guards} before it is read"
                ),
            }
        }
        (ValidationError::UnsafeOptionalAttributeAccess(_), None) => {
            format!("{message}; test for it with `has` before it is read")
        }
        _ => match error.help() {
            Some(help) => format!("{message}; {help}"),
            None => message,
        },
    }
}

/// Formats the checks for `a.b`: `context.arguments has a && context.arguments.a has b`.
fn has_guards(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let mut so_far = "context.arguments".to_owned();
    let mut guards = Vec::new();
    for part in parts {
        guards.push(format!("{so_far} has {part}"));
        so_far = format!("{so_far}.{part}");
    }
    format!("`{} && …`", guards.join(" && "))
}

/// Removes the policy's name from Cedar's message, because the position gives it too.
fn without_policy_prefix(message: &str) -> String {
    let rest = message.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, "));
    rest.map_or(message, |(_, rest)| rest).to_owned()
}

/// Extracts the path of an argument from Cedar's message.
fn argument(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("attribute `")?;
    let (path, _) = rest.split_once('`')?;
    path.strip_prefix("arguments.").map(str::to_owned)
}
