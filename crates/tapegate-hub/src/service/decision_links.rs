//! Links that approve or deny one request, for people who have no token.
//!
//! A link names the request, the ruling and the channel, and carries a code that only the project's
//! key can make. It needs no memory, so it works after a restart; and it works once, since a
//! request is decided once. Only POST decides, since a preview of a message must not; GET shows a page
//! with a button (`link_page`).

use http::StatusCode;
use tapegate_policy::model::ChannelSettings;
use tapegate_store::approvals::ApprovalRecord;

use super::Hub;
use super::response::ApiRefusal;
use crate::api::{SettleRequest, TaskAnswer};

/// The route of links, before the token.
const PATH: &str = "/approvals/links/";

/// What a link says.
pub(super) struct LinkToken<'a> {
    pub(super) id: &'a str,
    pub(super) approve: bool,
    channel: &'a str,
    code: blake3::Hash,
}

impl<'a> LinkToken<'a> {
    fn read(token: &'a str) -> Option<Self> {
        let mut parts = token.split('.');
        let (id, ruling) = (parts.next()?, parts.next()?);
        let (channel, code) = (parts.next()?, parts.next()?);
        let approve = match ruling {
            "approve" => true,
            "deny" => false,
            _ => return None,
        };
        let code = blake3::Hash::from_hex(code).ok().filter(|_| parts.next().is_none())?;
        Some(Self { id, approve, channel, code })
    }
}

impl Hub {
    /// The link that decides about a request in this way.
    pub(super) fn decision_link(
        &self,
        base: &str,
        request: &ApprovalRecord,
        channel: &str,
        approve: bool,
    ) -> String {
        let code = self.tasks.approvals.link_code(request, approve, channel).to_hex();
        let ruling = if approve { "approve" } else { "deny" };
        format!("{}{PATH}{}.{ruling}.{channel}.{code}", base.trim_end_matches('/'), request.id)
    }

    /// Decides as a link says.
    pub(super) fn settle_by_link(&self, token: &str) -> Result<TaskAnswer, ApiRefusal> {
        let (LinkToken { id, approve, channel, .. }, _, settings) = self.read_link(token)?;
        let who = SettleRequest { by: settings.approver, ..SettleRequest::default() };
        self.settle_through(id, approve, who, channel)
    }

    /// A valid link, the request it is about, and its channel.
    pub(super) fn read_link<'a>(
        &self,
        token: &'a str,
    ) -> Result<(LinkToken<'a>, ApprovalRecord, ChannelSettings), ApiRefusal> {
        let refused = || {
            let message = "this link is not valid, or its call is gone";
            ApiRefusal::new(StatusCode::FORBIDDEN, "forbidden", message)
        };
        let link = LinkToken::read(token).ok_or_else(refused)?;
        let request = self.tasks.approvals.request(link.id).map_err(|_| refused())?;
        // Hashes are compared in constant time.
        if self.tasks.approvals.link_code(&request, link.approve, link.channel) != link.code {
            return Err(refused());
        }
        let settings = self.channels.settings(link.channel).ok_or_else(refused)?;
        Ok((link, request, settings))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_link_is_read() {
        let code = "ab".repeat(32);
        let read =
            |text: &str| LinkToken::read(text).map(|link| (link.id.to_owned(), link.approve));
        assert_eq!(read(&format!("ap_x.approve.ops.{code}")), Some(("ap_x".to_owned(), true)));
        assert_eq!(read(&format!("ap_x.deny.ops.{code}")), Some(("ap_x".to_owned(), false)));
        for text in ["", "ap_x", "ap_x.approve.ops", "ap_x.approve.ops.ab"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read(&format!("ap_x.maybe.ops.{code}")), None);
        assert_eq!(read(&format!("ap_x.approve.ops.{code}.x")), None);
    }
}
