//! The messages that are posted to Slack.
//!
//! Texts of a call are only in elements that Slack does not parse: `plain_text`, and the text of a
//! preformatted section. So no mark-up, mention or code fence of an argument has any effect. The
//! text of notifications has no other kind, and is escaped.

use serde_json::{Value, json};
use tapegate_core::lenient::spelling::percent_decode;

use super::super::{ChannelOutcome, ChannelRequest};

/// A section holds 3000 characters, and a message about 13,000 in all.
const PIECE_BYTES_MAX: usize = 2900;
const PIECES_MAX: usize = 3;
/// A header holds 150 characters.
const TITLE_CHARS_MAX: usize = 140;
/// Longer facts are cut.
const FACT_CHARS_MAX: usize = 300;

/// The ids of the buttons.
const APPROVE: &str = "tapegate_approve";
const DENY: &str = "tapegate_deny";

/// A button of a message that a user has pressed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PressedButton {
    /// The id of the request.
    pub(super) id: String,
    pub(super) approve: bool,
    /// The id of the user.
    pub(super) user: String,
    /// Which message it was.
    pub(super) receipt: String,
}

/// The message for a request, with buttons if Slack can reach the hub.
pub(super) fn request(request: &ChannelRequest, has_buttons: bool) -> Value {
    let (pieces, _) = request.pieces(PIECE_BYTES_MAX, PIECES_MAX);
    let (title, is_whole) = (title(request), is_whole(request));
    let mut blocks = vec![json!({"type": "header", "text": plain(&title, TITLE_CHARS_MAX)})];
    blocks.push(facts(request));
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let text = json!({"type": "text", "text": piece});
        let code = json!({"type": "rich_text_preformatted", "elements": [text]});
        blocks.push(json!({"type": "rich_text", "elements": [code]}));
    }
    if has_buttons {
        let button = |label: &str, id: &str, style: &str| json!({"type": "button", "text": plain(label, TITLE_CHARS_MAX), "action_id": id, "value": request.id, "style": style});
        let mut elements = Vec::new();
        // A person must not approve what was cut off.
        elements.extend(is_whole.then(|| button("Approve", APPROVE, "primary")));
        elements.push(button("Deny", DENY, "danger"));
        blocks.push(json!({"type": "actions", "elements": elements}));
    }
    let mut notes = Vec::new();
    if !is_whole {
        notes.push(format!(
            "This is not all of the call. Approve it with `tapegate approvals approve {}`; here it can only be denied.",
            request.id
        ));
    }
    match request.masked_parts() {
        0 => {}
        count => notes.push(format!(
            "{count} masked: you do not see these values, and the server gets them."
        )),
    }
    let approve = if is_whole {
        "React with 👍 to approve, 👎 to deny"
    } else {
        "React with 👎 to deny"
    };
    notes.push(format!("{approve}. Waits until {}. {}", request.expires_at, request.id));
    let notes = notes.iter().map(|note| plain(note, FACT_CHARS_MAX)).collect::<Vec<_>>();
    blocks.push(json!({"type": "context", "elements": notes}));
    message(&title, blocks)
}

/// The message that replaces it once the request has ended.
pub(super) fn ended(request: &ChannelRequest, outcome: &ChannelOutcome) -> Value {
    let title = format!("{}: {}", outcome.word, request.title());
    let outcome = format!("{} {}", request.id, outcome.text());
    let blocks = vec![
        json!({"type": "header", "text": plain(&title, TITLE_CHARS_MAX)}),
        json!({"type": "context", "elements": [plain(&outcome, FACT_CHARS_MAX)]}),
    ];
    message(&title, blocks)
}

/// The button in what Slack sends after a user has pressed it: a form with JSON in `payload`.
pub(super) fn pressed_button(body: &[u8]) -> Option<PressedButton> {
    let body = std::str::from_utf8(body).ok()?;
    let mut fields = body.split('&').filter_map(|field| field.strip_prefix("payload="));
    let (payload, None) = (fields.next()?, fields.next()) else { return None };
    let payload = payload.replace('+', " ");
    let payload = percent_decode(&payload).unwrap_or(payload);
    let payload: Value = serde_json::from_str(&payload).ok()?;
    let actions = payload["actions"].as_array()?;
    let [action] = actions.as_slice() else { return None };
    if payload["type"] != "block_actions" || action["type"] != "button" {
        return None;
    }
    let approve = match action["action_id"].as_str()? {
        APPROVE => true,
        DENY => false,
        _ => return None,
    };
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let message = &payload["container"];
    let (channel, ts) = (message["channel_id"].as_str()?, message["message_ts"].as_str()?);
    Some(PressedButton {
        id: text(&action["value"])?,
        approve,
        user: text(&payload["user"]["id"])?,
        receipt: format!("{channel} {ts}"),
    })
}

/// Whether all of a call fits into its message.
pub(super) fn is_whole(request: &ChannelRequest) -> bool {
    title(request).chars().count() <= TITLE_CHARS_MAX
        && request.pieces(PIECE_BYTES_MAX, PIECES_MAX).1
}

fn title(request: &ChannelRequest) -> String {
    format!("Approval needed: {}", request.title())
}

fn facts(request: &ChannelRequest) -> Value {
    let facts = [
        ("Because", &request.reason),
        ("Caller", &request.principal),
        ("Workflow", &request.workflow),
        ("Folder", &request.folder),
    ];
    let given = facts.iter().filter(|(_, text)| !text.is_empty());
    let fields = given.map(|(name, text)| plain(&format!("{name}: {text}"), FACT_CHARS_MAX));
    let fields: Vec<Value> = fields.collect();
    match fields.is_empty() {
        // Slack refuses a section without fields.
        true => json!({"type": "divider"}),
        false => json!({"type": "section", "fields": fields}),
    }
}

fn message(title: &str, blocks: Vec<Value>) -> Value {
    json!({
        "text": escaped(title),
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "blocks": blocks,
    })
}

/// Text that Slack shows as it is, without turning `:name:` into pictures.
fn plain(text: &str, chars_max: usize) -> Value {
    let mut text = text.to_owned();
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    json!({"type": "plain_text", "text": text, "emoji": false})
}

/// Text of a notification, in which `&`, `<` and `>` would be mark-up.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
