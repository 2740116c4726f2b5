//! The policy as Cedar.

use std::fmt::Write;

use tapegate_core::json::string;

use super::limit::{Limit, Row, Server, Step, Uris, Use};
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
                let Some(test) = test(limit, each, &place, declared) else { return Vec::new() };
                let guards = guards.join(" && ");
                match self.always {
                    true => vec![guards, test],
                    false => vec![format!("(if {guards} then {test} else true)")],
                }
            }
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

fn test(limit: &Limit, each: bool, place: &str, declared: Option<&str>) -> Option<String> {
    let text = |json: &String| string(json.as_bytes()).map(|text| cedar(&text));
    match limit {
        Limit::OneOf(values) => {
            let texts: Option<Vec<String>> = values.iter().map(text).collect();
            let bools = || values.iter().all(|value| matches!(&**value, "true" | "false"));
            if let Some(texts) = texts {
                let list = texts.join(", ");
                return Some(match each {
                    true => format!("[{list}].containsAll({place})"),
                    false => one_of(&texts, place),
                });
            }
            if each {
                return None;
            }
            if bools() {
                return Some(one_of(values, place));
            }
            let decimal = declared == Some("number") || !values.iter().all(|one| is_long(one));
            let listed: Option<Vec<String>> = values
                .iter()
                .map(|one| if decimal { as_decimal(one) } else { Some(one.clone()) })
                .collect();
            listed.map(|listed| one_of(&listed, place))
        }
        _ if each => None,
        Limit::Under(folder) => {
            Some(format!("{place} like {} && !({place} like \"*..*\")", cedar_under(folder)))
                .map(|test| format!("({test})"))
        }
        Limit::Text => Some(format!("{place} like \"*\"")),
        Limit::Range(least, most)
            if declared != Some("number") && is_long(least) && is_long(most) =>
        {
            Some(format!("({place} >= {least} && {place} <= {most})"))
        }
        Limit::Range(least, most) => {
            let (least, most) = (as_decimal(least)?, as_decimal(most)?);
            Some(format!(
                "({place}.greaterThanOrEqual({least}) && {place}.lessThanOrEqual({most}))"
            ))
        }
        Limit::Any | Limit::NoText | Limit::Nothing => None,
    }
}

fn one_of(values: &[String], place: &str) -> String {
    match values {
        [one] => format!("{place} == {one}"),
        all => format!("[{}].contains({place})", all.join(", ")),
    }
}

fn is_long(number: &str) -> bool {
    number.parse::<i64>().is_ok()
}

/// A number as a decimal of Cedar, if it is one as it is written.
fn as_decimal(number: &str) -> Option<String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = digits(whole.trim_start_matches('-')) && digits(fraction) && fraction.len() <= 4;
    (fits && whole.len() < 15).then(|| format!("decimal(\"{whole}.{fraction}\")"))
}
