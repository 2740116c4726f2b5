//! Reads and checks policies, and reports all errors at once with their positions.

use std::collections::BTreeMap;

use cedar_policy::pst;
use cedar_policy::{Effect, ParseErrors, Policy, PolicyId, PolicySet, Schema, Template};
use tapegate_core::lenient::path_glob::{MeantFolder, meant_folder};

use crate::build::build;
use crate::check::{self, Found};
use crate::dialect::{Dialect, Mention, mentions};
use crate::polarity::{Aim, FOLDERS, PathPattern, Split, split};
use crate::reads::Reads;
use crate::schema::schema;
use crate::selector::Selector;
use crate::statements::{spot, statements};
use crate::types::{Clash, Record, Type};
use crate::typing::Types;
use crate::{Cedar, Fault, Text, Tool, own_schema};

/// A policy and its position.
pub(crate) struct Read {
    text: usize,
    offset: usize,
    pub(crate) id: String,
    pub(crate) policy: Policy,
    pub(crate) body: pst::Template,
    pub(crate) split: Option<Split>,
    pub(crate) reads: Reads,
    pub(crate) selector: Selector,
    mentions: Vec<Mention>,
    pub(crate) approval: Option<String>,
}

struct Loader<'a> {
    texts: &'a [Text],
    faults: Vec<Fault>,
}

pub(crate) fn load(
    texts: &[Text],
    own: Option<&Text>,
    tools: &[Tool],
) -> (Option<Cedar>, Vec<Fault>) {
    let mut loader = Loader { texts, faults: Vec::new() };
    let policies = loader.read();
    let cedar = loader.check(&policies, own, tools);
    let mut faults = loader.faults;
    faults.sort_by_key(|fault| (fault.text, fault.line, fault.column));
    let failed = faults.iter().any(|fault| fault.error);
    (cedar.filter(|_| !failed), faults)
}

impl Loader<'_> {
    fn fault(&mut self, text: usize, at: Option<usize>, error: bool, words: String) {
        let (line, column) = match (at, self.texts.get(text)) {
            (Some(at), Some(text)) => spot(&text.text, at),
            _ => (0, 0),
        };
        self.faults.push(Fault { text, line, column, error, words });
    }

    /// Reads the policies of all texts.
    fn read(&mut self) -> Vec<Read> {
        let mut all = Vec::new();
        for (place, text) in self.texts.iter().enumerate() {
            match text.text.parse::<PolicySet>() {
                Ok(_) => self.read_text(place, &text.text, &mut all),
                Err(errors) => self.unreadable(place, &errors),
            }
        }
        self.name(&mut all);
        all
    }

    fn unreadable(&mut self, text: usize, errors: &ParseErrors) {
        for error in errors.iter() {
            let help = miette::Diagnostic::help(error).map(|help| format!("; {help}"));
            let words = format!("{error}{}", help.unwrap_or_default());
            self.fault(text, check::place(error).or(Some(0)), true, words);
        }
    }

    fn read_text(&mut self, text: usize, source: &str, all: &mut Vec<Read>) {
        for range in statements(source) {
            let offset = range.start;
            let statement = &source[range];
            let read = match Policy::parse(None, statement) {
                Ok(policy) => policy.to_pst().map(|pst| (policy, pst)).map_err(|e| e.to_string()),
                Err(_) if Template::parse(None, statement).is_ok() => {
                    Err("templates are not supported; write a policy without slots".to_owned())
                }
                Err(errors) => Err(errors.to_string()),
            };
            match read {
                Ok((policy, pst)) => {
                    let read = Read {
                        text,
                        offset,
                        id: String::new(),
                        reads: Reads::of(&pst),
                        selector: Selector::of(&pst),
                        mentions: mentions(&pst),
                        approval: None,
                        body: pst.body().clone(),
                        split: None,
                        policy,
                    };
                    all.push(self.split(read, statement));
                }
                Err(words) => self.fault(text, Some(offset), true, words),
            }
        }
    }

    /// Splits a policy's conditions by the purpose of each test.
    fn split(&mut self, mut read: Read, statement: &str) -> Read {
        let aim = match read.policy.effect() {
            Effect::Forbid => Aim::Stop,
            Effect::Permit => Aim::Pass,
        };
        match split(&read.body, aim) {
            Ok(split) => {
                self.warn_of_patterns(&read, &split, statement);
                read.reads.take(&split);
                read.split = Some(split);
            }
            Err(words) => {
                let at = check::word(statement, FOLDERS).unwrap_or_default();
                self.fault(read.text, Some(read.offset + at), true, words);
            }
        }
        read
    }

    /// Warns of `like` patterns that were meant to match a folder.
    fn warn_of_patterns(&mut self, read: &Read, split: &Split, statement: &str) {
        for PathPattern { path, text } in &split.path_patterns {
            let key = path.last().map_or("", String::as_str);
            let Some((folder, up)) = meant_folder(key, text) else { continue };
            let folder = match folder {
                MeantFolder::Absolute(folder) => folder,
                MeantFolder::Home(rest) => format!("/home/NAME{rest}"),
                // Folders are absolute, so there is nothing better to suggest.
                MeantFolder::Relative(_) => continue,
            };
            let words = format!(
                "`like \"{text}\"` compares text, and a path has other spellings (`{up}`, `../x`); \
                 write `context.{FOLDERS}.{}.contains(\"{folder}\")`",
                path.join(".")
            );
            let at = statement.find(text.as_str()).unwrap_or_default();
            self.fault(read.text, Some(read.offset + at), false, words);
        }
    }

    /// Gives every policy its name, and reads its annotations.
    fn name(&mut self, all: &mut [Read]) {
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        for read in all {
            let text = &self.texts[read.text];
            let (line, column) = spot(&text.text, read.offset);
            let place = format!("{}:{line}", text.name);
            let id = match read.policy.annotation("id") {
                Some("") => {
                    let words = "`@id` is empty; give the policy a name".to_owned();
                    self.fault(read.text, Some(read.offset), true, words);
                    place.clone()
                }
                Some(id) => id.to_owned(),
                // Two policies may be on one line.
                None if taken.contains_key(&place) => format!("{place}:{column}"),
                None => place.clone(),
            };
            if let Some(other) = taken.get(&id) {
                let words =
                    format!("`@id(\"{id}\")` is used by the policy at {other}; ids must be unique");
                self.fault(read.text, Some(read.offset), true, words);
            }
            taken.insert(id.clone(), place);
            read.policy = read.policy.new_id(PolicyId::new(&id));
            read.id = id;
            self.approval(read);
        }
    }

    fn approval(&mut self, read: &mut Read) {
        let new = read.policy.annotation("approval");
        let old = read.policy.annotation("thoughtgate_approval");
        let Some(workflow) = new.or(old) else { return };
        let words = if read.policy.effect() == Effect::Forbid {
            "`@approval` on a forbid does nothing: a forbidden call is never held; put it on the \
             permit"
        } else if new.is_some() && old.is_some() && new != old {
            "`@approval` and `@thoughtgate_approval` name different workflows; keep one"
        } else if workflow.is_empty() {
            "`@approval` names no workflow; write `@approval(\"name\")`"
        } else {
            read.approval = Some(workflow.to_owned());
            return;
        };
        self.fault(read.text, Some(read.offset), true, words.to_owned());
    }

    fn check(&mut self, all: &[Read], own: Option<&Text>, tools: &[Tool]) -> Option<Cedar> {
        let mentioned: Vec<&[Mention]> = all.iter().map(|read| &read.mentions[..]).collect();
        let mut dialect = match Dialect::of(&mentioned) {
            Ok(dialect) => dialect,
            Err((place, words)) => {
                let read = &all[place];
                self.fault(read.text, Some(read.offset), true, words);
                return None;
            }
        };
        let mut types = Types::new(tools);
        let own = match own.map(|text| own_schema::read(text, &mut dialect)) {
            Some(Err((at, words))) => {
                let (line, column) =
                    at.map_or((0, 0), |at| own.map_or((0, 0), |text| spot(&text.text, at)));
                let text = self.texts.len();
                self.faults.push(Fault { text, line, column, error: true, words });
                return None;
            }
            Some(Ok(own)) => Some(own),
            None => None,
        };
        if let Some(own) = &own {
            types.fix(own.arguments.clone());
        }
        // Errors in the others were already reported.
        for read in all.iter().filter(|read| read.split.is_some()) {
            let found = match &own {
                Some(own) => check::check(&read.policy, own.schema.clone(), None),
                None => self.check_one(read, &dialect, &types),
            };
            found.into_iter().for_each(|found| self.found(read, found));
        }
        let pairs: Vec<(&Reads, &Selector)> =
            all.iter().map(|read| (&read.reads, &read.selector)).collect();
        if let Err(clash) = types.imply(&pairs) {
            let read = all.iter().find(|read| read.reads.arguments.touches(&clash.path));
            let (text, at) = read.map_or((0, None), |read| (read.text, Some(read.offset)));
            self.fault(text, at, true, words(&clash));
        }
        build(all, dialect, types)
    }

    /// Checks a policy against the schema generated for it.
    fn check_one(&mut self, read: &Read, dialect: &Dialect, types: &Types) -> Vec<Found> {
        for words in read.mentions.iter().filter_map(|mention| mention.warning(dialect)) {
            self.fault(read.text, Some(read.offset), false, words);
        }
        for name in types.strangers(&read.selector) {
            let words = format!("no pinned tool has the name `{name}`");
            self.fault(read.text, Some(read.offset), false, words);
        }
        let clash = |clash: Clash| vec![Found { at: None, error: true, words: words(&clash) }];
        let other = match read.reads.arguments.implied() {
            Ok(record) => record,
            Err(found) if types.common(&read.selector).is_none() => return clash(found),
            Err(_) => Record::default(),
        };
        let common = types.common(&read.selector);
        let tool = common.as_ref().unwrap_or(&other);
        let mut found = match &common {
            Some(common) if read.selector.takes_tools() => {
                let statement = &self.texts[read.text].text[read.offset..];
                check::known(statement, &read.reads, &read.selector, common)
            }
            _ => Vec::new(),
        };
        if found.iter().any(|found| found.error) {
            return found;
        }
        let folders = match folder_types(&read.reads, tool) {
            Ok(folders) => folders,
            Err(words) => {
                let statement = &self.texts[read.text].text[read.offset..];
                return vec![Found { at: check::word(statement, FOLDERS), error: true, words }];
            }
        };
        match Schema::from_json_value(schema(dialect, tool, &other, &folders)) {
            Ok(schema) => {
                found.extend(check::check(&read.policy, schema, common.as_ref()));
                found
            }
            Err(error) => {
                let words = format!("cannot generate a schema for this policy: {error}");
                vec![Found { at: None, error: true, words }]
            }
        }
    }

    fn found(&mut self, read: &Read, found: Found) {
        let at = read.offset + found.at.unwrap_or_default();
        self.fault(read.text, Some(at), found.error, found.words);
    }
}

fn words(clash: &Clash) -> String {
    format!(
        "the argument `{}` is used as {} and as {}; use it as one type, name the tools that the \
         policies apply to, or pin the tools with `tapegate policy pin`",
        clash.path.join("."),
        clash.one,
        clash.two
    )
}

/// The type of `context.folders`; on failure, which argument cannot be a path.
fn folder_types(reads: &Reads, tool: &Record) -> Result<Record, String> {
    let mut folders = Record::default();
    for path in reads.folders.keys() {
        match tool.kind_at(path) {
            None | Some(Type::Any | Type::String) => {}
            Some(Type::Set(of)) if matches!(**of, Type::Any | Type::String) => {}
            Some(kind) => {
                let (path, kind) = (path.join("."), kind.name());
                return Err(format!("the argument `{path}` is {kind}, not a path"));
            }
        }
        folders.require(path, Type::Set(Box::new(Type::String)));
    }
    Ok(folders)
}
