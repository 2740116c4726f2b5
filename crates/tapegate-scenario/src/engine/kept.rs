//! An owned copy of a request that outlives the line it came on.

use std::rc::Rc;

use super::request::Asked;
use crate::form::Named;
use crate::model::{Behavior, Item};

/// An owned copy of a request that outlives its line.
pub(super) struct Kept {
    pub(super) id: Box<[u8]>,
    pub(super) method: Box<str>,
    pub(super) params: Box<[u8]>,
    modern: bool,
    pub(super) token: Option<Box<[u8]>>,
    batch: Option<u32>,
    pub(super) ticket: u64,
    phase: usize,
    item: Option<Rc<Item>>,
    called: Option<Box<str>>,
    uri: Vec<Named<String>>,
    call_count: u64,
    pub(super) replies: Vec<Named<Vec<u8>>>,
    pub(super) behavior: Option<Rc<Behavior>>,
}

impl Kept {
    pub(super) fn new(asked: &Asked<'_>) -> Self {
        Self {
            id: asked.id.into(),
            method: asked.method.into(),
            params: asked.params.into(),
            modern: asked.modern,
            token: asked.token.map(Into::into),
            batch: asked.batch,
            ticket: asked.ticket,
            phase: asked.phase,
            item: asked.item.cloned(),
            called: asked.called.map(Into::into),
            uri: asked.uri.to_vec(),
            call_count: asked.call_count,
            replies: asked.replies.to_vec(),
            behavior: asked.behavior.cloned(),
        }
    }

    /// How much memory it takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let replies = self.replies.iter().map(|(_, reply)| reply.len()).sum::<usize>();
        size_of::<Self>() + self.id.len() + self.params.len() + replies
    }

    /// Borrows it as a request.
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked {
            id: &self.id,
            method: &self.method,
            params: &self.params,
            modern: self.modern,
            token: self.token.as_deref(),
            batch: self.batch,
            ticket: self.ticket,
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
