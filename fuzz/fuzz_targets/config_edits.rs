//! Edits of configs: whatever a config is, its rewrite can be undone to the byte, and what is
//! appended meanwhile stays.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tapegate_agents::client_table::EntryStyle;
use tapegate_agents::discovery::PlaceStep;
use tapegate_agents::installation::{ConfigNotation, InstalledEntries};
use tapegate_agents::rewrite::{EntryRewrite, ShimCommand, put_back, rewrite};
use tapegate_agents::tree::{ConfigFormat, ConfigNode};

const STYLES: [EntryStyle; 6] = [
    EntryStyle::Json,
    EntryStyle::TypedJson,
    EntryStyle::OpencodeJson,
    EntryStyle::Toml,
    EntryStyle::ListYaml,
    EntryStyle::GooseYaml,
];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(rest) else { return };
    let format = [ConfigFormat::Json, ConfigFormat::Toml, ConfigFormat::Yaml][choice as usize % 3];
    let style = STYLES[choice as usize / 3 % STYLES.len()];
    let Ok(tree) = ConfigNode::read(text, format) else { return };
    let rewrites: Vec<EntryRewrite> = places(&tree)
        .into_iter()
        .flat_map(|place| {
            let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            let before = ShimCommand::Before(words(&["/t/tapegate", "shim", "--"]));
            let url = ["/t/tapegate", "shim", "--upstream-http", "u", "--header-env", "A=S_A"];
            let shims = [before, ShimCommand::Instead(words(&url))];
            shims.map(|shim| EntryRewrite { place: place.clone(), style, shim })
        })
        .filter(|one| rewrite(text, format, std::slice::from_ref(one)).is_ok())
        .collect();
    for one in &rewrites {
        let rewrites = std::slice::from_ref(one);
        let edited = rewrite(text, format, rewrites).expect("it was possible before");
        let back = put_back(text, &edited, format, rewrites).expect("its own rewrite can be undone");
        assert_eq!(back.text, text);
        let installed =
            InstalledEntries { original: text.to_owned(), places: vec![one.place.clone()] };
        let notation = ConfigNotation { format, style };
        let undone = installed.undo(Path::new("c"), &edited, notation).expect("it can be parsed");
        assert_eq!(undone.text, text);
        let touched = format!("{edited}\n");
        if ConfigNode::read(&touched, format).is_ok()
            && let Some(back) = put_back(text, &touched, format, rewrites)
        {
            let after = ConfigNode::read(&back.text, format).expect("a merge can be parsed");
            assert!(after.is_same(&tree), "{:?}", back.text);
        }
    }
});

/// The places of values that may be entries: members and named elements, two levels deep.
fn places(tree: &ConfigNode) -> Vec<Vec<PlaceStep>> {
    let mut found = Vec::new();
    for outer in tree.members() {
        let first = PlaceStep::Key(outer.key.clone());
        found.push(vec![first.clone()]);
        for inner in outer.node.members() {
            found.push(vec![first.clone(), PlaceStep::Key(inner.key.clone())]);
        }
        for element in outer.node.elements() {
            let name = element.get("name").and_then(ConfigNode::as_text);
            found.extend(name.map(|name| vec![first.clone(), PlaceStep::Named(name.to_owned())]));
        }
    }
    found.truncate(16);
    found
}
