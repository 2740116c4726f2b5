//! Lists what a server offers: its tools, resources, templates and prompts, page by page.
//!
//! It calls no tool and reads no resource. It sends one request at a time, which even the simplest
//! server can handle. Requests from the server are refused, except `ping` and `roots/list`.

use crate::frame::{Envelope, Frame, MessageKind, error_reply, request_text, result_text, same_id};
use crate::gate::Topic;
use crate::json::{self, JsonObject};

/// The protocol version to request.
const VERSION: &str = "2025-11-25";
const CLIENT_INFO: &str = r#"{"name":"tapegate","version":"1"}"#;
const CAPABILITIES: &str = r#"{"roots":{},"sampling":{},"elicitation":{}}"#;
/// The `_meta` of each request to a server of the sessionless protocol era.
const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"tapegate","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"roots":{},"sampling":{},"elicitation":{}}}"#;
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
    state: ListerState,
    /// The id of the last request.
    sent_count: u64,
    /// Whether the server is of the sessionless protocol era.
    modern: bool,
    /// The server's answer to `initialize` or `server/discover`.
    hello: Vec<u8>,
    pages: Vec<ListPage>,
    bytes: usize,
    /// How many pages of the current list have arrived.
    pages_of_list: usize,
    cursor: Option<Vec<u8>>,
    missing: Vec<MissingList>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPage {
    /// The list it belongs to.
    pub topic: Topic,
    /// The whole answer.
    pub answer: Vec<u8>,
}

/// A list that could not be read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingList {
    /// The list, by its method.
    pub method: &'static str,
    pub reason: String,
}

/// What a server offers.
#[derive(Debug, Default)]
pub struct ServerListing {
    /// Its answer to `initialize` or `server/discover`.
    pub hello: Vec<u8>,
    /// The pages of its lists.
    pub pages: Vec<ListPage>,
    /// The lists that could not be read to their end.
    pub missing: Vec<MissingList>,
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
enum ListerState {
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
        let params = JsonObject::new().text("protocolVersion", VERSION);
        self.request(
            "initialize",
            params.raw("capabilities", CAPABILITIES).raw("clientInfo", CLIENT_INFO),
        )
    }

    /// Takes a line from the server and returns the messages to send in reply.
    pub fn receive(&mut self, line: &[u8]) -> Vec<Vec<u8>> {
        let frame = Frame::read(line);
        let Some(envelope) = frame.envelope() else { return Vec::new() };
        match (envelope.kind(), envelope.id) {
            (MessageKind::Request, Some(id)) if envelope.is_method("ping") => {
                vec![result_text(id, b"{}")]
            }
            (MessageKind::Request, Some(id)) if envelope.is_method("roots/list") => {
                vec![result_text(id, br#"{"roots":[]}"#)]
            }
            // Servers never send the methods that we do. An answer would come back as well, and look
            // like theirs.
            (MessageKind::Request, Some(id))
                if self.is_awaited(id) && is_client_request(envelope) =>
            {
                self.state = ListerState::Echo;
                Vec::new()
            }
            // It announced these capabilities, so a refusal must be an answer and not silence.
            (MessageKind::Request, Some(id)) => {
                vec![error_reply(id, -32601, "only lists are wanted here", "null")]
            }
            (MessageKind::Response, Some(id)) if self.is_awaited(id) => {
                self.handle_result(frame.text(), envelope.result.unwrap_or_default())
            }
            (MessageKind::Error, Some(id)) if self.is_awaited(id) => {
                let message = envelope.error.and_then(|error| json::member(error, "message"));
                let message = message.and_then(json::string);
                self.handle_error(message.as_deref().unwrap_or("an error without a message"))
            }
            _ => Vec::new(),
        }
    }

    /// Whether there is nothing more to request.
    pub fn is_finished(&self) -> bool {
        matches!(self.state, ListerState::Over | ListerState::Refused | ListerState::Echo)
    }

    /// What the server offers, or why it could not be listed.
    pub fn finish(self) -> Result<ServerListing, ListingFailure> {
        let Self { state: stage, hello, pages, mut missing, .. } = self;
        let silence = || "it did not answer".to_owned();
        match stage {
            ListerState::List(at) => {
                missing.push(MissingList { method: LISTS[at].1, reason: silence() });
                Ok(ServerListing { hello, pages, missing })
            }
            ListerState::Over => Ok(ServerListing { hello, pages, missing }),
            ListerState::Refused | ListerState::Initialize | ListerState::Discover => {
                let last = missing.into_iter().next_back();
                Err(ListingFailure::Refused(last.map_or_else(silence, |missing| missing.reason)))
            }
            ListerState::Echo => Err(ListingFailure::Echo),
        }
    }

    fn is_awaited(&self, id: &[u8]) -> bool {
        !self.is_finished() && same_id(id, self.sent_count.to_string().as_bytes())
    }

    fn handle_result(&mut self, answer: &[u8], result: &[u8]) -> Vec<Vec<u8>> {
        match self.state {
            ListerState::Initialize => {
                self.hello = answer.to_vec();
                let ready = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                let mut lines_to_send = vec![ready.to_vec()];
                lines_to_send.extend(self.list(0));
                lines_to_send
            }
            ListerState::Discover => {
                self.hello = answer.to_vec();
                self.modern = true;
                self.list(0)
            }
            ListerState::List(at) => self.page(at, answer, result),
            ListerState::Over | ListerState::Refused | ListerState::Echo => Vec::new(),
        }
    }

    fn page(&mut self, at: usize, answer: &[u8], result: &[u8]) -> Vec<Vec<u8>> {
        self.bytes += answer.len();
        if self.bytes > PAGES_BYTES_MAX {
            // What is there is reported, with the list marked as incomplete.
            return self.handle_error("its lists are too long to be kept");
        }
        self.pages.push(ListPage { topic: LISTS[at].0, answer: answer.to_vec() });
        self.pages_of_list += 1;
        let next = json::member(result, "nextCursor").filter(|next| json::string(next).is_some());
        let Some(next) = next else { return self.list(at + 1) };
        // A repeated cursor would never end.
        if self.pages_of_list >= PAGES_MAX || self.cursor.as_deref() == Some(next) {
            return self.handle_error("the list does not come to an end");
        }
        self.cursor = Some(next.to_vec());
        vec![self.next_request(at, Some(next))]
    }

    fn handle_error(&mut self, reason: &str) -> Vec<Vec<u8>> {
        let missing = |method| MissingList { method, reason: reason.to_owned() };
        match self.state {
            ListerState::Initialize => {
                // A server of the sessionless era does not know `initialize`.
                self.missing.push(missing("initialize"));
                self.state = ListerState::Discover;
                vec![self.request("server/discover", JsonObject::new().raw("_meta", META))]
            }
            ListerState::Discover => {
                self.state = ListerState::Refused;
                Vec::new()
            }
            ListerState::List(at) => {
                self.missing.push(missing(LISTS[at].1));
                self.list(at + 1)
            }
            ListerState::Over | ListerState::Refused | ListerState::Echo => Vec::new(),
        }
    }

    /// Requests the first page of the next list that the server announces. Tools are always
    /// requested, because a server must not be able to hide them.
    fn list(&mut self, from: usize) -> Vec<Vec<u8>> {
        // The server speaks the other era, so the failed `initialize` is not worth a report.
        self.missing.retain(|missing| missing.method != "initialize");
        let has = |key: &str| {
            let result = json::member(&self.hello, "result");
            let capabilities = result.and_then(|result| json::member(result, "capabilities"));
            // A server that announces nothing may still have lists.
            capabilities.is_none_or(|capabilities| json::member(capabilities, key).is_some())
        };
        let wanted = |at: &usize| LISTS[*at].0 == Topic::Tools || has(LISTS[*at].2);
        (self.pages_of_list, self.cursor) = (0, None);
        let Some(at) = (from..LISTS.len()).find(wanted) else {
            self.state = ListerState::Over;
            return Vec::new();
        };
        self.state = ListerState::List(at);
        vec![self.next_request(at, None)]
    }

    fn next_request(&mut self, at: usize, cursor: Option<&[u8]>) -> Vec<u8> {
        let params = JsonObject::new().raw_opt("cursor", cursor);
        self.request(LISTS[at].1, params.raw_opt("_meta", self.modern.then_some(META)))
    }

    fn request(&mut self, method: &str, params: JsonObject) -> Vec<u8> {
        self.sent_count += 1;
        request_text(self.sent_count.to_string().as_bytes(), method, Some(&params.finish()))
    }
}

/// Whether a request is one that only clients send.
fn is_client_request(envelope: &Envelope<'_>) -> bool {
    let hello = ["initialize", "server/discover"].into_iter();
    hello.chain(LISTS.map(|(_, method, _)| method)).any(|method| envelope.is_method(method))
}

#[cfg(test)]
mod tests;
