//! Answers selected by the arguments of a call instead of by its order.

use std::collections::HashMap;
use std::io;

use tapegate_core::json;
use tapegate_core::signature::canonical;

use super::tape_contents::ClientOperation;
use super::{ConversionState, tree};
use crate::emit::{DocumentPart, ListElement, MapEntry};
use crate::node::Node;

impl ConversionState<'_, '_> {
    /// The answers as branches by arguments. Calls with the same arguments get their answers in
    /// order; calls with arguments not on the tape get the answer of the last call.
    pub(super) fn answers_by_arguments(
        &mut self,
        uses: &[&ClientOperation],
    ) -> io::Result<Vec<MapEntry>> {
        let mut groups: Vec<(Node, Vec<&ClientOperation>)> = Vec::new();
        let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
        for used in uses {
            let params = self.tape.params(used.asks[0])?;
            let arguments = json::member(params, "arguments").unwrap_or(b"{}");
            // The scenario compares arguments by value, so spelling must not matter here either.
            let place = *known.entry(canonical(arguments)).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, uses)) => uses.push(used),
                None => groups.push((tree::read(arguments), vec![used])),
            }
        }
        // All calls had the same arguments, so there is nothing to choose by.
        if groups.len() < 2 {
            return self.response(uses);
        }
        let mut branches = Vec::new();
        for (mut arguments, group) in groups {
            if let Some(used) = group.first() {
                self.spiller.replace_large(&mut arguments, &used.key)?;
            }
            let equals = Node::map(vec![Node::entry("equals", arguments)]);
            let when = Node::map(vec![Node::entry("args", equals)]);
            let mut entries = vec![MapEntry::new("when", DocumentPart::Node(when))];
            entries.extend(self.response(&group)?);
            branches.push(ListElement::new(entries));
        }
        let rest = self.response(&uses[uses.len() - 1..])?;
        branches.push(ListElement::new(vec![MapEntry::new("default", rest)]));
        let comment = "Recorded answers, by the arguments of the call.";
        Ok(vec![MapEntry::new("match", branches).with_comment(comment)])
    }
}
