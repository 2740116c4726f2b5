//! Generated configs of every client: found, rewritten, read by a second parser, and put back.
//!
//! What is expected is computed from what the second parser reads in the original, so that neither
//! our parser nor our edits take part in it.

mod notations;

use std::path::Path;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tapegate_agents::client_table::{
    CLIENTS, CUSTOM, CUSTOM_KEYS, ConfigFile, EntryStyle, McpClient, PathRoot, ServerKeys,
};
use tapegate_agents::config_guard::{self, ConfigGuard, ConfigLock, RestoreOutcome};
use tapegate_agents::discovery::{DiscoveryContext, find_in_configs};
use tapegate_agents::governance;
use tapegate_agents::installation::{ConfigNotation, InstalledEntries};
use tapegate_agents::rewrite::{EntryRewrite, put_back, rewrite};
use tapegate_agents::shim_entry::{header_variable, shim_command};
use tapegate_agents::tree::ConfigFormat;

use crate::properties::{WritingStyle, sorted, style, text};
use crate::toml_reader;

/// A server to be written in the notation of a client.
#[derive(Debug, Clone)]
struct ServerSpec {
    name: String,
    program: String,
    args: Option<Vec<String>>,
    env: Option<String>,
    /// Reached by URL, with headers, rather than by a command.
    headers: Option<Vec<(String, String)>>,
    /// Written in the client's rarer notation, if it has one.
    is_nested: bool,
    /// Whether an older entry of the same name is before it.
    is_repeated: bool,
    /// Whether its entry says that it is off.
    is_off: bool,
    /// Which of the notations of the format its texts and entry have.
    notation: usize,
}

/// A config of one client.
#[derive(Debug, Clone)]
struct ConfigSpec {
    client: &'static McpClient,
    file: &'static ConfigFile,
    servers: Vec<ServerSpec>,
    style: WritingStyle,
}

/// Configs of a client that is not known, under each key that is looked for.
static CUSTOM_FILES: [ConfigFile; 8] = [
    custom(CUSTOM_KEYS[0], ConfigFormat::Json),
    custom(CUSTOM_KEYS[1], ConfigFormat::Json),
    custom(CUSTOM_KEYS[2], ConfigFormat::Json),
    custom(CUSTOM_KEYS[3], ConfigFormat::Json),
    custom(CUSTOM_KEYS[4], ConfigFormat::Json),
    custom(CUSTOM_KEYS[5], ConfigFormat::Json),
    custom(CUSTOM_KEYS[4], ConfigFormat::Toml),
    custom(CUSTOM_KEYS[0], ConfigFormat::Yaml),
];

const fn custom(keys: ServerKeys, format: ConfigFormat) -> ConfigFile {
    ConfigFile { root: PathRoot::Home, path: "", format, keys }
}

const FOLDER: &str = "/home/ü/my project";

fn header() -> impl Strategy<Value = (String, String)> {
    ("[A-Z][a-z]{1,6}(-[A-Z][a-z]{1,4})?", "[ -~]{0,12}|Bearer \\$\\{T\\}|ü ☃")
}

fn server() -> impl Strategy<Value = ServerSpec> {
    let headers = proptest::collection::btree_map("[A-Z][a-z]{1,6}", "[ -~]{0,12}", 0..3)
        .prop_map(|headers| headers.into_iter().collect::<Vec<_>>());
    let headers = prop_oneof![headers, header().prop_map(|one| vec![one])];
    (
        "[a-z][a-z0-9/._-]{0,10}",
        proptest::option::of(proptest::collection::vec(text(), 0..5)),
        proptest::option::of(text()),
        proptest::option::weighted(0.3, headers),
        (any::<bool>(), any::<bool>(), proptest::bool::weighted(0.15), 0usize..4),
    )
        .prop_map(|(program, args, env, headers, flags)| ServerSpec {
            name: String::new(),
            program,
            args,
            env,
            headers,
            is_nested: flags.0,
            is_repeated: flags.1,
            is_off: flags.2,
            notation: flags.3,
        })
}

fn servers(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<ServerSpec>> {
    let name = prop_oneof![
        "[a-z][a-z0-9-]{0,8}",
        "[a-z]{1,3} ü[a-z]{0,3}",
        "[a-z]\\.[a-z]",
        "[数据☃]{1,3}"
    ];
    proptest::collection::btree_map(name, server(), count).prop_map(|servers| {
        servers.into_iter().map(|(name, server)| ServerSpec { name, ..server }).collect()
    })
}

fn config(count: std::ops::Range<usize>) -> impl Strategy<Value = ConfigSpec> {
    let of_clients = CLIENTS.iter();
    let mut files: Vec<(&McpClient, &ConfigFile)> =
        of_clients.flat_map(|client| client.files.iter().map(move |file| (client, file))).collect();
    files.extend(CUSTOM_FILES.iter().map(|file| (&CUSTOM, file)));
    (proptest::sample::select(files), servers(count), style())
        .prop_map(|((client, file), servers, style)| ConfigSpec { client, file, servers, style })
}

impl ConfigSpec {
    fn text(&self) -> String {
        match self.file.format {
            ConfigFormat::Json => self.json(),
            ConfigFormat::Toml => self.toml(),
            ConfigFormat::Yaml => self.yaml(),
        }
    }

    fn keys(&self) -> Vec<&str> {
        match self.file.keys {
            ServerKeys::Path(keys) => keys.to_vec(),
            ServerKeys::ClaudeProject => vec!["projects", FOLDER, "mcpServers"],
        }
    }

    fn json(&self) -> String {
        let entries: Map<String, Value> =
            self.servers.iter().map(|one| (one.name.clone(), self.json_entry(one))).collect();
        let nest = |inner: Value, key: &&str| json!({ "before": [1.50, {"x": null}], (*key): inner, "z ü": true });
        let config = self.keys().iter().rev().fold(Value::Object(entries), nest);
        let text = self.style.json(&config);
        // A name that occurs twice: the last one counts.
        let repeated = self.servers.iter().filter(|one| one.is_repeated);
        repeated.fold(text, |text, one| {
            let key = Value::from(one.name.as_str()).to_string();
            match text.match_indices(&key).count() {
                1 => text.replacen(&key, &format!("{key}: {{\"command\": \"old\"}}, {key}"), 1),
                _ => text,
            }
        })
    }

    fn json_entry(&self, server: &ServerSpec) -> Value {
        let mut entry = self.json_entry_that_is_on(server);
        // One of the two ways to say so.
        if server.is_off {
            let (key, value) = [("disabled", true), ("enabled", false)][server.notation % 2];
            entry[key] = value.into();
        }
        entry
    }

    fn json_entry_that_is_on(&self, server: &ServerSpec) -> Value {
        let args = server.args.clone().unwrap_or_default();
        if let Some(headers) = &server.headers {
            let headers: Map<String, Value> =
                headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            let kind =
                if self.client.style == EntryStyle::OpencodeJson { "remote" } else { "http" };
            let entry = json!({"type": kind, "url": "https://x.example/mcp", "headers": headers});
            return match self.client.id == "cline" && server.is_nested {
                true => json!({ "transport": entry, "timeout": 60 }),
                false => entry,
            };
        }
        let mut entry = match (self.client.style, self.client.id, server.is_nested) {
            (EntryStyle::OpencodeJson, ..) => {
                json!({"type": "local", "command": ([vec![server.program.clone()], args].concat())})
            }
            (_, "zed", true) => {
                json!({"source": "custom", "command": {"path": server.program, "args": args}})
            }
            _ => json!({ "command": server.program }),
        };
        let is_plain = entry["command"].is_string();
        if let (true, Some(args)) = (is_plain, &server.args) {
            entry["args"] = args.clone().into();
        }
        if let Some(env) = &server.env {
            let key = if is_plain { "env" } else { "environment" };
            entry[key] = json!({ "A": env, "b c": "" });
        }
        match self.client.id == "cline" && server.is_nested {
            true => {
                entry["type"] = "stdio".into();
                json!({ "transport": entry, "autoApprove": ["x"] })
            }
            false => entry,
        }
    }

    /// What another parser than ours reads.
    fn parse(&self, text: &str) -> Value {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self.file.format {
            ConfigFormat::Json => {
                jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default())
                    .unwrap()
            }
            ConfigFormat::Toml => toml_reader::read(text),
            ConfigFormat::Yaml => yaml_serde::from_str(text).unwrap(),
        }
    }

    /// Whether the client does not start a server, so that its entry stays as it is.
    fn is_left(&self, name: &str) -> bool {
        let is_off = self.servers.iter().any(|server| server.name == name && server.is_off);
        is_off && self.client.reads_switch
    }

    /// The config with every entry behind its shim.
    fn behind_shims(&self, mut config: Value, words: &[String]) -> Value {
        let keys = self.keys();
        let place = keys.iter().try_fold(&mut config, |value, key| value.get_mut(key)).unwrap();
        match place {
            Value::Object(entries) => {
                for (name, entry) in entries.iter_mut().filter(|(name, _)| !self.is_left(name)) {
                    *entry = self.behind_shim(name, entry.take(), words);
                }
            }
            Value::Array(entries) => {
                for entry in entries.iter_mut() {
                    let name = entry["name"].as_str().unwrap().to_owned();
                    if self.is_left(&name) {
                        continue;
                    }
                    *entry = self.behind_shim(&name, entry.take(), words);
                }
            }
            other => panic!("{other}"),
        }
        config
    }

    /// How the client names a server that is a process, and the key of its environment.
    fn kind_and_env_key(&self) -> (Option<&'static str>, &'static str) {
        match self.client.style {
            // As its entries are written: these have a type.
            _ if self.client.id == CUSTOM.id => (Some("stdio"), "env"),
            EntryStyle::OpencodeJson => (Some("local"), "environment"),
            EntryStyle::CopilotJson => (Some("local"), "env"),
            EntryStyle::GooseYaml => (Some("stdio"), "envs"),
            EntryStyle::ClaudeCode | EntryStyle::TypedJson | EntryStyle::ListYaml => {
                (Some("stdio"), "env")
            }
            EntryStyle::Json | EntryStyle::Toml => (None, "env"),
        }
    }

    fn behind_shim(&self, name: &str, mut entry: Value, words: &[String]) -> Value {
        if entry["transport"].is_object() {
            let inner = entry["transport"].take();
            entry["transport"] = self.behind_shim(name, inner, words);
            if entry["transport"]["command"].is_string() && entry["transport"]["type"].is_null() {
                entry["transport"]["type"] = "stdio".into();
            }
            return entry;
        }
        let id = tapegate_agents::server_id::server_id(name);
        let mut words = [words, &["--server-id".to_owned(), id.clone()]].concat();
        let map = entry.as_object_mut().unwrap();
        let list = |value: Option<&Value>| -> Vec<String> {
            let items = value.and_then(Value::as_array).cloned().unwrap_or_default();
            items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
        };
        let command = if self.client.style == EntryStyle::GooseYaml { "cmd" } else { "command" };
        if let Some(url) = map.remove("url").or_else(|| map.remove("uri")) {
            words.extend(["--upstream-http".to_owned(), url.as_str().unwrap().to_owned()]);
            let headers = map.remove("headers").or_else(|| map.remove("http_headers"));
            let mut env = Map::new();
            for (header, value) in headers.as_ref().and_then(Value::as_object).into_iter().flatten()
            {
                let variable = header_variable(&id, header);
                words.extend(["--header-env".to_owned(), format!("{header}={variable}")]);
                env.insert(variable, value.clone());
            }
            let had_kind = map.remove("type").is_some();
            let (kind, env_key) = self.kind_and_env_key();
            if let (true, Some(kind)) = (had_kind, kind) {
                map.insert("type".to_owned(), kind.into());
            }
            if !env.is_empty() {
                map.insert(env_key.to_owned(), env.into());
            }
            match self.client.style == EntryStyle::OpencodeJson {
                true => drop(map.insert("command".to_owned(), words.into())),
                false => {
                    map.insert(command.to_owned(), words.remove(0).into());
                    map.insert("args".to_owned(), words.into());
                }
            }
            return entry;
        }
        words.push("--".to_owned());
        match map[command].clone() {
            Value::Array(own) => {
                let own = list(Some(&Value::Array(own)));
                map.insert(command.to_owned(), [words, own].concat().into());
            }
            Value::Object(own) => {
                let program = own["path"].as_str().unwrap().to_owned();
                let first = words.remove(0);
                let args = [words, vec![program], list(own.get("args"))].concat();
                map.insert(command.to_owned(), json!({ "path": first, "args": args }));
            }
            own => {
                let program = own.as_str().unwrap().to_owned();
                let first = words.remove(0);
                let args = [words, vec![program], list(map.get("args"))].concat();
                map.insert(command.to_owned(), first.into());
                map.insert("args".to_owned(), args.into());
            }
        }
        entry
    }
}

/// Finds, rewrites, reads and puts back a config.
fn check(config: &ConfigSpec) -> Result<(), TestCaseError> {
    let text = config.text();
    let folder = tempfile::tempdir().unwrap();
    let name = match config.file.format {
        ConfigFormat::Json => "c.json",
        ConfigFormat::Toml => "c.toml",
        ConfigFormat::Yaml => "c.yaml",
    };
    let path = folder.path().join(name);
    std::fs::write(&path, &text).unwrap();
    let context = DiscoveryContext { folder: Path::new(FOLDER), variable: &|_| None };
    let scan = find_in_configs(&context, config.client, std::slice::from_ref(&path));
    let mut names: Vec<&str> = scan.servers.iter().map(|one| one.name.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    prop_assert_eq!(names.len(), config.servers.len(), "{:?}\n{}", scan.skipped, text);
    let words = ["/opt/my tools/tapegate", "shim"].map(str::to_owned);
    let mut rewrites: Vec<EntryRewrite> = Vec::new();
    for one in &scan.servers {
        if one.entry.is_disabled {
            prop_assert!(config.is_left(&one.name), "{}\n{}", one.name, text);
            continue;
        }
        let shim = shim_command(one, &words).unwrap();
        if !rewrites.iter().any(|known| known.place == one.place) {
            rewrites.push(EntryRewrite {
                place: one.place.clone(),
                style: governance::style(one),
                shim,
            });
        }
    }
    let edited = rewrite(&text, config.file.format, &rewrites)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let expected = config.behind_shims(config.parse(&text), &words);
    prop_assert_eq!(sorted(&config.parse(&edited)), sorted(&expected), "{}\n{}", text, edited);
    let back = put_back(&text, &edited, config.file.format, &rewrites).unwrap();
    prop_assert_eq!(&back.text, &text);
    // As a session does it: which entries were rewritten follows from the two files.
    let lock = ConfigLock::acquire(&path).unwrap();
    ConfigGuard::rewrite(lock, config.file.format, &rewrites).unwrap().keep();
    prop_assert_eq!(&std::fs::read_to_string(&path).unwrap(), &edited);
    let lock = ConfigLock::acquire(&path).unwrap();
    let outcome = config_guard::restore(&lock, config.file.format).unwrap();
    prop_assert_eq!(outcome, Some(RestoreOutcome::Exactly));
    prop_assert_eq!(&std::fs::read_to_string(&path).unwrap(), &text);
    // And as `agents uninstall` does it.
    let places = rewrites.iter().map(|one| one.place.clone()).collect();
    let installed = InstalledEntries { original: text.clone(), places };
    let notation = ConfigNotation { format: config.file.format, style: config.client.style };
    let undone = installed.undo(&path, &edited, notation).unwrap();
    prop_assert_eq!(&undone.text, &text);
    // A session writes the entries of a client that is not known by their type, an installation does
    // not, so that it takes them for changed.
    prop_assert!(!undone.is_merged || config.client.id == CUSTOM.id);
    // The keys of a table that is written with dots are not one piece of text. If a server with a URL
    // is among them, the original is restored instead of a merge.
    let is_dotted = config.file.format == ConfigFormat::Toml && config.servers[0].notation == 2;
    // Entries are merged one at a time, which takes long for many.
    if config.servers.len() > 40 || is_dotted {
        return Ok(());
    }
    // Something else was appended meanwhile: only our entries are put back.
    let touched = format!("{edited}\n");
    let back = put_back(&text, &touched, config.file.format, &rewrites).unwrap();
    match config.file.format {
        // Where an entry ends in a comment, a merge may put it back without the comment.
        ConfigFormat::Yaml => prop_assert_eq!(config.parse(&back.text), config.parse(&text)),
        _ => prop_assert_eq!(back.text, format!("{text}\n")),
    }
    prop_assert!(back.conflicts.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn every_client_s_config_is_rewritten_as_expected_and_put_back(config in config(1..6)) {
        check(&config)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20, ..ProptestConfig::with_cases(12) })]

    #[test]
    fn a_config_with_many_servers_that_others_have_changed_is_merged(config in config(11..40)) {
        check(&config)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, max_shrink_iters: 20, ..ProptestConfig::with_cases(4) })]

    #[test]
    fn a_config_with_hundreds_of_servers_is_like_any_other(config in config(150..250)) {
        check(&config)?;
    }
}

#[test]
fn the_generator_covers_every_client() {
    let without: Vec<&str> = CLIENTS
        .iter()
        .filter(|client| client.files.iter().all(|file| file.root == PathRoot::System))
        .map(|client| client.id)
        .collect();
    assert!(without.is_empty(), "{without:?}");
}
