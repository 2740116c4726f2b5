//! Converts a tape to a scenario: the recorded server in an editable form.
//!
//! This module reads no files: bodies come through [`BodySource`], and texts too large for YAML go out
//! through [`AssetSink`]. Calls are matched by what they name (tool, resource, prompt) and by order:
//! the n-th call of a tool gets the answer of the n-th call on the tape.
//!
//! A *use* is one operation of a client: a request, and its retries with the input that the server
//! asked for. A *listing* is a list with all of its pages.

mod argument_branches;
mod asset_writer;
mod items;
mod methods;
mod phases;
mod reply;
mod schema_fit;
mod sequence;
mod server_actions;
mod server_hello;
mod state;
mod strict;
mod tape_contents;
mod tape_listings;
mod tree;

use std::io;

use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::side::Side;
use tapegate_core::tape::index::{BodySource, Index, IndexEntry, NONE};

use crate::emit::{DocumentPart, MapEntry, YamlDocument};

use asset_writer::AssetWriter;
use tape_contents::TapeContents;

/// The layout of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScenarioStyle {
    /// A single state throughout.
    #[default]
    Simple,
    /// A benign phase, and one to be turned into an attack.
    Phased,
}

/// The settings of a conversion.
pub struct ConversionOptions<'a> {
    /// The layout of the scenario.
    pub style: ScenarioStyle,
    /// After how many calls the attack begins. By default where the recorded server changes its
    /// tools, otherwise after three.
    pub phase_after: Option<u64>,
    /// Whether to use only the keys of the old schema.
    pub strict: bool,
    /// The session of the tape to convert, from 1; by default all of them.
    pub session: Option<u32>,
    /// Whether answers depend on the arguments of a call instead of on its order.
    pub match_arguments: bool,
    /// The name of the tape.
    pub tape: &'a str,
    /// The name of the server, if it should differ from the recorded one.
    pub name: Option<&'a str>,
    /// The schema's location, for editors.
    pub schema: Option<&'a str>,
    /// The longest text that is written into the scenario itself.
    pub inline_bytes_max: usize,
    /// The approximate size limit of the scenario; answers that do not fit are left out.
    pub bytes_max: usize,
    /// Whether sequences go to files as a whole, which makes room for very many answers.
    pub sequences_in_files: bool,
    /// Removes secrets from texts that go into comments.
    pub mask: &'a dyn Fn(&str) -> String,
    /// Called with the number of bytes processed and the total.
    pub progress: &'a dyn Fn(u64, u64),
}

/// Stores texts that are too large for the scenario.
pub trait AssetSink {
    /// Stores a file under a name like this one, and returns the path for `$file`.
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<String>;
}

/// A tape converted to a scenario.
#[derive(Debug)]
pub struct ConvertedTape {
    /// The scenario.
    pub document: YamlDocument,
    /// Statistics and warnings.
    pub summary: ConversionSummary,
}

/// Statistics and warnings of a conversion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversionSummary {
    /// How many tools the scenario has.
    pub tools: usize,
    /// How many resources.
    pub resources: usize,
    /// How many resource templates.
    pub templates: usize,
    /// How many prompts.
    pub prompts: usize,
    /// How many methods have a response of their own.
    pub methods: usize,
    /// How many tool calls the tape has.
    pub calls: u64,
    /// How many resource reads.
    pub reads: u64,
    /// How many prompt requests.
    pub gets: u64,
    /// The names of the phases.
    pub phases: Vec<String>,
    /// After how many calls the last phase begins.
    pub attack_after: Option<u64>,
    /// How many texts went to files of their own, and their total size in bytes.
    pub spilled: (usize, u64),
    /// How many answers did not fit.
    pub answers_left_out: u64,
    /// How many answers are, as far as the tape shows, on lines that are too long to be read.
    pub answers_too_long: u64,
    /// How many server messages have no place in the scenario.
    pub left_out: u64,
    /// Messages for the user.
    pub warnings: Vec<String>,
}

/// Converts a tape to a scenario.
pub fn convert(
    index: &Index,
    bodies: &mut dyn BodySource,
    assets: &mut dyn AssetSink,
    options: &ConversionOptions<'_>,
) -> io::Result<ConvertedTape> {
    let bytes_total = 2 * sizes(index, usize::MAX).0;
    let mut tape =
        ConversionInput { index, bodies, progress: options.progress, bytes_done: 0, bytes_total };
    let mut gathered = tape_contents::collect(&mut tape, options)?;
    let mut summary = ConversionSummary {
        calls: gathered.calls,
        warnings: std::mem::take(&mut gathered.warnings),
        ..ConversionSummary::default()
    };
    count_too_long(index, options, &mut summary);
    let spiller = AssetWriter::new(assets, options);
    let room = options.bytes_max;
    let mut work =
        ConversionState { tape, options, spiller, room, to_edit: false, summary: &mut summary };
    let entries = work.scenario(&gathered)?;
    let spilled = work.spiller.totals();
    let warning = work.spiller.warning();
    summary.spilled = spilled;
    summary.warnings.extend(warning);
    (options.progress)(bytes_total, bytes_total);
    // Several phases may produce the same warning.
    let mut seen = std::collections::HashSet::new();
    summary.warnings.retain(|warning| seen.insert(warning.clone()));
    let head = head(index, options, &gathered);
    Ok(ConvertedTape { document: YamlDocument { head, entries }, summary })
}

/// Counts the requests whose answers were too long to be read, and warns of them.
fn count_too_long(index: &Index, options: &ConversionOptions<'_>, summary: &mut ConversionSummary) {
    let entries = index.too_long_count();
    if entries == 0 {
        return;
    }
    let is_wanted = |slot: &u32| {
        options.session.is_none_or(|number| index.entry(*slot).session + 1 == number)
            && index.may_be_answered_too_long(*slot)
    };
    let slots = (0..index.request_count()).map(|request| index.request(request).entry_number);
    let requests = slots.filter(is_wanted).count() as u64;
    summary.answers_too_long = requests.min(u64::from(entries));
    let (are, s) = if entries == 1 { ("is", "y") } else { ("are", "ies") };
    let mut message =
        format!("{entries} entr{s} of the tape {are} longer than --max-entry-bytes and left out");
    if requests > 0 {
        let gets = if requests == 1 {
            "request without another answer gets"
        } else {
            "requests without another answer get"
        };
        message += &format!("; {requests} {gets} an error");
    }
    summary.warnings.push(message);
}

/// The total size of a tape's messages, and the total with each message capped at `most`.
pub fn sizes(index: &Index, most: usize) -> (u64, u64) {
    let lengths = (0..index.len() as u32).map(|slot| u64::from(index.entry(slot).length));
    lengths.fold((0, 0), |(all, capped), bytes| (all + bytes, capped + bytes.min(most as u64)))
}

/// The tape being converted.
struct ConversionInput<'a> {
    index: &'a Index,
    bodies: &'a mut dyn BodySource,
    progress: &'a dyn Fn(u64, u64),
    bytes_done: u64,
    /// The approximate number of bytes to read: most messages once to classify, once to write.
    bytes_total: u64,
}

impl ConversionInput<'_> {
    fn text(&mut self, slot: &IndexEntry) -> io::Result<&[u8]> {
        let all_but_end = self.bytes_total.saturating_sub(1);
        self.bytes_done = (self.bytes_done + u64::from(slot.length)).min(all_but_end);
        (self.progress)(self.bytes_done, self.bytes_total);
        self.bodies.body(slot.offset, slot.length)
    }
}

impl<'a> ConversionInput<'a> {
    /// The params of a request.
    fn params(&mut self, ask: u32) -> io::Result<&[u8]> {
        let frame = Frame::read(self.text(&self.index.entry(ask))?);
        Ok(frame.envelope().and_then(|envelope| envelope.params).unwrap_or(b"{}"))
    }

    /// The answer to a request, if it has one.
    fn answer(&mut self, ask: u32) -> io::Result<Option<Frame<'_>>> {
        match self.index.entry(ask).pair {
            NONE => Ok(None),
            pair => Ok(Some(Frame::read(self.text(&self.index.entry(pair))?))),
        }
    }

    /// The messages that belong to a request, with their numbers: its answer, and those sent
    /// during it.
    fn related(&self, ask: u32) -> impl Iterator<Item = (u32, IndexEntry)> + use<'a> {
        let index = self.index;
        let next = move |number: u32| Some(index.entry(number).next).filter(|next| *next != NONE);
        std::iter::successors(next(ask), move |number| next(*number))
            .map(move |number| (number, index.entry(number)))
    }
}

/// Whether the server sent a message on its own.
fn is_action(entry: &IndexEntry) -> bool {
    let is_action = matches!(entry.kind, MessageKind::Notification | MessageKind::Request);
    entry.from == Side::Server && is_action
}

/// A conversion in progress.
struct ConversionState<'a, 'b> {
    tape: ConversionInput<'a>,
    options: &'a ConversionOptions<'a>,
    spiller: AssetWriter<'a>,
    /// How many bytes are left for answers.
    room: usize,
    /// Whether answers get a marker where the user is to insert a payload.
    to_edit: bool,
    summary: &'b mut ConversionSummary,
}

impl ConversionState<'_, '_> {
    fn scenario(&mut self, gathered: &TapeContents) -> io::Result<Vec<MapEntry>> {
        let mut entries = Vec::new();
        if !self.options.strict {
            let comment = "Texts are sent as written: `${…}` is not expanded.";
            entries.push(
                MapEntry::new("interpolate", DocumentPart::text("none"))
                    .with_comment(comment)
                    .with_blank_line(),
            );
        }
        entries.push(MapEntry::new("server", self.server(gathered)?).with_blank_line());
        entries.extend(self.states(gathered)?);
        if !self.options.strict {
            let methods = self.methods(gathered)?;
            self.summary.methods = methods.len();
            if !methods.is_empty() {
                let comment = "Answers to other methods, in recorded order.";
                entries.push(
                    MapEntry::new("methods", methods).with_comment(comment).with_blank_line(),
                );
            }
        }
        entries
            .push(MapEntry::new("unknown_methods", DocumentPart::text("error")).with_blank_line());
        Ok(entries)
    }
}

/// The comments at the top of the file.
fn head(index: &Index, options: &ConversionOptions<'_>, gathered: &TapeContents) -> Vec<String> {
    let mut head = Vec::new();
    if let Some(schema) = options.schema.filter(|_| !options.strict) {
        head.push(format!("yaml-language-server: $schema={schema}"));
    }
    let style = match options.style {
        ScenarioStyle::Simple => "",
        ScenarioStyle::Phased => " (phased)",
    };
    head.push(format!("Made by `tapegate convert` from {}{style}", options.tape));
    if let Some(header) = index.headers().first() {
        head.push(format!("Recorded: {}", header.recorded_at));
        head.push(format!("Upstream: {}", (options.mask)(&header.upstream)));
    }
    head.push(String::new());
    match (options.style, gathered.attack_after(options)) {
        (ScenarioStyle::Phased, Some(after)) => {
            let text = format!("Calls 1 to {after} get the recorded answers; the phase");
            head.push(text + " `attack` answers later calls.");
            head.push("Edit that phase to define the attack.".to_owned());
        }
        _ => {
            head.push("Edit `response` to change what a client receives.".to_owned());
        }
    }
    head
}

#[cfg(test)]
mod tests;
