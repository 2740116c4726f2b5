//! A request as people see it in a channel: only visible characters, and none of the secrets.

use tapegate_core::readable_json;
use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_core::visible_text;
use tapegate_policy::approval_channel::has_more_than_arguments;
use tapegate_store::approvals::ApprovalRecord;

/// Longer names are cut.
const NAME_CHARS_MAX: usize = 200;

/// What a channel tells of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChannelRequest {
    pub(crate) id: String,
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) method: String,
    pub(crate) principal: String,
    pub(crate) folder: String,
    pub(crate) workflow: String,
    pub(crate) reason: String,
    pub(crate) expires_at: String,
    /// The arguments, or the whole params if they contain more, line by line.
    pub(crate) lines: Vec<String>,
    /// The masked params as JSON, for programs.
    pub(crate) params: Option<String>,
    /// Links that decide, if the channel has them.
    pub(crate) links: Option<DecisionLinks>,
}

/// Links that decide about one request, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DecisionLinks {
    pub(crate) approve: String,
    pub(crate) deny: String,
}

impl ChannelRequest {
    pub(crate) fn new(request: &ApprovalRecord, links: Option<DecisionLinks>) -> Self {
        let name = |text: &str| visible_text::inline(text, NAME_CHARS_MAX);
        let params = request.params.as_deref().unwrap_or_default();
        let shown = match request.arguments() {
            // Everything that the server would get must be seen, so further params are shown as
            // well.
            Some(arguments) if !has_more_than_arguments(params.as_bytes()) => arguments,
            _ => params,
        };
        let mut expires_at = Vec::new();
        write_rfc3339(&mut expires_at, request.expires_us, SubSecond::Millis);
        Self {
            id: request.id.clone(),
            server: name(&request.server_id),
            tool: name(&request.tool),
            method: name(&request.method),
            principal: name(&request.principal),
            folder: name(&request.folder),
            workflow: name(&request.workflow),
            reason: name(&request.reason),
            expires_at: String::from_utf8_lossy(&expires_at).into_owned(),
            lines: readable_json::lines(shown.as_bytes(), ""),
            params: request.params.clone(),
            links,
        }
    }

    /// The call in a few words.
    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.server, self.tool)
    }

    /// How many parts of the call are masked.
    pub(crate) fn masked_parts(&self) -> usize {
        self.params.as_deref().unwrap_or_default().matches("[REDACTED").count()
    }

    /// The lines as pieces of at most `bytes_max`, at most `pieces_max` of them, and whether they
    /// are all of it.
    pub(crate) fn pieces(&self, bytes_max: usize, pieces_max: usize) -> (Vec<String>, bool) {
        let mut pieces = vec![String::new()];
        for line in &self.lines {
            let mut rest = line.as_str();
            loop {
                let piece = pieces.last().map(String::len).unwrap_or_default();
                let room = bytes_max.saturating_sub(piece + 1);
                let cut = floor_char(rest, room);
                if cut < rest.len() && (cut == 0 || piece > 0) {
                    // A line is cut only if a whole piece has no room for it.
                    if pieces.len() == pieces_max {
                        return (pieces, false);
                    }
                    pieces.push(String::new());
                    continue;
                }
                let Some(piece) = pieces.last_mut() else { break };
                piece.push_str(&rest[..cut]);
                piece.push('\n');
                rest = &rest[cut..];
                if rest.is_empty() {
                    break;
                }
            }
        }
        (pieces, true)
    }
}

/// The largest index up to `at` between two characters.
fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    // Zero is a boundary, so this ends.
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(lines: Vec<String>) -> ChannelRequest {
        ChannelRequest { lines, ..ChannelRequest::new(&ApprovalRecord::default(), None) }
    }

    #[test]
    fn pieces_hold_every_line_or_say_that_they_do_not() {
        let lines: Vec<String> = ["short", "", &"é".repeat(50), "end"].map(str::to_owned).into();
        let (pieces, is_whole) = request(lines.clone()).pieces(20, 100);
        assert!(is_whole && pieces.iter().all(|piece| piece.len() <= 20), "{pieces:?}");
        assert_eq!(pieces.concat().replace('\n', ""), lines.concat());
        let (pieces, is_whole) = request(lines).pieces(20, 2);
        assert!(!is_whole && pieces.len() == 2, "{pieces:?}");
        assert_eq!(request(Vec::new()).pieces(20, 1), (vec![String::new()], true));
    }

    #[test]
    fn only_visible_characters_are_told() {
        let record = ApprovalRecord {
            server_id: "a\u{1b}[2J".to_owned(),
            tool: "b\u{202e}\nc".to_owned(),
            params: Some("{\"arguments\":{\"x\":\"\\u001b]0;t\\u0007\\n\u{200b}\"}}".to_owned()),
            ..ApprovalRecord::default()
        };
        let request = ChannelRequest::new(&record, None);
        let text = format!("{}{}", request.title(), request.lines.concat());
        assert!(!text.chars().any(char::is_control), "{text:?}");
        assert!(!text.contains(['\u{202e}', '\u{200b}']), "{text:?}");
    }
}
