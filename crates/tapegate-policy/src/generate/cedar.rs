//! The policy as Cedar.

use std::fmt::Write;

use tapegate_core::json::string;

use super::limit::{Limit, Row, Server, Step, Uris, Use};
use super::seen::Digits;
use super::words::{calls, cedar, cedar_under, comment, is_name};
use crate::gated::Offer;

/// Cedar policies: one for each thing that is used.
pub(super) fn write(servers: &[Server], head: &[String]) -> String {
    let mut out = String::new();
    for line in head {
        let _ = writeln!(out, "// {}", comment(line));
    }
    for server in servers {
        for one in &server.tools {
            thing(server, "tools/call", "Tool", one, &mut out);
        }
        for one in &server.prompts {
            thing(server, "prompts/get", "Prompt", one, &mut out);
        }
        for one in &server.completed {
            let template = server.completed(Offer::Template).any(|name| name == one.name);
            let kind = if template { "Resource" } else { "Prompt" };
            thing(server, "completion/complete", kind, one, &mut out);
        }
        for method in ["resources/read", "resources/subscribe"] {
            resources(server, method, &mut out);
        }
    }
    out
}

fn thing(server: &Server, method: &str, kind: &str, one: &Use, out: &mut String) {
    let id = format!("{}/{method}/{}", server.id, one.name);
    let _ = writeln!(out, "\n// {}\n@id({})", calls(one.count), cedar(&id));
    let _ = writeln!(out, "permit(");
    let _ = writeln!(out, "    principal,\n    action == Action::\"{method}\",");
    let _ = write!(out, "    resource == {kind}::{}\n)", cedar(&one.name));
    let mut conditions = on(server);
    conditions.extend(one.rows.iter().flat_map(Row::conditions));
    when(&conditions, out);
}

fn resources(server: &Server, method: &str, out: &mut String) {
    // A subscription is one, whichever way it is asked for.
    let same = |uris: &&Uris| {
        uris.method == method
            || method == "resources/subscribe" && uris.method == "subscriptions/listen"
    };
    let all: Vec<&Uris> = server.resources.iter().filter(same).collect();
    if all.is_empty() {
        return;
    }
    let count = all.iter().map(|uris| uris.count).sum();
    let id = format!("{}/{method}", server.id);
    let _ = writeln!(out, "\n// {}\n@id({})", calls(count), cedar(&id));
    let _ = write!(out, "permit(principal, action == Action::\"{method}\", resource is Resource)");
    let either: Vec<String> = all
        .iter()
        .map(|uris| match &uris.folder {
            Some(folder) => format!(
                "(resource.uri like {} && !(resource.uri like \"*..*\") && \
                 !(resource.uri like \"*%2e*\") && !(resource.uri like \"*%2E*\"))",
                cedar_under(folder)
            ),
            None => {
                let uris: Vec<String> = uris.uris.iter().map(|uri| cedar(uri)).collect();
                format!("[{}].contains(resource.uri)", uris.join(", "))
            }
        })
        .collect();
    let mut conditions = on(server);
    conditions.push(match &either[..] {
        [one] => one.clone(),
        all => format!("({})", all.join(" || ")),
    });
    when(&conditions, out);
}

fn on(server: &Server) -> Vec<String> {
    match server.id.as_str() {
        "*" => Vec::new(),
        id => vec![format!("resource.server == {}", cedar(id))],
    }
}

fn when(conditions: &[String], out: &mut String) {
    if !conditions.is_empty() {
        let _ = write!(out, " when {{\n    {}\n}}", conditions.join(" &&\n    "));
    }
    out.push_str(";\n");
}

impl Row {
    /// What must hold of the place; nothing where Cedar has no type for what is there.
    fn conditions(&self) -> Vec<String> {
        let declared = self.declared.as_deref();
        if declared.is_some_and(|kind| {
            !["string", "integer", "number", "boolean", "array", "object"].contains(&kind)
        }) {
            return Vec::new();
        }
        let (each, keys) = match self.path.split_last() {
            Some((Step::Each, keys)) => (true, keys),
            _ => (false, &self.path[..]),
        };
        let names: Option<Vec<&str>> = keys
            .iter()
            .map(|step| match step {
                Step::Key(name) => Some(name.as_str()),
                Step::Each => None,
            })
            .collect();
        let Some(names) = names else { return Vec::new() };
        // What a tool declares in another way than by plain types may have none in Cedar.
        let nested = names.len() > 1 || each || matches!(declared, Some("array" | "object"));
        if nested && declared.is_some() && !(each && names.len() == 1) {
            return Vec::new();
        }
        let (guards, place) = path(&names);
        match (&self.limit, each) {
            (Limit::Nothing, _) if declared.is_some() => {
                vec![format!("!({})", guards.join(" && "))]
            }
            (limit, each) => {
                let Some(test) = test(limit, each, &place, self.numbers()) else {
                    return Vec::new();
                };
                let guards = guards.join(" && ");
                match self.always {
                    true => vec![guards, test],
                    false => vec![format!("(if {guards} then {test} else true)")],
                }
            }
        }
    }
}

impl Row {
    /// How Cedar writes the numbers here; `None` if it has no type for all of them.
    fn numbers(&self) -> Option<fn(&str) -> String> {
        match (self.declared.as_deref(), self.digits) {
            (Some("integer") | None, Digits::Long) => Some(str::to_owned),
            (Some("number"), Digits::Long | Digits::Decimal) | (None, Digits::Decimal) => {
                Some(decimal)
            }
            _ => None,
        }
    }
}

/// The tests that something is there, and how it is read.
fn path(names: &[&str]) -> (Vec<String>, String) {
    let mut place = "context.arguments".to_owned();
    let mut guards = Vec::new();
    for name in names {
        if is_name(name) {
            guards.push(format!("{place} has {name}"));
            let _ = write!(place, ".{name}");
        } else {
            guards.push(format!("{place} has {}", cedar(name)));
            let _ = write!(place, "[{}]", cedar(name));
        }
    }
    (guards, place)
}

/// What must hold of what is at a place; `numbers` is how numbers there are written.
fn test(
    limit: &Limit,
    each: bool,
    place: &str,
    numbers: Option<fn(&str) -> String>,
) -> Option<String> {
    match limit {
        Limit::OneOf(values) if values.iter().all(|one| one.starts_with('"')) => {
            let text = |json: &String| string(json.as_bytes()).map(|text| cedar(&text));
            let texts: Option<Vec<String>> = values.iter().map(text).collect();
            let texts = texts?;
            Some(match each {
                true => format!("[{}].containsAll({place})", texts.join(", ")),
                false => one_of(&texts, place),
            })
        }
        _ if each => None,
        Limit::OneOf(values) if values.iter().all(|one| matches!(&**one, "true" | "false")) => {
            Some(one_of(values, place))
        }
        Limit::OneOf(values) if values.iter().all(|one| is_number(one)) => {
            let values: Vec<String> =
                values.iter().map(|one| numbers.map(|f| f(one))).collect::<Option<_>>()?;
            Some(one_of(&values, place))
        }
        Limit::Under(folder) => {
            Some(format!("({place} like {} && !({place} like \"*..*\"))", cedar_under(folder)))
        }
        Limit::Text => Some(format!("{place} like \"*\"")),
        Limit::Range(least, most) => {
            let write = numbers?;
            let (least, most) = (write(least), write(most));
            Some(match least.starts_with("decimal") {
                true => format!(
                    "({place}.greaterThanOrEqual({least}) && {place}.lessThanOrEqual({most}))"
                ),
                false => format!("({place} >= {least} && {place} <= {most})"),
            })
        }
        Limit::OneOf(_) | Limit::Any | Limit::NoText | Limit::Nothing => None,
    }
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

/// A number as a decimal of Cedar.
fn decimal(number: &str) -> String {
    let point = if number.contains('.') { "" } else { ".0" };
    format!("decimal(\"{number}{point}\")")
}
