//! The lock file: the definitions that a person has accepted.

use std::collections::BTreeMap;

use tapegate_cedar::ToolDefinition;
use tapegate_core::json::{self, JsonFault, JsonObject};

use super::canonical_text::write_lines;
use super::definition::definition;
use crate::filter::lists;
use crate::gated_requests::OfferKind;

/// The version of the file format.
const SCHEMA: &str = "1";

/// The accepted definitions, by server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinLock {
    /// The servers that were pinned.
    pub servers: BTreeMap<String, PinnedServer>,
}

/// The accepted definitions of one server. A kind that is missing was not pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PinnedServer {
    /// By kind, by name.
    pub offers: BTreeMap<OfferKind, BTreeMap<String, Pin>>,
}

/// An accepted definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The blake3 hash of the definition, in hex.
    pub hash: String,
    /// The definition: canonical JSON.
    pub definition: Vec<u8>,
}

/// Why a lock file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct LockError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl Pin {
    /// Pins an item of a list.
    pub fn of(offer: OfferKind, item: &[u8]) -> Self {
        let definition = definition(offer, item);
        Self { hash: blake3::hash(&definition).to_hex().to_string(), definition }
    }
}

impl PinLock {
    /// Reads a lock file.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let at =
            |fault: JsonFault| LockError { line: line_of(text, fault.at), what: fault.what.into() };
        json::check(text.as_bytes()).map_err(at)?;
        let bad = |what: &str| LockError { line: 1, what: what.to_owned() };
        match json::member(text.as_bytes(), "schema") {
            Some(schema) if schema == SCHEMA.as_bytes() => {}
            _ => return Err(bad("this is not a lock file of schema 1")),
        }
        let servers = json::member(text.as_bytes(), "servers").unwrap_or(b"{}");
        let mut lock = Self::default();
        for server in json::members(servers) {
            let (name, server) = server.map_err(at)?;
            let mut pinned = PinnedServer::default();
            for offer in OfferKind::ALL {
                let Some(items) = json::member(server, offer.list()) else { continue };
                let kind = pinned.offers.entry(offer).or_default();
                for item in json::members(items) {
                    let (item, pin) = item.map_err(at)?;
                    kind.insert(item.decode().into_owned(), Self::parse_pin(text, offer, pin)?);
                }
            }
            lock.servers.insert(name.decode().into_owned(), pinned);
        }
        Ok(lock)
    }

    fn parse_pin(text: &str, offer: OfferKind, pin: &[u8]) -> Result<Pin, LockError> {
        let line = json::place_of(pin, text.as_bytes()).map_or(1, |at| line_of(text, at.start));
        let bad = |what: &str| LockError { line, what: what.to_owned() };
        let hash = json::member(pin, "hash").and_then(json::string);
        let definition = json::member(pin, "definition");
        let (Some(hash), Some(definition)) = (hash, definition) else {
            return Err(bad("a pin must have a `hash` and a `definition`"));
        };
        // The hash is computed again, so a definition that was edited by hand does not load.
        let found = Pin::of(offer, definition);
        if found.hash != hash {
            return Err(bad("the hash does not match the definition; pin it again"));
        }
        Ok(found)
    }

    /// The file's text: sorted, one field per line, deterministic.
    pub fn write(&self) -> String {
        let pin_text = |pin: &Pin| {
            JsonObject::new().text("hash", &pin.hash).raw("definition", &pin.definition)
        };
        let offer_text = |pins: &BTreeMap<String, Pin>| {
            pins.iter().fold(JsonObject::new(), |all, (name, pin)| all.object(name, pin_text(pin)))
        };
        let mut servers = JsonObject::new();
        for (name, server) in &self.servers {
            let offers = server.offers.iter().fold(JsonObject::new(), |all, (offer, pins)| {
                all.object(offer.list(), offer_text(pins))
            });
            servers = servers.object(name, offers);
        }
        let text = JsonObject::new().raw("schema", SCHEMA).object("servers", servers).finish();
        let mut out = Vec::new();
        write_lines(&mut out, &text, 0);
        out.push(b'\n');
        String::from_utf8_lossy(&out).into_owned()
    }

    /// Accepts the definitions in the results of list requests, and removes all others of the kinds
    /// they list. `pages` are all pages of all lists.
    pub fn learn(&mut self, server: &str, pages: &[&[u8]]) {
        let mut learned = PinnedServer::default();
        for list in pages.iter().flat_map(|page| lists(page)) {
            let kind = learned.offers.entry(list.offer).or_default();
            for item in list.items.unwrap_or_default() {
                if let Some(name) = item.names.first().filter(|_| item.named) {
                    kind.insert(name.to_string(), Pin::of(list.offer, item.text));
                }
            }
        }
        self.servers.entry(server.to_owned()).or_default().offers.extend(learned.offers);
    }

    /// The accepted tools, in the form that Cedar needs.
    pub fn tools(&self) -> Vec<ToolDefinition> {
        let mut tools = Vec::new();
        for (server, pinned) in &self.servers {
            for (name, pin) in pinned.offers.get(&OfferKind::Tool).into_iter().flatten() {
                let schema = json::member(&pin.definition, "inputSchema").unwrap_or(b"{}");
                tools.push(ToolDefinition {
                    server: server.clone(),
                    name: name.clone(),
                    input_schema: String::from_utf8_lossy(schema).into_owned(),
                });
            }
        }
        tools
    }

    /// The accepted definition of a name.
    pub fn pin_of(&self, server: &str, offer: OfferKind, name: &str) -> Option<&Pin> {
        self.servers.get(server)?.offers.get(&offer)?.get(name)
    }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + memchr::memchr_iter(b'\n', &text.as_bytes()[..at.min(text.len())]).count()
}
