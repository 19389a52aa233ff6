//! The thread that asks the engine again and again where the log ends. The answer is the *word* by which a node is
//! ready.
//!
//! It has a connection of its own, so it does not wait behind anything. It also has the engine's ticks appended
//! when they are due. All nodes do so, and the engine appends each tick once.

use std::sync::atomic::Ordering;

use super::life::Loss;
use super::{Node, lock};
use crate::log::{EngineError, Place};

pub(crate) fn run(node: &Node) {
    while !node.is_ending() {
        ask(node);
        // Time alone may have made the node stale.
        node.standing().now(node.clock.now());
        node.sleep(node.settings.beat);
    }
}

/// Asks once, and passes the answer to the filter.
pub(crate) fn ask(node: &Node) {
    let Some(known) = node.known() else { return };
    // Before the request is sent: an answer says nothing about a filter that is loaded later.
    let life = node.life.load_full().filter(|life| life.epoch == known.place.epoch);
    let sent = node.clock.now();
    let answer = node.engine.head(known.place.epoch);
    node.is_silent.store(matches!(answer, Err(EngineError::Unreachable(_))), Ordering::Relaxed);
    match answer {
        // It has lost something: this node knows of messages that are gone.
        Ok(head) if head.position < known.place.position => {
            let error = EngineError::AnotherLog { expected: known.place, found: Some(head.place()) };
            if let Some(life) = life {
                life.lose(Loss::Gap(error.to_string()));
            }
        }
        Ok(head) => {
            if let Some(known) = &mut *lock(&node.known) {
                known.head(head, node.clock.now());
            }
            if let Some(life) = life {
                node.leased(life.word(sent, head.position));
            }
            if head.now / 1000 / node.settings.resolution > head.tick.into() {
                // If this fails, the next attempt will do.
                let _ = node.engine.append_tick(Place { epoch: head.epoch, position: head.position });
            }
        }
        Err(error @ EngineError::AnotherLog { .. }) => {
            if let Some(life) = life {
                life.lose(Loss::Gap(error.to_string()));
            }
        }
        Err(error) => node.standing().silence(node.clock.now(), error.to_string()),
    }
}
