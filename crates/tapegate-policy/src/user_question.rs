//! The text of the question that a client's user is asked about a held call.
//!
//! Everything that comes from the call is written in visible characters, on lines that are indented
//! by four spaces: a client that renders Markdown shows them as they are.
//!
//! Some clients cut a text that is longer than their dialog, with a small mark or with none. Their
//! users get a shorter form, and can approve only what it shows in full.

use std::time::Duration;

use tapegate_core::{readable_json, visible_text};

use crate::approval_channel::{ApprovalRequest, has_more_than_arguments};

/// A longer text does not fit on a screen.
const TEXT_BYTES_MAX: usize = 6000;
const LINES_MAX: usize = 120;
/// Longer names are cut.
const NAME_CHARS_MAX: usize = 200;
const INDENT: &str = "    ";
/// The start of a line that continues the one before it, so that it cannot pass for a new one.
const CONTINUED: &str = "    ↳ ";
/// The columns that a dialog has on a terminal of 80 columns.
const DIALOG_COLUMNS: usize = 74;

/// How many lines of a text the dialogs of these clients show (found with Claude Code 2.1 and Codex
/// 0.166, on a terminal of 24 lines). An entry matches the start of the client's name.
const SMALL_DIALOGS: [(&str, usize); 2] = [("claude-code", 4), ("codex", 12)];

/// A question, and whether it shows the whole call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionText {
    pub text: String,
    /// Whether it shows the whole call. If not, its reader must not approve.
    pub is_whole: bool,
}

/// What a question shows of a call, in visible characters and without secrets.
struct ShownCall<'a> {
    server: String,
    /// The kind of what is called, such as `tool`.
    word: &'a str,
    name: String,
    reason: String,
    workflow: String,
    /// The arguments, or the whole params if they contain more.
    content: &'a [u8],
    is_masked: bool,
    /// Whether a name is too long to be shown whole.
    is_name_cut: bool,
    /// The command that shows the call elsewhere.
    command: String,
    timeout: Duration,
}

impl QuestionText {
    /// The question about a call. `params` are its params with secrets masked, `tool` and `reason`
    /// are masked too.
    pub fn new(
        request: &ApprovalRequest<'_>,
        params: &str,
        (tool, reason): (&str, &str),
        approval_id: Option<&str>,
    ) -> Self {
        let name = |text: &str| visible_text::inline(text, NAME_CHARS_MAX);
        let arguments = tapegate_core::json::member(params.as_bytes(), "arguments");
        let content = match arguments {
            Some(arguments) if !has_more_than_arguments(params.as_bytes()) => arguments,
            _ => params.as_bytes(),
        };
        let shown = ShownCall {
            server: name(request.source),
            word: request.subject.word,
            name: name(tool),
            reason: name(reason),
            workflow: name(request.workflow_name),
            content,
            is_masked: params.contains("[REDACTED"),
            is_name_cut: [request.source, tool]
                .iter()
                .any(|name| name.chars().count() > NAME_CHARS_MAX),
            command: format!("tapegate approvals approve {}", approval_id.unwrap_or("ID")),
            timeout: Duration::from_millis(request.timeout_ms),
        };
        let client = request.principal.client.as_deref().unwrap_or_default();
        match SMALL_DIALOGS.iter().find(|(start, _)| client.starts_with(start)) {
            Some((_, lines_max)) => shown.in_lines(*lines_max),
            None => shown.on_a_screen(),
        }
    }
}

impl ShownCall<'_> {
    /// The question for a client that shows or scrolls a long text.
    fn on_a_screen(&self) -> QuestionText {
        let (lines, fits) = bounded(readable_json::lines(self.content, INDENT));
        let is_whole = fits && !self.is_name_cut;
        let mut text = "May this call be sent to its MCP server?\n\n".to_owned();
        for (label, value) in [
            ("server", &self.server),
            (self.word, &self.name),
            ("why", &self.reason),
            ("workflow", &self.workflow),
        ] {
            text.push_str(&format!("{INDENT}{label}: {value}\n"));
        }
        text.push_str(&format!("{INDENT}with:\n"));
        for line in lines {
            text.push_str(&format!("{INDENT}{line}\n"));
        }
        text.push('\n');
        if self.is_masked {
            text.push_str("Values marked [REDACTED] are sent as they are, but not shown here.\n");
        }
        if !is_whole {
            text.push_str(&format!(
                "The call is too long to be shown here, so it can only be denied here. In a terminal, `{}` shows it and can approve it.\n",
                self.command
            ));
        }
        let seconds = self.timeout.as_secs();
        text.push_str(&format!("Asked by Tapegate. The call waits for {seconds} s."));
        QuestionText { text, is_whole }
    }

    /// The question for a client that cuts a longer text. What matters most is first.
    fn in_lines(&self, lines_max: usize) -> QuestionText {
        let heading = wrapped(&format!("Send {} `{}` to `{}`?", self.word, self.name, self.server));
        let hidden = if self.is_masked { "[REDACTED] values are sent unmasked." } else { "" };
        let room = lines_max.saturating_sub(heading.len() + usize::from(self.is_masked));
        let readable = readable_json::lines(self.content, INDENT);
        let dense = format!("{INDENT}{}", visible_text::value(self.content, usize::MAX / 8));
        let layouts = [readable, vec![dense]];
        let mut layouts = layouts
            .iter()
            .map(|lines| lines.iter().flat_map(|line| wrapped(line)).collect::<Vec<_>>());
        // A heading that leaves no room has an overlong name, which must be seen whole, too.
        let fitting = layouts
            .find(|lines| lines.len() <= room && lines_max > heading.len())
            .filter(|_| !self.is_name_cut);
        let is_whole = fitting.is_some();
        let mut lines = heading;
        match fitting {
            Some(content) => {
                lines.extend((!hidden.is_empty()).then(|| hidden.to_owned()));
                lines.extend(content);
                // The reason is no part of the call.
                let why = format!("Why: {}", self.reason);
                let why = wrapped(&why);
                if lines.len() + why.len() <= lines_max {
                    lines.extend(why);
                }
            }
            None => {
                lines.truncate(lines_max.saturating_sub(2));
                lines.push("Too long to show here: deny it, or decide in a terminal by".to_owned());
                lines.push(format!("{INDENT}{}", self.command));
            }
        }
        QuestionText { text: lines.join("\n"), is_whole }
    }
}

/// A line as lines that fit a dialog.
fn wrapped(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut columns = 0;
    for letter in line.chars() {
        // Some letters take two columns; which do depends on the terminal.
        let width = if letter.is_ascii() || letter == '│' { 1 } else { 2 };
        if columns + width > DIALOG_COLUMNS {
            out.push(CONTINUED.to_owned());
            columns = CONTINUED.chars().count();
        }
        columns += width;
        if let Some(last) = out.last_mut() {
            last.push(letter);
        }
    }
    out
}

/// The lines that fit, and whether they are all.
fn bounded(mut lines: Vec<String>) -> (Vec<String>, bool) {
    let mut bytes = 0;
    let fits = |line: &String| {
        bytes += line.len() + INDENT.len() + 1;
        bytes <= TEXT_BYTES_MAX
    };
    let count = lines.iter().take(LINES_MAX).map(fits).take_while(|fits| *fits).count();
    let is_whole = count == lines.len();
    lines.truncate(count);
    if !is_whole {
        lines.push(format!("{INDENT}…"));
    }
    (lines, is_whole)
}

#[cfg(test)]
mod tests;
