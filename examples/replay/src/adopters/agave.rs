//! agave: a validator drops packets that it has seen, before it verifies their signatures (`perf/src/deduper.rs`).
//!
//! Today it has a Bloom filter of atomic words with two hash functions, 76 MiB for shreds. All of it is cleared every
//! five minutes, or when its false-positive rate has come to 0.1 %.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use concurrent_cuckoo_filter::{BuildError, WhenFull};

use crate::{Refused, UsedOnce};

/// What agave asks of a packet.
pub trait Packet {
    /// Its bytes, unless it has been discarded.
    fn data(&self) -> Option<&[u8]>;
    /// Discards it.
    fn discard(&mut self);
}

/// Remembers the packets of the last minutes. If there are more than it has room for, it forgets the oldest sooner.
///
/// None of the methods needs the others to pause.
#[derive(Debug)]
pub struct Deduper {
    seen: UsedOnce<[u8]>,
    started: Instant,
    /// How many packets had been evicted at the last call of `maybe_reset`.
    evicted: AtomicU64,
}

impl Deduper {
    /// Makes room for so many packets in `memory`, a number of seconds, after which a packet counts as new.
    pub fn new(packets: usize, false_positive_rate: f64, memory: Duration) -> Result<Self, BuildError> {
        let seen = UsedOnce::within(memory.as_secs(), packets, false_positive_rate, WhenFull::EvictOldest)?;
        seen.advance(0);
        Ok(Self { seen, started: Instant::now(), evicted: AtomicU64::new(0) })
    }

    /// Lets the packets of before expire, and returns whether others had to go before their time since the last call.
    /// agave calls its own once for each round of batches.
    pub fn maybe_reset(&self) -> bool {
        self.reset_at(self.started.elapsed().as_secs())
    }

    /// [`maybe_reset`](Self::maybe_reset), by a clock in seconds.
    pub fn reset_at(&self, seconds: u64) -> bool {
        self.seen.advance(seconds);
        let evicted = self.seen.filter().stats().expiry.map_or(0, |expiry| expiry.evicted);
        self.evicted.swap(evicted, Ordering::Relaxed) < evicted
    }

    /// Returns whether the packet was seen, and remembers it. In doubt it counts as new.
    #[must_use]
    pub fn dedup(&self, packet: &[u8]) -> bool {
        self.seen.try_use_now(packet) == Err(Refused::Used)
    }

    /// [`dedup`](Self::dedup) for many packets: appends the answers to `seen`. In a large table it is faster.
    pub fn dedup_all(&self, packets: &[&[u8]], seen: &mut Vec<bool>) {
        let mut new = Vec::with_capacity(packets.len());
        while let Err(_refused) =
            self.seen.filter().insert_if_absent_batch(packets[new.len()..].iter().copied(), &mut new)
        {
            new.push(true); // there is no room to remember it
        }
        seen.extend(new.iter().map(|new| !new));
    }

    /// Discards the packets of the batches that were seen. Returns how many are discarded, those of before included.
    pub fn dedup_packets_and_count_discards<P: Packet>(&self, batches: &mut [Vec<P>]) -> u64 {
        let mut seen = Vec::new();
        self.dedup_all(&batches.iter().flatten().filter_map(P::data).collect::<Vec<_>>(), &mut seen);
        let mut seen = seen.into_iter();
        let packets = batches.iter_mut().flatten();
        packets
            .map(|packet| {
                let stays = packet.data().is_some() && seen.next() == Some(false);
                if !stays {
                    packet.discard();
                }
                u64::from(!stays)
            })
            .sum()
    }

    /// For figures.
    pub fn seen(&self) -> &UsedOnce<[u8]> {
        &self.seen
    }
}
