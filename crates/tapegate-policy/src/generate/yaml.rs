//! Writes the generated policy as readable YAML.

use std::fmt::Write;

use super::GenerateOptions;
use super::argument_limit::{ArgumentLimit, ValueLimit, path_text};
use super::literals::{calls, comment, literal, yaml, yaml_value};
use super::server_uses::{NamedUse, ResourceUses, ServerUses};
use crate::gated_requests::OfferKind;

/// The text of the policy.
pub(super) fn write(servers: &[ServerUses], wish: &GenerateOptions) -> String {
    let mut out = String::new();
    for line in &wish.head {
        let _ = writeln!(out, "# {}", comment(line));
    }
    out += "schema: 1\n\n";
    out += "# What the agent can see. The lists of servers are filtered to this.\nsources:\n";
    servers.iter().for_each(|server| source(server, &mut out));
    out += "\ngovernance:\n  defaults:\n";
    match &wish.cedar {
        Some(name) => {
            out += "    # Cedar decides every call by the policies below. A call that none permits is denied.\n";
            out += "    action: policy\n    policy_id: observed\n\n";
            let _ = writeln!(out, "cedar:\n  policies:\n    - {}", yaml(name));
        }
        None => {
            out += "    # A call that no rule forwards is denied. `approve` would ask a person instead.\n";
            out += "    action: deny\n";
            out += "  # One rule per tool. `optional` arguments may be missing; those in `other_arguments` may have\n";
            out += "  # any value, and all others are denied. `under` is a folder with everything in it.\n  rules:\n";
            servers.iter().for_each(|server| rules(server, &mut out));
        }
    }
    out
}

fn source(server: &ServerUses, out: &mut String) {
    let _ = writeln!(out, "  - id: {}\n    expose:\n      mode: allowlist", yaml(&server.id));
    let prompts = server.prompts.iter().map(|one| one.name.as_str());
    let mut prompts: Vec<String> =
        prompts.chain(server.completed_names(OfferKind::Prompt)).map(literal).collect();
    let mut uris: Vec<String> = server.resources.iter().flat_map(ResourceUses::globs).collect();
    uris.extend(server.completed_names(OfferKind::Template).map(literal));
    let tools = server.tools.iter().map(|one| literal(&one.name)).collect();
    for list in [&mut prompts, &mut uris] {
        list.sort();
        list.dedup();
    }
    for (key, globs) in [("tools", tools), ("prompts", prompts), ("resources", uris)] {
        list(out, 6, key, &globs);
    }
}

impl ResourceUses {
    /// The globs that match these resources.
    fn globs(&self) -> Vec<String> {
        match &self.folder {
            Some(folder) => vec![format!("{}*", literal(folder))],
            None => self.uris.iter().map(|uri| literal(uri)).collect(),
        }
    }
}

fn list(out: &mut String, indent: usize, key: &str, texts: &[String]) {
    let pad = " ".repeat(indent);
    let _ = match texts {
        [] => writeln!(out, "{pad}{key}: []"),
        [one] => writeln!(out, "{pad}{key}: [{}]", yaml(one)),
        _ => writeln!(out, "{pad}{key}:"),
    };
    for one in texts.iter().filter(|_| texts.len() > 1) {
        let _ = writeln!(out, "{pad}  - {}", yaml(one));
    }
}

fn rules(server: &ServerUses, out: &mut String) {
    for one in &server.tools {
        rule(server, "tools/call", one, out);
    }
    for one in &server.prompts {
        rule(server, "prompts/get", one, out);
    }
    for one in &server.completed {
        rule(server, "completion/complete", one, out);
    }
    for uris in server.resources.iter().filter(|uris| uris.method != "resources/unsubscribe") {
        let _ = writeln!(
            out,
            "\n    # `{}` of `{}`: {}",
            uris.method,
            comment(&server.id),
            calls(uris.count)
        );
        let _ = writeln!(out, "    - action: forward");
        list(out, 6, "match", &uris.globs());
        scope(server, uris.method, out);
    }
}

/// Writes the rule for one item.
fn rule(server: &ServerUses, method: &str, one: &NamedUse, out: &mut String) {
    let shown = comment(&one.name);
    let _ = writeln!(out, "\n    # `{shown}` of `{}`: {}", comment(&server.id), calls(one.count));
    if !one.limits.open.is_empty() {
        let open: Vec<String> = one.limits.open.iter().map(|name| comment(name)).collect();
        let _ = writeln!(out, "    # May be anything: {}", open.join(", "));
    }
    for (name, reason) in &one.limits.risks {
        let _ = writeln!(out, "    # Look at `{}`: {reason}.", comment(name));
    }
    let _ = writeln!(out, "    - match: {}\n      action: forward", yaml(&literal(&one.name)));
    scope(server, method, out);
    // A closed rule refuses arguments that it does not name, so unused ones need no test.
    let is_said = |row: &&ArgumentLimit| !(one.is_closed && row.limit == ValueLimit::Absent);
    let rows: Vec<&ArgumentLimit> = one.limits.rows.iter().filter(is_said).collect();
    if !rows.is_empty() {
        out.push_str("      arguments:\n");
    }
    for row in rows {
        let _ = writeln!(out, "        {}: {}", yaml(&path_text(&row.path)), row.test());
    }
    if one.is_closed {
        let others: Vec<String> = one.limits.open.iter().map(|name| yaml(name)).collect();
        let _ = match others.is_empty() {
            true => writeln!(out, "      other_arguments: none"),
            false => writeln!(out, "      other_arguments: [{}]", others.join(", ")),
        };
    }
}

fn scope(server: &ServerUses, method: &str, out: &mut String) {
    if server.id != "*" {
        let _ = writeln!(out, "      source: {}", yaml(&literal(&server.id)));
    }
    let _ = writeln!(out, "      method: {method}");
}

impl ArgumentLimit {
    /// The test that permits a value.
    fn test(&self) -> String {
        let test = match &self.limit {
            ValueLimit::OneOf(values) => match &values[..] {
                [one] => format!("equals: {}", yaml_value(one)),
                all => {
                    let all: Vec<String> = all.iter().map(|value| yaml_value(value)).collect();
                    format!("in: [{}]", all.join(", "))
                }
            },
            ValueLimit::Under(folders) => match &folders[..] {
                [one] => format!("under: {}", yaml(one)),
                all => {
                    let all: Vec<String> = all.iter().map(|folder| yaml(folder)).collect();
                    format!("under: [{}]", all.join(", "))
                }
            },
            ValueLimit::Relative(folders) => {
                format!("regex: {}", yaml(&relative_path_regex(folders)))
            }
            ValueLimit::Origins(origins) => {
                let hosts: Vec<String> = origins.iter().map(|one| escaped_regex(one)).collect();
                format!("regex: {}", yaml(&format!("^({})([/?#]|$)", hosts.join("|"))))
            }
            ValueLimit::Range(least, most) => format!("min: {least}, max: {most}"),
            ValueLimit::Absent => return "{ exists: false }".to_owned(),
        };
        match self.required {
            true => format!("{{ {test} }}"),
            false => format!("{{ {test}, optional: true }}"),
        }
    }
}

/// A regular expression for relative paths below folders: no step is `..`, and none is absolute.
fn relative_path_regex(folders: &[String]) -> String {
    const STEP: &str = r"\.?[^./\\%~$\x00-\x1f][^/\\%\x00-\x1f]*";
    let folder = |folder: &String| match folder.as_str() {
        "." => format!("\\.|{STEP}(/+{STEP})*/?"),
        folder => format!("{}(/+{STEP})*/?", escaped_regex(folder)),
    };
    let all: Vec<String> = folders.iter().map(folder).collect();
    format!("^(\\./)?({})$", all.join("|"))
}

fn escaped_regex(text: &str) -> String {
    let letter = |one: char| match one.is_ascii_punctuation() && !"/-_:".contains(one) {
        true => format!("\\{one}"),
        false => one.to_string(),
    };
    text.chars().map(letter).collect()
}
