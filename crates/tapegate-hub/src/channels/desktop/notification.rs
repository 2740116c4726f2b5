//! What a notification says, as far as the notification daemon can show it.

use super::super::{ChannelOutcome, ChannelRequest};
use super::bus_message::{MethodArguments, NotificationHint};

/// What all daemons show at once: longer calls are not shown whole, and cannot be approved there.
const BODY_BYTES_MAX: usize = 400;
const BODY_LINES_MAX: usize = 10;
/// Longer titles and facts are cut.
const TITLE_CHARS_MAX: usize = 100;
const FACT_CHARS_MAX: usize = 120;
/// The keys of the buttons.
pub(super) const APPROVE: &str = "approve";
pub(super) const DENY: &str = "deny";
/// Stays until it is closed.
const NEVER: i32 = 0;
/// How long the outcome is shown.
const OUTCOME_MS: i32 = 5000;
/// Urgency levels: `critical` is also shown while others are muted.
const LOW: u8 = 0;
const CRITICAL: u8 = 2;

/// What a daemon can show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DaemonFeatures {
    /// Buttons.
    pub(super) actions: bool,
    /// A text below the title.
    pub(super) body: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notification {
    pub(super) title: String,
    pub(super) body: String,
    /// The keys and labels of the buttons.
    pub(super) buttons: Vec<(&'static str, &'static str)>,
    urgency: u8,
    expires_ms: i32,
}

impl DaemonFeatures {
    /// The features by their names.
    pub(super) fn read(names: &[String]) -> Self {
        let has = |name: &str| names.iter().any(|found| found == name);
        Self { actions: has("actions"), body: has("body") }
    }
}

/// Text without mark-up. Also for daemons that do not announce `body-markup`, since dunst interprets
/// it even then, and mark-up can hide a part of a call.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Whether all of a call fits.
pub(super) fn is_whole(request: &ChannelRequest) -> bool {
    title(request).chars().count() <= TITLE_CHARS_MAX
        && request.lines.len() <= BODY_LINES_MAX
        && request.pieces(BODY_BYTES_MAX, 1).1
}

fn title(request: &ChannelRequest) -> String {
    format!("Approve {}?", request.title())
}

/// The notification for a request. It has a button that approves only if `may_approve`, and only
/// where all of the call is shown.
pub(super) fn request(
    request: &ChannelRequest,
    features: DaemonFeatures,
    may_approve: bool,
) -> Notification {
    let is_whole = is_whole(request);
    let has_approve = may_approve && is_whole && features.actions && features.body;
    let mut body = vec![cut(&request.reason, FACT_CHARS_MAX)];
    let shown = request.lines.iter().take(BODY_LINES_MAX).cloned().collect();
    let shown = ChannelRequest { lines: shown, ..request.clone() }.pieces(BODY_BYTES_MAX, 1).0;
    body.extend(shown.iter().map(|piece| piece.trim_end().to_owned()));
    if !is_whole {
        body.push("… This is not all of the call.".to_owned());
    }
    if request.masked_parts() > 0 {
        body.push("Some values are masked: the server gets them.".to_owned());
    }
    body.push(format!("Caller: {}", cut(&request.principal, FACT_CHARS_MAX)));
    if !request.folder.is_empty() {
        body.push(format!("Folder: {}", cut(&request.folder, FACT_CHARS_MAX)));
    }
    if !has_approve {
        body.push(format!("Approve: tapegate approvals approve {}", request.id));
    }
    let mut buttons = Vec::new();
    buttons.extend(has_approve.then_some((APPROVE, "Approve")));
    buttons.extend(features.actions.then_some((DENY, "Deny")));
    Notification {
        title: cut(&title(request), TITLE_CHARS_MAX),
        body: escaped(&body.join("\n")),
        buttons,
        urgency: CRITICAL,
        expires_ms: NEVER,
    }
}

/// The notification that replaces it once the request has ended.
pub(super) fn ended(request: &ChannelRequest, outcome: &ChannelOutcome) -> Notification {
    let title = cut(&format!("{} {}", request.title(), outcome.word), TITLE_CHARS_MAX);
    let body = escaped(&cut(&outcome.text(), 2 * FACT_CHARS_MAX));
    Notification { title, body, buttons: Vec::new(), urgency: LOW, expires_ms: OUTCOME_MS }
}

impl Notification {
    /// The arguments of `Notify`, in place of the notification `replaces` if that is not zero.
    pub(super) fn arguments(&self, replaces: u32) -> MethodArguments {
        let buttons: Vec<&str> =
            self.buttons.iter().flat_map(|(key, label)| [*key, *label]).collect();
        let hints = [
            ("urgency", NotificationHint::Byte(self.urgency)),
            // The outcome need not be kept in a list of past notifications.
            ("transient", NotificationHint::Switch(self.expires_ms != NEVER)),
        ];
        let call = MethodArguments::default().string("Tapegate").number(replaces).string("");
        let call = call.string(&self.title).string(&self.body);
        call.strings(&buttons).hints(&hints).signed(self.expires_ms)
    }
}

fn cut(text: &str, chars_max: usize) -> String {
    let mut text = text.to_owned();
    if let Some((end, _)) = text.char_indices().nth(chars_max) {
        text.truncate(end);
        text.push('…');
    }
    text
}
