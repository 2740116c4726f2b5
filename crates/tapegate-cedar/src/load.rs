//! Reads and checks policies, and reports all errors at once with their positions.

use std::collections::BTreeMap;

use cedar_policy::pst;
use cedar_policy::{Effect, ParseErrors, Policy, PolicyId, PolicySet, Schema, Template};
use tapegate_core::lenient::path_glob::{GlobFolder, meant_folder};

use crate::argument_types::ArgumentTypes;
use crate::attribute_reads::AttributeReads;
use crate::build::build;
use crate::check::{self, PolicyFinding};
use crate::dialect::{CedarDialect, NameReference, mentions};
use crate::polarity::{FOLDERS, PathPattern, SplitConditions, TestPurpose, split};
use crate::schema::schema;
use crate::selector::ToolSelector;
use crate::statements::{spot, statements};
use crate::types::{CedarType, RecordType, TypeClash};
use crate::{CedarFault, CedarPolicies, CedarText, ToolDefinition, own_schema};

/// A policy and its position.
pub(crate) struct ParsedPolicy {
    text: usize,
    offset: usize,
    pub(crate) id: String,
    pub(crate) policy: Policy,
    pub(crate) body: pst::Template,
    pub(crate) split: Option<SplitConditions>,
    pub(crate) reads: AttributeReads,
    pub(crate) selector: ToolSelector,
    mentions: Vec<NameReference>,
    pub(crate) approval: Option<String>,
}

struct CedarLoader<'a> {
    texts: &'a [CedarText],
    faults: Vec<CedarFault>,
}

pub(crate) fn load(
    texts: &[CedarText],
    own: Option<&CedarText>,
    tools: &[ToolDefinition],
) -> (Option<CedarPolicies>, Vec<CedarFault>) {
    let mut loader = CedarLoader { texts, faults: Vec::new() };
    let policies = loader.read();
    let cedar = loader.check(&policies, own, tools);
    let mut faults = loader.faults;
    faults.sort_by_key(|fault| (fault.text, fault.line, fault.column));
    let failed = faults.iter().any(|fault| fault.error);
    (cedar.filter(|_| !failed), faults)
}

impl CedarLoader<'_> {
    fn add_fault(&mut self, text: usize, at: Option<usize>, error: bool, message: String) {
        let (line, column) = match (at, self.texts.get(text)) {
            (Some(at), Some(text)) => spot(&text.text, at),
            _ => (0, 0),
        };
        self.faults.push(CedarFault { text, line, column, error, message });
    }

    /// Reads the policies of all texts.
    fn read(&mut self) -> Vec<ParsedPolicy> {
        let mut all = Vec::new();
        for (index, text) in self.texts.iter().enumerate() {
            match text.text.parse::<PolicySet>() {
                // The whole text is parsed first for its errors. Statements are then parsed one by
                // one, because Cedar's set loses their order and positions.
                Ok(_) => self.read_text(index, &text.text, &mut all),
                Err(errors) => self.add_parse_errors(index, &errors),
            }
        }
        self.name(&mut all);
        all
    }

    fn add_parse_errors(&mut self, text: usize, errors: &ParseErrors) {
        for error in errors.iter() {
            let help = miette::Diagnostic::help(error).map(|help| format!("; {help}"));
            let message = format!("{error}{}", help.unwrap_or_default());
            self.add_fault(text, check::place(error).or(Some(0)), true, message);
        }
    }

    fn read_text(&mut self, text: usize, source: &str, all: &mut Vec<ParsedPolicy>) {
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
                    let read = ParsedPolicy {
                        text,
                        offset,
                        id: String::new(),
                        reads: AttributeReads::of(&pst),
                        selector: ToolSelector::of(&pst),
                        mentions: mentions(&pst),
                        approval: None,
                        body: pst.body().clone(),
                        split: None,
                        policy,
                    };
                    all.push(self.split(read, statement));
                }
                Err(message) => self.add_fault(text, Some(offset), true, message),
            }
        }
    }

    /// Splits a policy's conditions by the purpose of each test.
    fn split(&mut self, mut read: ParsedPolicy, statement: &str) -> ParsedPolicy {
        let aim = match read.policy.effect() {
            Effect::Forbid => TestPurpose::Stop,
            Effect::Permit => TestPurpose::Pass,
        };
        match split(&read.body, aim) {
            Ok(split) => {
                self.warn_of_patterns(&read, &split, statement);
                read.reads.add_split(&split);
                read.split = Some(split);
            }
            Err(message) => {
                let at = check::find_word(statement, FOLDERS).unwrap_or_default();
                self.add_fault(read.text, Some(read.offset + at), true, message);
            }
        }
        read
    }

    /// Warns of `like` patterns that were meant to match a folder.
    fn warn_of_patterns(&mut self, read: &ParsedPolicy, split: &SplitConditions, statement: &str) {
        for PathPattern { path, text } in &split.path_patterns {
            let key = path.last().map_or("", String::as_str);
            let Some((folder, up)) = meant_folder(key, text) else { continue };
            let folder = match folder {
                GlobFolder::Absolute(folder) => folder,
                GlobFolder::Home(rest) => format!("/home/NAME{rest}"),
                // Folders are absolute, so there is nothing better to suggest.
                GlobFolder::Relative(_) => continue,
            };
            let message = format!(
                "`like \"{text}\"` compares text, and a path has other spellings (`{up}`, `../x`); \
                 write `context.{FOLDERS}.{}.contains(\"{folder}\")`",
                path.join(".")
            );
            let at = statement.find(text.as_str()).unwrap_or_default();
            self.add_fault(read.text, Some(read.offset + at), false, message);
        }
    }

    /// Gives every policy its name, and reads its annotations.
    fn name(&mut self, all: &mut [ParsedPolicy]) {
        let mut taken: BTreeMap<String, String> = BTreeMap::new();
        for read in all {
            let text = &self.texts[read.text];
            let (line, column) = spot(&text.text, read.offset);
            let place = format!("{}:{line}", text.name);
            let id = match read.policy.annotation("id") {
                Some("") => {
                    let message = "`@id` is empty; give the policy a name".to_owned();
                    self.add_fault(read.text, Some(read.offset), true, message);
                    place.clone()
                }
                Some(id) => id.to_owned(),
                // Two policies may be on one line.
                None if taken.contains_key(&place) => format!("{place}:{column}"),
                None => place.clone(),
            };
            if let Some(other) = taken.get(&id) {
                let message =
                    format!("`@id(\"{id}\")` is used by the policy at {other}; ids must be unique");
                self.add_fault(read.text, Some(read.offset), true, message);
            }
            taken.insert(id.clone(), place);
            read.policy = read.policy.new_id(PolicyId::new(&id));
            read.id = id;
            self.check_approval(read);
        }
    }

    fn check_approval(&mut self, read: &mut ParsedPolicy) {
        let new = read.policy.annotation("approval");
        let old = read.policy.annotation("thoughtgate_approval");
        let Some(workflow) = new.or(old) else { return };
        let message = if read.policy.effect() == Effect::Forbid {
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
        self.add_fault(read.text, Some(read.offset), true, message.to_owned());
    }

    fn check(
        &mut self,
        all: &[ParsedPolicy],
        own: Option<&CedarText>,
        tools: &[ToolDefinition],
    ) -> Option<CedarPolicies> {
        let mentioned: Vec<&[NameReference]> = all.iter().map(|read| &read.mentions[..]).collect();
        let mut dialect = match CedarDialect::of(&mentioned) {
            Ok(dialect) => dialect,
            Err((index, message)) => {
                let read = &all[index];
                self.add_fault(read.text, Some(read.offset), true, message);
                return None;
            }
        };
        let mut types = ArgumentTypes::new(tools);
        let own = match own.map(|text| own_schema::read(text, &mut dialect)) {
            Some(Err((at, message))) => {
                let (line, column) =
                    at.map_or((0, 0), |at| own.map_or((0, 0), |text| spot(&text.text, at)));
                let text = self.texts.len();
                self.faults.push(CedarFault { text, line, column, error: true, message });
                return None;
            }
            Some(Ok(own)) => Some(own),
            None => None,
        };
        if let Some(own) = &own {
            types.set_for_all(own.arguments.clone());
        }
        // Errors in the others were already reported.
        for read in all.iter().filter(|read| read.split.is_some()) {
            let finding = match &own {
                Some(own) => check::check(&read.policy, own.schema.clone(), None),
                None => self.check_one(read, &dialect, &types),
            };
            finding.into_iter().for_each(|finding| self.add_found(read, finding));
        }
        let pairs: Vec<(&AttributeReads, &ToolSelector)> =
            all.iter().map(|read| (&read.reads, &read.selector)).collect();
        if let Err(clash) = types.add_implied(&pairs) {
            let read = all.iter().find(|read| read.reads.arguments.touches(&clash.path));
            let (text, at) = read.map_or((0, None), |read| (read.text, Some(read.offset)));
            self.add_fault(text, at, true, clash_message(&clash));
        }
        build(all, dialect, types)
    }

    /// Checks a policy against the schema generated for it.
    fn check_one(
        &mut self,
        read: &ParsedPolicy,
        dialect: &CedarDialect,
        types: &ArgumentTypes,
    ) -> Vec<PolicyFinding> {
        for message in read.mentions.iter().filter_map(|mention| mention.warning(dialect)) {
            self.add_fault(read.text, Some(read.offset), false, message);
        }
        for name in types.unknown_tools(&read.selector) {
            let message = format!("no pinned tool has the name `{name}`");
            self.add_fault(read.text, Some(read.offset), false, message);
        }
        let clash = |clash: TypeClash| {
            vec![PolicyFinding { at: None, error: true, message: clash_message(&clash) }]
        };
        // A clash matters only if these types are used, which is not so where tools are known.
        let other = match read.reads.arguments.implied_types() {
            Ok(record) => record,
            Err(finding) if types.common(&read.selector).is_none() => return clash(finding),
            Err(_) => RecordType::default(),
        };
        let common = types.common(&read.selector);
        let tool = common.as_ref().unwrap_or(&other);
        let mut finding = match &common {
            Some(common) if read.selector.includes_tools() => {
                let statement = &self.texts[read.text].text[read.offset..];
                check::check_known_arguments(statement, &read.reads, &read.selector, common)
            }
            _ => Vec::new(),
        };
        // Cedar would report the same argument again, in less helpful words.
        if finding.iter().any(|finding| finding.error) {
            return finding;
        }
        let folders = match folder_types(&read.reads, tool) {
            Ok(folders) => folders,
            Err(message) => {
                let statement = &self.texts[read.text].text[read.offset..];
                return vec![PolicyFinding {
                    at: check::find_word(statement, FOLDERS),
                    error: true,
                    message,
                }];
            }
        };
        match Schema::from_json_value(schema(dialect, tool, &other, &folders)) {
            Ok(schema) => {
                finding.extend(check::check(&read.policy, schema, common.as_ref()));
                finding
            }
            Err(error) => {
                let message = format!("cannot generate a schema for this policy: {error}");
                vec![PolicyFinding { at: None, error: true, message }]
            }
        }
    }

    fn add_found(&mut self, read: &ParsedPolicy, finding: PolicyFinding) {
        let at = read.offset + finding.at.unwrap_or_default();
        self.add_fault(read.text, Some(at), finding.error, finding.message);
    }
}

fn clash_message(clash: &TypeClash) -> String {
    format!(
        "the argument `{}` is used as {} and as {}; use it as one type, name the tools that the \
         policies apply to, or pin the tools with `tapegate policy pin`",
        clash.path.join("."),
        clash.one,
        clash.two
    )
}

/// The type of `context.folders`; on failure, which argument cannot be a path.
fn folder_types(reads: &AttributeReads, tool: &RecordType) -> Result<RecordType, String> {
    let mut folders = RecordType::default();
    for path in reads.folders.keys() {
        match tool.kind_at(path) {
            None | Some(CedarType::Any | CedarType::String) => {}
            Some(CedarType::Set(of)) if matches!(**of, CedarType::Any | CedarType::String) => {}
            Some(kind) => {
                let (path, kind) = (path.join("."), kind.name());
                return Err(format!("the argument `{path}` is {kind}, not a path"));
            }
        }
        folders.require(path, CedarType::Set(Box::new(CedarType::String)));
    }
    Ok(folders)
}
