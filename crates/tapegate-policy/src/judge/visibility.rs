//! Which items of a server's lists are visible, by the policy and by the accepted definitions.

use crate::decide::{hidden_reading, shows};
use crate::filter::Sight;
use crate::gated::{Gated, Offer};
use crate::glob::Glob;
use crate::model::{Expose, Policy, Source};
use crate::pins::{Lock, Watch};

/// The visible part of a server's lists.
pub(super) struct ListView<'a> {
    pub(super) source: Option<&'a Source>,
    pub(super) watch: &'a Watch,
    /// The accepted definitions, if drifted items are hidden.
    pub(super) lock: Option<&'a Lock>,
    pub(super) server: &'a str,
}

impl Sight for ListView<'_> {
    fn limited(&self, offer: Offer) -> bool {
        let pinned = self.lock.and_then(|lock| lock.servers.get(self.server));
        let pinned = pinned.is_some_and(|server| server.offers.contains_key(&offer));
        let expose = self.source.filter(|source| source.enabled);
        let expose = expose.map(|source| exposed(source, offer));
        pinned || !matches!(expose, Some(Expose::All))
    }

    fn shows(&self, offer: Offer, name: &str) -> bool {
        let source = self.source.filter(|source| source.enabled);
        let exposed = source.is_some_and(|source| shows(source, offer, name));
        let drifted = || {
            let lock = self.lock?;
            self.watch.drift(lock, self.server, offer, name)
        };
        exposed && drifted().is_none()
    }
}

/// A description of the list in the policy that hides an item; `None` if it is visible.
pub fn hidden_by(policy: &Policy, server: &str, method: &str, name: &str) -> Option<String> {
    let offer = Gated::of(method)?.offer(name);
    let source = policy.source(server).filter(|source| source.enabled)?;
    let list = offer.list();
    let texts = |globs: &[Glob]| {
        let texts: Vec<String> = globs.iter().map(|glob| format!("`{}`", glob.text())).collect();
        texts.join(", ")
    };
    // The reading under which it is hidden is the one to look up.
    let reading = hidden_reading(source, offer, name)?;
    match exposed(source, offer) {
        Expose::All => None,
        Expose::Only(globs) if globs.is_empty() => {
            Some(format!("on no list: the allowlist for {list} of source `{}` is empty", source.id))
        }
        Expose::Only(globs) => {
            let globs = texts(globs);
            Some(format!("not on the allowlist for {list} of source `{}`: {globs}", source.id))
        }
        Expose::Except(globs) => {
            let hit = globs.iter().find(|glob| reading.hits(glob))?;
            let (id, glob) = (&source.id, hit.text());
            Some(format!("on the blocklist for {list} of source `{id}`, by `{glob}`"))
        }
    }
}

fn exposed(source: &Source, offer: Offer) -> &Expose {
    match offer {
        Offer::Tool => &source.tools,
        Offer::Prompt => &source.prompts,
        Offer::Resource | Offer::Template => &source.resources,
    }
}
