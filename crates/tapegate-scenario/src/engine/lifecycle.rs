//! Requests that every server answers: handshake, discovery, lists and log level.

use tapegate_core::frame::Envelope;
use tapegate_core::json;

use super::modern;
use super::request::Asked;
use super::script::MODERN;
use super::turn::{CODE_PARAMS, Turn};
use crate::model::ItemKind;

const CODE_VERSION: i32 = -32022;

impl Turn<'_, '_> {
    /// Answers with one page of a list.
    pub(super) fn list(&mut self, asked: &Asked<'_>, kind: ItemKind) {
        let cursor = json::member(asked.params, "cursor").filter(|cursor| *cursor != b"null");
        let cursor = cursor.map(|cursor| json::string(cursor).unwrap_or_default());
        let script = self.script;
        let info = asked.modern.then_some(&*script.info);
        match self.scene().listing(kind).page(cursor.as_deref(), info) {
            Some(page) => self.finished(asked, page),
            None => self.error(asked, CODE_PARAMS, "unknown cursor", None),
        }
    }

    /// Answers `initialize`.
    pub(super) fn initialize(&mut self, asked: &Asked<'_>) {
        let wanted = json::member(asked.params, "protocolVersion").and_then(json::string);
        let script = self.script;
        let wanted = wanted.unwrap_or_default();
        let Some(version) = script.negotiate(&wanted) else {
            let mut data = format!("{{\"supported\":[\"{MODERN}\"],\"requested\":").into_bytes();
            json::write_str(&mut data, &wanted);
            data.push(b'}');
            return self.error(asked, CODE_VERSION, "Unsupported protocol version", Some(&data));
        };
        self.visit.version = Some(version.into());
        let mut out = b"{\"protocolVersion\":".to_vec();
        json::write_str(&mut out, version);
        self.write_abilities(&mut out);
        out.extend_from_slice(b",\"serverInfo\":");
        out.extend_from_slice(&script.info);
        self.write_instructions(&mut out);
        out.push(b'}');
        self.result(asked, &out);
        self.connected();
    }

    /// Answers `server/discover`.
    pub(super) fn discover(&mut self, asked: &Asked<'_>) {
        let mut out = format!("{{\"supportedVersions\":[\"{MODERN}\"]").into_bytes();
        self.write_abilities(&mut out);
        self.write_instructions(&mut out);
        out.push(b'}');
        self.result(asked, &out);
    }

    fn write_abilities(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"capabilities\":");
        out.extend_from_slice(&self.scene().capabilities);
    }

    fn write_instructions(&self, out: &mut Vec<u8>) {
        if let Some(instructions) = &self.script.scenario.server.instructions {
            out.extend_from_slice(b",\"instructions\":");
            json::write_str(out, instructions);
        }
    }

    /// Answers `logging/setLevel`.
    pub(super) fn set_level(&mut self, asked: &Asked<'_>) {
        let level = json::member(asked.params, "level").and_then(json::string);
        match level.as_deref().and_then(log_level) {
            Some(level) => {
                self.visit.level = Some(level);
                self.result(asked, b"{}");
            }
            None => self.error(asked, CODE_PARAMS, "unknown log level", None),
        }
    }

    /// Checks that a sessionless request carries the required metadata; on failure, the error.
    pub(super) fn terms(&self, said: &Envelope<'_>) -> Result<(), (i32, String, Vec<u8>)> {
        let wrong = |words: &str| Err((CODE_PARAMS, words.to_owned(), b"null".to_vec()));
        let version = said.protocol_version.and_then(json::string);
        let Some(version) = version else {
            return wrong(&format!("`{}` is not a string", modern::VERSION));
        };
        if version != MODERN {
            let mut data = format!("{{\"supported\":[\"{MODERN}\"],\"requested\":").into_bytes();
            json::write_str(&mut data, &version);
            data.push(b'}');
            return Err((CODE_VERSION, "Unsupported protocol version".to_owned(), data));
        }
        let meta = said.params.and_then(|params| json::member(params, "_meta"));
        match meta.and_then(|meta| json::member(meta, modern::CAPABILITIES)) {
            Some(_) => Ok(()),
            None => wrong(&format!("`{}` is missing in `_meta`", modern::CAPABILITIES)),
        }
    }
}

/// The severity of a log level: 0 is `debug`, the least severe.
pub(super) fn log_level(name: &str) -> Option<usize> {
    const LEVELS: [&str; 8] =
        ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
    LEVELS.iter().position(|level| *level == name)
}
