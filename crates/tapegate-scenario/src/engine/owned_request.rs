//! An owned copy of a request that outlives the line it came on.

use std::rc::Rc;

use super::request::EngineRequest;
use crate::model::{Behavior, ScenarioItem};
use crate::template::NamedValue;

/// An owned copy of a request that outlives its line.
pub(super) struct OwnedRequest {
    pub(super) id: Box<[u8]>,
    pub(super) method: Box<str>,
    pub(super) params: Box<[u8]>,
    modern: bool,
    pub(super) token: Option<Box<[u8]>>,
    batch: Option<u32>,
    pub(super) delivery_id: u64,
    phase: usize,
    item: Option<Rc<ScenarioItem>>,
    called: Option<Box<str>>,
    uri: Vec<NamedValue<String>>,
    call_count: u64,
    pub(super) replies: Vec<NamedValue<Vec<u8>>>,
    pub(super) behavior: Option<Rc<Behavior>>,
}

impl OwnedRequest {
    pub(super) fn new(request: &EngineRequest<'_>) -> Self {
        Self {
            id: request.id.into(),
            method: request.method.into(),
            params: request.params.into(),
            modern: request.modern,
            token: request.token.map(Into::into),
            batch: request.batch,
            delivery_id: request.delivery_id,
            phase: request.phase,
            item: request.item.cloned(),
            called: request.called.map(Into::into),
            uri: request.uri.to_vec(),
            call_count: request.call_count,
            replies: request.replies.to_vec(),
            behavior: request.behavior.cloned(),
        }
    }

    /// How much memory it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let replies = self.replies.iter().map(|(_, reply)| reply.len()).sum::<usize>();
        size_of::<Self>() + self.id.len() + self.params.len() + replies
    }

    /// Borrows it as a request.
    pub(super) fn as_request(&self) -> EngineRequest<'_> {
        EngineRequest {
            id: &self.id,
            method: &self.method,
            params: &self.params,
            modern: self.modern,
            token: self.token.as_deref(),
            batch: self.batch,
            delivery_id: self.delivery_id,
            phase: self.phase,
            item: self.item.as_ref(),
            called: self.called.as_deref(),
            uri: &self.uri,
            call_count: self.call_count,
            replies: &self.replies,
            behavior: self.behavior.as_ref(),
        }
    }
}
