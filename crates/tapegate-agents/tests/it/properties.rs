//! Generated configs of every format, rewritten and put back, and read by a second parser.

use proptest::prelude::*;
use serde_json::{Value, json};
use tapegate_agents::client_table::EntryStyle;
use tapegate_agents::discovery::PlaceStep;
use tapegate_agents::rewrite::{EntryRewrite, ShimCommand, put_back, rewrite};
use tapegate_agents::tree::ConfigFormat;

use crate::toml_reader;

/// A server as a config names it.
#[derive(Debug, Clone)]
struct GeneratedServer {
    command: String,
    args: Option<Vec<String>>,
    env: Option<String>,
}

/// How a config is written.
#[derive(Debug, Clone)]
pub(crate) struct WritingStyle {
    has_mark: bool,
    line_break: &'static str,
    /// What is put between tokens; comments where the format has them.
    blanks: Vec<usize>,
    trailing_commas: bool,
    pub(crate) block_lists: bool,
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z@/._-]{1,12}",
        "[ -~]{0,12}",
        "\\PC{1,6}",
        Just("--".to_owned()),
        Just("ü ☃ \u{1f600}".to_owned()),
        Just("tab\tand \"quote\" \\ back".to_owned()),
    ]
}

fn server() -> impl Strategy<Value = GeneratedServer> {
    let command = "[a-z][a-z0-9/._-]{0,10}";
    let args = proptest::option::of(proptest::collection::vec(text(), 0..5));
    (command, args, proptest::option::of(text())).prop_map(|(command, args, env)| GeneratedServer {
        command,
        args,
        env,
    })
}

fn servers() -> impl Strategy<Value = Vec<(String, GeneratedServer)>> {
    let name = prop_oneof!["[a-z][a-z0-9-]{0,8}", Just("my server ü".to_owned())];
    proptest::collection::btree_map(name, server(), 1..6)
        .prop_map(|servers| servers.into_iter().collect())
}

pub(crate) fn style() -> impl Strategy<Value = WritingStyle> {
    let breaks = prop_oneof![Just("\n"), Just("\r\n")];
    let blanks = proptest::collection::vec(0usize..6, 1..12);
    (any::<bool>(), breaks, blanks, any::<bool>(), any::<bool>()).prop_map(
        |(has_mark, line_break, blanks, trailing_commas, block_lists)| WritingStyle {
            has_mark,
            line_break,
            blanks,
            trailing_commas,
            block_lists,
        },
    )
}

impl WritingStyle {
    pub(crate) fn finish(&self, text: String) -> String {
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        format!("{mark}{}", text.replace('\n', self.line_break))
    }

    /// JSON with the blanks, comments and commas of this style.
    pub(crate) fn json(&self, value: &Value) -> String {
        let mut at = 0;
        let mut out = String::new();
        self.write_json(value, &mut at, &mut out);
        self.finish(out)
    }

    fn blank(&self, at: &mut usize) -> &'static str {
        *at += 1;
        ["", " ", "\n  ", " // \"not\": [a value,\n", "/* { */", "\t"]
            [self.blanks[*at % self.blanks.len()]]
    }

    fn write_json(&self, value: &Value, at: &mut usize, out: &mut String) {
        out.push_str(self.blank(at));
        match value {
            Value::Object(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    out.push_str(self.blank(at));
                    out.push_str(&Value::from(key.as_str()).to_string());
                    out.push_str(self.blank(at));
                    out.push(':');
                    self.write_json(value, at, out);
                }
                out.push_str(self.comma(members.is_empty()));
                out.push_str(self.blank(at));
                out.push('}');
            }
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { "," } else { "" });
                    self.write_json(item, at, out);
                }
                out.push_str(self.comma(items.is_empty()));
                out.push_str(self.blank(at));
                out.push(']');
            }
            other => out.push_str(&other.to_string()),
        }
        out.push_str(self.blank(at));
    }

    fn comma(&self, is_empty: bool) -> &'static str {
        if self.trailing_commas && !is_empty { "," } else { "" }
    }

    fn toml(&self, servers: &[(String, GeneratedServer)]) -> String {
        let quote = |text: &str| Value::from(text).to_string().replace('\u{7f}', "\\u007f");
        let mut out = "# mine\nmodel = \"x\" # ü\n".to_owned();
        for (name, server) in servers {
            out += &format!("\n[mcp_servers.{}] # one\n", quote(name));
            out += &format!("command = {} # here\n", quote(&server.command));
            if let Some(args) = &server.args {
                let items = args.iter().map(|arg| quote(arg));
                out += &match self.block_lists {
                    true => format!(
                        "args = [\n{}]\n",
                        items.map(|one| format!("  {one}, # a\n")).collect::<String>()
                    ),
                    false => format!("args = [{}]\n", items.collect::<Vec<_>>().join(" , ")),
                };
            }
            if let Some(env) = &server.env {
                out += &format!("[mcp_servers.{}.env]\nA = {}\n", quote(name), quote(env));
            }
        }
        self.finish(out + "\n[tail]\na = 1979-05-27\n")
    }

    fn yaml(&self, servers: &[(String, GeneratedServer)]) -> String {
        let quote = |text: &str| tapegate_agents::edit::quote(text);
        let mut out = "# mine\nmodel: x # ü\nmcpServers:\n".to_owned();
        for (name, server) in servers {
            out += &format!("  - name: {}\n    command: {} # here\n", quote(name), server.command);
            if let Some(args) = &server.args {
                let items = args.iter().map(|arg| quote(arg));
                out += &match self.block_lists && !args.is_empty() {
                    true => format!(
                        "    args: # a\n{}",
                        items.map(|one| format!("      - {one} # b\n")).collect::<String>()
                    ),
                    false => format!("    args: [{}]\n", items.collect::<Vec<_>>().join(" , ")),
                };
            }
            if let Some(env) = &server.env {
                out += &format!("    env: {{A: {}}}\n", quote(env));
            }
        }
        self.finish(out + "tail:\n  - 1\n")
    }
}

fn prefix(name: &str) -> Vec<String> {
    ["/opt/my tools/tapegate", "shim", "--server-id", name, "--"].map(str::to_owned).to_vec()
}

fn rewrites(
    servers: &[(String, GeneratedServer)],
    key: &str,
    style: EntryStyle,
) -> Vec<EntryRewrite> {
    let place = |name: &str| match style {
        EntryStyle::ListYaml => PlaceStep::Named(name.to_owned()),
        _ => PlaceStep::Key(name.to_owned()),
    };
    let one = |(name, _): &(String, GeneratedServer)| EntryRewrite {
        place: vec![PlaceStep::Key(key.to_owned()), place(name)],
        style,
        shim: ShimCommand::Before(prefix(name)),
    };
    servers.iter().map(one).collect()
}

/// The entry of a server, as it is or behind its shim.
fn entry(name: &str, server: &GeneratedServer, is_wrapped: bool) -> Value {
    let mut words = prefix(name);
    let mut entry = serde_json::Map::new();
    let args = server.args.clone().unwrap_or_default();
    if is_wrapped {
        let program = words.remove(0);
        entry.insert("command".to_owned(), program.into());
        entry
            .insert("args".to_owned(), [words, vec![server.command.clone()], args].concat().into());
    } else {
        entry.insert("command".to_owned(), server.command.clone().into());
        server.args.iter().for_each(|args| {
            entry.insert("args".to_owned(), args.clone().into());
        });
    }
    server.env.iter().for_each(|env| {
        entry.insert("env".to_owned(), json!({ "A": env }));
    });
    Value::Object(entry)
}

/// Asserts that a config can be rewritten and put back, and returns it rewritten.
fn check(text: &str, format: ConfigFormat, rewrites: &[EntryRewrite]) -> String {
    let edited = rewrite(text, format, rewrites).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let back = put_back(text, &edited, format, rewrites).expect("its own rewrite can be undone");
    assert_eq!(back.text, text);
    edited.strip_prefix('\u{feff}').unwrap_or(&edited).to_owned()
}

/// The same keys and values, whatever the order of the keys.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            members.sort_by(|own, other| own.0.cmp(&other.0));
            Value::Object(members.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn json_is_put_back_and_read_as_expected_by_another_parser(servers in servers(), style in style()) {
        let config = |is_wrapped| {
            let entries = servers.iter().map(|(name, one)| (name.clone(), entry(name, one, is_wrapped)));
            json!({"a": [1.50, {"x": null}], "mcpServers": Value::Object(entries.collect()), "z": "ü"})
        };
        let text = style.json(&config(false));
        let edited = check(&text, ConfigFormat::Json, &rewrites(&servers, "mcpServers", EntryStyle::Json));
        let read: Value = jsonc_parser::parse_to_serde_value(&edited, &jsonc_parser::ParseOptions::default()).unwrap();
        prop_assert_eq!(sorted(&read), sorted(&config(true)));
    }

    #[test]
    fn toml_is_put_back_and_read_as_expected_by_another_parser(servers in servers(), style in style()) {
        let text = style.toml(&servers);
        let edited = check(&text, ConfigFormat::Toml, &rewrites(&servers, "mcp_servers", EntryStyle::Toml));
        let read: Value = toml_reader::read(&edited);
        for (name, server) in &servers {
            prop_assert_eq!(sorted(&read["mcp_servers"][name]), sorted(&entry(name, server, true)));
        }
        prop_assert_eq!(&read["model"], "x");
    }

    #[test]
    fn yaml_is_put_back_and_read_as_expected_by_another_parser(servers in servers(), style in style()) {
        let text = style.yaml(&servers);
        let edited = check(&text, ConfigFormat::Yaml, &rewrites(&servers, "mcpServers", EntryStyle::ListYaml));
        let read: Value = yaml_serde::from_str(&edited).unwrap();
        for (index, (name, server)) in servers.iter().enumerate() {
            let mut expected = entry(name, server, true);
            expected["name"] = name.as_str().into();
            prop_assert_eq!(sorted(&read["mcpServers"][index]), sorted(&expected));
        }
        prop_assert_eq!(&read["tail"], &json!([1]));
    }
}
