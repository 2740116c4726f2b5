//! The answers to several uses of one thing: a constant answer or a sequence.

use std::io;

use super::ConversionState;
use super::reply::ReplyDraft;
use super::tape_contents::ClientOperation;
use crate::emit::{DocumentPart, ListElement, MapEntry};
use crate::node::{Node, NodeValue};

/// The size limit of a file with answers. A larger answer goes into the scenario, with its texts in
/// files of their own.
const LIST_BYTES_MAX: usize = 9 << 20;
/// The approximate overhead of an answer.
const REPLY_BYTES: usize = 100;

impl ConversionState<'_, '_> {
    /// The answers to the uses of one thing: none, a constant answer, or a sequence.
    pub(super) fn response(&mut self, uses: &[&ClientOperation]) -> io::Result<Vec<MapEntry>> {
        let Some(first) = uses.first() else { return Ok(Vec::new()) };
        if self.options.sequences_in_files {
            return self.response_in_files(uses, &first.key);
        }
        let mut row = self.row(uses)?;
        if let Some((last, times)) = row.last.take() {
            if row.replies.is_empty() {
                return Ok(constant_reply(last, times));
            }
            row.replies.push(with_count(last, times));
        }
        let left_out = uses.len() - row.uses;
        if left_out > 0 {
            let message = format!(
                "`{}` has more answers than a scenario can hold; {left_out} are left out",
                first.key
            );
            self.summary.warnings.push(message);
            self.summary.answers_left_out += left_out as u64;
        }
        let sequence: Vec<ListElement> = row.replies.into_iter().map(element).collect();
        let sequence =
            MapEntry::new("sequence", sequence).with_comment("Recorded answers, one per call.");
        Ok(vec![sequence, MapEntry::new("on_exhausted", DocumentPart::text("last"))])
    }

    /// Like `response`, with the sequence in files.
    fn response_in_files(
        &mut self,
        uses: &[&ClientOperation],
        key: &str,
    ) -> io::Result<Vec<MapEntry>> {
        let mut files = ReplyFiles::default();
        let mut last: Option<(ReplyDraft, usize)> = None;
        for used in uses {
            let reply = self.reply(used)?;
            // The last answer is repeated without end, so equal answers at the end are written
            // once.
            if let Some((same, times)) = &mut last
                && is_same(same, &reply)
            {
                *times += 1;
            } else if let Some((before, times)) = last.replace((reply, 1)) {
                self.file(&mut files, before, times, key)?;
            }
        }
        let Some((mut last, times)) = last else { return Ok(Vec::new()) };
        if files.are_empty() {
            self.spill(&mut last.entries, key)?;
            return Ok(constant_reply(last, times));
        }
        // Once is enough: `on_exhausted: last` repeats it.
        self.file(&mut files, last, 1, key)?;
        self.close(&mut files, key)?;
        let list = Node::list(files.closed);
        let comment = "Recorded answers, one per call, in separate files.";
        let sequence = MapEntry::new("sequence", list).with_comment(comment);
        Ok(vec![sequence, MapEntry::new("on_exhausted", DocumentPart::text("last"))])
    }

    /// Adds an answer `times` times to the open file, or to a new one if that is full.
    fn file(
        &mut self,
        files: &mut ReplyFiles,
        mut reply: ReplyDraft,
        times: usize,
        key: &str,
    ) -> io::Result<()> {
        let line = json_of(&reply);
        if line.len() > LIST_BYTES_MAX {
            // The text may be very large, and `spill` needs room for a copy.
            drop(line);
            self.close(files, key)?;
            self.spill(&mut reply.entries, key)?;
            let node = DocumentPart::Map(reply.entries).to_node();
            files.closed.extend(std::iter::repeat_n(node, times));
            return Ok(());
        }
        for _ in 0..times {
            if files.open.len() + line.len() > LIST_BYTES_MAX {
                self.close(files, key)?;
            }
            files.open.extend_from_slice(if files.open.is_empty() { b"[\n" } else { b",\n" });
            files.open.extend_from_slice(&line);
        }
        Ok(())
    }

    /// Closes the open file, if there is one.
    fn close(&mut self, files: &mut ReplyFiles, key: &str) -> io::Result<()> {
        if files.open.is_empty() {
            return Ok(());
        }
        files.open.extend_from_slice(b"\n]\n");
        files.closed.push(self.spiller.list(&files.open, key)?);
        files.open.clear();
        Ok(())
    }

    /// Consecutive answers, as many as fit.
    fn row(&mut self, uses: &[&ClientOperation]) -> io::Result<ReplyRun> {
        let mut row = ReplyRun::default();
        let mut room = self.room;
        for used in uses {
            let mut reply = self.reply(used)?;
            // Spill now, so that only one answer with all of its texts is in memory at a time.
            self.spill(&mut reply.entries, &used.key)?;
            // The last answer is repeated without end, so equal answers at the end are written
            // once.
            if let Some((same, times)) = &mut row.last
                && is_same(same, &reply)
            {
                *times += 1;
                row.uses += 1;
                continue;
            }
            if let Some((before, times)) = row.last.take() {
                let cost = self.cost(&before).saturating_mul(times);
                // The first answer is written whatever its size, so that no item ends up without
                // one.
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
        self.room = room;
        Ok(row)
    }

    /// The approximate size of an answer in the scenario.
    fn cost(&self, reply: &ReplyDraft) -> usize {
        let inline_bytes_max = self.options.inline_bytes_max;
        let entries =
            reply.entries.iter().map(|entry| weight(&entry.value.to_node(), inline_bytes_max));
        REPLY_BYTES + entries.sum::<usize>()
    }

    /// Moves large texts of an answer to files.
    fn spill(&mut self, entries: &mut [MapEntry], name: &str) -> io::Result<()> {
        for entry in entries.iter_mut().filter(|entry| entry.key != "before") {
            if let DocumentPart::Node(node) = &mut entry.value {
                self.spiller.replace_large(node, name)?;
            }
        }
        Ok(())
    }
}

/// Consecutive answers.
#[derive(Default)]
struct ReplyRun {
    replies: Vec<ReplyDraft>,
    /// The answer after `replies`, and how often it came.
    last: Option<(ReplyDraft, usize)>,
    /// How many uses they answer.
    uses: usize,
}

/// Consecutive answers in files, each small enough to be loaded.
#[derive(Default)]
struct ReplyFiles {
    /// References to the files that are complete.
    closed: Vec<Node>,
    /// The contents of the file being written.
    open: Vec<u8>,
}

impl ReplyFiles {
    fn are_empty(&self) -> bool {
        self.closed.is_empty() && self.open.is_empty()
    }
}

/// An answer that is always the same.
fn constant_reply(reply: ReplyDraft, times: usize) -> Vec<MapEntry> {
    let ReplyDraft { comments, mut entries } = with_count(reply, times);
    if let Some(first) = entries.first_mut() {
        first.comments.splice(..0, comments);
    }
    entries
}

fn element(reply: ReplyDraft) -> ListElement {
    ListElement { comments: reply.comments, apart: false, value: DocumentPart::Map(reply.entries) }
}

fn with_count(mut reply: ReplyDraft, times: usize) -> ReplyDraft {
    match times {
        1 => {}
        2 => reply.comments.push("and the same once more".to_owned()),
        _ => reply.comments.push(format!("and the same {} times more", times - 1)),
    }
    reply
}

/// Whether two answers are equal, whatever the requests were.
fn is_same(one: &ReplyDraft, two: &ReplyDraft) -> bool {
    let same_part = |one: &DocumentPart, two: &DocumentPart| match (one, two) {
        (DocumentPart::Node(one), DocumentPart::Node(two)) => one == two,
        _ => one.to_node() == two.to_node(),
    };
    let (one, two) = (&one.entries, &two.entries);
    one.len() == two.len()
        && one.iter().zip(two).all(|(a, b)| a.key == b.key && same_part(&a.value, &b.value))
}

/// An answer as JSON, on one line.
fn json_of(reply: &ReplyDraft) -> Vec<u8> {
    let entry = |entry: &MapEntry| Node::entry(&entry.key, part_node(&entry.value));
    Node::map(reply.entries.iter().map(entry).collect()).to_json()
}

/// Converts a part to a node, keeping raw JSON as it is.
fn part_node(part: &DocumentPart) -> Node {
    match part {
        DocumentPart::Node(node) => node.clone(),
        DocumentPart::Map(_) => part.to_node(),
        DocumentPart::List(elements) => {
            Node::list(elements.iter().map(|element| part_node(&element.value)).collect())
        }
    }
}

/// The approximate size of a node in the scenario; longer texts go to files.
fn weight(node: &Node, inline_bytes_max: usize) -> usize {
    const NODE_BYTES: usize = 24;
    NODE_BYTES
        + match &node.value {
            NodeValue::Null | NodeValue::Bool(_) => 0,
            NodeValue::Text(text) if text.len() > inline_bytes_max => 0,
            NodeValue::Number(text) | NodeValue::Text(text) | NodeValue::Raw(text) => text.len(),
            NodeValue::List(elements) => {
                elements.iter().map(|node| weight(node, inline_bytes_max)).sum()
            }
            NodeValue::Map(entries) => entries
                .iter()
                .map(|(key, node)| key.name.len() + weight(node, inline_bytes_max))
                .sum(),
        }
}
