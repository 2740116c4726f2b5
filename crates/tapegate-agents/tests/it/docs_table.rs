//! The table of configs in docs/wrap.md has what the description of every client has.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tapegate_agents::client_table::{CLIENTS, ConfigFile, McpClient, PathRoot};

const START: &str = "| agent | `--agent-type` | configs |\n|---|---|---|\n";

fn path(file: &ConfigFile) -> String {
    match file.root {
        PathRoot::Project => file.path.to_owned(),
        PathRoot::Home => format!("~/{}", file.path),
        PathRoot::Config => format!("~/.config/{}", file.path),
        PathRoot::Variable(name, "") => format!("${name}/{} or ~/{}", file.path, file.path),
        PathRoot::Variable(name, folder) => {
            format!("${name}/{} or ~/{folder}/{}", file.path, file.path)
        }
        PathRoot::File(name) if file.path.is_empty() => format!("${name}"),
        PathRoot::File(name) => format!("${name}/{}", file.path),
        PathRoot::System => file.path.to_owned(),
    }
}

fn row(client: &McpClient) -> String {
    let mut paths: Vec<String> = Vec::new();
    for file in client.files {
        let path = format!("`{}`", path(file));
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    format!("| {} | `{}` | {} |\n", client.name, client.id, paths.join(", "))
}

#[test]
fn the_docs_list_the_configs_of_every_client() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wrap.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let end = rest.find("\n\n").map_or(rest.len(), |at| at + 1);
    let mut table = String::new();
    CLIENTS.iter().for_each(|client| write!(table, "{}", row(client)).unwrap());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&page, format!("{before}{START}{table}{}", &rest[end..])).unwrap();
        return;
    }
    assert_eq!(&rest[..end], table, "run with UPDATE_GOLDEN=1");
}
