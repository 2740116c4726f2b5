//! One server entry in a config, in the notation of any client.

use std::path::Path;

use crate::tree::{ConfigMember, ConfigNode, ConfigValue};

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// The program or URL.
    pub target: ServerTarget,
    /// The names of its environment variables. The values may be secret and are never read.
    pub variables: Vec<String>,
    /// Client settings that also apply to a command, such as a timeout or a switch, with their
    /// values. Text values may be secret, so such settings are listed by name in `others`.
    pub settings: Vec<(String, String)>,
    /// The names of settings that apply only to a URL. Clients reject them for a command; Codex
    /// rejects its whole config.
    pub removed: Vec<String>,
    /// Those of them that say that the client does not do it: `"oauth": false`.
    pub switched_off: Vec<String>,
    /// The variable with the token that the client sends in `Authorization`.
    pub bearer: Option<String>,
    /// Headers that the client takes from variables of its own environment: names and variables.
    pub header_variables: Vec<(String, String)>,
    /// The names of all other settings.
    pub others: Vec<String>,
    /// Its `type`, if it has one.
    pub kind: Option<String>,
    /// Whether the client does not start it.
    pub is_disabled: bool,
    /// Whether the server is already started through a shim.
    pub is_governed: bool,
}

/// The program or URL of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerTarget {
    /// A program and its arguments.
    Command(Vec<String>),
    /// A URL, and the names of the headers that are sent to it.
    Url(String, Vec<String>),
}

/// The settings of an entry that a snippet replaces.
const REPLACED: [&str; 20] = [
    "command",
    "cmd",
    "args",
    "type",
    "source",
    "name",
    "url",
    "serverUrl",
    "httpUrl",
    "uri",
    "endpoint",
    "headers",
    "http_headers",
    "env_http_headers",
    "env",
    "envs",
    "environment",
    "enabled",
    "disabled",
    "transport",
];

/// The settings that name a program.
pub(crate) const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];
/// The settings that name a URL.
pub(crate) const URL_KEYS: [&str; 5] = ["url", "serverUrl", "httpUrl", "uri", "endpoint"];
/// The settings that have headers.
pub(crate) const HEADER_KEYS: [&str; 3] = ["headers", "http_headers", "env_http_headers"];

/// Settings that apply only to a server reached by URL.
pub(crate) const URL_ONLY: [&str; 18] = [
    "auth",
    "authProviderType",
    "bearer_token",
    "bearer_token_env_var",
    "client_id",
    "client_secret_env_var",
    "headersHelper",
    "oauth",
    "oauth_client_id",
    "oauth_resource",
    "redirectUri",
    "requestInit",
    "requestOptions",
    "scopes",
    "sessionId",
    "targetAudience",
    "targetServiceAccount",
    "tcp",
];

impl ServerEntry {
    /// Reads an entry, or returns why it names neither a command nor a URL.
    pub fn read(tree: &ConfigNode) -> Result<Self, String> {
        // Cline nests settings that other clients have at the top level.
        let inner = tree.get("transport").filter(|inner| !inner.members().is_empty());
        let get = |key: &str| inner.and_then(|inner| inner.get(key)).or_else(|| tree.get(key));
        let is_true =
            |key: &str| get(key).is_some_and(|node| matches!(node.value, ConfigValue::Bool(true)));
        let is_off = |node: &ConfigNode| matches!(node.value, ConfigValue::Bool(false));
        let is_disabled = is_true("disabled") || get("enabled").is_some_and(is_off);
        check_target_keys(inner, tree)?;
        // Each client has one of these names.
        let environment = ["env", "envs", "environment"].iter().find_map(|key| get(key));
        let variables = environment.map(ConfigNode::members).unwrap_or_default();
        let variables = variables.iter().map(|member| member.key.clone()).collect();
        let target = match command(&get)?.or_else(|| url(&get)) {
            Some(target) => target,
            None if matches!(tree.value, ConfigValue::Map(_)) => {
                return Err("it has neither a command nor a URL".to_owned());
            }
            None => return Err("it is not a map of settings".to_owned()),
        };
        let is_governed = matches!(&target, ServerTarget::Command(argv) if is_shim(argv));
        let (mut settings, mut others) = settings(tree);
        let (mut removed, mut switched_off, mut bearer) = (Vec::new(), Vec::new(), None);
        let header_variables = get("env_http_headers").map(ConfigNode::members).unwrap_or_default();
        let header_variables = header_variables
            .iter()
            .filter_map(|one| Some((one.key.clone(), one.node.as_text()?.to_owned())))
            .collect();
        if matches!(target, ServerTarget::Url(..)) {
            let is_kept = |name: &String| !URL_ONLY.contains(&name.as_str());
            let own: Vec<_> = settings.extract_if(.., |(name, _)| !is_kept(name)).collect();
            let off = own.iter().filter(|(_, value)| value == "false");
            switched_off.extend(off.map(|(name, _)| name.clone()));
            removed.extend(own.into_iter().map(|(name, _)| name));
            removed.extend(others.extract_if(.., |name| !is_kept(name)));
            bearer = get("bearer_token_env_var").and_then(ConfigNode::as_text).map(str::to_owned);
        }
        let kind = get("type").and_then(ConfigNode::as_text).map(str::to_owned);
        Ok(Self {
            target,
            variables,
            settings,
            removed,
            switched_off,
            bearer,
            header_variables,
            others,
            kind,
            is_disabled,
            is_governed,
        })
    }
}

/// Checks that only one setting says what to start or connect to. Of several, which one counts
/// differs between clients, and the others would stay in an entry that is put behind a shim.
fn check_target_keys(inner: Option<&ConfigNode>, tree: &ConfigNode) -> Result<(), String> {
    let keys = COMMAND_KEYS.iter().chain(&URL_KEYS);
    let is_given = |map: &ConfigNode, key: &str| {
        map.get(key).is_some_and(|node| !matches!(node.value, ConfigValue::Null))
    };
    let maps = [inner, Some(tree)];
    let given = maps.into_iter().flatten().flat_map(|map| {
        keys.clone().filter(move |key| is_given(map, key)).map(|key| format!("`{key}`"))
    });
    let given: Vec<String> = given.collect();
    match given.len() {
        0 | 1 => Ok(()),
        _ => Err(format!("it says in several ways what to start: {}", given.join(", "))),
    }
}

/// The remaining settings: those whose values can be shown, and the names of the others.
fn settings(tree: &ConfigNode) -> (Vec<(String, String)>, Vec<String>) {
    let (mut settings, mut others) = (Vec::new(), Vec::new());
    let unknown = |member: &&ConfigMember| !REPLACED.contains(&member.key.as_str());
    for ConfigMember { key: name, node, .. } in tree.members().iter().filter(unknown) {
        match &node.value {
            ConfigValue::Bool(yes) => settings.push((name.clone(), yes.to_string())),
            ConfigValue::Number(number) => settings.push((name.clone(), number.clone())),
            // Texts and nested settings may be secrets, so only the name is kept.
            _ => others.push(name.clone()),
        }
    }
    (settings, others)
}

fn command<'a>(
    get: &impl Fn(&str) -> Option<&'a ConfigNode>,
) -> Result<Option<ServerTarget>, String> {
    let Some(own) = COMMAND_KEYS.iter().find_map(|key| get(key)) else { return Ok(None) };
    let args = |tree: Option<&ConfigNode>| match tree {
        None => Ok(Vec::new()),
        Some(tree) if matches!(tree.value, ConfigValue::Null) => Ok(Vec::new()),
        Some(tree) => tree.texts().ok_or("its `args` is not a list of texts".to_owned()),
    };
    let is_not = || "its command is not a text".to_owned();
    let argv = match &own.value {
        ConfigValue::Text(program) => [vec![program.clone()], args(get("args"))?].concat(),
        // opencode puts all words into one list; older versions of Zed use a map.
        ConfigValue::List(_) => {
            own.texts().ok_or("its command is not a list of texts".to_owned())?
        }
        ConfigValue::Map(_) => {
            let program = own.get("path").and_then(ConfigNode::as_text).ok_or_else(is_not)?;
            [vec![program.to_owned()], args(own.get("args"))?].concat()
        }
        _ => return Err(is_not()),
    };
    match argv.first() {
        Some(program) if !program.trim().is_empty() => Ok(Some(ServerTarget::Command(argv))),
        _ => Err("its command is empty".to_owned()),
    }
}

fn url<'a>(get: &impl Fn(&str) -> Option<&'a ConfigNode>) -> Option<ServerTarget> {
    let url = URL_KEYS.iter().find_map(|key| get(key).and_then(ConfigNode::as_text))?;
    let headers = HEADER_KEYS.iter().filter_map(|key| get(key)).flat_map(ConfigNode::members);
    let mut headers: Vec<String> = headers.map(|member| member.key.clone()).collect();
    let has_token = get("bearer_token_env_var").or_else(|| get("bearer_token")).is_some();
    // Codex sends the token of that variable as this header; the shim must send it instead.
    if has_token && !headers.iter().any(|name| name.eq_ignore_ascii_case("Authorization")) {
        headers.push("Authorization".to_owned());
    }
    Some(ServerTarget::Url(url.to_owned(), headers))
}

/// Whether a command line starts a shim, under any name of the binary.
fn is_shim(argv: &[String]) -> bool {
    // The form that `wrap` writes, whatever the binary that wrote it was called.
    let is_written = |words: &[String]| {
        Path::new(&words[0]).is_absolute() && words[1] == "shim" && words[2].starts_with("--")
    };
    argv.windows(2).any(|words| words[1] == "shim" && is_own_program(&words[0]))
        || argv.windows(3).any(is_written)
}

/// Whether a word of a command line is our binary, under any name.
pub(crate) fn is_own_program(word: &str) -> bool {
    let path = Path::new(word);
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    if matches!(stem, Some("tapegate" | "thoughtgate")) {
        return true;
    }
    // A link or a renamed binary is ours as well.
    let own = || std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    path.is_absolute() && path.canonicalize().is_ok_and(|path| own() == Some(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::ConfigFormat;

    fn read(text: &str) -> Result<ServerEntry, String> {
        ServerEntry::read(&ConfigNode::read(text, ConfigFormat::Json).unwrap())
    }

    fn argv(text: &str) -> String {
        match read(text).unwrap().target {
            ServerTarget::Command(argv) => argv.join(" "),
            ServerTarget::Url(url, headers) => format!("{url} {}", headers.join(" ")),
        }
    }

    #[test]
    fn every_client_s_way_of_writing_a_server_is_read() {
        for (text, expected) in [
            (r#"{"command":"npx","args":["-y","x"]}"#, "npx -y x"),
            (r#"{"type":"local","command":["npx","-y","x"]}"#, "npx -y x"),
            (r#"{"source":"custom","command":{"path":"npx","args":["x"]}}"#, "npx x"),
            (r#"{"type":"stdio","cmd":"npx","args":["x"]}"#, "npx x"),
            (r#"{"transport":{"type":"stdio","command":"npx","args":["x"]}}"#, "npx x"),
            (r#"{"serverUrl":"https://x.example/mcp"}"#, "https://x.example/mcp "),
            (
                r#"{"type":"http","url":"https://x.example","headers":{"Authorization":"secret"}}"#,
                "https://x.example Authorization",
            ),
        ] {
            assert_eq!(argv(text), expected);
        }
    }

    #[test]
    fn what_cannot_be_started_says_why() {
        let nothing = "it has neither a command nor a URL";
        for (text, expected) in [
            (r#"{"type":"builtin"}"#, nothing),
            ("{}", nothing),
            (r#"{"command":7}"#, "its command is not a text"),
            (r#"{"command":{"args":["x"]}}"#, "its command is not a text"),
            (r#"{"command":""}"#, "its command is empty"),
            (r#"{"command":[]}"#, "its command is empty"),
            (r#"{"command":["x",{}]}"#, "its command is not a list of texts"),
            (r#"{"command":"x","args":"y"}"#, "its `args` is not a list of texts"),
            (r#"{"command":"x","args":["y",true]}"#, "its `args` is not a list of texts"),
            ("[]", "it is not a map of settings"),
            ("null", "it is not a map of settings"),
            (
                r#"{"command":"x","url":"https://x"}"#,
                "it says in several ways what to start: `command`, `url`",
            ),
            (
                r#"{"httpUrl":"https://y","url":"https://x"}"#,
                "it says in several ways what to start: `url`, `httpUrl`",
            ),
            (
                r#"{"command":"x","cmd":"y"}"#,
                "it says in several ways what to start: `command`, `cmd`",
            ),
            (
                r#"{"transport":{"type":"stdio","command":"x"},"command":"y"}"#,
                "it says in several ways what to start: `command`, `command`",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text}");
        }
        assert_eq!(argv(r#"{"command":"x","args":null}"#), "x");
    }

    #[test]
    fn what_is_off_or_governed_already_is_known() {
        assert!(read(r#"{"command":"x","disabled":true}"#).unwrap().is_disabled);
        assert!(read(r#"{"command":"x","enabled":false}"#).unwrap().is_disabled);
        assert!(!read(r#"{"command":"x","enabled":true}"#).unwrap().is_disabled);
        let governed = |text| read(text).unwrap().is_governed;
        assert!(governed(r#"{"command":"/opt/tapegate","args":["shim","--","x"]}"#));
        assert!(governed(r#"{"command":["env","A=1","tapegate","shim","--","x"]}"#));
        assert!(!governed(r#"{"command":"tapegate","args":["record","--","x"]}"#));
        assert!(!governed(r#"{"command":"x","args":["shim","--server-id","y"]}"#));
        // Another name of the binary: a link to it, or one that no longer exists.
        let own = std::env::current_exe().unwrap().display().to_string();
        let linked = format!(r#"{{"command":{own:?},"args":["shim","--","x"]}}"#);
        assert!(governed(&linked));
        let moved = r#"{"command":"/gone/tg-1.2","args":["shim","--server-id","s","--","x"]}"#;
        assert!(governed(moved));
    }
}
