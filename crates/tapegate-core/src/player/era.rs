//! The protocol era of a tape: with sessions that begin with `initialize`, or 2026-07-28 and later,
//! where each request names its revision. Answers that are not from the tape follow it.

use std::io;

use super::tape::PlayerTape;
use crate::frame::{Envelope, Frame};
use crate::json::{self, JsonObject};

/// How many requests are read to determine it.
const READ_MAX: u32 = 1000;
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The capabilities, with the method prefix that shows their use.
const CAPABILITIES: [(&str, &str); 4] = [
    ("tools", "tools/"),
    ("resources", "resources/"),
    ("prompts", "prompts/"),
    ("completions", "completion/"),
];

/// The protocol era of a tape.
#[derive(Debug, Default)]
pub(super) struct ProtocolEra {
    /// Whether a session begins with `initialize`.
    initializes: bool,
    /// The revisions that requests name, as JSON strings.
    versions: Vec<Vec<u8>>,
    /// The capabilities that were used, and whether changes were subscribed to.
    used: [bool; CAPABILITIES.len()],
    listens: bool,
    /// The server's description of itself.
    server_info: Option<Vec<u8>>,
}

impl ProtocolEra {
    /// Whether a request is answered as by a sessionless server. If the tape shows both eras, or
    /// neither, the request decides.
    pub(super) fn is_stateless(&self, envelope: &Envelope<'_>) -> bool {
        match (self.initializes, self.versions.is_empty()) {
            // Only a tape of one era decides for all requests, whatever the client says.
            (true, true) => false,
            (false, false) => true,
            _ => envelope.protocol_version.is_some(),
        }
    }

    /// The result of `server/discover`, if the recorded server supported it.
    pub(super) fn discover_result(&self) -> Option<Vec<u8>> {
        // A tape without revisions is of the era in which this method did not exist.
        if self.versions.is_empty() {
            return None;
        }
        let used = CAPABILITIES.iter().zip(self.used).filter(|(_, used)| *used);
        let capabilities = used.fold(JsonObject::new(), |object, ((name, _), _)| {
            object.raw(name, self.capability(name))
        });
        let info = self.server_info.as_ref();
        let meta = info.map(|info| JsonObject::new().raw(SERVER_INFO, info).finish());
        let result = JsonObject::new()
            .text("resultType", "complete")
            .raw("supportedVersions", json::array(&self.versions))
            .object("capabilities", capabilities)
            // A client must not cache this answer, which is derived from the tape and not recorded.
            .number("ttlMs", 0)
            .text("cacheScope", "private")
            .raw_opt("_meta", meta);
        Some(result.finish())
    }

    fn capability(&self, name: &str) -> &'static str {
        match (self.listens, name) {
            (false, _) | (_, "completions") => "{}",
            (true, "resources") => "{\"listChanged\":true,\"subscribe\":true}",
            (true, _) => "{\"listChanged\":true}",
        }
    }

    fn observe(&mut self, envelope: &Envelope<'_>) {
        let Some(method) = envelope.method else { return };
        let method = method.bytes();
        self.initializes |= *method == *b"initialize";
        self.listens |= *method == *b"subscriptions/listen";
        for ((_, start), used) in CAPABILITIES.iter().zip(&mut self.used) {
            *used |= method.starts_with(start.as_bytes());
        }
        // Only strings: the text is put into an answer of ours.
        let quoted = envelope.protocol_version.filter(|version| version.starts_with(b"\""));
        if let Some(version) = quoted.filter(|version| !self.versions.iter().any(|v| v == version))
        {
            self.versions.push(version.to_vec());
        }
    }
}

impl PlayerTape {
    /// The era of the tape, determined from its first requests.
    pub(super) fn era(&mut self) -> io::Result<&ProtocolEra> {
        if self.era.is_none() {
            self.era = Some(self.read_era()?);
        }
        Ok(self.era.get_or_insert_default())
    }

    fn read_era(&mut self) -> io::Result<ProtocolEra> {
        let mut era = ProtocolEra::default();
        for request_number in 0..self.request_count().min(READ_MAX) {
            let frame = Frame::read(self.request(request_number)?);
            frame.envelope().into_iter().for_each(|envelope| era.observe(envelope));
            // Only a sessionless server repeats its description in answers.
            if era.server_info.is_none() && !era.versions.is_empty() {
                era.server_info = self.server_info(request_number)?;
            }
        }
        Ok(era)
    }

    /// The server's description of itself in the answer to a request.
    fn server_info(&mut self, request_number: u32) -> io::Result<Option<Vec<u8>>> {
        let pair = self.entry_of(request_number).pair;
        if pair == crate::tape::index::NONE {
            return Ok(None);
        }
        let answer = self.index.entry(pair);
        let line = self.line(&answer)?;
        let meta = json::member(&line, "result");
        let meta = meta.and_then(|result| json::member(result, "_meta"));
        Ok(meta.and_then(|meta| json::member(meta, SERVER_INFO)).map(<[u8]>::to_vec))
    }
}
