//! The answers to several uses of one thing: one that is always the same, or one after the other.

use std::io;

use super::Work;
use super::gather::Use;
use super::reply::Reply;
use crate::emit::{Element, Entry, Part};
use crate::node::{Node, Value};

/// The largest file that a scenario may name, with room to spare.
const FILE_BYTES_MAX: usize = 9 << 20;
/// What an answer takes besides what is in it, roughly.
const REPLY_BYTES: usize = 100;

impl Work<'_, '_> {
    /// What was answered to some uses of one thing: nothing, an answer, or a sequence.
    pub(super) fn response(&mut self, uses: &[&Use]) -> io::Result<Vec<Entry>> {
        let Some(first) = uses.first() else { return Ok(Vec::new()) };
        let mut row = self.row(uses)?;
        if let Some((last, times)) = row.last.take() {
            if row.replies.is_empty() {
                let Reply { comments, mut entries } = with_count(last, times);
                if let Some(first) = entries.first_mut() {
                    first.comments.splice(..0, comments);
                }
                self.spill(&mut entries, &first.key)?;
                return Ok(entries);
            }
            row.replies.push(with_count(last, times));
        }
        let left_out = uses.len() - row.uses;
        if left_out > 0 {
            let words = format!(
                "`{}` has more answers than a scenario holds; {left_out} are left out",
                first.key
            );
            self.summary.warnings.push(words);
            self.summary.answers_left_out += left_out as u64;
        }
        let sequence = match self.options.sequences_in_files {
            true => {
                let text = json_of(&row.replies);
                let words = "What was answered, call by call, stands in a file.";
                Entry::new("sequence", self.spiller.list(&text, &first.key)?).about(words)
            }
            false => {
                for reply in &mut row.replies {
                    self.spill(&mut reply.entries, &first.key)?;
                }
                let sequence: Vec<Element> = row.replies.into_iter().map(element).collect();
                Entry::new("sequence", sequence).about("What was answered, call by call.")
            }
        };
        Ok(vec![sequence, Entry::new("on_exhausted", Part::text("last"))])
    }

    /// Answers in a row, as far as there is room for them.
    fn row(&mut self, uses: &[&Use]) -> io::Result<Row> {
        let mut row = Row::default();
        let mut room = match self.options.sequences_in_files {
            true => FILE_BYTES_MAX,
            false => self.room,
        };
        for used in uses {
            let reply = self.reply(used)?;
            // The last is repeated for ever, so what is the same at the end is said once.
            if let Some((same, times)) = &mut row.last
                && trees(same) == trees(&reply)
            {
                *times += 1;
                row.uses += 1;
                continue;
            }
            if let Some((before, times)) = row.last.take() {
                let cost = self.cost(&before).saturating_mul(times);
                if cost > room && !row.replies.is_empty() {
                    row.uses -= times;
                    break;
                }
                room = room.saturating_sub(cost);
                row.replies.extend(std::iter::repeat_n(before, times));
            }
            row.last = Some((reply, 1));
            row.uses += 1;
        }
        if !self.options.sequences_in_files {
            self.room = room;
        }
        Ok(row)
    }

    /// About how many bytes an answer takes where it is written.
    fn cost(&self, reply: &Reply) -> usize {
        let inline_bytes_max = match self.options.sequences_in_files {
            true => usize::MAX,
            false => self.options.inline_bytes_max,
        };
        let entries =
            reply.entries.iter().map(|entry| weight(&entry.value.to_node(), inline_bytes_max));
        REPLY_BYTES + entries.sum::<usize>()
    }

    /// Puts what is too large in an answer into files.
    fn spill(&mut self, entries: &mut [Entry], name: &str) -> io::Result<()> {
        for entry in entries.iter_mut().filter(|entry| entry.key != "before") {
            if let Part::Node(node) = &mut entry.value {
                self.spiller.spill(node, name)?;
            }
        }
        Ok(())
    }
}

/// Answers in a row.
#[derive(Default)]
struct Row {
    replies: Vec<Reply>,
    /// The one after them, and how often it came.
    last: Option<(Reply, usize)>,
    /// How many uses they are the answers to.
    uses: usize,
}

fn element(reply: Reply) -> Element {
    Element { comments: reply.comments, apart: false, value: Part::Map(reply.entries) }
}

fn with_count(mut reply: Reply, times: usize) -> Reply {
    match times {
        1 => {}
        2 => reply.comments.push("and the same once more".to_owned()),
        _ => reply.comments.push(format!("and the same {} times more", times - 1)),
    }
    reply
}

/// The trees of an answer, without comments.
fn trees(reply: &Reply) -> Vec<(&str, Node)> {
    reply.entries.iter().map(|entry| (entry.key.as_str(), entry.value.to_node())).collect()
}

/// Answers as JSON, each on a line of its own.
fn json_of(replies: &[Reply]) -> Vec<u8> {
    let mut text = b"[".to_vec();
    for (place, reply) in replies.iter().enumerate() {
        text.extend_from_slice(if place == 0 { b"\n" } else { b",\n" });
        let entry = |entry: &Entry| super::tree::entry(&entry.key, meant(&entry.value));
        let node = super::tree::map(reply.entries.iter().map(entry).collect());
        node.write_json(&mut text);
    }
    text.extend_from_slice(b"\n]\n");
    text
}

/// The tree of a part, with JSON that is no tree as it is.
fn meant(part: &Part) -> Node {
    match part {
        Part::Node(node) => node.clone(),
        Part::Map(_) => part.to_node(),
        Part::List(elements) => {
            Node::new(Value::List(elements.iter().map(|element| meant(&element.value)).collect()))
        }
    }
}

/// About how many bytes a node takes where it is written; longer texts stand elsewhere.
fn weight(node: &Node, inline_bytes_max: usize) -> usize {
    const NODE_BYTES: usize = 24;
    NODE_BYTES
        + match &node.value {
            Value::Null | Value::Bool(_) => 0,
            Value::Text(text) if text.len() > inline_bytes_max => 0,
            Value::Number(text) | Value::Text(text) | Value::Raw(text) => text.len(),
            Value::List(elements) => {
                elements.iter().map(|node| weight(node, inline_bytes_max)).sum()
            }
            Value::Map(entries) => entries
                .iter()
                .map(|(key, node)| key.name.len() + weight(node, inline_bytes_max))
                .sum(),
        }
}
