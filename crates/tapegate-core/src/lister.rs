//! Lists what a server offers: its tools, resources, templates and prompts, page by page.
//!
//! It calls no tool and reads no resource. It sends one request at a time, which even the simplest
//! server can handle. Requests from the server are refused, except `ping` and `roots/list`.

use crate::frame::{Envelope, Frame, Kind, error_reply, same_id};
use crate::gate::Topic;
use crate::json::{self, write_str};

/// The protocol version to request.
const VERSION: &str = "2025-11-25";
/// Sent with each request to a server of the sessionless protocol era.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tapegate","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{},"elicitation":{}}}"#;
/// The maximum number of pages to request of one list; no real server has that many.
const PAGES_MAX: usize = 1000;
/// The maximum total size of the pages kept.
const PAGES_BYTES_MAX: usize = 256 << 20;
/// Each list with its method and the capability that announces it.
const LISTS: [(Topic, &str, &str); 4] = [
    (Topic::Tools, "tools/list", "tools"),
    (Topic::Resources, "resources/list", "resources"),
    (Topic::Templates, "resources/templates/list", "resources"),
    (Topic::Prompts, "prompts/list", "prompts"),
];

/// A client that only requests lists.
#[derive(Debug, Default)]
pub struct Lister {
    stage: Stage,
    /// The id of the last request.
    asked: u64,
    /// Whether the server is of the sessionless protocol era.
    modern: bool,
    /// The server's answer to `initialize` or `server/discover`.
    hello: Vec<u8>,
    pages: Vec<Page>,
    bytes: usize,
    /// How many pages of the current list have arrived.
    pages_of_list: usize,
    cursor: Option<Vec<u8>>,
    missing: Vec<Missing>,
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The list it belongs to.
    pub topic: Topic,
    /// The whole answer.
    pub answer: Vec<u8>,
}

/// A list that could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The list, by its method.
    pub method: &'static str,
    /// The reason.
    pub why: String,
}

/// What a server offers.
#[derive(Debug, Default)]
pub struct Listed {
    /// Its answer to `initialize` or `server/discover`.
    pub hello: Vec<u8>,
    /// The pages of its lists.
    pub pages: Vec<Page>,
    /// The lists that could not be read to their end.
    pub missing: Vec<Missing>,
}

/// Why a server has listed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListingFailure {
    /// It answers with this error, or not at all.
    Refused(String),
    /// It sends back what it is sent, as `cat` does.
    Echo,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    #[default]
    Initialize,
    Discover,
    /// Reading the list at this index of `LISTS`.
    List(usize),
    Over,
    /// It is not an MCP server.
    Refused,
    /// Our own request came back, so it is not an MCP server.
    Echo,
}

impl Lister {
    /// The first request. Some servers offer tools only to clients with roots, sampling or
    /// elicitation, so it announces these, although it provides none of them.
    pub fn start(&mut self) -> Vec<u8> {
        let params = format!(
            r#"{{"protocolVersion":"{VERSION}","capabilities":{{"roots":{{}},"sampling":{{}},"elicitation":{{}}}},"clientInfo":{{"name":"tapegate","version":"1"}}}}"#
        );
        self.request("initialize", &params)
    }

    /// Takes a line from the server and returns the messages to send in reply.
    pub fn hear(&mut self, line: &[u8]) -> Vec<Vec<u8>> {
        let frame = Frame::read(line);
        let Some(said) = frame.envelope() else { return Vec::new() };
        match (said.kind(), said.id) {
            (Kind::Request, Some(id)) if said.is_method("ping") => {
                let id = String::from_utf8_lossy(id);
                vec![format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).into_bytes()]
            }
            (Kind::Request, Some(id)) if said.is_method("roots/list") => {
                let id = String::from_utf8_lossy(id);
                vec![
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"roots":[]}}}}"#)
                        .into_bytes(),
                ]
            }
            // Servers never send the methods that we do. An answer would come back as well, and look
            // like theirs.
            (Kind::Request, Some(id)) if self.is_awaited(id) && is_ours(said) => {
                self.stage = Stage::Echo;
                Vec::new()
            }
            (Kind::Request, Some(id)) => {
                vec![error_reply(id, -32601, "only lists are wanted here", "null")]
            }
            (Kind::Response, Some(id)) if self.is_awaited(id) => {
                self.answered(frame.text(), said.result.unwrap_or_default())
            }
            (Kind::Error, Some(id)) if self.is_awaited(id) => {
                let message = said.error.and_then(|error| json::member(error, "message"));
                let message = message.and_then(json::string);
                self.failed(message.as_deref().unwrap_or("an error without a message"))
            }
            _ => Vec::new(),
        }
    }

    /// Whether there is nothing more to request.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over | Stage::Refused | Stage::Echo)
    }

    /// What the server offers, or why it could not be listed.
    pub fn finish(self) -> Result<Listed, ListingFailure> {
        let Self { stage, hello, pages, mut missing, .. } = self;
        let silence = || "it did not answer".to_owned();
        match stage {
            Stage::List(at) => {
                missing.push(Missing { method: LISTS[at].1, why: silence() });
                Ok(Listed { hello, pages, missing })
            }
            Stage::Over => Ok(Listed { hello, pages, missing }),
            Stage::Refused | Stage::Initialize | Stage::Discover => {
                let last = missing.into_iter().next_back();
                Err(ListingFailure::Refused(last.map_or_else(silence, |missing| missing.why)))
            }
            Stage::Echo => Err(ListingFailure::Echo),
        }
    }

    fn is_awaited(&self, id: &[u8]) -> bool {
        !self.is_over() && same_id(id, self.asked.to_string().as_bytes())
    }

    fn answered(&mut self, answer: &[u8], result: &[u8]) -> Vec<Vec<u8>> {
        match self.stage {
            Stage::Initialize => {
                self.hello = answer.to_vec();
                let ready = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                let mut said = vec![ready.to_vec()];
                said.extend(self.list(0));
                said
            }
            Stage::Discover => {
                self.hello = answer.to_vec();
                self.modern = true;
                self.list(0)
            }
            Stage::List(at) => self.page(at, answer, result),
            Stage::Over | Stage::Refused | Stage::Echo => Vec::new(),
        }
    }

    fn page(&mut self, at: usize, answer: &[u8], result: &[u8]) -> Vec<Vec<u8>> {
        self.bytes += answer.len();
        if self.bytes > PAGES_BYTES_MAX {
            return self.failed("its lists are too long to be kept");
        }
        self.pages.push(Page { topic: LISTS[at].0, answer: answer.to_vec() });
        self.pages_of_list += 1;
        let next = json::member(result, "nextCursor").filter(|next| json::string(next).is_some());
        let Some(next) = next else { return self.list(at + 1) };
        // A repeated cursor would never end.
        if self.pages_of_list >= PAGES_MAX || self.cursor.as_deref() == Some(next) {
            return self.failed("the list does not come to an end");
        }
        self.cursor = Some(next.to_vec());
        let cursor = String::from_utf8_lossy(next).into_owned();
        vec![self.ask(at, Some(&cursor))]
    }

    fn failed(&mut self, why: &str) -> Vec<Vec<u8>> {
        let missing = |method| Missing { method, why: why.to_owned() };
        match self.stage {
            Stage::Initialize => {
                // A server of the sessionless era does not know `initialize`.
                self.missing.push(missing("initialize"));
                self.stage = Stage::Discover;
                vec![self.request("server/discover", &format!("{{{META}}}"))]
            }
            Stage::Discover => {
                self.stage = Stage::Refused;
                Vec::new()
            }
            Stage::List(at) => {
                self.missing.push(missing(LISTS[at].1));
                self.list(at + 1)
            }
            Stage::Over | Stage::Refused | Stage::Echo => Vec::new(),
        }
    }

    /// Requests the first page of the next list that the server announces. Tools are always
    /// requested, because a server must not be able to hide them.
    fn list(&mut self, from: usize) -> Vec<Vec<u8>> {
        self.missing.retain(|missing| missing.method != "initialize");
        let has = |key: &str| {
            let result = json::member(&self.hello, "result");
            let capabilities = result.and_then(|result| json::member(result, "capabilities"));
            capabilities.is_none_or(|capabilities| json::member(capabilities, key).is_some())
        };
        let wanted = |at: &usize| LISTS[*at].0 == Topic::Tools || has(LISTS[*at].2);
        (self.pages_of_list, self.cursor) = (0, None);
        let Some(at) = (from..LISTS.len()).find(wanted) else {
            self.stage = Stage::Over;
            return Vec::new();
        };
        self.stage = Stage::List(at);
        vec![self.ask(at, None)]
    }

    fn ask(&mut self, at: usize, cursor: Option<&str>) -> Vec<u8> {
        let cursor = cursor.map(|cursor| format!("\"cursor\":{cursor}"));
        let meta = self.modern.then(|| META.to_owned());
        let members: Vec<String> = cursor.into_iter().chain(meta).collect();
        self.request(LISTS[at].1, &format!("{{{}}}", members.join(",")))
    }

    fn request(&mut self, method: &str, params: &str) -> Vec<u8> {
        self.asked += 1;
        let mut out = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"#, self.asked).into_bytes();
        write_str(&mut out, method);
        out.extend_from_slice(format!(",\"params\":{params}}}").as_bytes());
        out
    }
}

/// Whether a request is one that only clients send.
fn is_ours(said: &Envelope<'_>) -> bool {
    let hello = ["initialize", "server/discover"].into_iter();
    hello.chain(LISTS.map(|(_, method, _)| method)).any(|method| said.is_method(method))
}

#[cfg(test)]
mod tests;
