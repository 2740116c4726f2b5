//! Requests that the server of a channel sends to the hub, such as a button that was pressed in Slack.
//!
//! Their signature replaces the token. They are answered without any text of a call.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};

use super::Hub;
use super::response::{ApiBody, ApiRefusal, text_reply};
use crate::api::SettleRequest;
use crate::channels::InboundPost;

impl Hub {
    /// Counts the answer in a request to the channel `name`.
    pub(super) fn settle_by_post(
        &self,
        name: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Response<ApiBody>, ApiRefusal> {
        let now_s = self.clock.now().wall_us.div_euclid(1_000_000);
        let post = InboundPost { headers, body, now_s };
        let answer = self
            .receive_from_channel(name, &post)
            .map_err(|reason| ApiRefusal::new(StatusCode::FORBIDDEN, "forbidden", &reason))?;
        let who = SettleRequest { by: answer.by.clone(), ..SettleRequest::default() };
        self.settle_through(&answer.id, answer.approve, who, name)
            .inspect_err(|refusal| self.report_uncounted(name, &answer, refusal))?;
        // An empty answer leaves the message as it is; the channel's worker updates it.
        Ok(text_reply("text/plain; charset=utf-8", Bytes::new().into()))
    }
}
