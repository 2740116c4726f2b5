//! From what was seen to what is allowed.

use std::collections::BTreeMap;

use tapegate_core::json::{member, string, write_str};

use super::seen::{self, Digits, Eyes, Members, Seen};
use super::traffic::Traffic;
use crate::gated::{Gated, Offer};

/// How many values are listed one by one.
const LISTED_MAX: usize = 6;
/// How many numbers are.
const NUMBERS_MAX: usize = 3;
/// How many URIs are, if they lie in one folder.
const URIS_MAX: usize = 20;

/// What is used of one server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) id: String,
    pub(super) tools: Vec<Use>,
    pub(super) prompts: Vec<Use>,
    /// What is completed, without a look at arguments.
    pub(super) completed: Vec<Use>,
    /// URIs by method.
    pub(super) resources: Vec<Uris>,
}

/// Something that is called by its name.
#[derive(Debug)]
pub(super) struct Use {
    pub(super) name: String,
    pub(super) count: usize,
    pub(super) rows: Vec<Row>,
}

/// Resources that are read or watched.
#[derive(Debug)]
pub(super) struct Uris {
    pub(super) method: &'static str,
    pub(super) count: usize,
    pub(super) uris: Vec<String>,
    /// The folder that stands for them, if they are many.
    pub(super) folder: Option<String>,
}

/// A place in the arguments and what may be there.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) path: Vec<Step>,
    /// Whether it was there in every call.
    pub(super) always: bool,
    pub(super) limit: Limit,
    /// What numbers there can be for Cedar.
    pub(super) digits: Digits,
    /// The `type` that the tool's schema gives it.
    pub(super) declared: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Each,
}

/// What may be at a place.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Limit {
    /// One of these JSON texts.
    OneOf(Vec<String>),
    /// Text that begins so and leads nowhere else.
    Under(String),
    /// A number from one to the other.
    Range(String, String),
    /// Any text.
    Text,
    /// Anything.
    Any,
    /// No text: what was there were lists or objects.
    NoText,
    /// Nothing: the tool takes it, but nobody has used it.
    Nothing,
}

/// What is used, server by server.
pub(super) fn uses(traffic: &Traffic) -> Vec<Server> {
    let eyes = Eyes::new();
    let mut servers: BTreeMap<&str, Server> = BTreeMap::new();
    for ((server, method, name), all) in traffic.things() {
        let known = servers.entry(server).or_insert_with(|| Server::new(server));
        let Some(gated) = Gated::of(method) else { continue };
        let count = all.values().sum();
        let mut members = Members::default();
        all.iter().for_each(|(text, times)| members.call(text.as_deref(), *times, &eyes));
        let thing = |rows| Use { name: name.clone(), count, rows };
        match gated {
            Gated::Call => {
                let schema = traffic.schema(server, name);
                known.tools.push(thing(rows(&members, schema)));
            }
            Gated::Prompt => known.prompts.push(thing(rows(&members, None))),
            Gated::Complete => known.completed.push(thing(Vec::new())),
            _ => known.uri(gated.method(), name, count),
        }
    }
    let mut servers: Vec<Server> = servers.into_values().collect();
    for uris in servers.iter_mut().flat_map(|server| &mut server.resources) {
        let many = uris.uris.len() > URIS_MAX;
        let mut folders = uris.uris.iter().map(|uri| seen::folder(uri).map(str::to_owned));
        let first = folders.next().flatten().and_then(|own| seen::common(&own, &own));
        let common = folders.fold(first, |known, own| seen::common(&known?, &own?));
        uris.folder = common.filter(|_| many);
    }
    servers
}

impl Server {
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
                self.resources.push(Uris { method, count, uris, folder: None });
            }
        }
    }

    /// What is completed of a kind.
    pub(super) fn completed(&self, offer: Offer) -> impl Iterator<Item = &str> {
        let of = move |one: &&Use| Gated::Complete.offer(&one.name) == offer;
        self.completed.iter().filter(of).map(|one| one.name.as_str())
    }
}

fn rows(members: &Members, schema: Option<&str>) -> Vec<Row> {
    let properties = schema.and_then(|schema| member(schema.as_bytes(), "properties"));
    let properties = properties.and_then(seen::members).unwrap_or_default();
    let declared = |name: &str| {
        let (_, property) = properties.iter().find(|(own, _)| own == name)?;
        member(property, "type").and_then(string).map(String::from)
    };
    let mut rows = Vec::new();
    inside(members, &[], true, &mut rows);
    for row in &mut rows {
        if let [Step::Key(name), ..] = &row.path[..] {
            row.declared = declared(name);
        }
    }
    for (name, _) in properties.iter().filter(|(name, _)| !members.members.contains_key(name)) {
        let path = vec![Step::Key(name.clone())];
        rows.push(Row {
            path,
            always: true,
            limit: Limit::Nothing,
            digits: Digits::Long,
            declared: declared(name),
        });
    }
    rows
}

fn inside(members: &Members, path: &[Step], always: bool, rows: &mut Vec<Row>) {
    for (name, seen) in &members.members {
        let path = [path, &[Step::Key(name.clone())]].concat();
        at(seen, path, always && seen.count == members.total, rows);
    }
}

/// The rows of a place: of what is there, and of what is in it.
fn at(seen: &Seen, path: Vec<Step>, always: bool, rows: &mut Vec<Row>) {
    let digits = seen.digits;
    let one = |limit| Row { path: path.clone(), always, limit, digits, declared: None };
    let below = (seen.objects.as_ref(), seen.elements.as_deref());
    match below {
        (Some(members), None) if seen.kinds() == 1 => {
            // What must have something in it is there, and is no text.
            let filled = members.members.values().any(|inner| inner.count == members.total);
            if !(always && filled) {
                rows.push(one(Limit::Any));
                rows.push(Row { always: false, ..one(Limit::NoText) });
            }
            inside(members, &path, always, rows);
        }
        (None, Some(elements)) if seen.kinds() == 1 => {
            rows.push(one(Limit::Any));
            rows.push(Row { always: false, ..one(Limit::NoText) });
            if elements.count > 0 {
                at(elements, [&path[..], &[Step::Each]].concat(), false, rows);
            }
        }
        (None, None) => rows.push(one(scalar(seen))),
        _ => rows.push(one(Limit::Any)),
    }
}

fn scalar(seen: &Seen) -> Limit {
    let texts = seen.texts.iter().map(|text| {
        let mut json = Vec::new();
        write_str(&mut json, text);
        String::from_utf8(json).unwrap_or_default()
    });
    let numbers = seen.numbers.iter().cloned();
    let bools = seen.bools.iter().map(bool::to_string);
    let nulls = seen.null.then(|| "null".to_owned());
    let plain = !seen.other_texts && !seen.odd;
    let few = plain && seen.texts.len() <= LISTED_MAX && seen.numbers.len() <= NUMBERS_MAX;
    if few && seen.count > 0 {
        return Limit::OneOf(texts.chain(numbers).chain(bools).chain(nulls).collect());
    }
    match (seen.kinds(), &seen.range, seen.folder()) {
        (1, Some((least, most)), _) => Limit::Range(least.clone(), most.clone()),
        (1, None, Some(folder)) => Limit::Under(folder.to_owned()),
        (1, None, None) => Limit::Text,
        _ => Limit::Any,
    }
}
