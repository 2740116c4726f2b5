//! Writes the generated policy in Cedar.

use std::fmt::Write;

use tapegate_core::json::string;

use super::argument_limit::{ArgumentLimit, ArgumentStep, ValueLimit, path_text};
use super::literals::{calls, cedar_prefix_pattern, cedar_string, comment, is_name};
use super::seen_values::NumberForm;
use super::server_uses::{NamedUse, ResourceUses, ServerUses};
use crate::gated_requests::OfferKind;

/// One Cedar policy for each thing that was used, and a list of where they are less strict than
/// rules.
pub(super) fn write(servers: &[ServerUses], head: &[String]) -> (String, Vec<String>) {
    let (mut out, mut less) = (String::new(), Vec::new());
    for line in head {
        let _ = writeln!(out, "// {}", comment(line));
    }
    for server in servers {
        for one in &server.tools {
            less.extend(write_thing(server, "tools/call", "Tool", one, &mut out));
        }
        for one in &server.prompts {
            less.extend(write_thing(server, "prompts/get", "Prompt", one, &mut out));
        }
        for one in &server.completed {
            let template = server.completed_names(OfferKind::Template).any(|name| name == one.name);
            let kind = if template { "Resource" } else { "Prompt" };
            less.extend(write_thing(server, "completion/complete", kind, one, &mut out));
        }
        for method in ["resources/read", "resources/subscribe"] {
            resources(server, method, &mut out);
        }
    }
    (out, less)
}

fn write_thing(
    server: &ServerUses,
    method: &str,
    kind: &str,
    one: &NamedUse,
    out: &mut String,
) -> Vec<String> {
    let (mut conditions, mut less) = (server_condition(server), Vec::new());
    let mut lost = |name: &str, reason: &str| less.push((name.to_owned(), reason.to_owned()));
    for row in &one.limits.rows {
        match row.conditions() {
            CedarConditions::Conditions(more) => conditions.extend(more),
            CedarConditions::Less(reason) => lost(&path_text(&row.path), reason),
        }
    }
    if one.is_closed {
        lost("*", "Cedar cannot say that there are no other arguments");
    }
    let id = format!("{}/{method}/{}", server.id, one.name);
    let _ = writeln!(out, "\n// {}", calls(one.count));
    for (name, reason) in &less {
        let _ = writeln!(out, "// `{}` is not tested: {reason}.", comment(name));
    }
    let _ = writeln!(out, "@id({})\npermit(", cedar_string(&id));
    let _ = writeln!(out, "    principal,\n    action == Action::\"{method}\",");
    let _ = write!(out, "    resource == {kind}::{}\n)", cedar_string(&one.name));
    write_when(&conditions, out);
    let to_message = |(name, reason): (String, String)| {
        format!("Cedar does not test `{name}` of `{}`, which a rule does: {reason}", one.name)
    };
    less.into_iter().map(to_message).collect()
}

fn resources(server: &ServerUses, method: &str, out: &mut String) {
    // Both methods subscribe.
    let same = |uris: &&ResourceUses| {
        uris.method == method
            || method == "resources/subscribe" && uris.method == "subscriptions/listen"
    };
    let all: Vec<&ResourceUses> = server.resources.iter().filter(same).collect();
    if all.is_empty() {
        return;
    }
    let count = all.iter().map(|uris| uris.count).sum();
    let id = format!("{}/{method}", server.id);
    let _ = writeln!(out, "\n// {}\n@id({})", calls(count), cedar_string(&id));
    let _ = write!(out, "permit(principal, action == Action::\"{method}\", resource is Resource)");
    let either: Vec<String> = all
        .iter()
        .map(|uris| match &uris.folder {
            Some(folder) => format!(
                "(resource.uri like {} && !(resource.uri like \"*..*\") && \
                 !(resource.uri like \"*%2e*\") && !(resource.uri like \"*%2E*\"))",
                cedar_prefix_pattern(folder)
            ),
            None => {
                let uris: Vec<String> = uris.uris.iter().map(|uri| cedar_string(uri)).collect();
                format!("[{}].contains(resource.uri)", uris.join(", "))
            }
        })
        .collect();
    let mut conditions = server_condition(server);
    conditions.push(match &either[..] {
        [one] => one.clone(),
        all => format!("({})", all.join(" || ")),
    });
    write_when(&conditions, out);
}

fn server_condition(server: &ServerUses) -> Vec<String> {
    match server.id.as_str() {
        "*" => Vec::new(),
        id => vec![format!("resource.server == {}", cedar_string(id))],
    }
}

fn write_when(conditions: &[String], out: &mut String) {
    if !conditions.is_empty() {
        let _ = write!(out, " when {{\n    {}\n}}", conditions.join(" &&\n    "));
    }
    out.push_str(";\n");
}

/// What Cedar can express about an argument.
enum CedarConditions {
    /// These conditions, as strict as a rule's test.
    Conditions(Vec<String>),
    /// Less than a rule can, for this reason.
    Less(&'static str),
}

impl ArgumentLimit {
    /// The conditions on the value, or why Cedar cannot express them.
    fn conditions(&self) -> CedarConditions {
        let declared = self.declared.as_deref();
        if declared.is_some_and(|kind| {
            !["string", "integer", "number", "boolean", "array", "object"].contains(&kind)
        }) {
            return CedarConditions::Less("the tool declares a type that Cedar does not have");
        }
        let (each, keys) = match self.path.split_last() {
            Some((ArgumentStep::Each, keys)) => (true, keys),
            _ => (false, &self.path[..]),
        };
        let names: Option<Vec<&str>> = keys
            .iter()
            .map(|step| match step {
                ArgumentStep::Key(name) => Some(name.as_str()),
                ArgumentStep::Each => None,
            })
            .collect();
        let Some(names) = names else {
            return CedarConditions::Less("Cedar cannot look into lists of objects");
        };
        // Arguments that a tool does not declare with plain types may have no type in Cedar.
        let nested = names.len() > 1 || each || matches!(declared, Some("array" | "object"));
        if nested && declared.is_some() && !(each && names.len() == 1) {
            return CedarConditions::Less("Cedar has no type for what the tool declares here");
        }
        let (guards, place) = path(&names);
        if self.limit == ValueLimit::Absent {
            return CedarConditions::Conditions(vec![format!("!({})", guards.join(" && "))]);
        }
        let Some(test) = test(&self.limit, each, &place, self.numbers()) else {
            return CedarConditions::Less(match each {
                true => "Cedar cannot test each value of a list",
                false => "Cedar has no type for all of its values",
            });
        };
        let guards = guards.join(" && ");
        CedarConditions::Conditions(match self.required {
            true => vec![guards, test],
            false => vec![format!("(if {guards} then {test} else true)")],
        })
    }
}

impl ArgumentLimit {
    /// How Cedar writes the numbers here; `None` if it has no type for all of them.
    fn numbers(&self) -> Option<fn(&str) -> String> {
        match (self.declared.as_deref(), self.digits) {
            (Some("integer") | None, NumberForm::Long) => Some(str::to_owned),
            (Some("number"), NumberForm::Long | NumberForm::Decimal)
            | (None, NumberForm::Decimal) => Some(decimal),
            _ => None,
        }
    }
}

/// The tests that a value exists, and the expression that reads it.
fn path(names: &[&str]) -> (Vec<String>, String) {
    let mut place = "context.arguments".to_owned();
    let mut guards = Vec::new();
    for name in names {
        if is_name(name) {
            guards.push(format!("{place} has {name}"));
            let _ = write!(place, ".{name}");
        } else {
            guards.push(format!("{place} has {}", cedar_string(name)));
            let _ = write!(place, "[{}]", cedar_string(name));
        }
    }
    (guards, place)
}

/// The condition on the value at a place; `numbers` is how numbers are written there.
fn test(
    limit: &ValueLimit,
    each: bool,
    place: &str,
    numbers: Option<fn(&str) -> String>,
) -> Option<String> {
    match limit {
        ValueLimit::Under(folders) => {
            let known = place.replacen("context.arguments", "context.folders", 1);
            let folders: Vec<String> = folders.iter().map(|folder| cedar_string(folder)).collect();
            let inside = match &folders[..] {
                [one] => format!("{known}.contains({one})"),
                all => format!("{known}.containsAny([{}])", all.join(", ")),
            };
            // Without a definition, this requires a single path rather than a list.
            let is_text = format!("{place} like \"*\"");
            Some(if each { inside } else { format!("({is_text} && {inside})") })
        }
        ValueLimit::OneOf(values) if values.iter().all(|one| one.starts_with('"')) => {
            let text = |json: &String| string(json.as_bytes()).map(|text| cedar_string(&text));
            let texts: Option<Vec<String>> = values.iter().map(text).collect();
            let texts = texts?;
            Some(match each {
                true => format!("[{}].containsAll({place})", texts.join(", ")),
                false => one_of(&texts, place),
            })
        }
        _ if each => None,
        ValueLimit::OneOf(values)
            if values.iter().all(|one| matches!(&**one, "true" | "false")) =>
        {
            Some(one_of(values, place))
        }
        ValueLimit::OneOf(values) if values.iter().all(|one| is_number(one)) => {
            let values: Vec<String> =
                values.iter().map(|one| numbers.map(|f| f(one))).collect::<Option<_>>()?;
            Some(one_of(&values, place))
        }
        ValueLimit::Relative(folders) => {
            let inside = folders.iter().map(|folder| match folder.as_str() {
                "." => format!("!({place} like \"/*\" || {place} like \"~*\")"),
                folder => {
                    let below = cedar_prefix_pattern(&format!("{folder}/"));
                    let dotted = cedar_prefix_pattern(&format!("./{folder}/"));
                    let own = cedar_string(folder);
                    format!("{place} == {own} || {place} like {below} || {place} like {dotted}")
                }
            });
            let inside: Vec<String> = inside.collect();
            Some(format!("(({}) && {})", inside.join(" || "), stay_condition(place)))
        }
        ValueLimit::Origins(origins) => {
            let same = origins.iter().map(|origin| {
                let likes = ["/", "?", "#"].map(|end| {
                    format!(" || {place} like {}", cedar_prefix_pattern(&format!("{origin}{end}")))
                });
                format!("{place} == {}{}", cedar_string(origin), likes.concat())
            });
            Some(format!("({})", same.collect::<Vec<_>>().join(" || ")))
        }
        ValueLimit::Range(least, most) => {
            let write = numbers?;
            let (least, most) = (write(least), write(most));
            Some(match least.starts_with("decimal") {
                true => format!(
                    "({place}.greaterThanOrEqual({least}) && {place}.lessThanOrEqual({most}))"
                ),
                false => format!("({place} >= {least} && {place} <= {most})"),
            })
        }
        ValueLimit::OneOf(_) | ValueLimit::Absent => None,
    }
}

/// The condition that a path cannot lead out of the folder it starts with.
fn stay_condition(place: &str) -> String {
    let odd = ["*..*", "*%*", "*\\\\*", "*~*"].map(|odd| format!("{place} like \"{odd}\""));
    format!("!({})", odd.join(" || "))
}

fn is_number(json: &str) -> bool {
    json.starts_with(|one: char| one == '-' || one.is_ascii_digit())
}

fn one_of(values: &[String], place: &str) -> String {
    match values {
        [one] => format!("{place} == {one}"),
        all => format!("[{}].contains({place})", all.join(", ")),
    }
}

/// A number as a Cedar decimal.
fn decimal(number: &str) -> String {
    let point = if number.contains('.') { "" } else { ".0" };
    format!("decimal(\"{number}{point}\")")
}
