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
use super::{Node, lock, watcher};
use crate::change::{Change, Position};
use crate::log::{EngineError, Follower, Message};

/// How long it waits for a message before it checks what else there is to do.
const WAIT: Duration = Duration::from_millis(100);

/// If many messages come at once, the position is published after this many.
const STEP: usize = 256;

pub(crate) fn run(node: &Arc<Node>) {
    // The snapshot from which a filter came that turned out to differ.
    let mut suspect = None;
    while !node.is_ending() {
        match joining::join(node, suspect.take()) {
            Ok(Joined { life, follower, origin }) => {
                let life = Arc::new(life);
                node.tallies.joins.add(1);
                node.applied.send_replace(Some(life.place()));
                node.life.store(Some(Arc::clone(&life)));
                let loss = follow(node, &life, follower);
                // Its lease is over, so it does not matter that some lookups may still hold it.
                node.life.store(None);
                match loss {
                    Loss::End => return,
                    Loss::Gap(why) => {
                        node.say(&why);
                        node.standing().gap(node.clock.now(), why);
                    }
                    Loss::Differs(why) => {
                        suspect = origin;
                        node.tallies.differences.add(1);
                        node.say(&format!("its filter differs: {why}; it joins anew"));
                        node.standing().joining(node.clock.now(), format!("its filter differed: {why}"));
                    }
                }
                if node.left_out.has(Step::Rejoin) {
                    return;
                }
            }
            Err(why) => {
                node.standing().progress(node.clock.now(), why);
                node.sleep(node.settings.beat);
            }
        }
    }
}

/// Follows the log until the filter can't be used any more.
fn follow(node: &Node, life: &Life, follower: Box<dyn Follower>) -> Loss {
    thread::scope(|scope| {
        let (moments, received) = sync_channel(1);
        scope.spawn(move || keeper::run(node, life, &received));
        let mut applier = Applier { node, life, moments, swept: Instant::now(), is_first: true };
        // At once, without waiting for the watcher's next round. The node is ready when it has caught up with the
        // answer.
        watcher::ask(node);
        let loss = applier.run(follower);
        life.lose(loss.clone());
        // The keeper ends when it finds this channel closed.
        drop(applier);
        life.loss().unwrap_or(loss)
    })
}

struct Applier<'a> {
    node: &'a Node,
    life: &'a Life,
    moments: SyncSender<Agreed<'a>>,
    swept: Instant,
    /// Nothing has been applied yet.
    is_first: bool,
}

impl Applier<'_> {
    fn run(&mut self, mut follower: Box<dyn Follower>) -> Loss {
        let Self { node, life, .. } = *self;
        loop {
            if node.is_ending() {
                return Loss::End;
            }
            if let Some(loss) = life.loss() {
                return loss;
            }
            match follower.next(WAIT) {
                Ok(messages) => {
                    for some in messages.chunks(STEP) {
                        if let Err(why) = self.apply(some) {
                            return Loss::Differs(why);
                        }
                    }
                }
                Err(EngineError::Unreachable(why)) => {
                    node.standing().silence(node.clock.now(), why);
                    node.sleep(node.settings.beat);
                }
                Err(error) => return Loss::Gap(error.to_string()),
            }
            self.sweep();
        }
    }

    /// Applies messages, and publishes how far it has come.
    fn apply(&mut self, messages: &[Message]) -> Result<(), String> {
        let is_tick = |message: &Message| matches!(message.changes[..], [Change::Tick { .. }]);
        // Up to each tick: nothing after a tick may be in the filter when the state at the tick is taken.
        for part in messages.split_inclusive(is_tick) {
            let Some(last) = part.last() else { continue };
            let changes: Vec<_> = part.iter().flat_map(|message| message.changes.iter().copied()).collect();
            self.change(&changes)?;
            self.node.tallies.messages.add(part.len() as u64);
            self.node.tallies.changes.add(changes.len() as u64);
            self.come_to(last.position);
            if is_tick(last) {
                self.take_moment(last);
            }
        }
        Ok(())
    }

    fn change(&mut self, mut changes: &[Change]) -> Result<(), String> {
        let left_out: &LeftOut = &self.node.left_out;
        if left_out.has(Step::Change) && self.is_first {
            // Leaves out the first insert after joining, and no other.
            if let Some(place) = changes.iter().position(|change| matches!(change, Change::Insert { .. })) {
                apply(&self.life.filter, &changes[..place], left_out)?;
                changes = &changes[place + 1..];
                self.is_first = self.node.tallies.joins.get() > 1;
            }
            if self.node.tallies.joins.get() > 1 {
                self.is_first = false;
            }
        }
        apply(&self.life.filter, changes, left_out)
    }

    fn come_to(&self, position: Position) {
        let Self { node, life, .. } = self;
        let lease = life.applied(position);
        node.leased(lease);
        if let Some(known) = &mut *lock(&node.known) {
            known.at(life.epoch, position);
        }
        node.applied.send_replace(Some(life.place()));
    }

    /// Takes what the keeper needs of this moment between two changes. All nodes have the same entries at this
    /// position.
    fn take_moment(&mut self, tick: &Message) {
        let Self { node, life, .. } = *self;
        let begin =
            || life.filter.begin_save().map_err(|error| node.say(&format!("no digest, no snapshot: {error}"))).ok();
        // Both are of the same moment: this thread makes all changes, and makes none in between.
        let Some(entries) = begin() else { return };
        let save = if keeper::is_due(node, tick.at) { begin().map(|save| save.position(tick.position)) } else { None };
        let moment = Agreed { place: life.place(), at: tick.at, entries, save };
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
