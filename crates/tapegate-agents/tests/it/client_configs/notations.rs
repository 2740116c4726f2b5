//! Generated configs in TOML and YAML, in the notations that these formats have for tables and texts.

use serde_json::Value;
use tapegate_agents::client_table::EntryStyle;

use super::{ConfigSpec, ServerSpec};

/// A text in one of the notations of TOML that can hold it.
fn toml_text(text: &str, notation: usize) -> String {
    let is_plain = !text.contains(|c: char| c == '\'' || c.is_control());
    match notation {
        1 if is_plain => format!("\'{text}\'"),
        2 if is_plain => format!("\'\'\'\n{text}\'\'\'"),
        3 => {
            let quoted = Value::from(text).to_string().replace('\u{7f}', "\\u007f");
            let inner = &quoted[1..quoted.len() - 1];
            // The blanks at the start of a line that is continued are left out.
            let inner = inner.replace("\\\"", "\\u0022").replace(' ', "\\u0020");
            format!("\"\"\"\\\n   {inner}\"\"\"")
        }
        _ => Value::from(text).to_string().replace('\u{7f}', "\\u007f"),
    }
}

/// A text in one of the notations of YAML that can hold it, in lines with this many blanks before
/// them.
fn yaml_text(text: &str, notation: usize, depth: usize) -> String {
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric());
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    match notation {
        // A known gap: the editor refuses some configs with folded texts, most often of one letter.
        2 if is_word && !is_number && depth > 0 && text.len() > 1 => {
            format!(">-\n{}{text}", " ".repeat(depth))
        }
        2 if !text.contains(|c: char| c == '\'' || c.is_control() || !c.is_ascii()) => {
            format!("\'{text}\'")
        }
        _ => tapegate_agents::edit::quote(text),
    }
}

impl ConfigSpec {
    pub(super) fn toml(&self) -> String {
        let mut out = "# mine\nmodel = 'x' # ü\n".to_owned();
        // A table that is written with dots cannot be opened again, so all servers are written in
        // one way.
        let notation = self.servers.first().map_or(0, |server| server.notation);
        if notation == 2 {
            out += "[mcp_servers] # all\n";
        }
        for server in &self.servers {
            let name = toml_text(&server.name, 0);
            let pairs: Vec<(String, String)> = self.toml_pairs(server);
            let line = |(key, value): &(String, String)| format!("{key} = {value} # a\n");
            out += &match notation {
                1 => {
                    let pairs = pairs.iter().map(|(key, value)| format!("{key} = {value}"));
                    let pairs: Vec<String> = pairs.collect();
                    format!("mcp_servers.{name} = {{ {} }} # one\n", pairs.join(", "))
                }
                2 => pairs.iter().map(|pair| format!("{name} . {}", line(pair))).collect(),
                _ => {
                    let lines: String = pairs.iter().map(line).collect();
                    format!("\n[mcp_servers.{name}] # one\n{lines}")
                }
            };
        }
        self.style.finish(out + "\n[tail]\na = 1979-05-27\n")
    }

    /// The keys of a server's table and their values.
    fn toml_pairs(&self, server: &ServerSpec) -> Vec<(String, String)> {
        let quote = |text: &str| toml_text(text, server.notation);
        let map = |pairs: &mut dyn Iterator<Item = (&str, &str)>| {
            let pairs =
                pairs.map(|(key, value)| format!("{} = {}", toml_text(key, 0), quote(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        };
        let mut pairs: Vec<(&str, String)> = Vec::new();
        match &server.headers {
            Some(headers) => {
                pairs.push(("url", "'https://x.example/mcp'".to_owned()));
                pairs.push(("startup_timeout_sec", "1_0".to_owned()));
                let mut headers = headers.iter().map(|(key, value)| (key.as_str(), &**value));
                pairs.push(("http_headers", map(&mut headers)));
            }
            None => {
                pairs.push(("command", quote(&server.program)));
                if let Some(args) = &server.args {
                    let items: Vec<String> = args.iter().map(|arg| quote(arg)).collect();
                    let is_block = self.style.block_lists && server.notation != 1;
                    pairs.push(match is_block {
                        true => {
                            let lines = items.iter().map(|one| format!("  {one}, # a\n"));
                            ("args", format!("[\n{}]", lines.collect::<String>()))
                        }
                        false => ("args", format!("[{}]", items.join(" , "))),
                    });
                }
                let mut env = server.env.iter().map(|env| ("A", env.as_str()));
                if server.env.is_some() {
                    pairs.push(("env", map(&mut env)));
                }
            }
        }
        if server.is_off {
            pairs.push(("enabled", "false".to_owned()));
        }
        pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    }

    pub(super) fn yaml(&self) -> String {
        let is_map = self.client.style == EntryStyle::GooseYaml;
        let mut out = format!("# mine\nmodel: x # ü\n{}:\n", self.keys()[0]);
        for (at, server) in self.servers.iter().enumerate() {
            let name = yaml_text(&server.name, 0, 0);
            let pairs = self.yaml_pairs(server, at);
            if server.notation == 1 {
                // The whole entry in braces.
                let pairs: Vec<String> =
                    pairs.iter().map(|(key, value)| format!("{key}: {value}")).collect();
                out += &match is_map {
                    true => format!("  {name}: {{ {} }} # one\n", pairs.join(", ")),
                    false => format!("  - {{ name: {name}, {} }} # one\n", pairs.join(", ")),
                };
                continue;
            }
            out += &match is_map {
                true => format!("  {name}: # one\n"),
                false => format!("  - name: {name} # one\n"),
            };
            for (key, value) in pairs {
                out += &format!("    {key}: {value}\n");
            }
        }
        self.style.finish(out + "tail:\n  - 1\n")
    }

    /// The keys of a server's entry and their values.
    fn yaml_pairs(&self, server: &ServerSpec, at: usize) -> Vec<(&'static str, String)> {
        let is_map = self.client.style == EntryStyle::GooseYaml;
        let quote = |text: &str, depth: usize| yaml_text(text, server.notation, depth);
        let mut pairs: Vec<(&str, String)> = Vec::new();
        if let Some(headers) = &server.headers {
            let (kind, url) =
                if is_map { ("streamable_http", "uri") } else { ("streamable-http", "url") };
            pairs.push(("type", kind.to_owned()));
            pairs.push((url, "https://x.example/mcp".to_owned()));
            let headers: Vec<String> = headers
                .iter()
                .map(|(name, value)| format!("{name}: {}", yaml_text(value, 0, 0)))
                .collect();
            pairs.push(match server.notation == 0 && server.is_nested && !headers.is_empty() {
                true => ("headers", format!("\n      {}", headers.join("\n      "))),
                false => ("headers", format!("{{{}}}", headers.join(", "))),
            });
        } else {
            pairs.push((if is_map { "cmd" } else { "command" }, quote(&server.program, 0)));
            if let Some(args) = &server.args {
                let is_block = server.notation != 1 && self.style.block_lists && !args.is_empty();
                pairs.push(match is_block {
                    true => {
                        let lines = args.iter().map(|arg| format!("\n      - {}", quote(arg, 8)));
                        ("args", lines.collect())
                    }
                    false => {
                        let items: Vec<String> =
                            args.iter().map(|arg| yaml_text(arg, 0, 0)).collect();
                        ("args", format!("[{}]", items.join(" , ")))
                    }
                });
            }
            if let Some(env) = &server.env {
                let key = if is_map { "envs" } else { "env" };
                let value = yaml_text(env, 0, 0);
                // A value that is named, and used again.
                pairs.push((
                    key,
                    match server.notation {
                        3 => format!("{{A: &v{at} {value}, B: *v{at} }}"),
                        _ => format!("{{A: {value}}}"),
                    },
                ));
            }
        }
        if server.is_off {
            pairs.push(("enabled", "false".to_owned()));
        }
        pairs
    }
}
