//! Which items of a server's lists are visible, by the policy and by the accepted definitions.

use crate::decide::{hidden_reading, is_visible};
use crate::filter::ListVisibility;
use crate::gated_requests::{GatedMethod, OfferKind};
use crate::glob::Glob;
use crate::model::{Exposure, Policy, ServerSource};
use crate::pins::{DefinitionWatch, PinLock};

/// The visible part of a server's lists.
pub(super) struct VisibleLists<'a> {
    pub(super) source: Option<&'a ServerSource>,
    pub(super) watch: &'a DefinitionWatch,
    /// The accepted definitions, if drifted items are hidden.
    pub(super) lock: Option<&'a PinLock>,
    pub(super) server: &'a str,
}

impl ListVisibility for VisibleLists<'_> {
    fn may_hide(&self, offer: OfferKind) -> bool {
        let pinned = self.lock.and_then(|lock| lock.servers.get(self.server));
        let pinned = pinned.is_some_and(|server| server.offers.contains_key(&offer));
        let expose = self.source.filter(|source| source.enabled);
        let expose = expose.map(|source| expose_list(source, offer));
        // A server without an enabled source exposes nothing, so `None` may hide too.
        pinned || !matches!(expose, Some(Exposure::All))
    }

    fn is_visible(&self, offer: OfferKind, name: &str) -> bool {
        let source = self.source.filter(|source| source.enabled);
        let exposed = source.is_some_and(|source| is_visible(source, offer, name));
        let drifted = || {
            let lock = self.lock?;
            self.watch.drift(lock, self.server, offer, name)
        };
        exposed && drifted().is_none()
    }
}

/// A description of the list in the policy that hides an item; `None` if it is visible.
pub fn hidden_by(policy: &Policy, server: &str, method: &str, name: &str) -> Option<String> {
    let offer = GatedMethod::of(method)?.offer(name);
    let source = policy.source(server).filter(|source| source.enabled)?;
    let list = offer.list();
    let texts = |globs: &[Glob]| {
        let texts: Vec<String> = globs.iter().map(|glob| format!("`{}`", glob.text())).collect();
        texts.join(", ")
    };
    // The reading under which it is hidden is the one to look up.
    let reading = hidden_reading(source, offer, name)?;
    match expose_list(source, offer) {
        Exposure::All => None,
        Exposure::Only(globs) if globs.is_empty() => {
            Some(format!("on no list: the allowlist for {list} of source `{}` is empty", source.id))
        }
        Exposure::Only(globs) => {
            let globs = texts(globs);
            Some(format!("not on the allowlist for {list} of source `{}`: {globs}", source.id))
        }
        Exposure::Except(globs) => {
            let hit = globs.iter().find(|glob| reading.is_hidden_by(glob))?;
            let (id, glob) = (&source.id, hit.text());
            Some(format!("on the blocklist for {list} of source `{id}`, by `{glob}`"))
        }
    }
}

fn expose_list(source: &ServerSource, offer: OfferKind) -> &Exposure {
    match offer {
        OfferKind::Tool => &source.tools,
        OfferKind::Prompt => &source.prompts,
        OfferKind::Resource | OfferKind::Template => &source.resources,
    }
}
