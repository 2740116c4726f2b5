//! Messages that the server sends on its own: notifications, and requests to the client.

use tapegate_core::json;

use super::Note;
use super::lifecycle::log_level;
use super::listen::Change;
use super::modern;
use super::request::Asked;
use super::turn::Turn;
use crate::form::Form;

impl Turn<'_, '_> {
    /// Fills a template with the values of a request.
    pub(super) fn fill(&self, asked: &Asked<'_>, form: &Form) -> Vec<u8> {
        let mut out = Vec::new();
        form.write(&self.context(asked), &mut out);
        out
    }

    /// Whether the client wants log messages of this level.
    pub(super) fn wants_to_hear(&self, asked: &Asked<'_>, level: &str) -> bool {
        let level = log_level(level).unwrap_or(usize::MAX);
        if asked.modern {
            let meta = json::member(asked.params, "_meta");
            let least = meta.and_then(|meta| json::member(meta, modern::LOG_LEVEL));
            let least = least.and_then(json::string);
            return least
                .is_some_and(|least| log_level(&least).is_some_and(|least| level >= least));
        }
        // A sessionless client receives log messages only as part of a request.
        if asked.id.is_empty() && self.visit.is_modern && self.visit.version.is_none() {
            return false;
        }
        self.visit.level.is_none_or(|least| level >= least)
    }

    /// Sends a request to the client; returns its id.
    pub(super) fn ask_client(
        &mut self,
        asked: &Asked<'_>,
        method: &str,
        id: Option<&str>,
        params: Option<&[u8]>,
    ) -> Box<[u8]> {
        self.visit.asked += 1;
        let id = id.map_or_else(|| self.visit.asked.to_string(), str::to_owned);
        let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":").into_bytes();
        write_call(&mut line, method, params);
        self.note(Note::Asked { id: id.as_bytes(), method });
        self.tell(asked, &line);
        id.into_bytes().into()
    }

    /// Sends a notification to the client and to matching subscriptions.
    pub(super) fn notify(&mut self, asked: &Asked<'_>, method: &str, params: Option<&[u8]>) {
        if let Some(change) = Change::of(method, params) {
            self.tell_listeners(&change, method, params);
            if self.visit.is_modern && self.visit.version.is_none() {
                return;
            }
        }
        let mut line = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        write_call(&mut line, method, params);
        self.tell(asked, &line);
    }

    fn tell(&mut self, asked: &Asked<'_>, line: &[u8]) {
        match asked.id {
            b"" => self.visit.courier.say(&[line], self.act),
            id => self.visit.courier.tell(id, &[line], self.act),
        }
    }
}

/// Appends the method and the params, and closes the object.
pub(super) fn write_call(out: &mut Vec<u8>, method: &str, params: Option<&[u8]>) {
    json::write_str(out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
}
