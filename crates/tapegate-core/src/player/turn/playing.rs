//! Continues scenes: at once, when they are due, or when it is their turn.

use std::io;

use super::super::order::Group;
use super::super::replies::ReplyChange;
use super::super::scene::{Scene, Wait};
use super::Turn;
use crate::tape::index::NONE;

impl Turn<'_, '_> {
    /// Plays a scene as far as possible, and then those that waited for it.
    pub(super) fn play_on(&mut self, mut scene: Scene) -> io::Result<()> {
        let limit = match self.context.options.is_instant() {
            true => self.live.limit(&mut scene, self.context.tape, self.shared_run.as_deref()),
            false => NONE,
        };
        let group = scene.group;
        self.play_until(scene, limit)?;
        self.play_group(group, self.live.has_left())
    }

    fn play_until(&mut self, mut scene: Scene, limit: u32) -> io::Result<()> {
        if scene.play(&mut self.context, self.live, (self.at, limit), self.act)? {
            self.live.keep(scene);
        }
        Ok(())
    }

    /// Plays the scenes whose turn has come; once the client is `quiet`, all that wait.
    fn play_group(&mut self, group: Group, quiet: bool) -> io::Result<()> {
        loop {
            let shared = self.shared_run.as_deref();
            let next = self.live.take_turn(group, quiet, self.context.tape, shared);
            let Some((scene, limit)) = next else { return Ok(()) };
            self.play_until(scene, limit)?;
        }
    }

    /// Plays all scenes that wait for their turn.
    pub(super) fn play_turns(&mut self) -> io::Result<()> {
        for group in self.live.queue.groups() {
            self.play_group(group, true)?;
        }
        Ok(())
    }

    /// Plays the scenes that are due.
    pub(in crate::player) fn due(&mut self) -> io::Result<()> {
        while let Some(mut scene) = self.live.take_due(self.at.mono_ns) {
            if let Wait::Cancel(_) = scene.wait {
                self.not_cancelled(&mut scene)?;
                continue;
            }
            if let Wait::Reply(request, _) = scene.wait {
                self.reply_changed(request, ReplyChange::Missing, Default::default())?;
                scene.wait_no_longer(self.at, self.context.tape);
            }
            self.play_on(scene)?;
        }
        if self.live.queue.due().is_some() && self.live.queue.is_quiet(self.at.mono_ns) {
            self.play_turns()?;
        }
        self.tell_missing()
    }
}
