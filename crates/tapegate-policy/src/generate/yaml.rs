//! The policy as YAML that people read.

use std::fmt::Write;

use super::Wish;
use super::limit::{Limit, Row, Server, Step, Uris, Use};
use super::words::{calls, comment, is_name, literal, yaml, yaml_value};
use crate::gated::Offer;

/// What leads out of a folder, however it is spelled.
const OUT: [&str; 2] = ["*..*", "*%2[eE]*"];

/// The policy.
pub(super) fn write(servers: &[Server], wish: &Wish) -> String {
    let mut out = String::new();
    for line in &wish.head {
        let _ = writeln!(out, "# {}", comment(line));
    }
    out += "schema: 1\n\n";
    out += "# What may be seen at all. Lists that servers give are cut down to this.\nsources:\n";
    servers.iter().for_each(|server| source(server, &mut out));
    out += "\ngovernance:\n  defaults:\n";
    match &wish.cedar {
        Some(name) => {
            out += "    # Every call is put to the policies below. What none of them permits is denied.\n";
            out += "    action: policy\n    policy_id: observed\n\n";
            let _ = writeln!(out, "cedar:\n  policies:\n    - {}", yaml(name));
        }
        None => {
            out += "    # What no rule lets through goes nowhere.\n    action: deny\n";
            out += "  # The first rule that matches counts.\n  rules:\n";
            servers.iter().for_each(|server| rules(server, &mut out));
        }
    }
    out
}

fn source(server: &Server, out: &mut String) {
    let _ = writeln!(out, "  - id: {}\n    expose:\n      mode: allowlist", yaml(&server.id));
    let prompts = server.prompts.iter().map(|one| one.name.as_str());
    let mut prompts: Vec<String> =
        prompts.chain(server.completed(Offer::Prompt)).map(literal).collect();
    let mut uris: Vec<String> = server.resources.iter().flat_map(Uris::globs).collect();
    uris.extend(server.completed(Offer::Template).map(literal));
    let tools = server.tools.iter().map(|one| literal(&one.name)).collect();
    for list in [&mut prompts, &mut uris] {
        list.sort();
        list.dedup();
    }
    for (key, globs) in [("tools", tools), ("prompts", prompts), ("resources", uris)] {
        list(out, 6, key, &globs);
    }
}

impl Uris {
    /// What matches them.
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

fn rules(server: &Server, out: &mut String) {
    for one in &server.tools {
        thing(server, "tools/call", one, out);
    }
    for one in &server.prompts {
        thing(server, "prompts/get", one, out);
    }
    for one in &server.completed {
        thing(server, "completion/complete", one, out);
    }
    for uris in server.resources.iter().filter(|uris| uris.method != "resources/unsubscribe") {
        let _ = writeln!(out, "\n    # {}", calls(uris.count));
        let globs = uris.globs();
        if uris.folder.is_some() {
            for glob in OUT {
                let _ = writeln!(out, "    - match: {}", yaml(glob));
                about(server, uris.method, "deny", out);
            }
        }
        let _ = writeln!(out, "    - action: forward");
        list(out, 6, "match", &globs);
        scope(server, uris.method, out);
    }
}

/// The rules about one thing: what is denied of what is not always there, then what passes.
fn thing(server: &Server, method: &str, one: &Use, out: &mut String) {
    let shown = comment(&one.name);
    let _ = writeln!(out, "\n    # `{shown}` of `{}`: {}", comment(&server.id), calls(one.count));
    let name = literal(&one.name);
    for row in one.rows.iter().filter(|row| !row.always) {
        for test in row.denied() {
            let _ = writeln!(out, "    - match: {}", yaml(&name));
            about(server, method, "deny", out);
            let _ = writeln!(out, "      arguments:\n        {}: {test}", yaml(&row.path()));
        }
    }
    let _ = writeln!(out, "    - match: {}", yaml(&name));
    about(server, method, "forward", out);
    let tests: Vec<(String, String)> =
        one.rows.iter().filter(|row| row.always).map(|row| (row.path(), row.allowed())).collect();
    let takes = method != "completion/complete";
    if one.rows.iter().all(|row| row.limit == Limit::Nothing) && takes {
        // Nobody has given it anything.
        out.push_str("      arguments:\n        \"*\": { exists: false }\n");
        return;
    }
    if !tests.is_empty() {
        out.push_str("      arguments:\n");
    }
    for (path, test) in tests {
        let _ = writeln!(out, "        {}: {test}", yaml(&path));
    }
}

fn about(server: &Server, method: &str, action: &str, out: &mut String) {
    let _ = writeln!(out, "      action: {action}");
    scope(server, method, out);
}

fn scope(server: &Server, method: &str, out: &mut String) {
    if server.id != "*" {
        let _ = writeln!(out, "      source: {}", yaml(&literal(&server.id)));
    }
    let _ = writeln!(out, "      method: {method}");
}

impl Row {
    /// The path as rules write it.
    fn path(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            match step {
                Step::Each => text += "[*]",
                Step::Key(name) if is_name(name) && text.is_empty() => text += name,
                Step::Key(name) if is_name(name) => {
                    let _ = write!(text, ".{name}");
                }
                Step::Key(name) => {
                    let quoted = name.replace('\\', "\\\\").replace('\'', "\\'");
                    let _ = write!(text, "['{quoted}']");
                }
            }
        }
        text
    }

    /// The test that lets a call through.
    fn allowed(&self) -> String {
        match &self.limit {
            Limit::OneOf(values) => one_of(values),
            Limit::Under(folder) => {
                format!("{{ glob: {}, not: {{ glob: \"*..*\" }} }}", yaml(&under(folder)))
            }
            Limit::Range(least, most) => format!("{{ min: {least}, max: {most} }}"),
            Limit::Text => "{ glob: \"*\" }".to_owned(),
            Limit::Any | Limit::NoText => "{ exists: true }".to_owned(),
            Limit::Nothing => "{ exists: false }".to_owned(),
        }
    }

    /// The tests that stop a call, if what they are about is there.
    fn denied(&self) -> Vec<String> {
        match &self.limit {
            Limit::OneOf(_) | Limit::Range(..) | Limit::Text => {
                vec![format!("{{ not: {} }}", self.allowed())]
            }
            Limit::Under(folder) => vec![
                format!("{{ not: {{ glob: {} }} }}", yaml(&under(folder))),
                "{ glob: \"*..*\" }".to_owned(),
            ],
            Limit::Nothing => vec!["{ exists: true }".to_owned()],
            // What is in a list is limited by itself, also where one value stands for the list.
            Limit::Any | Limit::NoText => Vec::new(),
        }
    }
}

fn under(folder: &str) -> String {
    format!("{}*", literal(folder))
}

fn one_of(values: &[String]) -> String {
    let written: Vec<String> = values.iter().map(|value| yaml_value(value)).collect();
    match &written[..] {
        [one] => format!("{{ equals: {one} }}"),
        all => format!("{{ in: [{}] }}", all.join(", ")),
    }
}
