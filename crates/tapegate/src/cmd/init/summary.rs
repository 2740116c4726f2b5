//! Reports what `init` has found and done, for people and for programs.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::clients::{ConfigScope, ConfiguredServer, OverlayStyle, ServerScan, ServerTarget};
use super::snippets::{Snippet, SnippetPaths, indented, quote_for_shell, snippet};
use crate::program_name;
use crate::views::short_path::shorten_path;
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
        // A policy for a server that no client starts would look like a mistake.
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
        writeln!(out, "\nWhat to do next:")?;
        let is_open =
            |server: &&ConfiguredServer| !server.entry.is_disabled && !server.entry.is_governed;
        let open: Vec<&ConfiguredServer> = self.scan.servers.iter().filter(is_open).collect();
        if !open.is_empty() || self.scan.servers.is_empty() {
            self.installation(&open, out)?;
        }
        writeln!(out, "  {}", program_name::command(format!("check {file}")))?;
        if open.is_empty() && self.scan.servers.is_empty() {
            let config = self.config_flag();
            let line = format!("shim --require-policy {config}--server-id NAME -- SERVER ARGS");
            writeln!(out, "  {}", program_name::command(line))?;
            writeln!(out, "      instead of `SERVER ARGS` in your client's config")?;
        }
        self.pinning(&open, out)?;
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
        // A policy from tapes needs no second one.
        if self.taped.is_empty() {
            let tapes = if self.tapes.is_empty() { "--from-tape TAPE" } else { "--from-tapes" };
            let named = match self.paths.is_default {
                true => String::new(),
                false => format!(" {file}"),
            };
            writeln!(out, "  {}", program_name::command(format!("init --force {tapes}{named}")))?;
            writeln!(out, "      once your work is on tape, to permit only what it used")?;
        }
        out.flush()
    }

    /// `--config FILE `, for commands that would find another policy or none.
    fn config_flag(&self) -> String {
        match self.paths.is_default {
            true => String::new(),
            false => {
                let name = visible_text::path(self.policy).to_string();
                format!("--config {} ", quote_for_shell(&name))
            }
        }
    }

    /// The commands that do what the snippets say.
    fn installation(&self, open: &[&ConfiguredServer], out: &mut dyn Write) -> io::Result<()> {
        let wrapped = open.iter().find(|server| server.client.overlay != OverlayStyle::None);
        let command =
            wrapped.and_then(|server| server.client.commands.first()).unwrap_or(&"claude");
        let id = open.first().map_or("codex", |server| server.client.id);
        let config = self.config_flag();
        writeln!(out, "  {}", program_name::command(format!("wrap {config}-- {command}")))?;
        writeln!(out, "      to put the agent's servers behind the gate for one session")?;
        let line = format!("agents install {config}{id}");
        writeln!(out, "  {}", program_name::command(line))?;
        writeln!(out, "      to put them there for all sessions, without editing configs yourself")
    }

    fn pinning(&self, open: &[&ConfiguredServer], out: &mut dyn Write) -> io::Result<()> {
        let local =
            |server: &&&ConfiguredServer| matches!(server.entry.target, ServerTarget::Command(_));
        let Some(server) = open.iter().find(local) else { return Ok(()) };
        let ServerTarget::Command(argv) = &server.entry.target else { return Ok(()) };
        let words: Vec<String> = argv.iter().map(|word| quote_for_shell(word)).collect();
        let (config, words) = (self.config_flag(), words.join(" "));
        let line = format!("policy pin {config}--server-id {} -- {words}", server.id);
        writeln!(out, "  {}", program_name::command(line))?;
        let then = match self.is_from_tapes {
            true => "a tool that changes is then refused",
            false => "tools that are pinned and read-only then pass unasked",
        };
        writeln!(out, "      to accept the tools as they are; {then}")
    }

    pub(super) fn json(&self, out: &mut dyn Write) -> io::Result<()> {
        let text = |path: &Path| path.display().to_string();
        let skipped = self.scan.skipped.iter();
        let mut summary = json!({
            "policy": text(&self.paths.policy),
            "dry_run": self.is_dry_run,
            "written": self.written.iter().map(|path| text(path)).collect::<Vec<_>>(),
            "servers": self.scan.servers.iter().map(|one| self.server(one)).collect::<Vec<_>>(),
            "skipped": skipped
                .map(|(path, reason)| json!({ "config": text(path), "reason": reason }))
                .collect::<Vec<_>>(),
            "from_tapes": self.is_from_tapes,
        });
        if let Some(conflict) = &self.conflict {
            summary["conflict"] = conflict.as_str().into();
        }
        let tapes = self.tapes.iter();
        let tapes = tapes.map(|(path, count)| json!({ "folder": text(path), "count": count }));
        summary["tapes"] = tapes.collect();
        writeln!(out, "{summary}")?;
        out.flush()
    }

    fn server(&self, server: &ConfiguredServer) -> Value {
        let mut one = json!({
            "id": server.id,
            "name": server.name,
            "client": server.client.name,
            "scope": server.scope.as_str(),
            "config": server.config.display().to_string(),
        });
        match &server.entry.target {
            ServerTarget::Command(argv) => one["command"] = argv.as_slice().into(),
            ServerTarget::Url(url, _) => one["url"] = url.as_str().into(),
        }
        one["disabled"] = server.entry.is_disabled.into();
        one["governed"] = server.entry.is_governed.into();
        if let Some(snippet) = snippet(server, self.paths) {
            one["snippet"] = snippet.text.into();
            one["notes"] = snippet.notes.into();
        }
        one
    }
}
