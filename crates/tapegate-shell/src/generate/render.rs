//! Writes groups as a policy, in YAML and in JSON.

use std::fmt::Write;

use super::CommandGroup;

/// What follows the groups, so that the file is a policy on its own.
const POLICY: &str = r#"
# Everything else waits for a person: `tapegate approvals`.
schema: 1
governance:
  defaults: {action: approve}
  rules:
    - id: own-tools
      match: ["bash_recorder?session_info", "bash_recorder?list_recent", "bash_recorder?read_output", "bash_recorder?stop"]
      action: forward
"#;

/// The same in JSON.
const JSON_POLICY: &str = r#"  "schema": 1,
  "governance": {
    "defaults": {"action": "approve"},
    "rules": [
      {
        "id": "own-tools",
        "match": ["bash_recorder?session_info", "bash_recorder?list_recent", "bash_recorder?read_output", "bash_recorder?stop"],
        "action": "forward"
      }
    ]
  }
}
"#;

/// The groups as a policy, after comment lines.
pub fn render_yaml(header: &[String], groups: &[CommandGroup], footer: &[String]) -> String {
    let mut out = String::new();
    for line in header {
        // A line break in a comment would end it.
        out += &format!("# {}\n", line.replace(['\n', '\r'], " "));
    }
    out += if groups.is_empty() { "\npolicies: []\n" } else { "\npolicies:\n" };
    for (index, group) in groups.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out += &format!("  - name: {}\n", group.name);
        out += &format!("    description: {}\n    commands:\n", group.description);
        for command in &group.commands {
            out += &format!("      - pattern: {}\n", quoted_text(&command.pattern));
            out += &format!("        frequency: {}\n", command.frequency);
            if command.exact {
                out += "        exact: true\n";
            }
            if let Some(class) = command.class {
                out += &format!("        class: {class}\n");
            }
            if command.review {
                out += "        review: true\n";
            }
            if let Some((risk, why)) = &command.meaning {
                out += &format!("        risk: {risk}\n        why: {}\n", quoted_text(why));
            }
        }
    }
    out += POLICY;
    if !footer.is_empty() {
        out.push('\n');
    }
    for line in footer {
        out += &format!("# {}\n", line.replace(['\n', '\r'], " "));
    }
    out
}

/// The same policy as one JSON document, which can be loaded too.
pub fn render_json(groups: &[CommandGroup]) -> String {
    let mut out = String::from("{\n  \"policies\": [");
    for (index, group) in groups.iter().enumerate() {
        out += if index > 0 { ",\n    {" } else { "\n    {" };
        out += &json_members([
            ("name", Some(quoted_text(&group.name))),
            ("description", Some(quoted_text(&group.description))),
        ]);
        out += ", \"commands\": [";
        for (index, command) in group.commands.iter().enumerate() {
            out += if index > 0 { ",\n      {" } else { "\n      {" };
            let meaning = command.meaning.as_ref();
            let members = [
                ("pattern", Some(quoted_text(&command.pattern))),
                ("frequency", Some(command.frequency.to_string())),
                ("exact", command.exact.then(|| "true".to_owned())),
                ("class", command.class.map(|class| quoted_text(&class.to_string()))),
                ("review", command.review.then(|| "true".to_owned())),
                ("risk", meaning.map(|(risk, _)| quoted_text(risk))),
                ("why", meaning.map(|(_, why)| quoted_text(why))),
            ];
            out += &json_members(members);
            out.push('}');
        }
        out += "\n    ]}";
    }
    out += "\n  ],\n";
    out + JSON_POLICY
}

/// The members that have a value, on one line.
fn json_members<const COUNT: usize>(members: [(&str, Option<String>); COUNT]) -> String {
    let member = |(key, value): (&str, Option<String>)| Some(format!("\"{key}\": {}", value?));
    members.into_iter().filter_map(member).collect::<Vec<_>>().join(", ")
}

/// A text in double quotes, as YAML and JSON read it. A `$` is doubled where it could begin a variable of the policy.
fn quoted_text(value: &str) -> String {
    let mut out = String::from("\"");
    let value = value.replace("${", "$${");
    for letter in value.chars() {
        match letter {
            '"' => out += "\\\"",
            '\\' => out += "\\\\",
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            letter
                if letter.is_control()
                    || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{85}') =>
            {
                let _ = write!(out, "\\u{:04x}", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}
