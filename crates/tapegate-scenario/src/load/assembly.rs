//! Assembles a scenario from its files: `$include` with `override`, `$file` and `$json`.
//!
//! No path may leave the folder it starts from. The result is limited in depth and in bytes, copies
//! included.

use tapegate_core::json as core_json;
use tapegate_core::tape::base64_encode;

use super::{FilePasses, RAISE, ScenarioLoader, json};
use crate::files::{FileError, OpenedFile};
use crate::node::{Node, NodeKey, NodeValue, Spot};
use crate::yaml;

/// The size limit of a file that `$file` names: that of a message on a tape.
pub(crate) const FILE_BYTES_MAX: usize = 128 << 20;

/// The nesting limit of included files, counted across files.
const INCLUDED_NESTING_MAX: usize = 4 * yaml::NESTING_MAX;

/// The lists and maps of a phase that accept the path of a file as an item.
const TAKE_PATHS: [&str; 8] = [
    "replace_tools",
    "replace_resources",
    "replace_resource_templates",
    "replace_prompts",
    "add_tools",
    "add_resources",
    "add_resource_templates",
    "add_prompts",
];

/// The kind of value that a file is read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileEncoding {
    /// Chosen by its extension.
    Any,
    /// Text, whatever its extension.
    Text,
    /// Its bytes in base64.
    Base64,
}

impl ScenarioLoader<'_> {
    /// Resolves every directive in a tree that was read from a file in `folder`.
    pub(super) fn assemble(&mut self, node: Node, folder: &str) -> Node {
        self.assemble_node(node, folder, FileEncoding::Any)
    }

    /// Reads the items of phases that are given as paths.
    pub(super) fn read_item_paths(&mut self, node: &mut Node, folder: &str) {
        let NodeValue::Map(entries) = &mut node.value else { return };
        let phases = entries.iter_mut().find(|(key, _)| key.name == "phases");
        let Some(NodeValue::List(phases)) = phases.map(|(_, phases)| &mut phases.value) else {
            return;
        };
        for phase in phases {
            let NodeValue::Map(entries) = &mut phase.value else { continue };
            for (_, items) in
                entries.iter_mut().filter(|(key, _)| TAKE_PATHS.contains(&key.name.as_str()))
            {
                let items: Vec<&mut Node> = match &mut items.value {
                    NodeValue::List(elements) => elements.iter_mut().collect(),
                    NodeValue::Map(entries) => entries.iter_mut().map(|(_, node)| node).collect(),
                    _ => continue,
                };
                for item in items {
                    if let NodeValue::Text(path) = &item.value {
                        let path = path.clone();
                        *item = self.include(&path, item.spot, folder);
                    }
                }
            }
        }
    }

    fn assemble_node(&mut self, node: Node, folder: &str, wanted: FileEncoding) -> Node {
        let spot = node.spot;
        match node.value {
            NodeValue::List(elements) => {
                let elements = elements
                    .into_iter()
                    .map(|node| self.assemble_node(node, folder, FileEncoding::Any));
                Node { spot, value: NodeValue::List(elements.collect()) }
            }
            NodeValue::Map(entries) => {
                let has = |name: &str| entries.iter().any(|(key, _)| key.name == name);
                if has("$include") {
                    self.include_with_override(entries, spot, folder)
                } else if has("$json") && entries.len() == 1 {
                    self.raw(entries, spot)
                } else if has("$file") && entries.len() == 1 {
                    let (_, path) = entries.into_iter().next().expect("there is one");
                    self.file(&path, folder, wanted)
                } else {
                    self.map(entries, spot, folder)
                }
            }
            value => Node { spot, value },
        }
    }

    /// Resolves a map that is not itself a directive.
    fn map(&mut self, entries: Vec<(NodeKey, Node)>, spot: Spot, folder: &str) -> Node {
        let text_of = |name: &str| {
            let entry = entries.iter().find(|(key, _)| key.name == name);
            entry.and_then(|(_, node)| node.as_text()).map(str::to_owned)
        };
        let kind = text_of("type");
        let is_media = matches!(kind.as_deref(), Some("image" | "audio"));
        let is_entry = text_of("uri").is_some();
        let mut made = Vec::with_capacity(entries.len());
        for (mut key, node) in entries {
            // `{type: image, $file: a.png}` is short for `{type: image, data: {$file: a.png}}`.
            if key.name == "$file" && (kind.is_some() || is_entry) {
                let is_binary = node.as_text().is_some_and(is_media_name);
                key.name = match () {
                    () if is_media => "data",
                    () if is_entry && is_binary => "blob",
                    () => "text",
                }
                .to_owned();
                let wanted =
                    if key.name == "text" { FileEncoding::Text } else { FileEncoding::Base64 };
                made.push((key, self.file(&node, folder, wanted)));
                continue;
            }
            if key.name == "$file" {
                let message = "`$file` must be the only key, or in an item with `type` or `uri`";
                self.findings.error(key.spot, message);
                continue;
            }
            let wanted = match key.name.as_str() {
                "text" => FileEncoding::Text,
                "blob" => FileEncoding::Base64,
                "data" if is_media => FileEncoding::Base64,
                _ => FileEncoding::Any,
            };
            made.push((key, self.assemble_node(node, folder, wanted)));
        }
        Node { spot, value: NodeValue::Map(made) }
    }

    /// Resolves `$include` with an optional `override`.
    fn include_with_override(
        &mut self,
        entries: Vec<(NodeKey, Node)>,
        spot: Spot,
        folder: &str,
    ) -> Node {
        let mut included = Node { spot, value: NodeValue::Null };
        let mut changes = None;
        for (key, node) in entries {
            match key.name.as_str() {
                "$include" => match node.as_text() {
                    Some(path) => included = self.include(path, node.spot, folder),
                    None => {
                        let message =
                            format!("`$include` takes a path, but this is {}", node.kind());
                        self.findings.error(node.spot, message);
                        included.spot = node.spot;
                    }
                },
                "override" => changes = Some(self.assemble_node(node, folder, FileEncoding::Any)),
                name => {
                    let message = format!(
                        "`{name}` beside `$include` has no effect; put it under `override`"
                    );
                    self.findings.error(key.spot, message);
                }
            }
        }
        match changes {
            Some(changes) => merge(included, changes),
            None => included,
        }
    }

    /// The tree of another file; null if it cannot be read, which is then reported.
    fn include(&mut self, path: &str, spot: Spot, folder: &str) -> Node {
        let nothing = Node { spot, value: NodeValue::Null };
        let library = self.how.library.clone();
        let folders = library.iter().map(String::as_str).chain([folder]);
        let bytes_max = self.how.limits.config_bytes;
        let Some(opened) = self.open("$include", path, spot, folders, bytes_max) else {
            return nothing;
        };
        if self.chain.contains(&opened.path) {
            let mut chain: Vec<&str> = self.chain.iter().map(|path| last_segment(path)).collect();
            chain.push(last_segment(&opened.path));
            let message = format!("these files include each other: {}", chain.join(" → "));
            self.findings.error(spot, message);
            return nothing;
        }
        if self.chain.len() > self.how.limits.include_depth {
            let most = self.how.limits.include_depth;
            let message = format!("includes are nested more than {most} deep");
            self.findings.error(spot, message);
            return nothing;
        }
        // Read and checked once, however often it is included. Failures are kept too, so that they
        // are reported once.
        if !self.included.contains_key(&opened.path) {
            let node = self.read_included(&opened);
            self.included.insert(opened.path.clone(), node);
        }
        let Some(Some(node)) = self.included.get(&opened.path) else {
            self.findings.error(spot, format!("`{path}` cannot be used"));
            return nothing;
        };
        let Some(cost) = node.cost(INCLUDED_NESTING_MAX, self.bytes_left) else {
            self.findings.error(spot, "the included files are too large or too deeply nested");
            return nothing;
        };
        // Files that include each other twice grow exponentially, so the copies are counted.
        self.bytes_left -= cost;
        node.clone()
    }

    fn read_included(&mut self, opened: &OpenedFile) -> Option<Node> {
        let folder = self.how.files.folder_of(&opened.path);
        let mut node = self.document(opened.path.clone(), opened)?;
        if let NodeValue::Map(entries) = &mut node.value {
            // The setting is for the file that has it. It must not become a key of the including
            // map.
            entries.retain(|(key, _)| key.name != "interpolate");
        }
        self.chain.push(opened.path.clone());
        let node = self.assemble(node, &folder);
        self.chain.pop();
        Some(node)
    }

    /// Opens a file named by another file, in the first folder that has it.
    fn open<'f>(
        &mut self,
        directive: &str,
        path: &str,
        spot: Spot,
        folders: impl Iterator<Item = &'f str>,
        bytes_max: usize,
    ) -> Option<OpenedFile> {
        let mut tried = Vec::new();
        for folder in folders {
            match self.how.files.open_within(folder, path, bytes_max) {
                Ok(opened) => return Some(opened),
                // Only a missing file is looked for elsewhere. Falling back from an unreadable one
                // would hide the error.
                Err(FileError::Missing) => tried.push(format!("`{folder}`")),
                Err(error) => {
                    let way_out = match error {
                        FileError::TooLarge { .. } if directive == "$include" => {
                            format!("; {RAISE}")
                        }
                        _ => String::new(),
                    };
                    let message = format!("`{path}` cannot be read: {error}{way_out}");
                    self.findings.error(spot, message);
                    return None;
                }
            }
        }
        tried.dedup();
        let message = format!("there is no file `{path}` in {}", tried.join(" or in "));
        self.findings.error(spot, message);
        None
    }

    /// Resolves `$file`.
    fn file(&mut self, path: &Node, folder: &str, wanted: FileEncoding) -> Node {
        let spot = path.spot;
        let nothing = Node { spot, value: NodeValue::Null };
        let Some(path) = path.as_text() else {
            let message = format!("`$file` takes a path, but this is {}", path.kind());
            self.findings.error(spot, message);
            return nothing;
        };
        let library = self.how.library.clone();
        let folders = [folder].into_iter().chain(library.as_deref());
        let Some(opened) = self.open("$file", path, spot, folders, FILE_BYTES_MAX) else {
            return nothing;
        };
        let Some(left) = self.file_bytes_left.checked_sub(opened.bytes.len()) else {
            self.findings.error(spot, "all files together are too large");
            return nothing;
        };
        // Counted together, since each file alone may be as large as a message.
        self.file_bytes_left = left;
        if wanted == FileEncoding::Base64 || wanted == FileEncoding::Any && is_media_name(path) {
            return Node { spot, value: NodeValue::Text(base64_encode(&opened.bytes)) };
        }
        let Ok(text) = std::str::from_utf8(&opened.bytes) else {
            let message = format!("`{path}` is not UTF-8; a binary file must be `data` or `blob`");
            self.findings.error(spot, message);
            return nothing;
        };
        self.file_text(path, text, spot, wanted).unwrap_or(nothing)
    }

    /// Converts the text of a file. Plain text is taken literally; a tree may contain templates if
    /// the file that names it may.
    fn file_text(
        &mut self,
        path: &str,
        text: &str,
        spot: Spot,
        wanted: FileEncoding,
    ) -> Option<Node> {
        let extension = extension(path);
        let is_tree = wanted == FileEncoding::Any && ["json", "yaml", "yml"].contains(&&*extension);
        // Plain text is data: `${…}` in a README that a tool returns must arrive as it is.
        let templates = is_tree && self.passes[usize::from(spot.file)].templates;
        let file = self.source(path.to_owned(), FilePasses { env: false, templates })?;
        if !is_tree {
            let spot = Spot { file, line: 1, column: 1 };
            return Some(Node { spot, value: NodeValue::Text(text.to_owned()) });
        }
        let node = match extension.as_str() {
            "json" => json::read(text, file, &mut self.findings),
            _ => yaml::parse(text, file, &mut self.findings),
        };
        if node.is_none() {
            self.findings.error(spot, format!("`{path}` cannot be used"));
        }
        node
    }

    fn raw(&mut self, entries: Vec<(NodeKey, Node)>, spot: Spot) -> Node {
        let (key, text) = entries.into_iter().next().expect("there is one");
        let kind = text.kind();
        // Raw JSON is text in YAML, since YAML cannot express all of JSON.
        let NodeValue::Text(text) = text.value else {
            self.findings.error(key.spot, format!("`$json` takes text, but this is {kind}"));
            return Node { spot, value: NodeValue::Null };
        };
        // Checked, because it is sent as it is.
        if let Err(fault) = core_json::check(text.as_bytes()) {
            let message = format!("not valid JSON: {} at byte {}", fault.what, fault.at);
            self.findings.error(key.spot, message);
            return Node { spot, value: NodeValue::Null };
        }
        Node { spot, value: NodeValue::Raw(text) }
    }
}

/// Merges maps recursively; anything else is replaced by `changes`.
fn merge(base: Node, changes: Node) -> Node {
    let (NodeValue::Map(mut entries), NodeValue::Map(changed)) =
        (base.value, changes.value.clone())
    else {
        return changes;
    };
    for (key, node) in changed {
        match entries.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, known)) => {
                let base = std::mem::replace(known, Node::new(NodeValue::Null));
                *known = merge(base, node);
            }
            // New keys come last, so that the order of the included file stays.
            None => entries.push((key, node)),
        }
    }
    Node { spot: base.spot, value: NodeValue::Map(entries) }
}

/// Whether a file name has the extension of an image, sound or other media file.
fn is_media_name(path: &str) -> bool {
    const MEDIA: [&str; 21] = [
        "png", "jpg", "jpeg", "gif", "webp", "bmp", "ico", "avif", "tif", "tiff", "wav", "mp3",
        "ogg", "oga", "flac", "m4a", "aac", "opus", "mp4", "webm", "pdf",
    ];
    MEDIA.contains(&extension(path).as_str())
}

fn extension(path: &str) -> String {
    last_segment(path).rsplit_once('.').map_or(String::new(), |(_, end)| end.to_ascii_lowercase())
}

fn last_segment(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
