//! Answers by the arguments of a call instead of by its turn.

use std::io;

use tapegate_core::frame::Frame;
use tapegate_core::json;

use super::gather::Use;
use super::{Work, tree};
use crate::emit::{Element, Entry, Part};
use crate::node::{Node, Value};

impl Work<'_, '_> {
    /// What was answered to each sort of arguments, as branches; calls with the same arguments get
    /// their answers by their turn. What no branch can tell apart goes by its turn as a whole.
    pub(super) fn matched(&mut self, uses: &[&Use]) -> io::Result<Vec<Entry>> {
        let mut groups: Vec<(Node, Vec<&Use>)> = Vec::new();
        for used in uses {
            let slot = self.tape.index.slot(used.asks[0]);
            let frame = Frame::read(self.tape.text(&slot)?);
            let params = frame.envelope().and_then(|said| said.params).unwrap_or(b"{}");
            let arguments = tree::read(json::member(params, "arguments").unwrap_or(b"{}"));
            match groups.iter_mut().find(|(known, _)| *known == arguments) {
                Some((_, uses)) => uses.push(used),
                None => groups.push((arguments, vec![used])),
            }
        }
        let conditions: Option<Vec<Node>> =
            groups.iter().map(|(arguments, _)| condition(arguments)).collect();
        let Some(conditions) = conditions.filter(|_| groups.len() > 1) else {
            return self.response(uses);
        };
        // Who asks for more must be asked before who asks for less.
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(conditions[*at].as_map().map_or(0, <[_]>::len)));
        let mut branches = Vec::new();
        for at in order {
            let mut entries = vec![Entry::new("when", Part::Node(conditions[at].clone()))];
            entries.extend(self.response(&groups[at].1)?);
            branches.push(Element::new(entries));
        }
        let rest = self.response(&uses[uses.len() - 1..])?;
        branches.push(Element::new(vec![Entry::new("default", rest)]));
        let words = "What was answered, by the arguments of the call.";
        Ok(vec![Entry::new("match", branches).about(words)])
    }
}

/// What tells these arguments from others, if a condition can.
fn condition(arguments: &Node) -> Option<Node> {
    let mut entries = Vec::new();
    flatten(arguments, "args", &mut entries)?;
    (!entries.is_empty()).then(|| tree::map(entries))
}

fn flatten(node: &Node, path: &str, entries: &mut Vec<(crate::node::Key, Node)>) -> Option<()> {
    match &node.value {
        Value::Map(members) => {
            for (key, node) in members {
                let simple = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                if key.name.is_empty() || !key.name.chars().all(simple) {
                    return None;
                }
                flatten(node, &format!("{path}.{}", key.name), entries)?;
            }
            Some(())
        }
        // Text is a pattern there; only what means itself in it can be told exactly.
        Value::Text(text) => {
            let pattern = format!("regex:^{}$", quoted(text));
            entries.push(tree::entry(path, Node::text(pattern)));
            Some(())
        }
        Value::Number(text) => {
            entries.push(tree::entry(path, Node::text(text)));
            Some(())
        }
        Value::Bool(yes) => {
            entries.push(tree::entry(path, Node::text(if *yes { "true" } else { "false" })));
            Some(())
        }
        Value::Null | Value::List(_) | Value::Raw(_) => None,
    }
}

/// A regular expression for exactly this text.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            c if c.is_ascii()
                && !c.is_ascii_alphanumeric()
                && !matches!(c, ' ' | '_' | '-' | '/') =>
            {
                out.push('\\');
                out.push(c);
            }
            c => out.push(c),
        }
    }
    out
}
