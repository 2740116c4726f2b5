//! Requests that every server answers: handshake, discovery, lists and log level.

use tapegate_core::frame::{Envelope, unsupported_version_data};
use tapegate_core::json::{self, JsonObject};

use super::engine_turn::{CODE_PARAMS, EngineTurn};
use super::prepared_scenario::MODERN;
use super::request::EngineRequest;
use super::stateless;
use crate::model::{ItemKind, MESSAGE_LEVELS};

const CODE_VERSION: i32 = -32022;
const UNSUPPORTED_VERSION: &str = "Unsupported protocol version";

impl EngineTurn<'_, '_> {
    /// Answers with one page of a list.
    pub(super) fn list(&mut self, request: &EngineRequest<'_>, kind: ItemKind) {
        let cursor = json::member(request.params, "cursor").filter(|cursor| *cursor != b"null");
        // A cursor that is not a string becomes empty, which no page has, and so is an error.
        let cursor = cursor.map(|cursor| json::string(cursor).unwrap_or_default());
        let script = self.script;
        let info = request.modern.then_some(&*script.info);
        match self.scene().listing(kind).page(cursor.as_deref(), info) {
            Some(page) => self.send_result(request, page),
            None => self.error(request, CODE_PARAMS, "unknown cursor", None),
        }
    }

    /// Answers `initialize`.
    pub(super) fn handle_initialize(&mut self, request: &EngineRequest<'_>) {
        let wanted = json::member(request.params, "protocolVersion").and_then(json::string);
        let script = self.script;
        let wanted = wanted.unwrap_or_default();
        let Some(version) = script.negotiate(&wanted) else {
            let data = unsupported_version_data(MODERN, &wanted);
            return self.error(request, CODE_VERSION, UNSUPPORTED_VERSION, Some(&data));
        };
        self.engine_session.version = Some(version.into());
        let result = JsonObject::new()
            .text("protocolVersion", version)
            .raw("capabilities", &self.scene().capabilities)
            .raw("serverInfo", &script.info)
            .raw_opt("instructions", self.instructions());
        self.result(request, &result.finish());
        // After the answer, so that no side effect precedes it.
        self.handle_connected();
    }

    /// Answers `server/discover`.
    pub(super) fn handle_discover(&mut self, request: &EngineRequest<'_>) {
        let result = JsonObject::new()
            .raw("supportedVersions", json::array([json::quoted(MODERN)]))
            .raw("capabilities", &self.scene().capabilities)
            .raw_opt("instructions", self.instructions());
        self.result(request, &result.finish());
    }

    fn instructions(&self) -> Option<Vec<u8>> {
        self.script.scenario.server.instructions.as_deref().map(json::quoted)
    }

    /// Answers `logging/setLevel`.
    pub(super) fn set_level(&mut self, request: &EngineRequest<'_>) {
        let level = json::member(request.params, "level").and_then(json::string);
        match level.as_deref().and_then(log_level) {
            Some(level) => {
                self.engine_session.level = Some(level);
                self.result(request, b"{}");
            }
            None => self.error(request, CODE_PARAMS, "unknown log level", None),
        }
    }

    /// Checks that a sessionless request carries the required metadata; on failure, the error.
    pub(super) fn check_protocol(
        &self,
        envelope: &Envelope<'_>,
    ) -> Result<(), (i32, String, Vec<u8>)> {
        let wrong = |message: &str| Err((CODE_PARAMS, message.to_owned(), b"null".to_vec()));
        let version = envelope.protocol_version.and_then(json::string);
        let Some(version) = version else {
            return wrong(&format!("`{}` is not a string", stateless::VERSION));
        };
        if version != MODERN {
            let data = unsupported_version_data(MODERN, &version);
            return Err((CODE_VERSION, UNSUPPORTED_VERSION.to_owned(), data));
        }
        let meta = envelope.params.and_then(|params| json::member(params, "_meta"));
        match meta.and_then(|meta| json::member(meta, stateless::CAPABILITIES)) {
            Some(_) => Ok(()),
            None => wrong(&format!("`{}` is missing in `_meta`", stateless::CAPABILITIES)),
        }
    }
}

/// The severity of a log level: 0 is `debug`, the least severe.
pub(super) fn log_level(name: &str) -> Option<usize> {
    MESSAGE_LEVELS.iter().position(|level| *level == name)
}
