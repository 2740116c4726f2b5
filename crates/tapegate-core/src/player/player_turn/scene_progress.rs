//! Continues scenes: at once, when they are due, or when it is their turn.

use std::io;

use super::super::client_replies::ReplyChange;
use super::super::order::OrderGroup;
use super::super::scene::{ActiveScene, SceneWait};
use super::PlayerTurn;
use crate::tape::index::NONE;

impl PlayerTurn<'_, '_> {
    /// Plays a scene as far as possible, and then those that waited for it.
    pub(super) fn advance_scene(&mut self, mut scene: ActiveScene) -> io::Result<()> {
        let limit = match self.context.options.is_instant() {
            true => self.live.limit(&mut scene, self.context.tape, self.shared_run.as_deref()),
            false => NONE,
        };
        let group = scene.group;
        self.advance_scene_until(scene, limit)?;
        // The scene may have made room for others that waited for it.
        self.advance_group(group, self.live.has_left())
    }

    fn advance_scene_until(&mut self, mut scene: ActiveScene, limit: u32) -> io::Result<()> {
        if scene.advance(&mut self.context, self.live, (self.at, limit), self.act)? {
            self.live.store_scene(scene);
        }
        Ok(())
    }

    /// Plays the scenes whose turn has come; once the client is `quiet`, all that wait.
    fn advance_group(&mut self, group: OrderGroup, quiet: bool) -> io::Result<()> {
        loop {
            let shared = self.shared_run.as_deref();
            let next = self.live.take_scene_in_turn(group, quiet, self.context.tape, shared);
            let Some((scene, limit)) = next else { return Ok(()) };
            self.advance_scene_until(scene, limit)?;
        }
    }

    /// Plays all scenes that wait for their turn.
    pub(super) fn advance_waiting(&mut self) -> io::Result<()> {
        for group in self.live.queue.groups() {
            self.advance_group(group, true)?;
        }
        Ok(())
    }

    /// Plays the scenes that are due.
    pub(in crate::player) fn advance_due(&mut self) -> io::Result<()> {
        while let Some(mut scene) = self.live.take_due(self.at.mono_ns) {
            if let SceneWait::Cancel(_) = scene.wait {
                self.answer_uncancelled(&mut scene)?;
                continue;
            }
            if let SceneWait::Reply(request, _) = scene.wait {
                self.report_reply_change(request, ReplyChange::Missing, Default::default())?;
                scene.stop_waiting(self.at, self.context.tape);
            }
            self.advance_scene(scene)?;
        }
        if self.live.queue.next_deadline().is_some()
            && self.live.queue.is_client_silent(self.at.mono_ns)
        {
            self.advance_waiting()?;
        }
        self.report_unsupported()
    }
}
