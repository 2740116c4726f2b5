//! Completes the entries of a map: applies merge keys and removes duplicate keys.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::finding::{Findings, Severity};
use crate::node::{Node, NodeKey, NodeValue, Spot};

/// A `<<` and its value.
pub(super) struct MergeKey {
    /// The index of the entry that follows it.
    pub(super) at: usize,
    pub(super) spot: Spot,
    pub(super) node: Node,
}

/// The entries of a map in order. Of duplicate keys the last value is kept, in the place of the
/// first. Merged entries go where the `<<` was, unless the map has the key itself.
pub(super) fn settle(
    entries: Vec<(NodeKey, Node)>,
    merges: Vec<MergeKey>,
    twice: Severity,
    findings: &mut Findings,
) -> Vec<(NodeKey, Node)> {
    let mut places: HashMap<String, usize, RandomState> = HashMap::default();
    if merges.is_empty() && is_short_and_distinct(&entries) {
        return entries;
    }
    let mut own: Vec<Option<(NodeKey, Node)>> = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        if let Some(place) = places.get(&key.name) {
            let first = own[*place].replace((key, node));
            let (second, _) = own[*place].as_ref().expect("just put there");
            let line = first.map_or(0, |(key, _)| key.spot.line);
            let message = format!("the key `{}` is already on line {line}", second.name);
            match twice {
                Severity::Error => findings.error(second.spot, message),
                Severity::Warning => {
                    findings.warning(second.spot, format!("{message}; the last one is used"));
                }
            }
            // Keeps the indexes that merge keys refer to.
            own.push(None);
        } else {
            places.insert(key.name.clone(), own.len());
            own.push(Some((key, node)));
        }
    }
    let mut settled = Vec::with_capacity(own.len());
    let mut merges = merges.into_iter().peekable();
    for (at, entry) in own.into_iter().map(Some).chain([None]).enumerate() {
        while let Some(merge) = merges.next_if(|merge| merge.at <= at) {
            merge_in(merge, &mut places, &mut settled, findings);
        }
        settled.extend(entry.flatten());
    }
    settled
}

/// Whether no key is duplicate, checked without allocating; too slow for long maps.
fn is_short_and_distinct(entries: &[(NodeKey, Node)]) -> bool {
    let is_new = |(at, (key, _)): (usize, &(NodeKey, Node))| {
        entries[..at].iter().all(|(k, _)| k.name != key.name)
    };
    entries.len() <= 16 && entries.iter().enumerate().all(is_new)
}

fn merge_in(
    merge: MergeKey,
    places: &mut HashMap<String, usize, RandomState>,
    settled: &mut Vec<(NodeKey, Node)>,
    findings: &mut Findings,
) {
    let MergeKey { spot, node, .. } = merge;
    let maps = match node.value {
        NodeValue::List(elements) => elements,
        value => vec![Node { spot, value }],
    };
    for map in maps {
        let kind = map.kind();
        let NodeValue::Map(entries) = map.value else {
            findings.error(spot, format!("`<<` takes a map or a list of maps, but this is {kind}"));
            continue;
        };
        for (key, node) in entries {
            // The map's own keys win, and of several merged maps the first, as YAML defines it.
            if !places.contains_key(&key.name) {
                places.insert(key.name.clone(), 0);
                settled.push((key, node));
            }
        }
    }
}
