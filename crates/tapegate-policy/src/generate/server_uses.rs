//! The tools, prompts and resources used of each server, and their permitted arguments.

use std::collections::BTreeMap;

use super::argument_limit::{ToolLimiter, ToolLimits};
use super::seen_values::SeenMembers;
use super::traffic::RecordedTraffic;
use crate::gated_requests::{GatedMethod, OfferKind};

/// How many URIs of a folder are listed; if there are more, the folder is permitted instead.
const URIS_MAX: usize = 3;

/// What was used of one server.
#[derive(Debug)]
pub(super) struct ServerUses {
    pub(super) id: String,
    pub(super) tools: Vec<NamedUse>,
    pub(super) prompts: Vec<NamedUse>,
    /// What was completed; arguments are not examined.
    pub(super) completed: Vec<NamedUse>,
    /// URIs by method.
    pub(super) resources: Vec<ResourceUses>,
}

/// Something that is called by name.
#[derive(Debug)]
pub(super) struct NamedUse {
    pub(super) name: String,
    pub(super) count: usize,
    /// Whether arguments that are not named are refused.
    pub(super) is_closed: bool,
    pub(super) limits: ToolLimits,
}

/// Resources that are read or subscribed to.
#[derive(Debug)]
pub(super) struct ResourceUses {
    pub(super) method: &'static str,
    pub(super) count: usize,
    pub(super) uris: Vec<String>,
    /// The folder that is permitted instead, if there are many.
    pub(super) folder: Option<String>,
}

/// What was used, by server.
pub(super) fn collect_usage(traffic: &RecordedTraffic, home: Option<&str>) -> Vec<ServerUses> {
    let limiter = ToolLimiter::new(home);
    let mut servers: BTreeMap<&str, ServerUses> = BTreeMap::new();
    for ((server, method, name), all) in traffic.things() {
        let known = servers.entry(server).or_insert_with(|| ServerUses::new(server));
        let Some(gated) = GatedMethod::of(method) else { continue };
        let count = all.values().sum();
        let mut members = SeenMembers::default();
        all.iter().for_each(|(text, times)| members.observe_call(text.as_deref(), *times));
        let thing = |schema: Option<&str>| {
            let limits = limiter.limits(&members, schema);
            NamedUse { name: name.clone(), count, is_closed: true, limits }
        };
        match gated {
            GatedMethod::Call => known.tools.push(thing(traffic.schema(server, name))),
            GatedMethod::Prompt => {
                let mut prompt = thing(None);
                // A prompt only inserts its arguments into a text.
                prompt.limits.risks.clear();
                prompt.is_closed = members.members.is_empty();
                known.prompts.push(prompt);
            }
            GatedMethod::Complete => {
                let limits = ToolLimits::default();
                let name = name.clone();
                known.completed.push(NamedUse { name, count, is_closed: false, limits });
            }
            _ => known.uri(gated.method(), name, count),
        }
    }
    let mut servers: Vec<ServerUses> = servers.into_values().collect();
    for uris in servers.iter_mut().flat_map(|server| &mut server.resources) {
        let many = uris.uris.len() > URIS_MAX;
        let mut folders = uris.uris.iter().map(|uri| folder(uri).map(str::to_owned));
        let first = folders.next().flatten().and_then(|own| common_folder(&own, &own));
        let shared = folders.fold(first, |known, own| common_folder(&known?, &own?));
        uris.folder = shared.filter(|_| many);
    }
    servers
}

impl ServerUses {
    fn new(id: &str) -> Self {
        let id = id.to_owned();
        let (tools, prompts, completed, resources) = Default::default();
        Self { id, tools, prompts, completed, resources }
    }

    fn uri(&mut self, method: &'static str, uri: &str, count: usize) {
        let known = self.resources.iter_mut().find(|known| known.method == method);
        match known {
            Some(known) => {
                known.uris.push(uri.to_owned());
                known.count += count;
            }
            None => {
                let uris = vec![uri.to_owned()];
                self.resources.push(ResourceUses { method, count, uris, folder: None });
            }
        }
    }

    /// Drops all tests of a tool or prompt; returns whether there were any.
    pub(super) fn open(&mut self, id: &str, name: &str) -> bool {
        let here = self.id == id;
        let things = self.tools.iter_mut().chain(&mut self.prompts);
        let mut opened = false;
        for one in things.filter(|one| here && one.name == name) {
            for row in std::mem::take(&mut one.limits.rows) {
                let path = super::argument_limit::path_text(&row.path);
                one.limits.open.push(path.clone());
                one.limits.risks.push((path, "servers could read its values in several ways"));
                opened = true;
            }
            opened |= std::mem::take(&mut one.is_closed);
        }
        opened
    }

    /// The names completed for a kind of item.
    pub(super) fn completed_names(&self, offer: OfferKind) -> impl Iterator<Item = &str> {
        let of = move |one: &&NamedUse| GatedMethod::Complete.offer(&one.name) == offer;
        self.completed.iter().filter(of).map(|one| one.name.as_str())
    }
}

/// The folder of a URI, if the text is an unambiguous one.
fn folder(text: &str) -> Option<&str> {
    let start = text.find("://")? + 3;
    let plain = !text.contains("..") && !text.contains(['\n', '\0', '\\', '%']);
    let end = text.rfind('/').filter(|end| plain && *end >= start)?;
    Some(&text[..=end])
}

/// The common parent of two folders, unless they share only the scheme.
fn common_folder(one: &str, two: &str) -> Option<String> {
    let mut end = 0;
    for (at, (left, right)) in one.bytes().zip(two.bytes()).enumerate() {
        if left != right {
            break;
        }
        if left == b'/' {
            end = at + 1;
        }
    }
    let common = &one[..end];
    let (_, path) = common.split_once("://")?;
    // `https://` and `file:///` share only the scheme.
    (!path.trim_matches('/').is_empty()).then(|| common.to_owned())
}
