//! From a tape to a scenario: what was recorded, as a server that people can edit.
//!
//! Nothing here reads a file: bodies come through [`Bodies`], and what is too large to be read in
//! YAML goes out through [`Assets`]. Calls are told apart by what they name (tool, resource,
//! prompt) and by their turn: the n-th call of a tool gets what the n-th call got on the tape.
//!
//! A *use* is one operation of a client: a request, and the retries of it that answered what the
//! server wanted to know. A *listing* is a list with all of its pages.

mod fit;
mod gather;
mod hello;
mod items;
mod listing;
mod matching;
mod methods;
mod phases;
mod reply;
mod scene;
mod sequence;
mod spill;
mod state;
mod strict;
mod tree;

use std::io;

use tapegate_core::tape::index::{Bodies, Index, Slot};

use crate::emit::{Document, Entry, Part};

use gather::Gathered;
use spill::Spiller;

/// How a scenario is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// One state for ever.
    #[default]
    Simple,
    /// A benign phase, and one to be made an attack.
    Phased,
}

/// What is wanted of a conversion.
pub struct Options<'a> {
    /// How the scenario is laid out.
    pub style: Style,
    /// After how many calls the attack begins; where the tape has the server change its tools, or
    /// after three, unless given.
    pub phase_after: Option<u64>,
    /// Whether only the keys of the old schema may be used.
    pub strict: bool,
    /// The session of the tape that is converted, from 1; all of them, unless given.
    pub session: Option<u32>,
    /// Whether answers go by the arguments of a call instead of by its turn.
    pub match_arguments: bool,
    /// What the tape is called.
    pub tape: &'a str,
    /// What the server is called, if not as on the tape.
    pub name: Option<&'a str>,
    /// Where editors find the schema.
    pub schema: Option<&'a str>,
    /// How long text may be that stands in the scenario itself.
    pub inline_bytes_max: usize,
    /// How large the scenario may become, about; answers that do not fit are left out.
    pub bytes_max: usize,
    /// Whether sequences go to files as a whole, so that there is room for very many answers.
    pub sequences_in_files: bool,
    /// Takes secrets out of what goes into comments.
    pub mask: &'a dyn Fn(&str) -> String,
    /// Is told how many bytes of how many have been gone through.
    pub progress: &'a dyn Fn(u64, u64),
}

/// Where texts go that are too large for the scenario.
pub trait Assets {
    /// Keeps a file under about this name, and tells the path that `$file` reaches it by.
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<String>;
}

/// A tape as a scenario.
#[derive(Debug)]
pub struct Converted {
    /// The scenario.
    pub document: Document,
    /// What was found.
    pub summary: Summary,
}

/// What was found on a tape.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Tools of the scenario.
    pub tools: usize,
    /// Resources.
    pub resources: usize,
    /// Resource templates.
    pub templates: usize,
    /// Prompts.
    pub prompts: usize,
    /// Methods that are answered by their name.
    pub methods: usize,
    /// Calls of tools on the tape.
    pub calls: u64,
    /// Reads of resources.
    pub reads: u64,
    /// Prompts that were fetched.
    pub gets: u64,
    /// The names of the phases.
    pub phases: Vec<String>,
    /// After how many calls the last phase begins.
    pub attack_after: Option<u64>,
    /// How many texts went to files of their own, and how many bytes they have.
    pub spilled: (usize, u64),
    /// Answers that there was no room for.
    pub answers_left_out: u64,
    /// What the server said that has no place in the scenario.
    pub left_out: u64,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Makes a scenario of a tape.
pub fn convert(
    index: &Index,
    bodies: &mut dyn Bodies,
    assets: &mut dyn Assets,
    options: &Options<'_>,
) -> io::Result<Converted> {
    let bytes_total = 2 * sizes(index, usize::MAX).0;
    let mut tape = Tape { index, bodies, progress: options.progress, bytes_done: 0, bytes_total };
    let mut gathered = gather::gather(&mut tape, options)?;
    let mut summary = Summary {
        calls: gathered.calls,
        warnings: std::mem::take(&mut gathered.warnings),
        ..Summary::default()
    };
    let spiller = Spiller::new(assets, options);
    let room = options.bytes_max;
    let mut work = Work { tape, options, spiller, room, to_edit: false, summary: &mut summary };
    let entries = work.scenario(&gathered)?;
    summary.spilled = work.spiller.done();
    (options.progress)(bytes_total, bytes_total);
    // Several phases may have the same to tell.
    let mut told = std::collections::HashSet::new();
    summary.warnings.retain(|warning| told.insert(warning.clone()));
    let head = head(index, options, &gathered);
    Ok(Converted { document: Document { head, entries }, summary })
}

/// How many bytes the messages of a tape have, and how many if each counts for `most` at most.
pub fn sizes(index: &Index, most: usize) -> (u64, u64) {
    let lengths = (0..index.len() as u32).map(|slot| u64::from(index.slot(slot).length));
    lengths.fold((0, 0), |(all, capped), bytes| (all + bytes, capped + bytes.min(most as u64)))
}

/// A tape that is read.
struct Tape<'a> {
    index: &'a Index,
    bodies: &'a mut dyn Bodies,
    progress: &'a dyn Fn(u64, u64),
    bytes_done: u64,
    /// About how many bytes are read: most messages once to see what they are, once to write them.
    bytes_total: u64,
}

impl Tape<'_> {
    fn text(&mut self, slot: &Slot) -> io::Result<&[u8]> {
        let all_but_end = self.bytes_total.saturating_sub(1);
        self.bytes_done = (self.bytes_done + u64::from(slot.length)).min(all_but_end);
        (self.progress)(self.bytes_done, self.bytes_total);
        self.bodies.body(slot.offset, slot.length)
    }
}

/// A conversion under way.
struct Work<'a, 'b> {
    tape: Tape<'a>,
    options: &'a Options<'a>,
    spiller: Spiller<'a>,
    /// How many bytes there is room for.
    room: usize,
    /// Whether answers get a mark where a person is to put something in.
    to_edit: bool,
    summary: &'b mut Summary,
}

impl Work<'_, '_> {
    fn scenario(&mut self, gathered: &Gathered) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if !self.options.strict {
            let words = "Texts are sent as they stand here: `${…}` means nothing.";
            entries.push(Entry::new("interpolate", Part::text("none")).about(words).apart());
        }
        entries.push(Entry::new("server", self.server(gathered)?).apart());
        entries.extend(self.states(gathered)?);
        if !self.options.strict {
            let methods = self.methods(gathered)?;
            self.summary.methods = methods.len();
            if !methods.is_empty() {
                let words = "Answers to other methods, by their turn.";
                entries.push(Entry::new("methods", methods).about(words).apart());
            }
        }
        entries.push(Entry::new("unknown_methods", Part::text("error")).apart());
        Ok(entries)
    }
}

/// The comments at the top.
fn head(index: &Index, options: &Options<'_>, gathered: &Gathered) -> Vec<String> {
    let mut head = Vec::new();
    if let Some(schema) = options.schema.filter(|_| !options.strict) {
        head.push(format!("yaml-language-server: $schema={schema}"));
    }
    let style = match options.style {
        Style::Simple => "",
        Style::Phased => " (phased)",
    };
    head.push(format!("Made by `tapegate convert` from {}{style}", options.tape));
    if let Some(header) = index.headers().first() {
        head.push(format!("Recorded: {}", header.recorded_at));
        head.push(format!("Upstream: {}", (options.mask)(&header.upstream)));
    }
    head.push(String::new());
    match (options.style, gathered.attack_after(options)) {
        (Style::Phased, Some(after)) => {
            let words = format!("Calls 1 to {after} get what was recorded; from then on the phase");
            head.push(words + " `attack` holds. Edit it to say");
            head.push("what the client is to fall for.".to_owned());
        }
        _ => {
            head.push("Edit what stands under `response` to change what a client gets.".to_owned());
        }
    }
    head
}

#[cfg(test)]
mod tests;
