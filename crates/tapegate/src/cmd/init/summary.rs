//! Reports what `init` has found and done, for people and for programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tapegate_core::json::write_str;

use super::clients::{ConfigScope, ConfiguredServer, ServerScan, ServerTarget};
use super::snippets::{Snippet, SnippetPaths, indented, quote_for_shell, shorten_path, snippet};
use crate::program_name;
use crate::views::visible_text;

/// What was found and done.
pub(super) struct InitSummary<'a> {
    pub(super) scan: &'a ServerScan,
    pub(super) paths: &'a SnippetPaths,
    /// The policy, as it was named.
    pub(super) policy: &'a Path,
    /// Whether nothing was to be written.
    pub(super) is_dry_run: bool,
    /// Why only a dry run is possible.
    pub(super) conflict: Option<String>,
    /// The files that were written, the policy first.
    pub(super) written: Vec<PathBuf>,
    /// Whether the policy is generated from tapes.
    pub(super) is_from_tapes: bool,
    /// The folders and counts of these tapes, or of tapes that could be used.
    pub(super) tapes: Vec<(PathBuf, usize)>,
    /// The servers on the tapes that the policy is generated from.
    pub(super) taped: Vec<String>,
    /// The folder that displayed paths are relative to, and the home folder.
    pub(super) folder: PathBuf,
    pub(super) home: Option<PathBuf>,
}

impl InitSummary<'_> {
    fn shorten_path(&self, path: &Path) -> String {
        shorten_path(path, &self.folder, self.home.as_deref())
    }

    /// Whether no call of a server passes because it is on no tape.
    fn is_blocked(&self, server: &ConfiguredServer) -> bool {
        !self.taped.is_empty() && !self.taped.iter().any(|own| *own == server.id || own == "*")
    }

    fn state(&self, server: &ConfiguredServer) -> &'static str {
        if server.entry.is_governed {
            "behind the gate already"
        } else if server.entry.is_disabled {
            "disabled"
        } else if self.is_blocked(server) {
            "not on any tape, so it is denied"
        } else {
            ""
        }
    }

    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        for path in &self.written {
            writeln!(out, "{}: written", self.shorten_path(path))?;
        }
        if self.is_dry_run {
            writeln!(out, "{}: not written (dry run)", visible_text::path(self.policy))?;
        }
        if let Some(conflict) = &self.conflict {
            writeln!(out, "  without --force, it could not be written: {conflict}")?;
        }
        self.servers(out)?;
        for (path, reason) in &self.scan.skipped {
            writeln!(out, "  skipped {}: {reason}", self.shorten_path(path))?;
        }
        for (path, count) in &self.tapes {
            let tapes = if *count == 1 { "1 tape".to_owned() } else { format!("{count} tapes") };
            let folder = match self.shorten_path(path) {
                here if here.is_empty() => "this folder".to_owned(),
                folder => folder,
            };
            match self.is_from_tapes {
                true => writeln!(out, "  made from {tapes} in {folder}")?,
                false => writeln!(out, "  {tapes} in {folder}, not used")?,
            }
        }
        self.snippets(out)?;
        self.next(out)
    }

    fn servers(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.scan.servers.is_empty() {
            writeln!(out, "  no server found in any client's config")?;
        }
        for server in &self.scan.servers {
            let config = self.shorten_path(&server.config);
            write!(
                out,
                "  server {}, {} ({}), {config}",
                server.id,
                server.client.name,
                server.scope.as_str()
            )?;
            match self.state(server) {
                "" => writeln!(out)?,
                state => writeln!(out, "; {state}")?,
            }
        }
        let is_named = |id: &&String| self.scan.servers.iter().any(|server| server.id == **id);
        for id in self.taped.iter().filter(|id| *id != "*" && !is_named(id)) {
            writeln!(
                out,
                "  server {id}, on the tapes, in no client's config; its shim needs --server-id {id}"
            )?;
        }
        Ok(())
    }

    fn snippets(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut last = None;
        let mut is_first = true;
        for server in &self.scan.servers {
            let Some(Snippet { heading, text, notes }) = snippet(server, self.paths) else {
                continue;
            };
            if std::mem::take(&mut is_first) {
                writeln!(out, "\nTo put these servers behind the gate:")?;
            }
            let here = Some((server.client.name, &server.config, heading.clone()));
            if last != here {
                writeln!(
                    out,
                    "\n  {}, {}: {heading}",
                    server.client.name,
                    self.shorten_path(&server.config)
                )?;
            }
            last = here;
            write!(out, "{}", indented(&text, 4))?;
            for note in notes {
                writeln!(out, "      ({note})")?;
            }
        }
        Ok(())
    }

    fn next(&self, out: &mut dyn Write) -> io::Result<()> {
        let name = visible_text::path(self.policy);
        let file = quote_for_shell(&name.to_string());
        writeln!(out, "\nWhat to do next:\n  {}", program_name::command(format!("check {file}")))?;
        let is_open =
            |server: &&ConfiguredServer| !server.entry.is_disabled && !server.entry.is_governed;
        let open: Vec<&ConfiguredServer> = self.scan.servers.iter().filter(is_open).collect();
        if open.is_empty() && self.scan.servers.is_empty() {
            let line = "shim --require-policy --server-id NAME -- SERVER ARGS";
            writeln!(out, "  {}", program_name::command(line))?;
            writeln!(out, "      instead of `SERVER ARGS` in your client's config")?;
        }
        let local =
            |server: &&&ConfiguredServer| matches!(server.entry.target, ServerTarget::Command(_));
        if let Some(server) = open.iter().find(local)
            && let ServerTarget::Command(argv) = &server.entry.target
        {
            let line: Vec<String> = argv.iter().map(|word| quote_for_shell(word)).collect();
            let line = format!("policy pin --server-id {} -- {}", server.id, line.join(" "));
            writeln!(out, "  {}", program_name::command(line))?;
            let then = match self.is_from_tapes {
                true => "a tool that changes is then refused",
                false => "tools that are pinned and read-only then pass unasked",
            };
            writeln!(out, "      to accept the tools as they are; {then}")?;
        }
        writeln!(out, "  {}", program_name::command(format!("policy accept {file}")))?;
        writeln!(out, "      after each change; until then the accepted policy stays in force")?;
        if open
            .iter()
            .any(|server| server.scope == ConfigScope::User && server.client.starts_in_project)
        {
            writeln!(out, "  {}", program_name::command("init ~/.config/tapegate/tapegate.yaml"))?;
            writeln!(
                out,
                "      for user-wide servers, which are also started in folders without a policy"
            )?;
        }
        if self.taped.is_empty() {
            let tapes = if self.tapes.is_empty() { "--from-tape TAPE" } else { "--from-tapes" };
            writeln!(out, "  {}", program_name::command(format!("init --force {tapes}")))?;
            writeln!(out, "      once your work is on tape, to permit only what it used")?;
        }
        out.flush()
    }

    pub(super) fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut text = SummaryObject::default();
        text.text("policy", &self.paths.policy.display().to_string());
        text.raw("dry_run", if self.is_dry_run { "true" } else { "false" });
        let written = self.written.iter().map(|path| quoted(&path.display().to_string()));
        text.list("written", written);
        text.list("servers", self.scan.servers.iter().map(|server| self.server(server)));
        text.list(
            "skipped",
            self.scan.skipped.iter().map(|(path, reason)| {
                let mut one = SummaryObject::default();
                one.text("config", &path.display().to_string());
                one.text("reason", reason);
                one.end()
            }),
        );
        text.raw("from_tapes", if self.is_from_tapes { "true" } else { "false" });
        if let Some(conflict) = &self.conflict {
            text.text("conflict", conflict);
        }
        text.list(
            "tapes",
            self.tapes.iter().map(|(path, count)| {
                let mut one = SummaryObject::default();
                one.text("folder", &path.display().to_string());
                one.raw("count", &count.to_string());
                one.end()
            }),
        );
        writeln!(out, "{}", text.end())?;
        out.flush()
    }

    fn server(&self, server: &ConfiguredServer) -> String {
        let mut one = SummaryObject::default();
        one.text("id", &server.id);
        one.text("name", &server.name);
        one.text("client", server.client.name);
        one.text("scope", server.scope.as_str());
        one.text("config", &server.config.display().to_string());
        match &server.entry.target {
            ServerTarget::Command(argv) => {
                one.list("command", argv.iter().map(|word| quoted(word)))
            }
            ServerTarget::Url(url, _) => one.text("url", url),
        }
        one.raw("disabled", if server.entry.is_disabled { "true" } else { "false" });
        one.raw("governed", if server.entry.is_governed { "true" } else { "false" });
        if let Some(snippet) = snippet(server, self.paths) {
            one.text("snippet", &snippet.text);
            one.list("notes", snippet.notes.iter().map(|note| quoted(note)));
        }
        one.end()
    }
}

/// A JSON object that is written member by member.
#[derive(Default)]
struct SummaryObject {
    text: String,
}

impl SummaryObject {
    fn raw(&mut self, key: &str, value: &str) {
        let comma = if self.text.is_empty() { "" } else { "," };
        self.text += &format!("{comma}{}:{value}", quoted(key));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, &quoted(value));
    }

    fn list(&mut self, key: &str, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values.collect();
        self.raw(key, &format!("[{}]", values.join(",")));
    }

    fn end(self) -> String {
        format!("{{{}}}", self.text)
    }
}

fn quoted(text: &str) -> String {
    let mut json = Vec::new();
    write_str(&mut json, text);
    String::from_utf8(json).unwrap_or_default()
}
