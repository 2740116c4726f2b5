//! One server in a config, as any client writes it.

use std::path::Path;

use super::tree::Tree;

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd::init) struct Entry {
    pub(in crate::cmd::init) target: Target,
    /// The names of its environment variables. Their values may be secret and are not looked at.
    pub(in crate::cmd::init) variables: Vec<String>,
    /// Settings of the client that hold for a command as well: a time limit, a switch. Texts may be
    /// secret and are only named.
    pub(in crate::cmd::init) settings: Vec<(String, String)>,
    /// The names of all other settings.
    pub(in crate::cmd::init) others: Vec<String>,
    pub(in crate::cmd::init) is_disabled: bool,
    /// Whether it is started through a shim already.
    pub(in crate::cmd::init) is_governed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cmd::init) enum Target {
    /// A program and its arguments.
    Command(Vec<String>),
    /// A URL, and the names of the headers that are sent to it.
    Url(String, Vec<String>),
}

/// What an entry has that a snippet says anew.
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

impl Entry {
    /// Reads an entry; `None` if it neither starts nor reaches anything, as what is built into a
    /// client does.
    pub(super) fn read(tree: &Tree) -> Option<Self> {
        // Cline nests what other clients have at the top.
        let inner = tree.get("transport").filter(|inner| !inner.entries().is_empty());
        let get = |key: &str| inner.and_then(|inner| inner.get(key)).or_else(|| tree.get(key));
        let is_true = |key: &str| get(key) == Some(&Tree::Bool(true));
        let is_disabled = is_true("disabled") || get("enabled") == Some(&Tree::Bool(false));
        let environment = ["env", "envs", "environment"].iter().find_map(|key| get(key));
        let variables = environment.map(Tree::entries).unwrap_or_default();
        let variables = variables.iter().map(|(name, _)| name.clone()).collect();
        let target = command(&get).or_else(|| url(&get))?;
        let is_governed = matches!(&target, Target::Command(argv) if is_shim(argv));
        let (settings, others) = settings(tree);
        Some(Self { target, variables, settings, others, is_disabled, is_governed })
    }
}

/// What else an entry says: what can be shown, and the names of the rest.
fn settings(tree: &Tree) -> (Vec<(String, String)>, Vec<String>) {
    let (mut settings, mut others) = (Vec::new(), Vec::new());
    let unknown = |name: &&(String, Tree)| !REPLACED.contains(&name.0.as_str());
    for (name, value) in tree.entries().iter().filter(unknown) {
        match value {
            Tree::Bool(yes) => settings.push((name.clone(), yes.to_string())),
            Tree::Number(number) => settings.push((name.clone(), number.clone())),
            _ => others.push(name.clone()),
        }
    }
    (settings, others)
}

fn command<'a>(get: &impl Fn(&str) -> Option<&'a Tree>) -> Option<Target> {
    let own = get("command").or_else(|| get("cmd"))?;
    let args = |tree: Option<&Tree>| tree.map(Tree::texts).unwrap_or_default();
    let argv = match own {
        Tree::Text(program) => [vec![program.clone()], args(get("args"))].concat(),
        // opencode has all words in one list, older Zed a map.
        Tree::List(_) => own.texts(),
        Tree::Map(_) => {
            let program = own.get("path").and_then(Tree::as_text)?;
            [vec![program.to_owned()], args(own.get("args"))].concat()
        }
        _ => return None,
    };
    let is_there = argv.first().is_some_and(|program| !program.is_empty());
    is_there.then_some(Target::Command(argv))
}

fn url<'a>(get: &impl Fn(&str) -> Option<&'a Tree>) -> Option<Target> {
    let keys = ["url", "serverUrl", "httpUrl", "uri", "endpoint"];
    let url = keys.iter().find_map(|key| get(key).and_then(Tree::as_text))?;
    let headers = ["headers", "http_headers", "env_http_headers"];
    let headers = headers.iter().filter_map(|key| get(key)).flat_map(Tree::entries);
    Some(Target::Url(url.to_owned(), headers.map(|(name, _)| name.clone()).collect()))
}

/// Whether a command line starts a shim, by whichever of the names that the binary goes by.
fn is_shim(argv: &[String]) -> bool {
    let name =
        |word: &String| Path::new(word).file_stem().map(|name| name.to_string_lossy().into_owned());
    let is_ours =
        |word: &String| name(word).is_some_and(|name| name == "tapegate" || name == "thoughtgate");
    let at = argv.iter().position(is_ours);
    at.and_then(|at| argv.get(at + 1)).is_some_and(|verb| verb == "shim")
}

#[cfg(test)]
mod tests {
    use super::super::table::Format;
    use super::*;

    fn read(text: &str) -> Option<Entry> {
        Entry::read(&Tree::read(text, Format::Json).unwrap())
    }

    fn argv(text: &str) -> String {
        match read(text).unwrap().target {
            Target::Command(argv) => argv.join(" "),
            Target::Url(url, headers) => format!("{url} {}", headers.join(" ")),
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
        for nothing in
            [r#"{"type":"builtin"}"#, "{}", r#"{"command":7}"#, r#"{"command":""}"#, "[]"]
        {
            assert_eq!(read(nothing), None, "{nothing}");
        }
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
    }
}
