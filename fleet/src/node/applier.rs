//! The thread that changes the filter. No other thread does. It joins, follows the log, and joins again when it has
//! to.

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::apply::apply;
use super::joining::{self, Joined};
use super::keeper::{self, Agreed};
use super::life::{Life, Loss};
use super::step::{LeftOut, Step};
use super::{Core, watcher};
use crate::change::{Change, Tick};
use crate::log::{EngineError, Memory, Message};

/// How long it waits for a message before it checks what else there is to do.
const WAIT: Duration = Duration::from_millis(100);

/// If many messages come at once, the position is published after this many.
const STEP: usize = 256;

pub(super) fn run(node: &Arc<Core>, mut memory: Option<Memory>) {
    // The snapshot from which a filter came that turned out to differ.
    let mut suspect = None;
    while !node.is_ending() {
        match joining::join(node, memory, suspect.take()) {
            Ok(Joined { life, origin }) => {
                let life = Arc::new(life);
                node.tallies.joins.add(1);
                node.trouble(|trouble| &mut trouble.loss, None);
                node.applied.send_replace(Some(life.place()));
                node.life.store(Some(Arc::clone(&life)));
                let loss = follow(node, &life);
                // Its lease is over, so it does not matter that some lookups may still hold it.
                node.life.store(None);
                match loss {
                    Loss::End => return,
                    Loss::Gap(why) => node.standing().gap(node.clock.now(), why),
                    Loss::Differs(why) => {
                        suspect = origin;
                        node.tallies.differences.add(1);
                        let why = format!("its filter differed: {why}");
                        tracing::error!(node = node.name, why, "the node joins anew");
                        node.standing().joining(node.clock.now(), why);
                    }
                }
                if node.left_out.has(Step::Rejoin) {
                    return;
                }
            }
            Err(error) => {
                match error {
                    joining::Error::Engine(EngineError::Waits(why)) => {
                        node.standing().gap(node.clock.now(), EngineError::Waits(why.clone()).to_string());
                        node.trouble(|trouble| &mut trouble.loss, Some(EngineError::Waits(why).to_string()));
                    }
                    error => node.standing().progress(node.clock.now(), error.to_string()),
                }
                node.pause();
            }
        }
        memory = node.known().map(|known| known.memory).or(memory);
    }
}

/// Follows the log until the filter can't be used any more.
fn follow(node: &Core, life: &Life) -> Loss {
    thread::scope(|scope| {
        let (moments, received) = sync_channel(1);
        scope.spawn(move || keeper::run(node, life, &received));
        let mut applier = Applier { node, life, moments, swept: Instant::now(), is_first: true };
        // At once, without waiting for the watcher's next round. The node is ready when it has caught up with the
        // answer.
        node.block(watcher::ask(node));
        let loss = applier.run();
        life.lose(loss.clone());
        // The keeper ends when it finds this channel closed.
        drop(applier);
        life.loss().unwrap_or(loss)
    })
}

impl Core {
    /// Sleeps, but at most 250 ms, so that the node can end.
    pub(super) fn pause(&self) {
        thread::sleep(self.settings.beat());
    }
}

struct Applier<'a> {
    node: &'a Core,
    life: &'a Life,
    moments: SyncSender<Agreed<'a>>,
    swept: Instant,
    /// Nothing has been applied yet.
    is_first: bool,
}

impl Applier<'_> {
    fn run(&mut self) -> Loss {
        let Self { node, life, .. } = *self;
        loop {
            if node.is_ending() {
                return Loss::End;
            }
            if let Some(loss) = life.loss() {
                return loss;
            }
            let begin = Instant::now();
            match node.block(node.engine.read(life.place(), WAIT)) {
                Ok(messages) if messages.is_empty() => {
                    // Nothing to read: there is nothing, or it was trimmed, or only other people's messages are there.
                    let first = node.known().map_or(0, |known| known.head.first);
                    if first > life.position() + 1 && !node.left_out.has(Step::SilentGap) {
                        return Loss::Gap(EngineError::Gap { position: life.position(), first }.to_string());
                    }
                    if begin.elapsed() < WAIT / 2 {
                        node.pause();
                    }
                }
                Ok(messages) => {
                    for some in messages.chunks(STEP) {
                        if let Err(loss) = self.apply(some) {
                            return loss;
                        }
                    }
                }
                Err(EngineError::Unreachable(why)) => {
                    node.standing().silence(node.clock.now(), why);
                    node.pause();
                }
                Err(error) => return Loss::Gap(error.to_string()),
            }
            self.sweep();
        }
    }

    /// Applies messages, and publishes how far it has come.
    fn apply(&mut self, messages: &[Message]) -> Result<(), Loss> {
        let Self { node, life, .. } = *self;
        // Up to each tick: nothing after a tick may be in the filter when the state at the tick is taken.
        for part in messages.chunk_by(|one, _| tick(one).is_none()) {
            let Some(last) = part.last() else { continue };
            if let Some(tick) = tick(last) {
                self.believe(tick)?;
            }
            let changes: Vec<_> = part.iter().flat_map(|message| message.changes.iter().copied()).collect();
            self.change(&changes).map_err(Loss::Differs)?;
            node.tallies.messages.add(part.len() as u64);
            node.tallies.changes.add(changes.len() as u64);
            node.leased(life.applied(part.iter().map(|message| message.place)));
            node.learn(last.place);
            node.applied.send_replace(Some(last.place));
            if tick(last).is_some() {
                self.take_moment(last);
            }
        }
        Ok(())
    }

    /// Waits until the node's own clocks allow this tick. Until then the node answers nothing.
    fn believe(&self, tick: Tick) -> Result<(), Loss> {
        let Self { node, life, .. } = *self;
        while let Err(why) = node.allows(tick) {
            node.contradiction(|trouble| &mut trouble.tick, why);
            node.pause();
            if let Some(loss) = life.loss() {
                return Err(loss);
            }
            if node.is_ending() {
                return Err(Loss::End);
            }
        }
        node.trouble(|trouble| &mut trouble.tick, None);
        Ok(())
    }

    fn change(&mut self, mut changes: &[Change]) -> Result<(), String> {
        let left_out: &LeftOut = &self.node.left_out;
        // Leaves out the first insert after the node has joined for the first time, and no other.
        if left_out.has(Step::Change)
            && self.node.tallies.joins.get() == 1
            && self.is_first
            && let Some(place) = changes.iter().position(|change| matches!(change, Change::Insert { .. }))
        {
            apply(&self.life.filter, &changes[..place], left_out)?;
            changes = &changes[place + 1..];
            self.is_first = false;
        }
        apply(&self.life.filter, changes, left_out)
    }

    /// Takes what the keeper needs of this moment between two changes. All nodes have the same entries at this
    /// position.
    fn take_moment(&mut self, tick: &Message) {
        let Self { node, life, .. } = *self;
        let begin = || {
            let begun = life.filter.begin_save();
            begun.map_err(|error| tracing::warn!(node = node.name, %error, "no digest, no snapshot")).ok()
        };
        // Both are of the same moment: this thread makes all changes, and makes none in between.
        let Some(entries) = begin() else { return };
        let position = tick.place.position;
        let save = if keeper::is_due(node, tick.at) { begin().map(|save| save.position(position)) } else { None };
        let moment = Agreed { place: tick.place, at: tick.at, entries, save };
        // If the keeper is still busy with an earlier moment, this one is left out.
        if let Err(TrySendError::Full(_)) = self.moments.try_send(moment) {
            node.tallies.skipped.add(1);
        }
    }

    /// Sweeps a share of the filter, many times in each tick.
    fn sweep(&mut self) {
        let every = Duration::from_millis(self.node.settings.resolution / 2);
        let every = every.clamp(Duration::from_millis(10), Duration::from_millis(250));
        if self.swept.elapsed() >= every
            && let Some(now) = self.life.filter.now()
        {
            self.swept = Instant::now();
            self.life.filter.advance_to(now);
        }
    }
}

impl Core {
    /// Whether this node's own clocks allow this tick of the log.
    pub(super) fn allows(&self, tick: Tick) -> Result<(), String> {
        if self.left_out.has(Step::Clocks) {
            return Ok(());
        }
        super::lock(&self.time).allows(tick, self.settings.resolution, self.clock.now(), self.clock.machine())
    }
}

/// The tick of a message that is one.
fn tick(message: &Message) -> Option<Tick> {
    match message.changes[..] {
        [Change::Tick { now }] => Some(now),
        _ => None,
    }
}
